"""Independent reader of aclnn headers: g++, with a stub that records the types of every function.

Includes are dropped and a stub replaces CANN's headers. The compiler reports each function's type; the names of functions
and parameters are taken from the preprocessed text.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

STUB = r"""
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
struct aclTensor; struct aclTensorList; struct aclScalar; struct aclScalarList; struct aclIntArray; struct aclFloatArray;
struct aclBoolArray; struct aclOpExecutor;
typedef int32_t aclnnStatus; typedef int aclError; typedef void *aclrtStream;
enum aclDataType { ACL_DT_UNDEFINED = -1, ACL_FLOAT = 0 };
enum aclFormat { ACL_FORMAT_ND = 2 };
#define ACL_FUNC_VISIBILITY
#define ACLNN_API
"""
RECORDER = r"""
template <typename T> struct Name { static std::string of() { return "?"; } };
#define NAMED(T, text) template <> struct Name<T> { static std::string of() { return text; } };
NAMED(aclTensor, "aclTensor") NAMED(aclTensorList, "aclTensorList") NAMED(aclScalar, "aclScalar")
NAMED(aclScalarList, "aclScalarList") NAMED(aclIntArray, "aclIntArray") NAMED(aclFloatArray, "aclFloatArray")
NAMED(aclBoolArray, "aclBoolArray") NAMED(aclOpExecutor, "aclOpExecutor") NAMED(aclDataType, "aclDataType")
NAMED(aclFormat, "aclFormat") NAMED(char, "char") NAMED(bool, "bool") NAMED(float, "float") NAMED(double, "double") NAMED(void, "void")
NAMED(int8_t, "int8_t") NAMED(uint8_t, "uint8_t") NAMED(int16_t, "int16_t") NAMED(uint16_t, "uint16_t") NAMED(int32_t, "int32_t")
NAMED(uint32_t, "uint32_t") NAMED(int64_t, "int64_t") NAMED(uint64_t, "uint64_t") NAMED(long long, "int64_t") NAMED(unsigned long long, "uint64_t")
template <typename T> struct Name<const T> { static std::string of() { return "const " + Name<T>::of(); } };
template <typename T> struct Name<T *> { static std::string of() {
  std::string inner = Name<T>::of(); return inner + (inner.back() == '*' ? "*" : " *"); } };
template <typename R, typename... A> void record(const char *name, R (*)(A...)) {
  std::printf("%s", name);
  using expand = int[]; (void)expand{0, (std::printf("\t%s", Name<A>::of().c_str()), 0)...};
  std::printf("\n");
}
"""
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[^\n]*", re.MULTILINE)
_FUNCTION = re.compile(r"\b(\w+)GetWorkspaceSize\s*\(([^()]*)\)\s*;")
_LAST_WORD = re.compile(r"(\w+)\s*(?:=.*)?\Z", re.DOTALL)

#: Type and name of each parameter by function, without the last two parameters of the first phase.
Declared = dict[str, list[tuple[str, str]]]


class NotCompiledError(Exception):
    """Header that the compiler rejects."""


def compile_headers(headers: Sequence[Path]) -> tuple[list[tuple[Path, Declared]], list[Path]]:
    """Return the declarations of each header, and the headers that do not compile."""
    try:
        return list(zip(headers, _compile(headers), strict=True)), []
    except NotCompiledError:
        if len(headers) == 1:
            return [], list(headers)
    middle = len(headers) // 2
    (a, failed_a), (b, failed_b) = compile_headers(headers[:middle]), compile_headers(headers[middle:])
    return a + b, failed_a + failed_b


def _compile(headers: Sequence[Path]) -> list[Declared]:
    """Compile the headers as one program, each in its own namespace, and return their declarations."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "stub.h").write_text(STUB)
        parts = ['#include "stub.h"\n', RECORDER]
        names = []
        for n, header in enumerate(headers):
            text = _INCLUDE.sub("", header.read_text(errors="replace").lstrip("\ufeff"))
            # Functions of C are one function in every namespace; of C++ they are not.
            text = text.replace('extern "C"', 'extern "C++"')
            (directory / f"h{n}.h").write_text(text)
            names.append(_names(directory, n))
            guards = re.findall(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)", text, re.MULTILINE)
            parts += [f"#undef {guard}\n" for guard in guards if guard != "ACLNN_API"]
            parts.append(f'namespace n{n} {{\n#include "h{n}.h"\n}}\n')
        parts.append("int main() {\n")
        for n, functions in enumerate(names):
            parts += [f'record("{n} {function}", &n{n}::{function}GetWorkspaceSize);\n' for function in functions]
        parts.append("}\n")
        (directory / "main.cpp").write_text("".join(parts))
        binary = directory / "main"
        built = subprocess.run(
            [
                "g++",
                "-std=c++17",
                "-w",
                "-O0",
                "-o",
                str(binary),
                str(directory / "main.cpp"),
                "-Wl,--unresolved-symbols=ignore-all",
            ],
            capture_output=True,
            check=False,
        )
        if built.returncode != 0:
            raise NotCompiledError(built.stderr.decode(errors="replace")[:2000])
        found: list[Declared] = [{} for _ in headers]
        for line in subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines():
            head, *types = line.split("\t")
            number, function = head.split(" ")
            if types[-2:] == ["uint64_t *", "aclOpExecutor **"]:  # no others are first phases
                found[int(number)][function] = list(zip(types, names[int(number)][function], strict=True))[:-2]
        return found


def _names(directory: Path, number: int) -> dict[str, list[str]]:
    """Return the parameters' names of each function from the preprocessed text of a header."""
    (directory / f"e{number}.cpp").write_text(f'#include "stub.h"\nint after_the_stub;\n#include "h{number}.h"\n')
    left = subprocess.run(
        ["g++", "-std=c++17", "-E", "-P", str(directory / f"e{number}.cpp")], capture_output=True, check=False
    )
    if left.returncode != 0:
        raise NotCompiledError
    text = left.stdout.decode(errors="replace").split("int after_the_stub;")[1]
    found = {}
    for function, parameters in _FUNCTION.findall(text):
        words = [_LAST_WORD.search(part.strip()) for part in parameters.split(",")]
        found[function] = [word[1] if word else "" for word in words]
    return found


def disagreements(declared: Declared, functions: Iterable[tuple[str, list[tuple[str, str]]]]) -> list[str]:
    """Return the differences between another reader's functions and those that the compiler recorded."""
    ours = dict(functions)
    lines = [f"{name}: only the compiler knows it" for name in declared.keys() - ours.keys()]
    lines += [f"{name}: the compiler knows no such function" for name in ours.keys() - declared.keys()]
    for name in sorted(declared.keys() & ours.keys()):
        if declared[name] != ours[name]:
            lines.append(f"{name}: {json.dumps(declared[name])} and {json.dumps(ours[name])}")
    return lines
