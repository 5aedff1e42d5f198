"""Ascend C kernels as their sources declare them: names, parameters, tiling structures, and the files they consist of.

Nothing is compiled or executed: what a launch needs to know of a kernel is in its signature. Where the source casts a
parameter to ``__gm__ half*``, that says the operand's dtype too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.prototypes import DataType
from ascend_graph.sources.kernels import GLOBAL_MARK, find_kernels
from ascend_graph.sources.text import SourceText, read_source

#: The suffixes of files that may define kernels; a file named explicitly is read whatever it is called.
KERNEL_SUFFIXES = (".asc", ".cce", ".cpp", ".cc", ".h", ".hpp")

#: The element types of Ascend C that are a dtype of GE.
ELEMENT_TYPES = {
    "half": DataType.FLOAT16, "float16_t": DataType.FLOAT16, "bfloat16_t": DataType.BF16, "float": DataType.FLOAT,
    "double": DataType.DOUBLE, "int8_t": DataType.INT8, "int16_t": DataType.INT16, "int32_t": DataType.INT32,
    "int": DataType.INT32, "int64_t": DataType.INT64, "uint8_t": DataType.UINT8, "uint16_t": DataType.UINT16,
    "uint32_t": DataType.UINT32, "uint64_t": DataType.UINT64, "bool": DataType.BOOL,
}  # fmt: skip
#: What a kernel may take by value, in the spelling of ``<cstdint>``.
NUMBER_TYPES = {
    **{name: name for name in ELEMENT_TYPES if name not in ("half", "float16_t", "bfloat16_t")},
    **{"unsigned": "uint32_t", "unsigned int": "uint32_t", "size_t": "uint64_t", "long": "int64_t", "short": "int16_t"},
    **{"unsigned long": "uint64_t", "long long": "int64_t", "unsigned long long": "uint64_t", "char": "int8_t"},
}

#: Of a field or a template parameter, in characters.
_LONGEST = 200

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_ADAPTER = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:torch|torch_npu|ATen|c10|pybind11)/[^>"\n]*)', re.MULTILINE)
_PACKED = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+pack\b", re.MULTILINE)
_QUALIFIERS = re.compile(
    r"\b__(?:aicore|vector|cube|inline|noinline)__\b|\b__(?:mix|launch_bounds)__\s*\([^()]*\)|\[aicore\]"
)
_TEMPLATE = re.compile(
    rf"\btemplate\s*<([^<>]*)>\s*(?=(?:inline\s+|static\s+)*{GLOBAL_MARK}\b[^(){{}};]*?\b(\w+)\s*\()"
)
_TEMPLATE_PARAMETER = re.compile(r"\s*([\w:\s]+?)\s+(\w+)\s*(?:=[^=]*)?\Z")
_STRUCT = re.compile(r"\bstruct\s+(?:alignas\s*\(\s*\d+\s*\)\s*)?(\w+)\s*\{([^{}]*)\}\s*;")
_TYPEDEF_STRUCT = re.compile(r"\btypedef\s+struct\s*\w*\s*\{([^{}]*)\}\s*(\w+)\s*;")
_FIELD = re.compile(r"\s*(?:const\s+)?([A-Za-z_][\w\s]*?)\s+(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*(?:=[^;]*|\{[^;]*\})?\Z")
_DEFINITION = re.compile(r"\bBEGIN_TILING_DATA_DEF\s*\(\s*(\w+)\s*\)(.*?)\bEND_TILING_DATA_DEF\b", re.DOTALL)
_DEFINITION_FIELD = re.compile(r"\bTILING_DATA_FIELD_DEF(_ARR|_STRUCT)?\s*\(([^()]*)\)")
_GLOBAL_TENSOR = re.compile(r"\bGlobalTensor\s*<\s*([A-Za-z_]\w*)\s*>\s*([\w\s,]+);")
_TILING_TYPE = re.compile(
    r"\bGET_TILING_DATA_WITH_STRUCT\s*\(\s*([\w:]+)\s*,|\bREGISTER_TILING_DEFAULT\s*\(\s*([\w:]+)\s*\)"
)


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """A parameter of a kernel: its type without qualifiers, and its name."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        """Whether it is an address in global memory."""
        return self.type.endswith("*")

    @property
    def number(self) -> str | None:
        """The type of a number, as ``<cstdint>`` spells it."""
        return NUMBER_TYPES.get(self.type)

    def __str__(self) -> str:
        return f"{'GM_ADDR' if self.type == 'uint8_t*' else self.type} {self.name}"


@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a tiling structure; ``count`` is an array's length."""

    type: str
    name: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class TilingStruct:
    """A structure of numbers: what the host computes for a kernel."""

    name: str
    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A function marked ``__global__``."""

    name: str
    namespace: str
    parameters: tuple[KernelParameter, ...]
    #: The parameters of a template, in their order.
    templates: tuple[str, ...]
    #: Whether all of them are types, so that the dtypes of operands can choose an instance.
    by_dtype: bool
    #: The file that defines it.
    file: Path
    #: Per parameter, the element type that the source reads it as, where it says so.
    elements: Mapping[str, str] = field(default_factory=dict)

    @property
    def qualified(self) -> str:
        """Its name from the global namespace."""
        return f"{self.namespace}::{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


@dataclass(frozen=True)
class KernelSources:
    """Kernels, the structures their sources define, and all files they need, by their place below ``root``."""

    root: Path
    kernels: tuple[KernelFunction, ...]
    structs: Mapping[str, TilingStruct]
    #: The type of the tiling data in global memory, where the sources name it.
    tiling_type: str | None
    files: tuple[Path, ...]

    @cached_property
    def by_name(self) -> Mapping[str, KernelFunction]:
        """The kernels by their names."""
        return {kernel.name: kernel for kernel in self.kernels}


def defines_kernels(path: Path) -> bool:
    """Whether a file has the word ``__global__`` in it."""
    try:
        return path.suffix in KERNEL_SUFFIXES and b"__global__" in path.read_bytes()
    except OSError:
        return False


def kernel_files(directory: Path) -> Iterator[Path]:
    """The files below a directory that define kernels, in the order of their names; not those of builds."""
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(
            d for d in directories if not d.startswith(".") and d not in ("build", "build_out", "out")
        )
        for name in sorted(names):
            if defines_kernels(Path(parent, name)):
                yield Path(parent, name)


def read_kernels(paths: Iterable[Path], root: Path | None = None) -> KernelSources:
    """Read the kernels of some files and of the files that these include by ``#include "…"``.

    ``root`` is the directory that their places are relative to; by default the deepest that has them all.

    Raises:
        GenerationError: There is no kernel, two different ones have the same name, or a file has more than kernels in it.
        SourceError: A file cannot be read.
    """
    given = [path.resolve() for path in paths]
    sources: dict[Path, SourceText] = {}
    for path in given:
        _read_with_includes(path, sources)
    kernels: dict[str, KernelFunction] = {}
    structs: dict[str, TilingStruct] = {}
    tiling_types: set[str] = set()
    for path, source in sources.items():
        # The layout of packed structures is the author's to match.
        for struct in () if _PACKED.search(source.text) else _structs(source.code):
            structs.setdefault(struct.name, struct)
        tiling_types |= {(match[1] or match[2]).rpartition("::")[2] for match in _TILING_TYPE.finditer(source.code)}
        for kernel in _kernels(path, source.code, [sources[p].code for p in _included(path, sources)]):
            known = kernels.setdefault(kernel.name, kernel)
            if known.parameters != kernel.parameters:
                raise GenerationError(
                    f"there are two kernels {kernel.name}: {known} in {known.file.name}, {kernel} in {path.name}; "
                    "name one source"
                )
    if not kernels:
        names = ", ".join(str(path) for path in given) or "no file"
        raise GenerationError(
            f"{names}: no kernel is defined there: __global__ __aicore__ void add_custom(GM_ADDR x, …) {{…}}"
        )
    needed = sorted({f for kernel in kernels.values() for f in (kernel.file, *_included(kernel.file, sources))})
    for path in needed:
        if adapter := _ADAPTER.search(sources[path].text):
            raise GenerationError(
                f"{path} has a kernel and an adapter to PyTorch in it (it includes {adapter[1]}); the adapter is generated: "
                "move the kernel to a file of its own"
            )
    root = root.resolve() if root else Path(os.path.commonpath([path.parent for path in needed]))
    return KernelSources(
        root,
        tuple(kernels.values()),
        structs,
        tiling_types.pop() if len(tiling_types) == 1 else None,
        tuple(path.relative_to(root) for path in needed),
    )


def included_files(path: Path) -> tuple[Path, ...]:
    """The files that a source includes by ``#include "…"``, directly or not."""
    sources: dict[Path, SourceText] = {}
    _read_with_includes(path.resolve(), sources)
    return tuple(sources)[1:]


