"""Parameters that an Ascend C kernel writes, as far as its source states it: what global tensors over them are used for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ascend_graph.adoption.cpp.functions import close_of, parameters_of, split
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
_DEFINED = re.compile(r"(?<![\w.>:])(?:(?P<owner>\w+)\s*(?:<[^<>;{}()]*>)?\s*::\s*)?(?P<name>[A-Za-z_]\w*)\s*\(")
_CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)\s*(?:final\s*)?(?::[^;{}()]*)?\{")
_MARK = re.compile(r"\b__global__\b")
_LONGEST_CALL = 4000
_MAX_DEPTH = 3


#: Begin and end of a part of the code; everything if the end is negative.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function of a kernel's code: the names of its parameters, where its body is, and its class."""

    parameters: tuple[str, ...]
    body: Span
    owner: str


_NOWHERE: tuple[str, Span] = ("", (0, 0))


@dataclass(slots=True)
class KernelWrites:
    """Parameters of a kernel by what it does with them."""

    count: int
    written: set[int] = field(default_factory=set)
    #: Parameters whose use is not understood.
    unknown: set[int] = field(default_factory=set)


def kernel_writes(name: str, files: list[Path]) -> KernelWrites | None:
    """Return what a kernel writes; None if its source is not found, or several kernels have the name."""
    found = []
    for path in files:
        try:
            if name.encode() not in path.read_bytes():
                continue
            code = read_source(path).code
        except (OSError, SourceError):
            continue
        found += [
            (one, path) for one in find_kernels(_MARK.sub(GLOBAL_MARK, code)) if one.name.rpartition("::")[2] == name
        ]
    if len(found) != 1:
        return None
    kernel, path = found[0]
    code = _with_included(path, 0, set())
    result = KernelWrites(len(kernel.parameters))
    reader = _Reader(code)
    for number, parameter in enumerate(kernel.parameters):
        if parameter.is_pointer or "GM_ADDR" in parameter.type:
            verdict = reader.verdict(name, parameter.name)
            if verdict != "read":
                (result.written if verdict == "written" else result.unknown).add(number)
    return result


def _with_included(path: Path, depth: int, seen: set[Path]) -> str:
    """Return the code of a file and of the files next to it that it includes."""
    if path in seen or depth > _MAX_DEPTH:
        return ""
    seen.add(path)
    try:
        source = read_source(path)
    except (OSError, SourceError):
        return ""
    parts = [
        _with_included((path.parent / one).resolve(), depth + 1, seen)
        for one in _INCLUDED.findall(source.text)
        if (path.parent / one).is_file()
    ]
    return "\n".join([*parts, source.code])


