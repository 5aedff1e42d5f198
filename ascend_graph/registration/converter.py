"""Binding → converter: the function that TorchAir calls for an FX node and that adds the GE node. No code is generated."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import AttrType, DataType, Parameter, ParameterKind
from ascend_graph.raw_ops import NodeStyle, describe, make_raw_op
from ascend_graph.registration.binding import Binding, Conversion, Source
from ascend_graph.registration.dtypes import ge_dtype

ConverterFunction = Callable[..., Any]


class ConversionError(AscendGraphError, ValueError):
    """A call in the graph cannot become the GE node: a value, a dtype or a symbolic size that GE has no place for."""


class ConverterError(AscendGraphError):
    """TorchAir is not there, or has a converter for the operator already."""


@lru_cache(maxsize=1)
def _torchair() -> SimpleNamespace:
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


# -------------------------------------------------------------------------------------------------------------- making


def make_converter(binding: Binding) -> ConverterFunction:
    """A converter for TorchAir that adds the binding's GE node.

    It takes what the schema takes, tensors being TorchAir's GE tensors, and returns what the schema returns.

    Raises:
        RawOpError: torchair cannot be imported.
    """
    return _Maker(binding).converter()


Getter = Callable[[Sequence[Any]], Any]


class _Maker:
    """One converter's precomputed parts."""

    def __init__(self, binding: Binding) -> None:
        pieces = _torchair()
        self.binding = binding
        self.ge, self.raw = pieces.ge, pieces.raw
        self.description = describe(binding.prototype)
        self.raw_op = make_raw_op(binding.prototype, NodeStyle.COMPACT)
        self.subject = f"{binding.schema.qualified_name} → {binding.prototype.op_type}"

    def converter(self) -> ConverterFunction:
        arguments = self.binding.schema.arguments
        names = [argument.name for argument in arguments]
        defaults = tuple(argument.default for argument in arguments)
        position = {name: n for n, name in enumerate(names)}
        count = len(arguments)
        inputs = [
            self.input_getter(parameter, source, n)
            for n, (parameter, source) in enumerate(
                zip(self.binding.prototype.inputs, self.binding.inputs, strict=True)
            )
        ]
        attrs = self.attr_getters()
        unused = [(n, names[n], defaults[n]) for n in self.binding.unused]
        raw_op, results = self.raw_op, self.results()
        subject = self.subject

        def convert(*args: Any, **kwargs: Any) -> Any:
            if len(args) == count and not kwargs:
                values: Sequence[Any] = args
            else:
                filled = [*args, *defaults[len(args) :]]
                for name, value in kwargs.items():
                    filled[position[name]] = value
                values = filled
            for n, name, default in unused:
                value = values[n]
                if value is not None and value != default:
                    raise ConversionError(f"{subject}: {name}={value!r} has no place in GE; it can only be {default!r}")
            tensors = [get(values) for get in inputs]
            given = {}
            for name, get in attrs:
                value = get(values)
                if value is not None:
                    given[name] = value
            return results(raw_op(*tensors, **given), values)

        convert.__name__ = f"{self.binding.schema.name.partition('::')[2]}_converter"
        convert.__doc__ = f"Converter of {self.subject}."
        return convert

    # --------------------------------------------------------------------------------------------------------- inputs

    def input_getter(self, parameter: Parameter, source: Source | None, index: int) -> Getter:
        if source is None:
            return lambda values: None
        allowed = frozenset(int(dtype) for dtype in parameter.dtypes)
        copy = index in self.binding.copied
        get = self.value_getter(source)
        if source.conversion is Conversion.CONST:
            return self.const_getter(parameter, get)
        tensor_class, move = self.ge.Tensor, self.raw.TensorMove
        dynamic, required = parameter.kind is ParameterKind.DYNAMIC, parameter.kind is ParameterKind.REQUIRED
        subject, name = self.subject, parameter.name

        def check(value: Any) -> None:
            if allowed and value.dtype not in allowed and value.dtype != DataType.UNDEFINED:
                raise ConversionError(
                    f"{subject}: input {name} is {DataType(value.dtype).ge_name}; allowed are "
                    f"{', '.join(dtype.ge_name for dtype in parameter.dtypes)}"
                )

        if not dynamic:

            def one(values: Sequence[Any]) -> Any:
                value = get(values)
                if value is None:
                    if required:
                        raise ConversionError(f"{subject}: input {name} is required, but None was given")
                    return None
                if isinstance(value, tensor_class):
                    check(value)
                    return move(value) if copy else value
                return value

            return one

        def many(values: Sequence[Any]) -> Any:
            value = get(values)
            if value is None:
                return []
            items = list(value) if isinstance(value, list | tuple) else [value]
            for n, item in enumerate(items):
                if item is None:
                    raise ConversionError(f"{subject}: {name}[{n}] is None; GE's dynamic inputs have no gaps")
                if isinstance(item, tensor_class):
                    check(item)
            return [move(item) for item in items] if copy else items

        return many

    def const_getter(self, parameter: Parameter, get: Getter) -> Getter:
        const, tensor_class = self.ge.Const, self.ge.Tensor
        integers = [d for d in (DataType.INT64, DataType.INT32) if not parameter.dtypes or d in parameter.dtypes]
        floats = [d for d in (DataType.FLOAT, DataType.FLOAT16) if not parameter.dtypes or d in parameter.dtypes]
        subject, name = self.subject, parameter.name

        def constant(values: Sequence[Any]) -> Any:
            value = get(values)
            if value is None or isinstance(value, tensor_class):
                return value
            first = value[0] if isinstance(value, list | tuple) and value else value
            fitting = floats if isinstance(first, float) else (integers or floats)
            if not fitting:
                raise ConversionError(f"{subject}: {value!r} fits no dtype of input {name}")
            return const(list(value) if isinstance(value, tuple) else value, dtype=int(fitting[0]))

        return constant

    def value_getter(self, source: Source) -> Getter:
        if source.argument is None:
            value = source.value
            if not callable(value):
                return lambda values: value
            names = [argument.name for argument in self.binding.schema.arguments]
            return lambda values: value(dict(zip(names, values, strict=True)))
        position, hook = source.argument, source.hook
        if hook is None:
            return lambda values: values[position]
        subject, name = self.subject, self.binding.schema.arguments[position].name
        if isinstance(hook, Mapping):
            table = hook

            def look_up(values: Sequence[Any]) -> Any:
                value = values[position]
                try:
                    return table[value]
                except (KeyError, TypeError):
                    if value is None:
                        return None
                    raise ConversionError(
                        f"{subject}: {name}={value!r} is none of {', '.join(map(repr, table))}"
                    ) from None

            return look_up
        function = hook
        return lambda values: None if values[position] is None else function(values[position])

    # ---------------------------------------------------------------------------------------------------------- attrs

    def attr_getters(self) -> list[tuple[str, Getter]]:
        sources = {
            attr.name: source for attr, source in zip(self.binding.prototype.attrs, self.binding.attrs, strict=True)
        }
        types = {attr.name: attr.type for attr in self.binding.prototype.attrs}
        return [
            (raw.argument, self.attr_getter(raw.name, types[raw.name], source))
            for raw in self.description.attrs
            if (source := sources[raw.name]) is not None
        ]

    def attr_getter(self, name: str, attr_type: AttrType, source: Source) -> Getter:
        get = self.value_getter(source)
        tensor_class, subject = self.ge.Tensor, self.subject
        is_list = attr_type.name.startswith("LIST")

        if source.conversion is Conversion.DTYPE:

            def dtype(values: Sequence[Any]) -> Any:
                value = get(values)
                if value is None:
                    return None
                return [int(ge_dtype(item)) for item in value] if is_list else int(ge_dtype(value))

            return dtype

        def attr(values: Sequence[Any]) -> Any:
            value = get(values)
            if isinstance(value, tensor_class) or (
                isinstance(value, list | tuple) and any(isinstance(item, tensor_class) for item in value)
            ):
                raise ConversionError(
                    f"{subject}: {name} depends on a symbolic size, and an attr of a GE node is fixed when the graph is "
                    f"compiled; compile with dynamic=False, or keep the size out of the symbolic ones"
                )
            if is_list and value is not None and not isinstance(value, list | tuple):
                return [value]
            return value

        return attr

    # --------------------------------------------------------------------------------------------------------- results

    def results(self) -> Callable[[Any, Sequence[Any]], Any]:
        """From what the raw op returns and the arguments to what the schema returns."""
        binding = self.binding
        single = len(binding.prototype.outputs) == 1
        order = [r.output for r in binding.returns]
        assigned = [(m.argument, m.output) for m in binding.mutations if not m.in_place]
        identity = not assigned and order == list(range(len(binding.prototype.outputs)))
        if identity and order:
            return lambda made, values: made
        assign = self.raw.Assign

        def pick(made: Any, values: Sequence[Any]) -> Any:
            outputs = (made,) if single else made
            for position, output in assigned:
                assign(values[position], outputs[output])
            picked = tuple([outputs[n] for n in order if n is not None])
            return picked[0] if len(picked) == 1 else picked or None

        return pick


# --------------------------------------------------------------------------------------------------------- registration


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
    fx = _torchair().fx
    fx._get_converter(overload)  # loads TorchAir's converters of torch.ops.npu, if they are not
    return getattr(overload, "_ge_converter", None) or fx._CONVERTERS.get(overload)


def register_converter(overload: Any, converter: ConverterFunction, *, override: bool = False) -> ConverterHandle:
    """Register ``converter`` with TorchAir for ``overload``.

    Raises:
        ConverterError: TorchAir has one already and ``override`` is false.
    """
    before = existing_converter(overload)
    if before is not None and not override:
        raise ConverterError(
            f"{overload.name()} has a converter already ({before.__module__}.{before.__qualname__}); "
            "pass override=True to replace it"
        )
    _torchair().fx.register_fx_node_ge_converter(overload)(converter)
    wrapped = getattr(overload, "_ge_converter", None)
    if wrapped is None or wrapped is before:
        raise ConverterError(
            f"TorchAir did not take the converter of {overload.name()}: it is one of its lite converters"
        )
    return ConverterHandle(overload, wrapped, before)
