"""Parameters that an Ascend C kernel writes, as far as its source states it: what global tensors over them are used for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ascend_graph.adoption.bound.kernel_code import KernelCode, NamedCallee, Span
from ascend_graph.adoption.cpp.functions import close_of, split
from ascend_graph.sources import SourceError, read_source
from ascend_graph.sources.kernels import GLOBAL_MARK, find_kernels

#: Functions whose first argument is written and whose other arguments are read.
_FIRST_WRITTEN = frozenset(
    {
        "DataCopy",
        "DataCopyPad",
        "DataCopyPadExtDataCopy",
        "Fixpipe",
        "Copy",
        "LoadData",
        "Duplicate",
        "LoadDataWithTranspose",
        # Instructions on tiles: the memory that they store to, and what they load from.
        "TSTORE",
        "TSTORE_FP",
        "MSCATTER",
        "TLOAD",
        "TPREFETCH",
        "MGATHER",
    }
)
#: Methods that read their arguments, and those that write them.
_READING = frozenset(
    {"SetTensorA", "SetTensorB", "SetBias", "SetQuantVector", "DataCacheCleanAndInvalid", "DataCachePreload"}
)
_WRITING = frozenset({"IterateAll", "GetTensorC", "Iterate"})
_READ_MEMBERS = frozenset({"GetValue", "GetSize", "SetL2CacheHint", "GetShapeInfo", "SetShapeInfo"})
_INCLUDED = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
_DECLARED = re.compile(
    r"(?:\bGM_ADDR|__gm__\s+[\w:]+\s*\*|[\w:>]\s*\*|\bGlobalTensor\s*<[^;{}]*>)\s*(?:__restrict__\s*)?\Z"
)
_DECLARATION = re.compile(
    r"\s*(?:(?:public|private|protected)\s*:\s*)?(?:AscendC\s*::\s*)?GlobalTensor\s*<[^;{}()]*>[\w\s,\[\]]*\Z"
)
#: A variable that is given a tensor, or a part of one, from there on: ``auto block = x[offset];``.
_GIVEN = re.compile(r"\b(?:auto|(?:AscendC\s*::\s*)?GlobalTensor\s*<[^;{}()]*>)\s*&?\s*([A-Za-z_]\w*)\s*=\s*\Z")
_PART = re.compile(r"\s*(?:\[[^\[\];]*\])?\s*;")
#: A pointer that is given another one from there on: ``GM_ADDR const sums = ``, ``this->x = ``.
_POINTER = re.compile(
    r"\s*(?:const\s+)?(?:GM_ADDR\b|auto\b|__gm__\s+[\w:]+\s*\*|[\w:]+\s+__gm__\s*\*)\s*(?:const\b\s*)?(?:__restrict__\s*)?"
    r"(?P<name>[A-Za-z_]\w*)\s*=(?P<value>[^=].*)?\Z",
    re.DOTALL,
)
_STORED = re.compile(r"\s*(?P<this>this\s*->\s*)?(?P<name>[A-Za-z_]\w*)\s*=(?P<value>[^=].*)?\Z", re.DOTALL)
#: Body of a macro that stands for a class: ``Base<T, mode>``.
_CLASS_NAME = re.compile(r"\s*(?:\w+\s*::\s*)*([A-Za-z_]\w*)\s*(?:<[^;{}()]*>)?\s*")
_MARK = re.compile(r"\b__global__\b")
#: Types of numbers that hold no address.
_SMALL = frozenset(
    {"int32_t", "uint32_t", "int16_t", "uint16_t", "int", "unsigned", "float", "half", "bfloat16_t", "bool"}
)
_TENSOR = "GlobalTensor"
_LONGEST_CALL = 4000
_MAX_DEPTH = 4
#: Number of directories above a file in which the headers that it includes are looked for.
_MAX_PARENTS = 4


#: Name of a variable that has the memory, with the parts of the code in which it means that.
Place = tuple[str, tuple[Span, ...]]
_NOWHERE: Place = ("", ())


@dataclass(slots=True)
class KernelWrites:
    """Parameters of a kernel by what it does with them."""

    count: int
    written: set[int] = field(default_factory=set)
    #: Parameters whose use is not understood.
    unknown: set[int] = field(default_factory=set)


def kernel_writes(name: str, files: Iterable[Path], caller: Path) -> KernelWrites | None:
    """Return what a kernel writes; None if its source is not found, or several files next to the caller's have the name."""
    found = []
    for path in files:
        try:
            if name.encode() not in path.read_bytes():
                continue
            code = read_source(path).code
        except (OSError, SourceError):
            continue
        found += [
            (one, path)
            for one in find_kernels(_MARK.sub(GLOBAL_MARK, code), templates=True)
            if one.name.rpartition("::")[2] == name
        ]
    near = {path: len(os.path.commonpath((path, caller))) for _, path in found}
    found = [(one, path) for one, path in found if near[path] == max(near.values())]
    if len(found) != 1:
        return None
    kernel, path = found[0]
    result = KernelWrites(len(kernel.parameters))
    reader = _reader_of(path, path.stat().st_mtime_ns)
    pointers = {n for n, one in enumerate(kernel.parameters) if one.is_pointer or "GM_ADDR" in one.type}
    for number in sorted(pointers):
        verdict = reader.verdict(name, kernel.parameters[number].name)
        if verdict != "read":
            (result.written if verdict == "written" else result.unknown).add(number)
    if not result.written and not result.unknown:
        result.unknown = pointers  # A kernel has a result; what writes it is in a file that is not here.
    return result


