# ruff: noqa: E501, PLR0917, RUF100 - kernels are quoted as they are written
"""Which elements functions take: dav-2201 has no instruction for others, and some functions dav-3510 alone has."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from .. import cases as cases_
from ..cases import Case
from ..conftest import Build, Toolkit, launch

TYPES = (
    "half", "bfloat16_t", "float", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t",
)  # fmt: skip
FLOATS = {"half", "float"}
NUMBERS = FLOATS | {"int16_t", "int32_t"}
SHORTS = {"int16_t", "uint16_t"}
INTEGERS = SHORTS | {"int32_t", "uint32_t"}
WORDS = FLOATS | INTEGERS | {"bfloat16_t"}
SUMS = FLOATS | {"bfloat16_t", "int8_t", "int16_t", "int32_t"}
BINARY = ("z, x, y, 64", "z, x, y, (uint64_t)16, 1, {1, 1, 1, 8, 8, 8}")
UNARY = ("z, x, 64", "z, x, (uint64_t)16, 1, {1, 1, 8, 8}")
SCALAR = ("z, x, (T)2, 64", "z, x, (T)2, (uint64_t)16, 1, {1, 1, 8, 8}")
NONE: set[str] = set()
#: What the documents of Atlas A2 say of each function: its elements, and calls of it.
FUNCTIONS: dict[str, tuple[set[str], tuple[str, ...]]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), (NUMBERS, BINARY)),
    **{name: (FLOATS | {"int16_t"}, BINARY) for name in ("AddRelu", "SubRelu")},
    **dict.fromkeys(("Div", "FusedMulAdd", "MulAddDst", "MulAddRelu"), (FLOATS, BINARY)),
    **dict.fromkeys(("Exp", "Ln", "Abs", "Reciprocal", "Sqrt", "Rsqrt"), (FLOATS, UNARY)),
    "Relu": (FLOATS | {"int32_t"}, UNARY),
    "Not": (SHORTS, UNARY),
    "And": (INTEGERS, BINARY[:1]),
    "Or": (SHORTS, BINARY[1:]),
    **dict.fromkeys(("Adds", "Muls", "Maxs", "Mins"), (NUMBERS, SCALAR)),
    **dict.fromkeys(("ShiftLeft", "ShiftRight"), (INTEGERS, SCALAR)),
    "LeakyRelu": (FLOATS, SCALAR),
    "Axpy": (FLOATS, SCALAR[:1]),
    "Duplicate": (WORDS, ("z, (T)1, 64", "z, (T)1, (uint64_t)16, 1, 1, 8")),
    "Copy": (WORDS, ("z, x, (uint64_t)16, 1, {1, 1, 8, 8}",)),
    "Compare": (FLOATS | {"int32_t"}, ("m, x, y, CMPMODE::EQ, 128",)),
    "Select": (FLOATS, ("z, m, x, y, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64",)),
    **dict.fromkeys(("WholeReduceSum", "WholeReduceMax", "WholeReduceMin"), (FLOATS, ("z, x, 16, 1, 1, 1, 8",))),
    **dict.fromkeys(("BlockReduceSum", "BlockReduceMax", "PairReduceSum"), (FLOATS, ("z, x, 1, 16, 1, 1, 8",))),
    **dict.fromkeys(("ReduceSum", "ReduceMax", "ReduceMin"), (FLOATS, ("z, x, y, 64",))),
    "Gather": (WORDS, ("z, x, o, (uint32_t)0, 32u",)),
    "Gatherb": ({"uint16_t", "uint32_t"}, ("z, x, o, 1, GatherRepeatParams(1, 8)",)),
    "GatherMask": (WORDS, ("z, x, (uint8_t)1, false, 0, {1, 1, 8, 0}, r",)),
    "GatherMask<T, uint8_t>": (NONE, ("z, x, m, false, 0, {1, 1, 8, 0}, r",)),
    "GatherMask<T, uint32_t>": (set(TYPES), ("z, x, o, false, 0, {1, 1, 8, 0}, r",)),
    "Brcb": (WORDS, ("z, x, 1, {1, 8}",)),
    "CreateVecIndex": (NUMBERS, ("z, (T)0, 64",)),
    "ArithProgression": (NUMBERS, ("z, (T)0, (T)1, 16",)),
    **dict.fromkeys(("Tanh", "Gelu", "Erf", "Floor", "Sign", "Log"), (FLOATS, ("z, x, m, 64",))),
    "Swish": (FLOATS, ("z, x, 64, (T)1",)),
    "SwiGLU": (FLOATS, ("z, x, y, 1.0f, m, 64",)),
    "GeGLU": (FLOATS, ("z, x, y, m, 64",)),
    "ReGlu": (FLOATS | {"bfloat16_t"}, ("z, x, y, m, 64",)),
    "Sum": (FLOATS, ("z, x, m, SumParams{1, 64, 64}",)),
    "Mean": (FLOATS, ("z, x, m, MeanParams{1, 64, 64}",)),
    "Power": (FLOATS | {"int32_t"}, ("z, x, y, m, 64",)),
    "Xor": (SHORTS, ("z, x, y, m, 64",)),
    **{f"SetAtomic{name}<T>": (SUMS, ("",)) for name in ("Add", "Max", "Min")},
    **dict.fromkeys(("Subs", "Divs", "Ands", "Ors"), (NONE, SCALAR[:1])),
    "Neg": (NONE, UNARY[:1]),
    "Hypot": (NONE, ("z, x, y, m, 64",)),
    "Interleave": (NONE, ("z, y, x, x, 64",)),
    "DeInterleave": (NONE, ("z, y, x, x, 64",)),
}  # fmt: skip
#: Functions that a device's compiler takes of all elements: a call of others ends the kernel.
REFUSED_WHEN_CALLED = {
    "Copy",
    "Gather",
    "GatherMask",
    "Brcb",
    *(f"SetAtomic{name}<T>" for name in ("Add", "Max", "Min")),
}


def test_elements_that_the_processor_does_not_have(tools: Toolkit, tmp_path: Path) -> None:
    """All combinations in one source: each that the documents have compiles, and no other."""
    lines = ['#include "kernel_operator.h"', "using namespace AscendC;"]
    wanted: dict[int, bool] = {}
    for name, (elements, calls) in FUNCTIONS.items():
        for kind in TYPES:
            for arguments in calls:
                lines.append(
                    f"__aicore__ void f{len(lines)}(LocalTensor<{kind}> z, LocalTensor<{kind}> x, "
                    f"LocalTensor<{kind}> y, LocalTensor<uint8_t> m, LocalTensor<uint32_t> o, uint64_t r) "
                    f"{{ using T = {kind}; {name}({arguments}); }}"
                )
                wanted[len(lines)] = kind in elements or name in REFUSED_WHEN_CALLED
    source = tmp_path / "elements.asc"
    source.write_text("\n".join([*lines, "__global__ __aicore__ void kernel(GM_ADDR x) {}"]))
    options = ("-x", "asc", "--npu-arch=dav-2201", "-std=c++17", "-O0", "-fmax-errors=0", "-c")
    result = tools.bisheng(*options, source, "-o", tmp_path / "elements.o")
    refused = {int(n) for n in re.findall(r"elements\.asc:(\d+):\d+: +(?:required from here|error)", result.stderr)}
    assert {line for line, takes in wanted.items() if not takes} == refused
    assert "Add is for half, float, int16_t, int32_t on this SoC: use Cast or ReinterpretCast" in result.stderr
    assert "Subs: this SoC does not have it; use Adds of the negative scalar" in result.stderr


KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void broken(GM_ADDR z, uint32_t which) {
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer, results;
    pipe.InitBuffer(buffer, 1024);
    pipe.InitBuffer(results, 1024);
    GlobalTensor<float> g;
    g.SetGlobalBuffer((__gm__ float*)z, 64);
    const auto x = buffer.Get<float>();
    Duplicate(x, 1.5f, 64);
    switch (which) {
        case 0: Compare(results.Get<uint8_t>(), buffer.Get<int32_t>(), buffer.Get<int32_t>(), CMPMODE::LT, 64); break;
        case 1: g.SetValue(0, g.GetValue(-2)); break;
        case 2: g.SetValue(0, g.GetValue(uint64_t(1) << 62)); break;
        case 3: SetAtomicAdd<half>(); DataCopy(g, x, 64); SetAtomicNone(); break;
        case 4: SetAtomicAdd<float>(); DataCopyPad(g.ReinterpretCast<half>(), x.ReinterpretCast<half>(),
                DataCopyExtParams{1, 6, 0, 0, 0}); SetAtomicNone(); break;
        case 5: SetAtomicAdd<float>(); DataCopy(g.ReinterpretCast<uint32_t>(), x.ReinterpretCast<uint32_t>(), 64);
                SetAtomicNone(); break;
        case 6: SetAtomicAdd<uint32_t>(); break;
        case 7: Gather(results.Get<int64_t>(), buffer.Get<int64_t>(), buffer.Get<uint32_t>(), 0u, 32u); break;
        case 8: Brcb(results.Get<uint8_t>(), buffer.Get<uint8_t>(), 1, {1, 8}); break;
        case 9: Copy(results.Get<int8_t>(), buffer.Get<int8_t>(), 32, 1, {1, 1, 8, 8}); break;
        case 10: Transpose(results.Get<float>(), buffer.Get<float>()); break;
        case 11: {
            uint64_t kept = 0;
            GatherMask(results.Get<int64_t>(), buffer.Get<int64_t>(), 1, false, 0, {1, 1, 8, 0}, kept);
        }
    }
}
"""


