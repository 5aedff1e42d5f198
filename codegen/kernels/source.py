"""Ascend C kernels as their sources declare them: names, parameters, tiling structures, and the files they consist of.

Nothing is compiled or executed: a kernel's signature has all that a launch needs. If the source casts a parameter to
``__gm__ half*``, that gives the operand's dtype, too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.prototypes import DataType
from ascend_graph.sources.kernels import GLOBAL_MARK, LITERAL, find_kernels
from ascend_graph.sources.macros import Macro, defining
from ascend_graph.sources.text import SourceText, read_source

#: Suffixes of files that may define kernels; a file given explicitly is read with any suffix.
KERNEL_SUFFIXES = (".asc", ".cce", ".cpp", ".cc", ".h", ".hpp")

#: Element types of Ascend C that are a dtype of GE.
ELEMENT_TYPES = {
    "half": DataType.FLOAT16, "float16_t": DataType.FLOAT16, "bfloat16_t": DataType.BF16, "float": DataType.FLOAT,
    "double": DataType.DOUBLE, "int8_t": DataType.INT8, "int16_t": DataType.INT16, "int32_t": DataType.INT32,
    "int": DataType.INT32, "int64_t": DataType.INT64, "uint8_t": DataType.UINT8, "uint16_t": DataType.UINT16,
    "uint32_t": DataType.UINT32, "uint64_t": DataType.UINT64, "bool": DataType.BOOL,
}  # fmt: skip
#: Types that a kernel may take by value, in the spelling of ``<cstdint>``.
NUMBER_TYPES = {
    **{name: name for name in ELEMENT_TYPES if name not in ("half", "float16_t", "bfloat16_t")},
    **{"unsigned": "uint32_t", "unsigned int": "uint32_t", "size_t": "uint64_t", "long": "int64_t", "short": "int16_t"},
    **{"unsigned long": "uint64_t", "long long": "int64_t", "unsigned long long": "uint64_t", "char": "int8_t"},
}

#: Highest length of a field or a template parameter, in characters.
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
_STRUCT = re.compile(r"\b(typedef\s+)?struct\s*(?:alignas\s*\(\s*\d+\s*\)\s*)?(\w*)\s*(?:final\s*)?\{")
_BRACE = re.compile(rf"{LITERAL}|[{{}}]")
_ALIAS = re.compile(r"\}\s*(\w+)\s*;")
_FIELD = re.compile(r"\s*(?:const\s+)?([A-Za-z_][\w\s]*?)\s+(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*(?:=.*|\{.*\})?\Z")
#: Further field of a declaration with several.
_NEXT_FIELD = re.compile(r"\s*(\w+)\s*(?:\[\s*(\d+)\s*\])?\s*(?:=.*|\{.*\})?\Z")
_DEFINITION = re.compile(r"\bBEGIN_TILING_DATA_DEF\s*\(\s*(\w+)\s*\)(.*?)\bEND_TILING_DATA_DEF\b", re.DOTALL)
_DEFINITION_FIELD = re.compile(r"\bTILING_DATA_FIELD_DEF(_ARR|_STRUCT)?\s*\(([^()]*)\)")
_GLOBAL_TENSOR = re.compile(r"\bGlobalTensor\s*<\s*([A-Za-z_]\w*)\s*>\s*([\w\s,]+);")
_TILING_TYPE = re.compile(
    r"\bGET_TILING_DATA_WITH_STRUCT\s*\(\s*([\w:]+)\s*,|\bREGISTER_TILING_DEFAULT\s*\(\s*([\w:]+)\s*\)"
)


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """Parameter of a kernel: its type without qualifiers, and its name."""

    type: str
    name: str

    @property
    def is_pointer(self) -> bool:
        """True if it is an address in global memory."""
        return self.type.endswith("*")

    @property
    def number(self) -> str | None:
        """Type of a number, as ``<cstdint>`` spells it, or None."""
        return NUMBER_TYPES.get(self.type)

    def __str__(self) -> str:
        return f"{'GM_ADDR' if self.type == 'uint8_t*' else self.type} {self.name}"


@dataclass(frozen=True, slots=True)
class StructField:
    """Field of a tiling structure; ``count`` is an array's length."""

    type: str
    name: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class TilingStruct:
    """Structure of numbers that the host computes for a kernel."""

    name: str
    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """Function marked ``__global__``."""

    name: str
    namespace: str
    parameters: tuple[KernelParameter, ...]
    #: Parameters of a template, in their order.
    templates: tuple[str, ...]
    #: True if all of them are types, so that the dtypes of operands can select an instance.
    by_dtype: bool
    #: File that defines it.
    file: Path
    #: Element type as which the source reads a parameter, by parameter, if the source shows it.
    elements: Mapping[str, str] = field(default_factory=dict)
    #: Structures that its file and the files included there define, readable or not.
    structs: tuple[str, ...] = ()

    @property
    def qualified(self) -> str:
        """Name from the global namespace."""
        return f"{self.namespace}::{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"


