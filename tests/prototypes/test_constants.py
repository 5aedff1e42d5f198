"""Constants as C++ has them: each default is also computed by a compiler."""

from __future__ import annotations

import math
import shutil
import subprocess

import pytest

from ascend_graph.prototypes import parse_text

INTS = [
    "static_cast<uint32_t>(-1)",
    "~0u",
    "~0",
    "~0ull",
    "(int32_t)0xFFFFFFFF",
    "0xFFFFFFFF",
    "static_cast<int8_t>(300)",
    "'\\xff'",
    "'a' + 1",
    "(unsigned char)'\\xff'",
    "static_cast<unsigned short>(70000)",
    "1u - 2",
    "-1 < 0u",
    "-7 / 2",
    "-7 % 3",
    "7u / 2",
    "-1 >> 1",
    "0x80000000 >> 31",
    "true + true",
    "(bool)5",
    "!0",
    "3 > 2 ? 7 : 8",
    "1 == 1 && 2 != 2",
    "UINT32_MAX",
    "UINT8_MAX + 1",
    "INT64_MIN",
    "std::numeric_limits<uint16_t>::max()",
    "std::numeric_limits<int8_t>::min()",
    "static_cast<int>(2.9)",
    "int(-2.9f)",
    "4294967295",
    "2147483648",
    "0x7fffffffffffffff",
    "1LL << 40",
    "1ull << 63",
    "DIRECT",
    "TRUNCATED",
    "NARROW",
    "sizeof_like",
]
FLOATS = [
    "0.1f",
    "0.1f * 3",
    "0.1 * 3",
    "1 / 3.0f",
    "static_cast<float>(0.1) + 0.2",
    "std::numeric_limits<double>::min()",
    "std::numeric_limits<float>::lowest()",
    "std::numeric_limits<float>::epsilon()",
    "FLT_MAX",
    "16777217.0f",
    "(float)16777217",
    "7 / 2",
    "0x1.8p1f",
    "1e-45f",
    "SCALE",
]
STRINGS = [r'"\xe4\xb8\xad"', '"中"', r'"\u4e2d\n" "x"', r'"\344\270\255"', 'u8"é"']
DECLARATIONS = """
constexpr int TRUNCATED = 0.7;
static const uint8_t NARROW = static_cast<uint8_t>(511);
constexpr int64_t DIRECT = -5;
constexpr unsigned sizeof_like = -1;
constexpr float SCALE = 1.0f / 3;
"""


def defaults(kind: str, expressions: list[str]) -> list[object]:
    calls = "".join(f"    .ATTR(a{i}, {kind}, {text})\n" for i, text in enumerate(expressions))
    result = parse_text(f"{DECLARATIONS}REG_OP(A)\n{calls}    .OP_END_FACTORY_REG(A)\n")
    assert not result.diagnostics, [str(diagnostic) for diagnostic in result.diagnostics]
    return [attr.default for attr in result.prototypes[0].attrs]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    compiler = shutil.which("g++") or shutil.which("clang++") or pytest.skip("no C++ compiler")
    work = tmp_path_factory.mktemp("constants")
    lines = [
        *(f'std::printf("%lld\\n", (long long)({text}));' for text in INTS),
        *(f'std::printf("%a\\n", (double)(float)({text}));' for text in FLOATS),
        *(
            f'for (const char* p = (const char*){text}; *p; ++p) std::printf("%02x", (unsigned char)*p); std::puts("");'
            for text in STRINGS
        ),
    ]
    source = work / "constants.cpp"
    headers = "".join(f"#include <{name}>\n" for name in ("cfloat", "climits", "cstdint", "cstdio", "limits"))
    source.write_text(f"{headers}{DECLARATIONS}int main() {{\n" + "\n".join(lines) + "\n}\n")
    program = work / "constants"
    subprocess.run([compiler, "-std=c++17", "-fsigned-char", "-w", "-fpermissive", source, "-o", program], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")


def test_integers_have_the_width_and_sign_of_their_type(compiled: list[str]) -> None:
    found = defaults("Int", INTS)
    assert dict(zip(INTS, found, strict=True)) == dict(zip(INTS, map(int, compiled[: len(INTS)]), strict=True))


def test_floats_have_the_bits_of_their_type(compiled: list[str]) -> None:
    wanted = [float.fromhex(line) for line in compiled[len(INTS) : len(INTS) + len(FLOATS)]]
    import struct

    rounded = [struct.unpack("<f", struct.pack("<f", value))[0] for value in defaults("Float", FLOATS)]
    assert dict(zip(FLOATS, rounded, strict=True)) == dict(zip(FLOATS, wanted, strict=True))


def test_strings_are_bytes(compiled: list[str]) -> None:
    found = [str(text).encode().hex() for text in defaults("String", STRINGS)]
    start = len(INTS) + len(FLOATS)
    assert found == compiled[start : start + len(STRINGS)]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (r'String, "\xff"', "is not UTF-8"),
        ("Int, 9223372036854775808", "must fit into long"),
        ("Int, 2147483647 + 1", "must fit into int"),
        ("Int, 99999999999999999999", "does not fit into 64 bits"),
        ("Int, 1 << 32", "must be from 0 to 31"),
        ("Int, static_cast<int32_t>(1e20)", "must fit into int"),
        ("Float, 1.0 / 0", "division by zero in '/' or '%'"),
        ("Float, 1.0f % 2", "needs integers"),
    ],
)
def test_what_cpp_does_not_define_is_no_default(declared: str, message: str) -> None:
    result = parse_text(f"REG_OP(A)\n    .ATTR(a, {declared})\n    .OP_END_FACTORY_REG(A)\n")
    assert not result.prototypes[0].attrs[0].default_known
    assert message in result.diagnostics[0].message


def test_a_double_attr_keeps_what_float_would_lose() -> None:
    assert defaults("Float", ["std::numeric_limits<double>::min()", "DBL_MAX"]) == [
        2.0**-1022,
        math.ldexp(2 - 2**-52, 1023),
    ]