def _read_with_includes(path: Path, sources: dict[Path, SourceText]) -> None:
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current not in sources:
            sources[current] = read_source(current)
            waiting += _local_includes(current, sources[current].text)


def _local_includes(path: Path, text: str) -> list[Path]:
    candidates = ((path.parent / name).resolve() for name in _INCLUDE.findall(text))
    return [candidate for candidate in candidates if candidate.is_file()]


def _included(path: Path, sources: Mapping[Path, SourceText]) -> list[Path]:
    """The files that a file includes, directly or not."""
    found: dict[Path, None] = {}
    waiting = _local_includes(path, sources[path].text)
    while waiting:
        current = waiting.pop(0)
        if current not in found:
            found[current] = None
            waiting += _local_includes(current, sources[current].text)
    return list(found)


def _kernels(path: Path, code: str, included: list[str]) -> Iterator[KernelFunction]:
    marked = _QUALIFIERS.sub(lambda m: " " * len(m[0]), re.sub(r"\b__global__\b", GLOBAL_MARK, code))
    templates: dict[str, list[re.Match[str]]] = {}

    def hide(match: re.Match[str]) -> str:
        parameters = [_match(_TEMPLATE_PARAMETER, part) for part in match[1].split(",")]
        templates[match[2]] = [p for p in parameters if p]
        return " " * len(match[0]) if all(parameters) else match[0]

    marked = _TEMPLATE.sub(hide, marked)
    for kernel in find_kernels(marked):
        parameters = tuple(KernelParameter(_plain_type(p.type), p.name) for p in kernel.parameters)
        elements = {p.name: e for p in parameters if p.is_pointer and (e := _element(p, [code, *included]))}
        template = templates.get(kernel.name, [])
        names, by_dtype = tuple(p[2] for p in template), all(p[1] in ("typename", "class") for p in template)
        yield KernelFunction(kernel.name, kernel.namespace, parameters, names, by_dtype, path, elements)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """A match of a short declaration; a long one is none, whatever a file has there."""
    plain = " ".join(text.split())
    return pattern.match(plain) if len(plain) <= _LONGEST else None


