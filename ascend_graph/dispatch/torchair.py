"""TorchAir part of a registration: its modules in use, and the table of its converters.

TorchAir takes seconds to import, and only GE graphs use it. A converter that is registered before is put where TorchAir
finds it, on the overload, and becomes TorchAir's own kind of converter at its first node.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ascend_graph.binding.op_schema import OpSchema
from ascend_graph.errors import AscendGraphError
from ascend_graph.signatures import misfit, parameter_names

ConverterFunction = Callable[..., Any]


class ConverterError(AscendGraphError):
    """Error of a missing TorchAir, or of a converter that exists already or is not accepted."""


@lru_cache(maxsize=1)
def torchair() -> SimpleNamespace:
    """Import the modules of TorchAir that build and register converters.

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
        raise _missing(error) from error


class _Refusal:
    """Converter of an operator that no GE graph may have: it raises, unless TorchAir has a converter of its own."""

    #: TorchAir then passes ``meta_outputs``, which its own converter may need.
    require_meta = True

    def __init__(self, overload: Any, message: Callable[[], str]) -> None:
        self.overload, self.message = overload, message

    def __call__(self, /, *args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        """Call TorchAir's own converter.

        Raises:
            ConverterError: It has none.
        """
        known = existing_converter(self.overload)
        if known is None:
            raise ConverterError(self.message())
        return known(*args, **kwargs, **({"meta_outputs": meta_outputs} if known.require_meta else {}))


@dataclass(slots=True, eq=False)
class RefusalHandle:
    """Handle of a refusal in GE graphs, by which it is taken back."""

    overload: Any
    refusal: _Refusal | None

    def remove(self) -> None:
        """Take the refusal back, unless a converter has replaced it. A second call does nothing."""
        if self.refusal is not None and getattr(self.overload, "_ge_converter", None) is self.refusal:
            del self.overload._ge_converter
        self.refusal = None


def refuse_in_graphs(overload: Any, message: Callable[[], str]) -> RefusalHandle:
    """Make GE graphs refuse an operator without a converter, with a message. TorchAir is not imported."""
    if getattr(overload, "_ge_converter", None) is not None:
        return RefusalHandle(overload, None)
    refusal = overload._ge_converter = _Refusal(overload, message)
    return RefusalHandle(overload, refusal)


@dataclass(slots=True, eq=False)
class ConverterHandle:
    """Handle of a registered converter, by which it is unregistered."""

    overload: Any
    #: Converter as TorchAir holds it.
    wrapped: Any
    #: Previous converter in TorchAir, or None.
    before: Any
    _on_overload: bool = True
    _active: bool = True

    @property
    def on_top(self) -> bool:
        """True if no other converter was registered since."""
        return self._active and getattr(self.overload, "_ge_converter", None) is self.wrapped

    @property
    def replaced_by(self) -> Any:
        """Converter that others registered since, or None."""
        held = _held(self.overload)
        return None if not self._active or any(held is one.wrapped for one in _live) else held

    def remove(self) -> None:
        """Unregister the converter and restore the previous one. A second call does nothing."""
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
    """Restore a converter, or its absence, in TorchAir's tables."""
    if on_overload and converter is not None:
        overload._ge_converter = converter
    elif hasattr(overload, "_ge_converter"):
        del overload._ge_converter


#: Module with TorchAir's table of converters.
_TABLE = "torchair._ge_concrete_graph.fx2ge_converter"
#: Operator in the source of a converter, ``torch.ops.aten.add.Tensor``.
_OPERATOR = re.compile(rb"\bops\s*\.\s*(\w+)\s*\.\s*(\w+)")


@lru_cache(maxsize=1)
def _converted() -> frozenset[str]:
    """Return the operators that TorchAir's sources name next to a converter, without importing TorchAir."""
    found: set[str] = set()
    for path in _sources():
        text = path.read_bytes()
        if b"register_fx_node_ge_converter" in text:
            found.update(f"{space.decode()}::{name.decode()}" for space, name in _OPERATOR.findall(text))
    return frozenset(found)


def _sources() -> list[Path]:
    torch_npu = sys.modules["torch_npu"]
    return [path for root in torch_npu.__path__ for path in Path(root, "dynamo", "torchair").rglob("*.py")]


def _may_convert(overload: Any) -> bool:
    """Return whether TorchAir may have a converter of an overload that is not on the overload yet.

    Raises:
        ConverterError: torch_npu cannot be imported.
    """
    if _TABLE in sys.modules:
        return True
    try:
        importlib.import_module("torch_npu")
    except (ImportError, OSError) as error:
        raise _missing(error) from error
    # A wheel without sources says nothing.
    return not _converted() or overload.name().partition(".")[0] in _converted()


def _missing(error: BaseException) -> ConverterError:
    return ConverterError(
        f"a converter needs torch_npu with torchair, which cannot be imported here: {error}. "
        "Without CANN run the program as `python -m ascend_graph.host script.py`."
    )


def check_converter(converter: ConverterFunction, schema: OpSchema) -> None:
    """Refuse a converter that does not take what a node always has: the schema's arguments without a default.

    Raises:
        ConverterError: A call with them, and with ``meta_outputs`` where it has that parameter, does not fit its parameters.
    """
    needed = [argument for argument in schema.arguments if not argument.has_default]
    keywords = [argument.name for argument in needed if argument.kwarg_only]
    outputs = [name for name in ("meta_outputs",) if name in parameter_names(converter)]
    why = misfit(converter, [argument.name for argument in needed if not argument.kwarg_only], [*keywords, *outputs])
    if why:
        wanted = ", ".join([*(argument.name for argument in schema.arguments), "meta_outputs=None"])
        raise ConverterError(
            f"{schema.qualified_name}: the converter has the parameters {why}; it is called with the schema's arguments, "
            f"so write def converter({wanted}): …"
        )


def _held(overload: Any) -> Any:
    """Return the converter on an overload, or None; a refusal is not one."""
    held = getattr(overload, "_ge_converter", None)
    return None if isinstance(held, _Refusal) else held


def existing_converter(overload: Any) -> Any:
    """Return TorchAir's converter of an overload, built-in ones included, or None.

    TorchAir is imported only if its sources name the operator.
    """
    held = getattr(overload, "_ge_converter", None)
    refusal = held if isinstance(held, _Refusal) else None
    if held is not refusal:
        return held
    if not _may_convert(overload):
        return None
    fx = torchair().fx
    if refusal is not None:  # it would keep TorchAir from loading its own converter
        del overload._ge_converter
    try:
        fx._get_converter(overload)  # loads TorchAir's converters of torch.ops.npu, if they are not
        found = getattr(overload, "_ge_converter", None) or fx._CONVERTERS.get(overload)
        if (
            fx._CONVERTERS.get(overload, found) is None
        ):  # asking made an entry, in the place of what is registered later
            del fx._CONVERTERS[overload]
    finally:
        if refusal is not None and getattr(overload, "_ge_converter", None) is None:
            overload._ge_converter = refusal
    return found


def _deferred(converter: ConverterFunction) -> ConverterFunction:
    """Return a converter as TorchAir holds it, which TorchAir wraps at its first node."""
    wrapped: list[ConverterFunction] = []

    @functools.wraps(converter)
    def convert(*args: Any, **kwargs: Any) -> Any:
        if not wrapped:
            wrapped.append(_wrapped(converter))
        return wrapped[0](*args, **kwargs)

    # What the binding makes says so itself; looking at a signature takes longer than all else here.
    if not hasattr(converter, "require_meta"):
        convert.require_meta = "meta_outputs" in parameter_names(converter)  # type: ignore[attr-defined]
    return convert


def _wrapped(converter: ConverterFunction) -> ConverterFunction:
    """Return what TorchAir makes of a converter, registered for a function in the place of the operator."""

    def stand_in(*args: Any) -> None:
        """Accept any call."""

    torchair().fx.register_fx_node_ge_converter(stand_in)(converter)
    wrapped: ConverterFunction = stand_in._ge_converter  # type: ignore[attr-defined]
    return wrapped


def register_converter(
    overload: Any,
    converter: ConverterFunction,
    *,
    override: bool = False,
    around: Callable[[ConverterFunction], ConverterFunction] | None = None,
    own: bool = False,
) -> ConverterHandle:
    """Register ``converter`` with TorchAir for ``overload``.

    Args:
        overload: The torch operator.
        converter: As ``torchair.register_fx_node_ge_converter`` takes it.
        override: If true, it may replace an existing one.
        around: Wraps the converter as TorchAir holds it, before it takes effect.
        own: If true, the operator was defined here, so that TorchAir does not have a converter of its own for it.

    Raises:
        ConverterError: TorchAir has one already and ``override`` is false, or does not take it.
    """
    before = _held(overload) if own else existing_converter(overload)
    if before is not None and not override:
        raise ConverterError(
            f"{overload.name()} has a converter already ({before.__module__}.{before.__qualname__}); "
            "pass override=True to replace it"
        )
    on_overload = getattr(overload, "_ge_converter", None) is not None
    if not own and _may_convert(overload):
        torchair().fx.register_fx_node_ge_converter(overload)(converter)
    else:
        overload._ge_converter = _deferred(converter)
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
