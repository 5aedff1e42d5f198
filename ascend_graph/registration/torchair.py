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


@dataclass(slots=True, eq=False)
class ConverterHandle:
    """A registered converter that can be taken back."""

    overload: Any
    #: The converter as TorchAir holds it.
    wrapped: Any
    #: What TorchAir held before, or None.
    before: Any
    _on_overload: bool = True
    _active: bool = True

    @property
    def on_top(self) -> bool:
        """Whether nobody has registered another one since."""
        return self._active and getattr(self.overload, "_ge_converter", None) is self.wrapped

    def remove(self) -> None:
        """Take the converter back; what was there before is there again. A second call does nothing."""
        if not self._active:
            return
        on_top, self._active = self.on_top, False
        _live.remove(self)
        if on_top:
            _hold(self.overload, self.before, self._on_overload)
            return
        # Another one was registered since. If that is ours, what it replaced is now what this one replaced.
        for above in _live:
            if above.before is self.wrapped:
                above.before, above._on_overload = self.before, self._on_overload


_live: list[ConverterHandle] = []


def _hold(overload: Any, converter: Any, on_overload: bool) -> None:
    """Have TorchAir hold a converter again, or none, where it held it."""
    if on_overload and converter is not None:
        overload._ge_converter = converter
    elif hasattr(overload, "_ge_converter"):
        del overload._ge_converter


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
    around: Callable[[ConverterFunction], ConverterFunction] | None = None,
) -> ConverterHandle:
    """Register ``converter`` with TorchAir for ``overload``.

    Args:
        overload: The torch operator.
        converter: As ``torchair.register_fx_node_ge_converter`` takes it.
        override: Whether it may replace one that is there.
        around: What becomes of the converter as TorchAir holds it, before it is in force.

    Raises:
        ConverterError: TorchAir has one already and ``override`` is false, or does not take it.
    """
    before = existing_converter(overload)
    if before is not None and not override:
        raise ConverterError(
            f"{overload.name()} has a converter already ({before.__module__}.{before.__qualname__}); "
            "pass override=True to replace it"
        )
    on_overload = getattr(overload, "_ge_converter", None) is not None
    torchair().fx.register_fx_node_ge_converter(overload)(converter)
    wrapped = getattr(overload, "_ge_converter", None)
    if wrapped is None or wrapped is before:
        raise ConverterError(
            f"TorchAir did not take the converter of {overload.name()}: it is one of its lite converters"
        )
    try:
        if around is not None:
            wrapped = overload._ge_converter = around(wrapped)
    except BaseException:
        _hold(overload, before, on_overload)
        raise
    handle = ConverterHandle(overload, wrapped, before, on_overload)
    _live.append(handle)
    return handle