def _plain_type(text: str) -> str:
    """A parameter's type without ``const`` and the qualifiers of the memory: ``__gm__ float*`` as ``float*``."""
    words = re.sub(
        r"\b(?:const|volatile|struct|__gm__|__restrict__|__restrict|__ubuf__|__kfc_workspace__)\b",
        " ",
        text.replace("*", " * "),
    )
    plain = " ".join(words.split()).replace(" *", "*")
    return {"GM_ADDR": "uint8_t*", "void*": "uint8_t*", "GM_ADDR*": "uint8_t**"}.get(plain, plain)


def _element(parameter: KernelParameter, codes: list[str]) -> str | None:
    """The element type of an operand: of a typed pointer, of the type that the source casts the name to, or of the
    ``GlobalTensor`` that is called like it."""
    declared = parameter.type.removesuffix("*")
    if declared != "uint8_t":
        return declared
    name = re.escape(parameter.name)
    cast = re.compile(rf"__gm__\s+([A-Za-z_]\w*)\s*\*\s*(?:\)|>)\s*\(?\s*{name}\b")
    found = {match[1] for code in codes for match in cast.finditer(code)}
    if not found:
        names = (re.compile(rf"\b{name}_?(?:gm|global)\b", re.IGNORECASE), _GLOBAL_TENSOR)
        found = {m[1] for code in codes for m in names[1].finditer(code) if names[0].search(m[2])}
    return found.pop() if len(found) == 1 else None


def _structs(code: str) -> Iterator[TilingStruct]:
    for match in _STRUCT.finditer(code):
        yield from _struct(match[1], match[2])
    for match in _TYPEDEF_STRUCT.finditer(code):
        yield from _struct(match[2], match[1])
    for match in _DEFINITION.finditer(code):
        fields: list[StructField] = []
        for kind, text in _DEFINITION_FIELD.findall(match[2]):
            parts = [part.strip() for part in text.split(",")]
            number = NUMBER_TYPES.get(parts[0])
            if kind == "_STRUCT" or number is None:
                break
            if kind == "_ARR" and len(parts) == 3 and parts[1].isdigit():
                fields.append(StructField(number, parts[2], int(parts[1])))
            elif not kind and len(parts) == 2:
                fields.append(StructField(number, parts[1]))
            else:
                break
        else:
            yield TilingStruct(match[1], tuple(fields))


def _struct(name: str, body: str) -> Iterator[TilingStruct]:
    """The structure, if all of its fields are numbers."""
    fields = []
    for statement in body.split(";"):
        if not statement.strip():
            continue
        match = _match(_FIELD, statement)
        number = NUMBER_TYPES.get(match[1]) if match else None
        if match is None or number is None:
            return
        fields.append(StructField(number, match[2], int(match[3]) if match[3] else None))
    if fields:
        yield TilingStruct(name, tuple(fields))