@pytest.fixture(scope="module")
def broken(build: Build) -> ctypes.CDLL:
    return build(KERNEL)


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (0, "Compare: int32_t with a mode that is not CMPMODE::EQ, which this SoC does not have; Cast to float first"),
        (1, "GetValue: out of bounds: bytes -8 to -4 of the tensor"),
        (2, "GlobalTensor[4611686018427387904]: no memory goes that far"),
        (4, "an atomic copy of 6 bytes, and the type that SetAtomicAdd, SetAtomicMax or SetAtomicMin was given has 4"),
        (6, "SetAtomicAdd is for half, float, bfloat16_t, int8_t, int16_t, int32_t on this SoC"),
        (7, "Gather is for half, bfloat16_t, int16_t, uint16_t, int32_t, uint32_t, float on this SoC"),
        (8, "Brcb is for half, bfloat16_t,"),
        (9, "Copy is for half, bfloat16_t,"),
        (10, "Transpose is for half, int16_t, uint16_t on this SoC"),
        (11, "GatherMask is for half, bfloat16_t,"),
    ],
)
def test_a_call_that_ends_the_kernel(broken: ctypes.CDLL, tools: Toolkit, which: int, message: str) -> None:
    assert launch(broken, "broken", 1, np.zeros(64, np.float32), which) == 507015
    assert message in tools.message()