@lru_cache(maxsize=32)
def _reader_of(path: Path, _: int) -> _Reader:
    """Return the reader of a file, which is read again when it changes."""
    macros: dict[str, str] = {}
    return _Reader(_with_included(path, 0, set(), macros), macros)


def _with_included(path: Path, depth: int, seen: set[Path], macros: dict[str, str]) -> str:
    """Return the code of a file and of the repository's files that it includes; ``macros`` gets those that name a class."""
    if path in seen or depth > _MAX_DEPTH:
        return ""
    seen.add(path)
    try:
        source = read_source(path)
    except (OSError, SourceError):
        return ""
    for name, definitions in source.macros.items():
        bodies = [one.body for one in definitions if one.body is not None]
        classes = {found[1] if (found := _CLASS_NAME.fullmatch(one)) else "" for one in bodies}
        if len(classes) == 1:
            macros.setdefault(name, classes.pop())
    # The directories of headers are, where a path names them, those that the file is in.
    places = [
        next((one / name for one in path.parents[:_MAX_PARENTS] if (one / name).is_file()), None)
        for name in _INCLUDED.findall(source.text)
    ]
    parts = [_with_included(one.resolve(), depth + 1, seen, macros) for one in places if one is not None]
    return "\n".join([*parts, source.code])


class _Reader:
    """Reader of the uses of names in the code of a kernel."""

    def __init__(self, text: str, macros: dict[str, str]) -> None:
        self.code = text
        self.known = KernelCode(text, macros)

    def verdict(self, kernel: str, name: str) -> str:
        """Return ``read``, ``written`` or ``unknown`` for the memory that a parameter of a kernel points to."""
        found = [one for one in self.known.functions.get(kernel, ()) if any(p.name == name for p in one.parameters)]
        if len(found) != 1:
            return "unknown"
        pending: list[Place] = [(name, (found[0].body,))]
        seen, result, used = {*pending}, "read", False
        while pending:
            for kind, other in self.uses(*pending.pop()):
                used = True
                if kind == "unknown":
                    return "unknown"
                if kind == "written":
                    result = "written"
                elif kind == "is" and other not in seen:
                    seen.add(other)
                    pending.append(other)
        return result if used else "unknown"

    def uses(self, name: str, spans: tuple[Span, ...]) -> Iterator[tuple[str, Place]]:
        """Yield what each use of a name in parts of the code does: reads, writes, or gives its memory to another name."""
        pattern = re.compile(rf"{re.escape(name)}\b")  # begins with the name, which is found fast
        for match in (one for start, end in spans for one in pattern.finditer(self.code, start, end)):
            if re.match(r"[\w.]", self.code[match.start() - 1 : match.start()]):
                continue
            before, after = (
                self.code[max(0, match.start() - 200) : match.start()],
                self.code[match.end() : match.end() + 80],
            )
            if _DECLARED.search(before) and re.match(r"\s*[,;)=\[]", after):
                continue
            if _DECLARATION.match(re.split(r"[;{}]", before)[-1]):
                continue
            if (
                re.match(r"\s*[({;]", after)
                and self.known.declared_kind(NamedCallee(name, start=match.start())) == _TENSOR
            ):
                continue
            member = re.match(r"\s*(?:\[[^\[\]]*\])?\s*\.\s*(\w+)\s*(?:<[^<>]*>)?\s*\(", after)
            if member is not None:
                if member[1] == "SetGlobalBuffer" or member[1] in _READ_MEMBERS:
                    yield "read", _NOWHERE
                else:
                    yield ("written" if member[1] == "SetValue" else "unknown"), _NOWHERE
                continue
            if value := self.value(name, match.start(), match.end()):
                yield value, _NOWHERE
                continue
            given = _GIVEN.search(before)
            if given is not None and _PART.match(self.code, match.end()):
                yield "is", (given[1], ((match.end(), self.known.end_of_block(match.end())),))
                continue
            yield from self.argument(match.start())

    def value(self, name: str, start: int, end: int) -> str:
        """Return ``read`` if a pointer is compared with null or an element of it is read, and nothing if it is a pointer.

        An element that may hold an address, or is written, is ``unknown``.
        """
        before, after = self.code[max(0, start - 40) : start], self.code[end : end + 200]
        if re.match(r"\s*[!=]=\s*(?:nullptr|NULL|0)\b", after) or re.search(r"\b(?:nullptr|NULL)\s*[!=]=\s*\Z", before):
            return "read"
        close = close_of(self.code, end) if after.startswith("[") else -1
        here = self.known.enclosing(start)
        if close < 0 or here is None or re.search(r"&\s*\Z", before):
            return ""
        kinds = re.findall(
            rf"__gm__\s+(?:const\s+)?(\w+)\s*\*\s*(?:const\s+)?(?:__restrict__\s+)?{re.escape(name)}\b",
            self.code[here.whole[0] : start],
        )
        written = re.search(r"(?:\*|\+\+|--)\s*\Z", before) or re.match(
            r"\s*(?:=(?!=)|\+\+|--|(?:[-+*/%&|^]|<<|>>)=|\[|\.)", self.code[close + 1 : close + 20]
        )
        return "" if not kinds else "read" if {*kinds} <= _SMALL and not written else "unknown"

    def argument(self, position: int) -> Iterator[tuple[str, Place]]:
        """Yield what the call does whose argument stands at a position."""
        opened = self.opening(position)
        if opened < 0:
            yield self.statement(position)
            return
        callee = self.known.callee(opened)
        if callee is None:
            # A bracket around a cast or a sum: what stands around it takes the value.
            yield from self.argument(opened)
            return
        function = callee.function
        number = len(split(self.code[opened + 1 : position] + "_")) - 1
        if function == "SetGlobalBuffer":
            yield ("is", self.held_by(callee)) if callee.path and number == 0 else ("unknown", _NOWHERE)
        elif function in _READING or (function in _FIRST_WRITTEN and number > 0):
            yield "read", _NOWHERE
        elif function in _WRITING or function in _FIRST_WRITTEN:
            yield "written", _NOWHERE
        elif function == "TASSIGN":
            target = re.match(r"\s*(?:this\s*->\s*)?(\w+)\s*,", self.code[opened + 1 : position])
            yield ("is", self.held_by(NamedCallee("", "", (target[1],), opened))) if target else ("read", _NOWHERE)
        elif number == 0 and self.known.declared_kind(callee) == _TENSOR:
            yield "is", (function, ((opened, self.known.end_of_block(opened)),))
        elif function in ("if", "while", "for", "switch") or function.endswith("_cast"):
            yield from self.argument(opened) if function.endswith("cast") else iter((("unknown", _NOWHERE),))
        else:
            close = close_of(self.code, opened)
            count = len(split(self.code[opened + 1 : close])) if close > 0 else 0
            same = self.known.called(callee, count) if close > 0 else []
            yield from (("is", (one.parameters[number].name, (one.body,))) for one in same)
            if not same:
                yield "unknown", _NOWHERE

    def statement(self, position: int) -> tuple[str, Place]:
        """Return what a statement does with a name that is in no call: ``(void)x;``, ``GM_ADDR y = first ? x : z;``."""
        start = max(self.code.rfind(mark, 0, position) for mark in ";{}") + 1
        before, after = self.code[start:position], self.code[position : position + 80]
        if re.fullmatch(r"\s*\(\s*void\s*\)\s*", before) and re.match(r"\w+\s*;", after):
            return "read", _NOWHERE
        if re.fullmatch(r"\s*(?:this\s*->\s*)?", before) and re.match(r"\w+\s*=(?!=)", after):
            return "read", _NOWHERE  # It is given another memory.
        here = self.known.enclosing(position)
        declared, stored = _POINTER.match(before), _STORED.match(before)
        found = declared or stored
        if found is None or here is None or before.rstrip().endswith("*") or re.match(r"\w+\s*\[", after):
            return "unknown", _NOWHERE
        if declared is not None:
            return "is", (found["name"], ((position, self.known.end_of_block(position)),))
        path = ("this", found["name"]) if found["this"] else (found["name"],)
        return "is", self.held_by(NamedCallee("", "", path, position))

    def held_by(self, callee: NamedCallee) -> Place:
        """Return the global tensor that is set, and where it is named: in the function, or in its class."""
        name, here = callee.path[-1], self.known.enclosing(callee.start)
        if here is None or (len(callee.path) > 1 and callee.path[0] != "this"):
            return name, ((0, len(self.code)),)
        if len(callee.path) == 1 and self.known.declared_in(name, here.whole[0], callee.start):
            return name, (here.body,)
        return name, (self.known.spans_of(here.owner) if here.owner else ()) or ((0, len(self.code)),)

    def opening(self, position: int) -> int:
        """Return the bracket that a position stands in, or -1."""
        depth = 0
        for place in range(position - 1, max(-1, position - _LONGEST_CALL), -1):
            character = self.code[place]
            if character in ")]":
                depth += 1
            elif character in "([":
                if depth == 0:
                    return place if character == "(" else -1
                depth -= 1
            elif character in ";{}" and depth == 0:
                return -1
        return -1
