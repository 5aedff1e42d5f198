"""The parser against two readers of other kinds: a C++ compiler running the macros, and a regular expression."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_graph.prototypes import AttrType, OpPrototype, ParameterKind, parse_file, parse_text
from ascend_graph.prototypes.writer import to_reg_op

#: Macros of the same names that print what they are given; types are stringified as the real macros do it.
STUB = r"""
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
namespace ge {
enum DataType : int { DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_INT64 = 9, DT_BF16 = 27 };
static const std::vector<int64_t> UNKNOWN_SHAPE = {-1};
static const std::vector<int64_t> UNKNOWN_RANK = {-2};
using OpInt = int64_t; using OpFloat = float; using OpBool = bool; using OpString = std::string;
using OpType = DataType;
using OpListInt = std::vector<int64_t>; using OpListFloat = std::vector<float>; using OpListBool = std::vector<bool>;
using OpListString = std::vector<std::string>; using OpListType = std::vector<DataType>;
using OpListListInt = std::vector<std::vector<int64_t>>;
inline void show(int64_t v) { std::printf("i%lld", static_cast<long long>(v)); }
inline void show(float v) { std::printf("f%a", static_cast<double>(v)); }
inline void show(bool v) { std::printf("b%d", v); }
inline void show(DataType v) { std::printf("t%d", static_cast<int>(v)); }
inline void show(const std::string &v) { std::printf("s"); for (unsigned char c : v) std::printf("%02x", c); }
template <typename T> void show(const std::vector<T> &v) {
  std::printf("[");
  for (auto item : v) { show(static_cast<T>(item)); std::printf(","); }
  std::printf("]");
}
struct Op {
  explicit Op(const char *name) { std::printf("op %s\n", name); }
  Op &Say(const char *call, const char *name) { std::printf("%s %s\n", call, name); return *this; }
  template <typename T> Op &Attr(const char *name, const char *type, const T &value) {
    std::printf("ATTR %s %s ", name, type); show(value); std::printf("\n"); return *this;
  }
};
}
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
#define REG_OP(x) static ge::Op GLUE(op_, __COUNTER__) = ge::Op(#x)
#define INPUT(x, t) Say("INPUT", #x)
#define OPTIONAL_INPUT(x, t) Say("OPTIONAL_INPUT", #x)
#define DYNAMIC_INPUT(x, t) Say("DYNAMIC_INPUT", #x)
#define OUTPUT(x, t) Say("OUTPUT", #x)
#define DYNAMIC_OUTPUT(x, t) Say("DYNAMIC_OUTPUT", #x)
#define REQUIRED_ATTR(x, T) Say("REQUIRED_ATTR " #T, #x)
#define ATTR(x, T, ...) Attr(#x, #T, ge::Op##T(__VA_ARGS__))
#define DATATYPE(x, t) Say("DATATYPE", #x)
#define OP_END_FACTORY_REG(x) Say("END", #x);
using namespace ge;
"""

HEADER = r"""
#define FOUR 4
#define AXES {1, FOUR}
/* REG_OP(Hidden) .OP_END_FACTORY_REG(Hidden) */
REG_OP(First)
    .INPUT(x, TensorType({DT_FLOAT, \
                          DT_INT8}))  // comment ) "
    . OPTIONAL_INPUT ( bias , "T" )
    .DYNAMIC_INPUT(rest, TesnorType({DT_FLOAT DT_INT8}))
    .ATTR(early, Int, 0)
    .OUTPUT(x, TensorType:ALL())
    .DYNAMIC_OUTPUT(y, {SOME_MACRO})
    .REQUIRED_ATTR(axis, ListInt)
    .ATTR(i1, Int, -9223372036854775807)
    .ATTR(i2, Int, FOUR * (2 + 1) - 7 / 2 % 2)
    .ATTR(i3, Int, 1LL << 40)
    .ATTR(i4, Int, DT_BF16)
    .ATTR(i5, Int, INT32_MAX)
    .ATTR(i6, Int, 0x7f)
    .ATTR(i7, Int, -1)
    .ATTR(f1, Float, 0.1)
    .ATTR(f2, Float, 1e-5f)
    .ATTR(f3, Float, static_cast<float>(0.8))
    .ATTR(f4, Float, 16)
    .ATTR(f5, Float, 1.f / 3)
    .ATTR(f6, Float, -0.0)
    .ATTR(f7, Float, 1.00000017881393432617187499f)
    .ATTR(f8, Float, 1.00000017881393432617187499)
    .ATTR(f9, Float, 1e-45f)
    .ATTR(b1, Bool, true)
    .ATTR(b2, Bool, 0)
    .ATTR(s1, String, "")
    .ATTR(s2, String, "a,\"b\")\n\t\\ \101\x41 // no comment" " /* nor this */")
    .ATTR(s3, String, "中文")
    .ATTR(t1, Type, DT_INT32)
    .ATTR(l1, ListInt, {})
    .ATTR(l2, ListInt, AXES)
    .ATTR(l3, ListInt, ge::UNKNOWN_RANK)
    .ATTR(l4, ListFloat, {1.f / 4, 0.5f, -3})
    .ATTR(l5, ListBool, {true, false})
    .ATTR(l6, ListString, {"a", "b\"c"})
    .ATTR(l7, ListType, {DT_FLOAT16, ge::DT_FLOAT})
    .ATTR(l8, ListListInt, {{1, 2}, {}, {3}})
    .DATATYPE(T, TensorType({DT_FLOAT}))
    .OP_END_FACTORY_REG(First)