@dataclass(frozen=True)
class KernelSources:
    """Kernels, the structures their sources define, and all files they need, by path under ``root``."""

    root: Path
    kernels: tuple[KernelFunction, ...]
    structs: Mapping[str, TilingStruct]
    #: Type of the tiling data in global memory, if the sources name it.
    tiling_type: str | None
    files: tuple[Path, ...]

    @cached_property
    def by_name(self) -> Mapping[str, KernelFunction]:
        """Kernels by name."""
        return {kernel.name: kernel for kernel in self.kernels}


def defines_kernels(path: Path) -> bool:
    """Return whether a file has the word ``__global__`` in it."""
    try:
        return path.suffix in KERNEL_SUFFIXES and b"__global__" in path.read_bytes()
    except OSError:
        return False


def kernel_files(directory: Path) -> Iterator[Path]:
    """Yield the files under a directory that define kernels, in the order of their names, without those of builds."""
    for parent, directories, names in os.walk(directory):
        directories[:] = sorted(
            d for d in directories if not d.startswith(".") and d not in ("build", "build_out", "out")
        )
        for name in sorted(names):
            if defines_kernels(Path(parent, name)):
                yield Path(parent, name)


def read_kernels(paths: Iterable[Path], root: Path | None = None, named: Iterable[Path] = ()) -> KernelSources:
    """Read the kernels of some files and of the files that these include by ``#include "…"``.

    Args:
        paths: The files.
        root: The directory that their paths are relative to; by default the deepest that has them all.
        named: Those that the caller names one by one: each must have something to read.

    Raises:
        GenerationError: There is no kernel, or none in a named file; two different ones have the same name; or a file has
            an adapter to PyTorch.
        SourceError: A file cannot be read.
    """
    given = [path.resolve() for path in paths]
    sources: dict[Path, SourceText] = {}
    for path in given:
        _read_with_includes(path, sources)
    kernels: dict[str, KernelFunction] = {}
    structs: dict[str, TilingStruct] = {}
    own_structs = {path: _struct_names(source.code) for path, source in sources.items()}
    tiling_types: set[str] = set()
    by_macro = _kernel_macros(sources.values())
    for path, source in sources.items():
        # The layout of packed structures is the author's to match.
        for struct in () if _PACKED.search(source.text) else _structs(source.code):
            structs.setdefault(struct.name, struct)
        included = _included(path, sources)
        tiling_types |= {(match[1] or match[2]).rpartition("::")[2] for match in _TILING_TYPE.finditer(source.code)}
        code = source.code
        if by_macro is not None and by_macro.search(code):
            source.add_included(path)
            code = source.with_definitions("__global__")
        for kernel in _kernels(path, code, [sources[p].code for p in included]):
            owned = replace(kernel, structs=tuple(n for p in (path, *included) for n in own_structs[p]))
            known = kernels.setdefault(kernel.name, owned)
            if known.parameters != kernel.parameters:
                raise GenerationError(
                    f"there are two kernels {kernel.name}: {known} in {known.file.name}, {kernel} in {path.name}; "
                    "name one source"
                )
    if not kernels:
        names = ", ".join(str(path) for path in given) or "no file"
        raise GenerationError(
            f"{names}: no kernel is defined there; write __global__ __aicore__ void add_custom(GM_ADDR x, …) {{…}}"
        )
    defining = {path for path, names in own_structs.items() if names} | {k.file for k in kernels.values()}
    _check_named(named, sources, defining)
    needed = sorted({f for kernel in kernels.values() for f in (kernel.file, *_included(kernel.file, sources))})
    _check_adapters(needed, sources)
    root = root.resolve() if root else Path(os.path.commonpath([path.parent for path in needed]))
    return KernelSources(
        root,
        tuple(kernels.values()),
        structs,
        tiling_types.pop() if len(tiling_types) == 1 else None,
        tuple(path.relative_to(root) for path in needed),
    )