class _Reader:
    """Reader of the uses of names in the code of a kernel."""

    def __init__(self, code: str) -> None:
        self.code = code
        #: Functions by name.
        self.definitions: dict[str, list[_Definition]] = {}
        classes = [(match[1], match.end(), close_of(code, match.end() - 1)) for match in _CLASS.finditer(code)]
        for match in _DEFINED.finditer(code):
            close = close_of(code, match.end() - 1)
            opened = re.match(r"\s*(?:const\s*)?(?::[^;{}]*)?\{", code[close + 1 : close + 400]) if close > 0 else None
            if opened is not None:
                names = tuple(one.name for one in parameters_of(code[match.end() : close]))
                start = close + opened.end()
                inside = [name for name, begin, end in classes if begin <= match.start() < end]
                owner = match["owner"] or (inside[-1] if inside else "")
                found = _Definition(names, (start, close_of(code, start)), owner)
                self.definitions.setdefault(match["name"], []).append(found)

    def called(self, function: str, count: int, variable: str) -> list[_Definition]:
        """Return the functions with so many parameters; of a variable's class, if that is known, for its methods."""
        found = [one for one in self.definitions.get(function, ()) if len(one.parameters) == count]
        if not variable or len(found) < 2:
            return found
        declared = rf"\b(\w+)\s*(?:<[^;{{}}()]*>)?[\s*&]+{re.escape(variable)}\s*[;,)({{=\[]"
        types = {match[1] for match in re.finditer(declared, self.code)}
        return [one for one in found if one.owner in types] or found

    def verdict(self, kernel: str, name: str) -> str:
        """Return ``read``, ``written`` or ``unknown`` for the memory that a parameter of a kernel points to."""
        bodies = [one.body for one in self.definitions.get(kernel, ()) if name in one.parameters]
        if len(bodies) != 1:
            return "unknown"
        pending = [(name, bodies[0])]
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

    def uses(self, name: str, span: Span) -> Iterator[tuple[str, tuple[str, Span]]]:
        """Yield what each use of a name in a part does: reads, writes, or gives its memory to another name."""
        start, end = span
        pattern = re.compile(rf"(?<![\w.]){re.escape(name)}\b|(?<=this->){re.escape(name)}\b")
        for match in pattern.finditer(self.code, start, end if end > 0 else len(self.code)):
            before, after = (
                self.code[max(0, match.start() - 200) : match.start()],
                self.code[match.end() : match.end() + 80],
            )
            if _DECLARED.search(before) and re.match(r"\s*[,;)=\[]", after):
                continue
            if _DECLARATION.match(re.split(r"[;{}]", before)[-1]):
                continue
            member = re.match(r"\s*(?:\[[^\[\]]*\])?\s*\.\s*(\w+)\s*(?:<[^<>]*>)?\s*\(", after)
            if member is not None:
                if member[1] == "SetGlobalBuffer" or member[1] in _READ_MEMBERS:
                    yield "read", _NOWHERE
                else:
                    yield ("written" if member[1] == "SetValue" else "unknown"), _NOWHERE
                continue
            given = _GIVEN.search(before)
            if given is not None and _PART.match(self.code, match.end()):
                yield "is", (given[1], (match.end(), self.end_of_block(match.end())))
                continue
            yield from self.argument(match.start())

    def end_of_block(self, position: int) -> int:
        """Return the end of the block that a position stands in, or that of the code."""
        depth = 0
        for place in range(position, len(self.code)):
            depth += {"{": 1, "}": -1}.get(self.code[place], 0)
            if depth < 0:
                return place
        return len(self.code)

    def argument(self, position: int) -> Iterator[tuple[str, tuple[str, Span]]]:
        """Yield what the call does whose argument stands at a position."""
        opened = self.opening(position)
        if opened < 0:
            yield "unknown", _NOWHERE
            return
        called = re.search(
            r"([A-Za-z_][\w:]*)(?:\s*(?:\.|->)\s*(\w+))?\s*(?:<[^;{}<>]*>)?\s*\Z",
            self.code[max(0, opened - 200) : opened],
        )
        if called is None:
            # A bracket around a cast or a sum: what stands around it takes the value.
            yield from self.argument(opened)
            return
        function = called[2] or called[1].rpartition("::")[2]
        close = close_of(self.code, opened)
        number = len(split(self.code[opened + 1 : position] + "_")) - 1
        if function == "SetGlobalBuffer":
            yield ("is", (called[1], (0, -1))) if called[2] and number == 0 else ("unknown", _NOWHERE)
        elif function in _READING or (function in _FIRST_WRITTEN and number > 0):
            yield "read", _NOWHERE
        elif function in _WRITING or function in _FIRST_WRITTEN:
            yield "written", _NOWHERE
        elif function in ("if", "while", "reinterpret_cast", "static_cast", "for", "switch"):
            yield from self.argument(opened) if function.endswith("cast") else iter((("unknown", _NOWHERE),))
        elif function in self.definitions and close > 0:
            count = len(split(self.code[opened + 1 : close]))
            variable = called[1] if called[2] else ""
            same = [(one.parameters[number], one.body) for one in self.called(function, count, variable)]
            yield from (("is", one) for one in same) if same else iter((("unknown", _NOWHERE),))
        else:
            yield "unknown", _NOWHERE

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