#if 0
REG_OP(Off).OP_END_FACTORY_REG(Off)
#endif
REG_OP(Second).INPUT(x,TensorType::ALL()).OP_END_FACTORY_REG(Second);
"""


def shown(attr_type: AttrType, value: object) -> str:
    """A value as the stub prints it."""
    if attr_type.value.startswith("List"):
        element = AttrType(attr_type.value.removeprefix("List"))
        return "[" + "".join(f"{shown(element, item)}," for item in value) + "]"  # type: ignore[attr-defined]
    if attr_type is AttrType.FLOAT:
        import struct

        (single,) = struct.unpack("<f", struct.pack("<f", value))
        return f"f{single!r}"
    if attr_type is AttrType.STRING:
        return "s" + str(value).encode().hex()
    prefix = {AttrType.INT: "i", AttrType.BOOL: "b", AttrType.TYPE: "t"}[attr_type]
    return f"{prefix}{int(value)}"  # type: ignore[call-overload]


def told(prototype: OpPrototype) -> list[str]:
    """The calls of a prototype as the stub prints them."""
    prefixes = {ParameterKind.REQUIRED: "", ParameterKind.OPTIONAL: "OPTIONAL_", ParameterKind.DYNAMIC: "DYNAMIC_"}
    lines = [f"{prefixes[p.kind]}INPUT {p.name}" for p in prototype.inputs]
    lines += [f"{prefixes[p.kind]}OUTPUT {p.name}" for p in prototype.outputs]
    for attr in prototype.attrs:
        if attr.required:
            lines.append(f"REQUIRED_ATTR {attr.type.value} {attr.name}")
        else:
            lines.append(f"ATTR {attr.name} {attr.type.value} {shown(attr.type, attr.default)}")
    lines += [f"DATATYPE {symbol.name}" for symbol in prototype.symbols]
    return lines


def by_side(lines: list[str]) -> dict[str, list[str]]:
    """Each side's calls in order: how the sides follow each other is not part of a prototype."""
    sides: dict[str, list[str]] = {}
    for line in lines:
        sides.setdefault(line.split()[0].rpartition("_")[2], []).append(line)
    return sides


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_compiler_reads_the_same(tmp_path: Path) -> None:
    header = tmp_path / "ops.h"
    header.write_text(HEADER)
    (tmp_path / "main.cpp").write_text(f'{STUB}\n#include "ops.h"\nint main() {{}}\n')
    subprocess.run(["g++", "-std=c++17", "-w", "-o", "reader", "main.cpp"], cwd=tmp_path, check=True, timeout=900)
    output = subprocess.run([tmp_path / "reader"], check=True, capture_output=True, text=True).stdout
    # %a prints a float exactly; so does repr, and both are read back as the same number.
    output = re.sub(r"f(-?0x[0-9a-f.]+p[-+]?\d+)", lambda match: f"f{float.fromhex(match.group(1))!r}", output)
    compiled: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("op "):
            calls = compiled.setdefault(line.removeprefix("op "), [])
        elif not line.startswith("END"):
            calls.append(line)
    result = parse_file(header)
    assert result.errors == ()
    assert [prototype.op_type for prototype in result.prototypes] == list(compiled) == ["First", "Second"]
    for prototype in result.prototypes:
        assert by_side(told(prototype)) == by_side(compiled[prototype.op_type])


_OP = re.compile(r"REG_OP\((\w+)\)(.*?)\.OP_END_FACTORY_REG\(\1\)", re.DOTALL)
_ONE_CALL = re.compile(r"^ *\.(\w+)\((\w+)(?:, (\w+))?", re.MULTILINE)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["INPUT", "OPTIONAL_INPUT", "OUTPUT", "REQUIRED_ATTR", "DYNAMIC_INPUT"]), max_size=8))
def test_a_regular_expression_reads_the_same_of_a_tidy_header(calls: list[str]) -> None:
    lines = [
        f"    .{call}(p{index}, {'Int' if 'ATTR' in call else 'TensorType::ALL()'})" for index, call in enumerate(calls)
    ]
    text = "\n".join(["REG_OP(Tidy)", *lines, "    .OP_END_FACTORY_REG(Tidy)"])
    (prototype,) = parse_text(text).prototypes
    (match,) = _OP.finditer(to_reg_op(prototype))
    again = sorted((call, name) for call, name, _ in _ONE_CALL.findall(match.group(2)))
    assert again == sorted((call, name) for call, name, _ in _ONE_CALL.findall(text) if call != "OP_END_FACTORY_REG")