def _check_named(named: Iterable[Path], sources: Mapping[Path, SourceText], defining: Set[Path]) -> None:
    """Raise GenerationError for a file, named by the caller, that reaches none of those that define something."""
    for path in (p.resolve() for p in named):
        if defining.isdisjoint({path, *_included(path, sources)}):
            raise GenerationError(
                f"{path}: no kernel and no structure is defined there, so that nothing of it would be used; expected "
                "__global__ __aicore__ void add_custom(GM_ADDR x, …) {…}, directly or by a macro. Leave the file out, or include it"
            )


def _check_adapters(paths: Iterable[Path], sources: Mapping[Path, SourceText]) -> None:
    """Raise GenerationError for a file that calls PyTorch."""
    for path in paths:
        if adapter := _ADAPTER.search(sources[path].text):
            raise GenerationError(
                f"{path} has a kernel and an adapter to PyTorch in it (it includes {adapter[1]}); the adapter is generated: "
                "move the kernel to a file of its own"
            )


def _kernel_macros(sources: Iterable[SourceText]) -> re.Pattern[str] | None:
    """Return a pattern of the macros that define kernels, or None if there is none."""
    merged: dict[str, list[Macro]] = {}
    for source in sources:
        for name, definitions in source.macros.items():
            merged.setdefault(name, []).extend(definitions)
    names = defining(merged, lambda macro: "__global__" in (macro.body or ""))
    return re.compile(rf"\b(?:{'|'.join(sorted(names))})\b") if names else None


def included_files(path: Path) -> tuple[Path, ...]:
    """Return the files that a source includes by ``#include "…"``, directly or not."""
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
    """Return the files that a file includes, directly or not."""
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
    """Match a short declaration; a long text never matches."""
    plain = " ".join(text.split())
    return pattern.match(plain) if len(plain) <= _LONGEST else None


def _plain_type(text: str) -> str:
    """Return a parameter's type without ``const`` and memory qualifiers: ``__gm__ float*`` as ``float*``."""
    words = re.sub(
        r"\b(?:const|volatile|struct|__gm__|__restrict__|__restrict|__ubuf__|__kfc_workspace__)\b",
        " ",
        text.replace("*", " * "),
    )
    plain = " ".join(words.split()).replace(" *", "*")
    return {"GM_ADDR": "uint8_t*", "void*": "uint8_t*", "GM_ADDR*": "uint8_t**"}.get(plain, plain)


def _element(parameter: KernelParameter, codes: list[str]) -> str | None:
    """Return the element type of an operand, or None.

    It is that of a typed pointer, of the type to which the source casts the name, or of the ``GlobalTensor`` with that
    name.
    """
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


def _struct_bodies(code: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the body of each structure."""
    found = list(_STRUCT.finditer(code))
    ends = _closing_braces(code) if found else {}
    for match in found:
        end = ends.get(match.end() - 1, -1)
        alias = _ALIAS.match(code, end) if end >= 0 and match[1] else None
        name = alias[1] if alias else match[2]
        if end >= 0 and name:
            yield name, code[match.end() : end]


def _closing_braces(code: str) -> dict[int, int]:
    """Return the position of the closing brace of each opening one, without those in literals."""
    opened: list[int] = []
    found: dict[int, int] = {}
    for match in _BRACE.finditer(code):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            found[opened.pop()] = match.start()
    return found


def _struct_names(code: str) -> tuple[str, ...]:
    defined = (match[1] for match in _DEFINITION.finditer(code))
    return tuple(dict.fromkeys([*(name for name, _ in _struct_bodies(code)), *defined]))


def _parts(text: str, separator: str) -> list[str]:
    """Split a text at separators outside of brackets."""
    parts, start, depth = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _structs(code: str) -> Iterator[TilingStruct]:
    for name, body in _struct_bodies(code):
        yield from _struct(name, body)
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
    """Yield the structure if all of its fields are numbers."""
    fields = []
    for statement in _parts(body, ";"):
        if not statement.strip():
            continue
        first, *others = _parts(statement, ",")
        match = _match(_FIELD, first)
        number = NUMBER_TYPES.get(match[1]) if match else None
        if match is None or number is None:
            return
        fields.append(StructField(number, match[2], int(match[3]) if match[3] else None))
        for other in others:
            match = _match(_NEXT_FIELD, other)
            if match is None:
                return
            fields.append(StructField(number, match[1], int(match[2]) if match[2] else None))
    if fields:
        yield TilingStruct(name, tuple(fields))
