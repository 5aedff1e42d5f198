"""Form of a known fault, and the small programs that show each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.programs import FuzzProgram, Input, ProgramLine

Case = tuple[FuzzProgram, FuzzFinding]


@dataclass(frozen=True)
class KnownFault:
    """Fault of the wheel: ``explains`` checks the program as well as the message."""

    name: str
    explains: Callable[[FuzzProgram, FuzzFinding], bool]
    smallest: Callable[[], Case]
    sibling: Callable[[], Case]


def case(mode: str, message: str, *nodes: ProgramLine, outputs: tuple[str, ...] = ("x0",), grad: bool = False) -> Case:
    program = FuzzProgram(0, (Input("x0", "float32", ("a",), grad=grad),), nodes, outputs, ({"a": 2}, {"a": 3}))
    return program, FuzzFinding("program 0", mode, "raises", message)


SINE = ProgramLine("torch.sin({0})", ("x0",), ("v0",))
SLICE = ProgramLine("{0}[1:]", ("x0",), ("v1",))


def as_strided(source: str) -> ProgramLine:
    return ProgramLine("{0}.as_strided({0}.shape[:1], {0}.stride()[:1], 0)", (source,), ("v2",))
