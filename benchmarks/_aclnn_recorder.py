"""Library that exports aclnn functions with their declared C signatures and records the received types and values."""

from __future__ import annotations

import ctypes
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ascend_graph.aclnn import AclnnFunction, ValueKind
from ascend_graph.prototypes.naming import snake_case

_SOURCES = Path(__file__).parents[1] / "csrc" / "host"
#: Value that a function writes into host memory.
WRITTEN = 41

_HEAD = r"""
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include "opapi/meta.h"
struct aclOpExecutor;
typedef void *aclrtStream;
typedef int32_t aclnnStatus;
enum aclDataType : int32_t { ACL_DT_UNDEFINED = -1 };
namespace {
std::string kept;
int64_t item(int dtype) {
  constexpr int64_t sizes[] = {4, 2, 1, 4, 1, 0, 2, 2, 4, 8, 8, 8, 1};
  return dtype >= 0 && dtype < 13 ? sizes[dtype] : dtype == 27 ? 2 : dtype == 16 ? 8 : dtype == 17 ? 16 : 1;
}
template <typename T, std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>, int> = 0> void put(T value) {
  if constexpr (std::is_same_v<T, bool>) kept += value ? "true" : "false";
  else if constexpr (std::is_unsigned_v<T>) kept += std::to_string(static_cast<uint64_t>(value));
  else kept += std::to_string(static_cast<int64_t>(value));
}
void put(double value) { char text[64]; std::snprintf(text, sizeof(text), "%.17g", value); kept += text; }
void put(float value) { put(static_cast<double>(value)); }
void put(const char *value) {
  if (value == nullptr) { kept += "null"; return; }
  kept += '"'; for (; *value; ++value) { if (*value == '"' || *value == '\\') kept += '\\'; kept += *value; } kept += '"';
}
void put(const aclTensor *value) {
  if (value == nullptr) { kept += "null"; return; }
  kept += "{\"tensor\":" + std::to_string(reinterpret_cast<intptr_t>(value->storage) + value->offset * item(value->dtype)) + "}";
}
template <typename List> void put_all(const List &values) {
  kept += '['; for (size_t n = 0; n < values.size(); ++n) { if (n) kept += ','; put(values[n]); } kept += ']';
}
void put(const aclTensorList *value) { if (value == nullptr) kept += "null"; else put_all(value->tensors); }
void put(const aclIntArray *value) { if (value == nullptr) kept += "null"; else put_all(value->values); }
void put(const aclFloatArray *value) { if (value == nullptr) kept += "null"; else put_all(value->values); }
void put(const aclBoolArray *value) {
  if (value == nullptr) { kept += "null"; return; }
  kept += '['; for (size_t n = 0; n < value->values.size(); ++n) { if (n) kept += ','; put(value->values[n] != 0); } kept += ']';
}
void put(const aclScalar *value) {
  if (value == nullptr) { kept += "null"; return; }
  switch (value->dtype) {
    case 9: put(*reinterpret_cast<const int64_t *>(value->value)); break;
    case 11: put(*reinterpret_cast<const double *>(value->value)); break;
    case 12: put(*reinterpret_cast<const bool *>(value->value)); break;
    default: kept += "\"a scalar of dtype " + std::to_string(value->dtype) + "\"";
  }
}
void put(const aclScalarList *value) {
  if (value == nullptr) { kept += "null"; return; }
  kept += '[';
  for (const aclScalar *scalar : value->scalars) { if (scalar != value->scalars.front()) kept += ','; put(scalar); }
  kept += ']';
}
template <typename T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, char>, int> = 0> void put(T *value) {
  if (value == nullptr) { kept += "null"; return; }
  *value = static_cast<T>(@WRITTEN@);
  kept += "\"host memory\"";
}
}  // namespace
extern "C" const char *what_was_given() { return kept.c_str(); }
"""


def is_recordable(function: AclnnFunction) -> bool:
    """Return whether the recorder knows every type of a function."""
    return all(
        parameter.value is not ValueKind.OTHER
        and (parameter.value is not ValueKind.HOST_OUTPUT or parameter.type.pointers == 1)
        for parameter in function.parameters
    )


def _exported(function: AclnnFunction) -> str:
    parameters = "".join(f"{p.type} a{n}, " for n, p in enumerate(function.parameters))
    puts = " kept += ','; ".join(f"put(a{n});" for n in range(len(function.parameters)))
    return (
        f'extern "C" aclnnStatus {function.name}GetWorkspaceSize({parameters}uint64_t *size, aclOpExecutor **executor) {{ '
        f'kept = "[\\"{function.name}\\", ["; {puts} kept += "]]"; *size = 0; *executor = nullptr; return 0; }}\n'
        f'extern "C" aclnnStatus {function.name}(void *, uint64_t, aclOpExecutor *, aclrtStream) {{ return 0; }}\n'
    )


def declared(function: AclnnFunction) -> str:
    """Return the text of a header that declares a function."""
    parameters = "".join(f"{p}{f' = {p.default}' if p.default else ''}, " for p in function.parameters)
    tail = " = nullptr" if any(p.default for p in function.parameters) else ""
    return (
        f"aclnnStatus {function.name}GetWorkspaceSize({parameters}uint64_t *workspaceSize{tail}, aclOpExecutor **executor{tail});\n"
        f"aclnnStatus {function.name}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);\n"
    )


class RecordingPackage:
    """Operator package whose library records calls."""

    def __init__(self, directory: Path, functions: Iterable[AclnnFunction], *, headers: bool = True) -> None:
        self.directory = directory
        functions = list(functions)
        library = directory / "op_api/lib/libcust_opapi.so"
        library.parent.mkdir(parents=True)
        include = directory / "op_api/include"
        include.mkdir(parents=True)
        for function in functions if headers else ():
            (include / f"aclnn_{snake_case(function.name.removeprefix('aclnn'))}.h").write_text(declared(function))
        source = directory / "recorder.cpp"
        source.write_text(_HEAD.replace("@WRITTEN@", str(WRITTEN)) + "".join(map(_exported, functions)))
        command = [
            "g++",
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-O1",
            "-w",
            f"-I{_SOURCES}",
            f"-I{_SOURCES / 'include'}",
            str(source),
            "-o",
            str(library),
        ]
        subprocess.run(command, check=True)
        self._read = ctypes.CDLL(str(library)).what_was_given
        self._read.restype = ctypes.c_char_p

    def given(self) -> tuple[str, list[Any]]:
        """Return the last called function and the values that its parameters received."""
        name, values = json.loads(self._read())
        return name, values