EXACT, ROUNDED = {"NONE"}, {"RINT", "FLOOR", "CEIL", "ROUND", "TRUNC"}
#: What the documents of Atlas A2 say of conversions between elements of whole bytes: their modes.
CASTS: dict[tuple[str, str], set[str]] = {
    **dict.fromkeys((("int8_t", "half"), ("uint8_t", "half"), ("half", "float"), ("bfloat16_t", "float")), EXACT),
    **dict.fromkeys((("int16_t", "float"), ("int32_t", "int16_t"), ("int32_t", "int64_t")), EXACT),
    ("int64_t", "int32_t"): EXACT,
    **dict.fromkeys((("int16_t", "half"), ("half", "int8_t"), ("half", "uint8_t")), ROUNDED | EXACT),
    ("int32_t", "float"): ROUNDED | EXACT,
    **{("half", to): ROUNDED for to in ("int16_t", "int32_t")},
    **{("float", to): ROUNDED for to in ("int16_t", "bfloat16_t", "int32_t", "float", "int64_t")},
    **dict.fromkeys((("bfloat16_t", "int32_t"), ("int64_t", "float")), ROUNDED),
    **dict.fromkeys((("float", "half"), ("int32_t", "half")), ROUNDED | EXACT | {"ODD"}),
}


def test_conversions_that_the_processor_does_not_have(tools: Toolkit, tmp_path: Path) -> None:
    pairs = [(source, to) for source in TYPES for to in TYPES]
    calls = ("RoundMode::CAST_NONE, 64", "RoundMode::CAST_NONE, (uint64_t)16, 1, {1, 1, 8, 8}")
    lines = [
        f"__aicore__ void f{i}(LocalTensor<{to}> z, LocalTensor<{source}> x) {{ Cast(z, x, {calls[i % 2]}); }}"
        for i, (source, to) in enumerate(pairs)
    ]
    source = tmp_path / "casts.asc"
    source.write_text("\n".join(['#include "kernel_operator.h"', "using namespace AscendC;", *lines]))
    options = ("-x", "asc", "--npu-arch=dav-2201", "-std=c++17", "-O0", "-fmax-errors=0", "-c")
    result = tools.bisheng(*options, source, "-o", tmp_path / "casts.o")
    found = re.findall(r"casts\.asc:(\d+):\d+: +(?:required from here|error)", result.stderr)
    assert {pairs[int(line) - 3] for line in found} == set(pairs) - set(CASTS)
    assert "Cast: this SoC does not have this conversion; Cast to half or float first" in result.stderr


