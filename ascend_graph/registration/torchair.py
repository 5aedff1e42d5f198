"""TorchAir's side of a registration: the modules used of it, and the table of its converters."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from ascend_graph.errors import AscendGraphError

ConverterFunction = Callable[..., Any]


class ConverterError(AscendGraphError):
    """TorchAir is not there, or has a converter for the operator already."""


@lru_cache(maxsize=1)
def torchair() -> SimpleNamespace:
    """The modules of TorchAir that converters are made with and registered in.

    Raises:
        ConverterError: torchair cannot be imported.
    """
    try:
        importlib.import_module("torch_npu")  # torchair can only be imported after it
        return SimpleNamespace(
            fx=importlib.import_module("torchair._ge_concrete_graph.fx2ge_converter"),
            ge=importlib.import_module("torchair.ge._ge_graph"),
            raw=importlib.import_module("torchair._ge_concrete_graph.ge_apis"),
        )
    except (ImportError, OSError) as error:
        raise ConverterError(
            f"a converter needs torch_npu with torchair, which cannot be imported here: {error}. "
            "Without CANN run the program as `python -m ascend_graph.host script.py`."
        ) from error


@dataclass(slots=True)
class ConverterHandle:
    """A registered converter that can be taken back."""

    overload: Any
    _wrapped: Any
    _before: Any
    _active: bool = True

    def remove(self) -> None:
        """Take the converter back; what was there before is there again. A second call does nothing."""
        if not self._active:
            return
        self._active = False
        if getattr(self.overload, "_ge_converter", None) is not self._wrapped:
            return  # somebody registered another one since; it is theirs
        if self._before is None:
            del self.overload._ge_converter
        else:
            self.overload._ge_converter = self._before


def existing_converter(overload: Any) -> Any:
    """TorchAir's converter of an overload, or None. TorchAir's own converters count."""
    fx = torchair().fx
    fx._get_converter(overload)  # loads TorchAir's converters of torch.ops.npu, if they are not
    return getattr(overload, "_ge_converter", None) or fx._CONVERTERS.get(overload)


def register_converter(
    overload: Any,
    converter: ConverterFunction,
    *,
    override: bool = False,
    around: Callable[[ConverterFunction, ConverterFunction], ConverterFunction] | None = None,
) -> ConverterHandle:
    """Register ``converter`` with TorchAir for ``overload``.

    Args:
        overload: The torch operator.
        converter: As ``torchair.register_fx_node_ge_converter`` takes it.
        override: Whether it may replace one that is there.
        around: Where one is replaced: what becomes of the new and the replaced one, both as TorchAir holds them.

    Raises:
        ConverterError: TorchAir has one already and ``override`` is false.
    """
    before = existing_converter(overload)
    if before is not None and not override:
        raise ConverterError(
            f"{overload.name()} has a converter already ({before.__module__}.{before.__qualname__}); "
            "pass override=True to replace it"
        )
    torchair().fx.register_fx_node_ge_converter(overload)(converter)
    wrapped = getattr(overload, "_ge_converter", None)
    if wrapped is None or wrapped is before:
        raise ConverterError(
            f"TorchAir did not take the converter of {overload.name()}: it is one of its lite converters"
        )
    if before is not None and around is not None:
        wrapped = overload._ge_converter = around(wrapped, before)
    return ConverterHandle(overload, wrapped, before)
