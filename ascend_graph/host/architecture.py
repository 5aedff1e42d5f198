"""The architectures of NPUs that the host stands for, one at a time: what a build is for and what a process runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ascend_graph.errors import AscendGraphError
from ascend_graph.host.toolkit import PROCESSORS, processor


class ArchitectureError(AscendGraphError):
    """No architecture that the host stands for has this name."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """An architecture of NPUs, as compilers, definitions of operators and repositories call it."""

    #: As compilers call it: ``dav-2201``.
    name: str
    #: What AddConfig calls its chips.
    configs: frozenset[str]
    #: The directories of repositories with its code.
    directories: frozenset[str]
    #: How the names of its chips begin, as aclrtGetSocName says them.
    chips: tuple[str, ...]

    @property
    def number(self) -> int:
        """As the macro ``__NPU_ARCH__`` has it."""
        return int(self.name.removeprefix("dav-"))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.chips)})"


#: Directories are called by the instructions, or by the generation.
DAV_2201 = Architecture(
    "dav-2201",
    frozenset({"ascend910b", "ascend910_93"}),
    frozenset({"arch22", "arch32"}),
    ("Ascend910B", "Ascend910_93"),
)
DAV_3510 = Architecture(
    "dav-3510",
    frozenset({"ascend950", "ascend910_95"}),
    frozenset({"arch35"}),
    ("Ascend950", "Ascend910_95"),
)
ARCHITECTURES = (DAV_2201, DAV_3510)


def architecture(name: str) -> Architecture:
    """The architecture of a name: its own, or that of a chip.

    >>> architecture("dav-3510").number
    3510
    >>> architecture("Ascend910B2") is DAV_2201
    True

    Raises:
        ArchitectureError: there is none.
    """
    for one in ARCHITECTURES:
        if name == one.name or name.lower().startswith(tuple(chip.lower() for chip in one.chips)):
            return one
    valid = "; ".join(str(one) for one in ARCHITECTURES)
    raise ArchitectureError(f"there is no architecture {name!r} on the host; valid: {valid}")


def processor_with(wanted: Architecture, environment: Mapping[str, str]) -> str:
    """The processor that a process stands for where it is one of this architecture, or the first that is.

    >>> processor_with(DAV_3510, {})
    'Ascend950PR_9589'
    >>> processor_with(DAV_2201, {"ASCEND_GRAPH_HOST_SOC": "Ascend910_9391"})
    'Ascend910_9391'

    Raises:
        HostRuntimeError: the environment names no processor.
    """
    return next(name for name in (processor(environment), *PROCESSORS) if name.startswith(wanted.chips))