def test_modes_that_a_conversion_does_not_have(build: Build, tools: Toolkit) -> None:
    cases = "".join(
        f"case {i}: Cast(results.Get<{to}>(), buffer.Get<{source}>(), mode, 64); break;"
        for i, (source, to) in enumerate(CASTS)
    )
    library = build(
        f"""
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void cast(uint32_t which, uint32_t round) {{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer, results;
    pipe.InitBuffer(buffer, 1024);
    pipe.InitBuffer(results, 1024);
    Duplicate(buffer.Get<half>(), (half)0, 512);
    const auto mode = (RoundMode)round;
    switch (which) {{ {cases} }}
}}
"""
    )
    modes = ("NONE", "RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD")
    for which, valid in enumerate(CASTS.values()):
        assert {mode for i, mode in enumerate(modes) if launch(library, "cast", 1, which, i) == 0} == valid
    which = list(CASTS).index(("float", "int32_t"))
    assert launch(library, "cast", 1, which, 0) == 507015
    message = (
        "Cast: CAST_NONE between these elements, with which this SoC leaves dst as it is; "
        "valid: CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC"
    )
    assert message in tools.message()


@pytest.mark.parametrize(("which", "dtype"), [(3, np.float16), (5, np.float32)])
def test_atomic_copies_add_in_the_type_that_was_set(broken: ctypes.CDLL, which: int, dtype: type) -> None:
    z = np.full(64, 1.25, np.float32)
    added = (z.view(dtype) + np.full(64, 1.5, np.float32).view(dtype)).view(np.float32)
    assert launch(broken, "broken", 1, z, which) == 0
    np.testing.assert_array_equal(z.view(np.uint32), added.view(np.uint32))


random = np.random.default_rng(7)
X, Y = (random.uniform(-8, 8, 128).astype(np.float32) for _ in "xy")
PAIRS = random.integers(0, 65536, 128).astype(np.uint16)


def _bfloat16(values: np.ndarray) -> np.ndarray:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


#: What dav-3510 has beyond that.
CASES = [
    Case("Subs", "Subs(z, x, 0.5f, n);", lambda x, y, z: x - np.float32(0.5), X),
    Case("Divs", "Divs(z, x, 0.5f, n);", lambda x, y, z: x / np.float32(0.5), X),
    Case("Neg", "Neg(z, x, n);", lambda x, y, z: -x, X),
    Case("Rint", "Rint(z, x, n);", lambda x, y, z: np.rint(x), X),
    Case("Hypot", "Hypot(z, x, y, n);", lambda x, y, z: np.hypot(x, y), X, Y, rtol=1e-6),
    Case("Interleave", "Interleave(z, z[64], x, x[64], 64);", lambda x, y, z: x.reshape(2, 64).T.ravel(), X),
    Case("DeInterleave", "DeInterleave(z, z[64], x, x[64], 64);", lambda x, y, z: x.reshape(64, 2).T.ravel(), X),
    Case("Ands", "Ands(z, x, 0x0ff0, n);", lambda x, y, z: x & np.uint16(0x0FF0), PAIRS, types=("uint16_t",) * 3),
    Case("Ors", "Ors(z, x, 0x0ff0, n);", lambda x, y, z: x | np.uint16(0x0FF0), PAIRS, types=("uint16_t",) * 3),
    Case("Relu", "Relu(z, x, n);", lambda x, y, z: np.maximum(x, 0), PAIRS.view("i2"), types=("int16_t",) * 3),
    Case(
        "Muls",
        "Muls(z, x, (bfloat16_t)1.5f, n);",
        lambda x, y, z: _bfloat16(_wide(x) * np.float32(1.5)),
        _bfloat16(X),
        types=("bfloat16_t",) * 3,
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(cases_.source(CASES), "--npu-arch=dav-3510")


@pytest.mark.parametrize("index", range(len(CASES)), ids=[case.id for case in CASES])
def test_functions_of_dav_3510(
    library: ctypes.CDLL, tools: Toolkit, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
    cases_.check(library, index, CASES[index], tools.message)
