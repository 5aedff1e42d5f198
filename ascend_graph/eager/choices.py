"""Choice among several aclnn functions for one operator: by availability, by SoC, or by a call's arguments.

The functions are alternatives with one schema: a newer version and an older one, or one for each dtype or SoC. Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ascend_graph.aclnn import process_catalog
from ascend_graph.binding.errors import EagerError
from ascend_graph.eager.computed import with_dtypes
from ascend_graph.eager.errors import MissingFunctionError
from ascend_graph.eager.library import kernels

#: Condition of one function: a function of all arguments by name, the beginning of a SoC's name, or None for every call.
Condition: TypeAlias = Callable[[Mapping[str, Any]], Any] | str | None
#: Choice as it is written: one name, names in the order of preference, or names with conditions.
Functions: TypeAlias = str | Sequence[str] | Mapping[str, Condition]


@dataclass(frozen=True, slots=True)
class FunctionChoice:
    """One function, and its condition."""

    function: str
    when: Condition = None

    def __str__(self) -> str:
        match self.when:
            case None:
                return self.function
            case str():
                return f"{self.function} on {self.when}"
        return f"{self.function} if {getattr(self.when, '__qualname__', 'a condition')}"


def read_alternatives(subject: str, given: Functions | None) -> tuple[FunctionChoice, ...]:
    """Read a choice; one name is a choice of one.

    Raises:
        EagerError: It is empty, or a condition is neither a function, a SoC's name nor None.

    >>> [str(a) for a in read_alternatives("Add", {"aclnnAdd310": "Ascend310P", "aclnnAddV2": None, "aclnnAdd": None})]
    ['aclnnAdd310 on Ascend310P', 'aclnnAddV2', 'aclnnAdd']
    """
    if given is None or isinstance(given, str):
        return () if given is None else (FunctionChoice(given),)
    pairs = list(given.items()) if isinstance(given, Mapping) else [(name, None) for name in given]
    good = all(
        isinstance(name, str) and (when is None or isinstance(when, str) or callable(when)) for name, when in pairs
    )
    if not pairs or not good:
        raise EagerError(
            f"{subject}: aclnn={given!r} is not a choice; expected a name, names in the order of preference, or names with a "
            'condition each: {"aclnnAddV2": lambda args: args["x"].dtype == torch.int8, "aclnnAdd310": "Ascend310P", "aclnnAdd": None}'
        )
    return tuple(FunctionChoice(name, when) for name, when in pairs)


def without_unknown(alternatives: Sequence[FunctionChoice], own: str = "") -> tuple[FunctionChoice, ...]:
    """Return the functions that a header declares, or that are called without one; all if none is.

    Args:
        alternatives: The choice.
        own: The function that needs no header, ``aclnn<OpType>``.
    """
    known = tuple(a for a in alternatives if a.function == own or process_catalog.get(a.function) is not None)
    return known or tuple(alternatives)


def arguments_of(
    arguments: Mapping[str, Any] | None, alternative: FunctionChoice, among: Sequence[FunctionChoice]
) -> Any:
    """Return the ``aclnn_arguments=`` of one function: its own entry if they are given by function."""
    names = {a.function for a in among}
    if arguments and len(among) > 1 and arguments.keys() <= names:
        return arguments.get(alternative.function, {})
    return arguments


def chooser(
    operator: str, alternatives: Sequence[FunctionChoice], dtypes: Collection[str]
) -> Callable[[dict[str, Any]], int]:
    """Return the function that chooses the alternative of a call by number, from all arguments by name.

    Args:
        operator: The operator's name, for messages.
        alternatives: The functions, in the order of preference.
        dtypes: The schema's arguments of the type ``ScalarType``, which arrive as numbers.
    """
    found: set[str] = set()

    def available(function: str) -> bool:
        # Asked again if it is missing: a package may be selected later.
        if function not in found and kernels().library_of(function):
            found.add(function)
        return function in found

    def choose(arguments: dict[str, Any]) -> int:
        given = with_dtypes(arguments, dtypes)
        for number, alternative in enumerate(alternatives):
            if _holds(alternative.when, given) and available(alternative.function):
                return number
        raise MissingFunctionError(
            f"{operator}: no function is there for this call; expected one of {'; '.join(map(str, alternatives))}"
        )

    return choose


def _holds(when: Condition, arguments: Mapping[str, Any]) -> bool:
    if when is None:
        return True
    if not isinstance(when, str):
        return bool(when(arguments))
    tensor = next((t for v in arguments.values() for t in _tensors(v)), None)
    name = torch.get_device_module("npu").get_device_name(None if tensor is None else tensor.device.index)
    return str(name).lower().startswith(when.lower())


def _tensors(value: Any) -> list[torch.Tensor]:
    items = value if isinstance(value, list | tuple) else (value,)
    return [item for item in items if isinstance(item, torch.Tensor)]
