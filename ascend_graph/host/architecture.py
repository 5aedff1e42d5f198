"""NPU architectures that the host emulates, one at a time: the target of a build and of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ascend_graph.environment import processor
from ascend_graph.errors import AscendGraphError
from ascend_graph.processors import KERNEL_ARCHITECTURES, PROCESSORS


class ArchitectureError(AscendGraphError):
    """Name that is not an architecture or SoC that the host emulates."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """NPU architecture with its names in compilers, operator definitions and repositories."""

    #: Name in compilers: ``dav-2201``.
    name: str
    #: Names of its SoCs in AddConfig.
    configs: frozenset[str]
    #: Names of the directories that repositories use for its code.
    directories: frozenset[str]
    #: Prefixes of its SoC names, as aclrtGetSocName returns them.
    chips: tuple[str, ...]

    @property
    def number(self) -> int:
        """Value of the macro ``__NPU_ARCH__``."""
        return int(self.name.removeprefix("dav-"))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.chips)})"


ARCHITECTURES = tuple(
    Architecture(one.name, frozenset(one.configs), frozenset(one.directories), one.begin)
    for one in KERNEL_ARCHITECTURES.values()
)
DAV_2201, DAV_3510 = ARCHITECTURES


def architecture(name: str) -> Architecture:
    """Return the architecture with this name or with a SoC of this name.

    >>> architecture("dav-3510").number
    3510
    >>> architecture("Ascend910B2") is DAV_2201
    True

    Raises:
        ArchitectureError: no architecture matches.
    """
    for one in ARCHITECTURES:
        if name == one.name or name.lower().startswith(tuple(chip.lower() for chip in one.chips)):
            return one
    valid = "; ".join(str(one) for one in ARCHITECTURES)
    raise ArchitectureError(f"architecture {name!r} does not exist on the host; valid: {valid}")


def processor_with(wanted: Architecture, environment: Mapping[str, str]) -> str:
    """Return the SoC that the environment selects if it has this architecture, else the first SoC that does.

    >>> processor_with(DAV_3510, {})
    'Ascend950PR_9589'
    >>> processor_with(DAV_2201, {"ASCEND_GRAPH_HOST_SOC": "Ascend910_9391"})
    'Ascend910_9391'

    Raises:
        HostRuntimeError: the SoC that the environment names is unknown.
    """
    return next(name for name in (processor(environment), *PROCESSORS) if name.startswith(wanted.chips))
