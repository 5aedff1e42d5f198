"""Binding → converter: the function that TorchAir calls for an FX node and that adds the GE node. No code is generated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ascend_graph.binding.bound import Binding, Conversion, Hook, Source
from ascend_graph.binding.dtypes import PACKED_DTYPES, STORED_AS, ge_dtype
from ascend_graph.binding.op_schema import ArgumentKind
from ascend_graph.binding.ties import Tie, TieKind
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import Attr, DataType, Parameter, ParameterKind
from ascend_graph.raw_ops import NodeStyle, describe, make_raw_op
from ascend_graph.raw_ops.description import is_index_type
from ascend_graph.registration.torchair import ConverterFunction, torchair


class ConversionError(AscendGraphError, ValueError):
    """A call in the graph cannot become the GE node: a value, a dtype or a symbolic size that GE has no place for."""


# -------------------------------------------------------------------------------------------------------------- making


def make_converter(binding: Binding) -> ConverterFunction:
    """A converter for TorchAir that adds the binding's GE node.

    It takes what the schema takes, tensors being TorchAir's GE tensors, and returns what the schema returns.

    >>> import torch
    >>> from ascend_graph.prototypes import parse_text
    >>> from ascend_graph.registration import bind, read_schema
    >>> text = "REG_OP(Sinh).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Sinh)"
    >>> make_converter(bind(read_schema(torch.ops.aten.sinh.default._schema), parse_text(text).prototypes[0])).__doc__
    'Converter of aten::sinh to Sinh.'
    """
    made: list[ConverterFunction] = []

    def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        # Made at the first node: most registered operators are never converted in a process.
        if not made:
            made.append(_Maker(binding).converter())
        return made[0](*args, meta_outputs=meta_outputs, **kwargs)

    convert.__name__ = f"{binding.schema.name.partition('::')[2]}_converter"
    convert.__doc__ = f"Converter of {binding.schema.qualified_name} to {binding.prototype.op_type}."
    return convert


Getter = Callable[[Sequence[Any]], Any]


class _Maker:
    """One converter's precomputed parts."""

    def __init__(self, binding: Binding) -> None:
        pieces = torchair()
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
            self.input_getter(parameter, source)
            for parameter, source in zip(self.binding.prototype.inputs, self.binding.inputs, strict=True)
        ]
        attrs = self.attr_getters()
        unused = [(n, names[n], defaults[n]) for n in self.binding.unused]
        raw_op, results = self.raw_op, self.results()
        copied, copy, sizes = self.binding.copied, self.copy, self.output_sizes()
        subject, check_outputs, promote = self.subject, self.output_check(), self.promotion()

        def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
            if len(args) == count and not kwargs:
                values: Sequence[Any] = args
            else:
                filled = [*args, *defaults[len(args) :]]
                for name, value in kwargs.items():
                    filled[position[name]] = value
                values = filled
            for n, name, default in unused:
                value = values[n]
                if value is not None and (tuple(value) if isinstance(value, list) else value) != default:
                    raise ConversionError(f"{subject}: {name}={value!r} has no place in GE; it can only be {default!r}")
            tensors = [get(values) for get in inputs]
            if meta_outputs is not None:
                check_outputs(meta_outputs)
            if promote is not None:
                promote(tensors, meta_outputs)
            given = sizes(meta_outputs) if sizes is not None else {}
            for n in copied:
                tensors[n] = copy(tensors[n])
            for name, get in attrs:
                value = get(values)
                if value is not None:
                    given[name] = value
            return results(raw_op(*tensors, **given), values, meta_outputs)

        return convert

    # --------------------------------------------------------------------------------------------------------- inputs

    def input_getter(self, parameter: Parameter, source: Source | None) -> Getter:
        if source is None:
            return lambda values: None
        allowed = frozenset(int(dtype) for dtype in parameter.dtypes)
        get = self.value_getter(source)
        if source.conversion is Conversion.CONST:
            return self.const_getter(parameter, source, get)
        tensor_class = self.ge.Tensor
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
            return items

        return many

    def copy(self, value: Any) -> Any:
        """A copy of a tensor, or of each of a list, that GE may write over."""
        if isinstance(value, list):
            return [self.copy(item) for item in value]
        return self.raw.TensorMove(value) if isinstance(value, self.ge.Tensor) else value

    def const_getter(self, parameter: Parameter, source: Source, get: Getter) -> Getter:
        """A Python value, or a list of them, as a Const of a dtype that the input allows."""
        const, tensor_class = self.ge.Const, self.ge.Tensor
        allowed = parameter.dtypes
        subject, name = self.subject, parameter.name
        twins = self.twins(parameter)
        argument = None if source.argument is None else self.binding.schema.arguments[source.argument]
        # A Scalar takes part in arithmetic, as torch has it; an int may be an index, which keeps its value.
        index = self.binding.prototype.inputs.index(parameter)
        tied = any(index in tie.inputs for tie in self.binding.ties if tie.kind is not TieKind.ALIKE)
        exact = argument is not None and argument.kind is ArgumentKind.INT and not tied

        def constant(values: Sequence[Any]) -> Any:
            value = get(values)
            if value is None or isinstance(value, tensor_class):
                return value
            items = list(value) if isinstance(value, list | tuple) else [value]
            wanted = _const_dtypes(items)
            beside = [t.dtype for n in twins if isinstance(t := values[n], tensor_class)]
            higher = bool(beside) and _category(beside[0]) - _category(int(wanted[0]))
            if beside and (higher == 0 or (higher > 0 and not exact)):
                wanted.insert(0, DataType(beside[0]))
            fitting = [dtype for dtype in wanted if not allowed or dtype in allowed]
            if exact:
                fitting = [dtype for dtype in fitting if _holds(dtype, items)]
            if not fitting:
                raise ConversionError(
                    f"{subject}: {value!r} fits no dtype of input {name}; allowed are "
                    f"{', '.join(dtype.ge_name for dtype in allowed)}"
                )
            return const(items if isinstance(value, list | tuple) else value, dtype=int(fitting[0]))

        return constant

    def twins(self, parameter: Parameter) -> list[int]:
        """The arguments whose tensors have the dtype of this input: by a DATATYPE symbol, or by one set of several."""
        return [
            source.argument
            for other, source in zip(self.binding.prototype.inputs, self.binding.inputs, strict=True)
            if source is not None
            and source.argument is not None
            and source.conversion is Conversion.DIRECT
            and (other.symbol == parameter.symbol if parameter.symbol else other.dtypes == parameter.dtypes)
            and len(parameter.dtypes) > 1
            and not is_index_type(parameter)
        ]

    def value_getter(self, source: Source) -> Getter:
        if source.argument is None:
            value = source.value
            if not callable(value):
                return lambda values: value
            names = [argument.name for argument in self.binding.schema.arguments]
            return lambda values: value(dict(zip(names, values, strict=True)))
        position, hook, default = source.argument, source.hook, source.value
        if hook is None:
            if default is None:
                return lambda values: values[position]
            return lambda values: default if values[position] is None else values[position]
        convert = _table(hook, self.subject, self.binding.schema.arguments[position].name)

        def converted(values: Sequence[Any]) -> Any:
            value = values[position]
            if value is None:
                value = default
            return None if value is None else convert(value)

        return converted

    # --------------------------------------------------------------------------------------------------------- dtypes

    def output_check(self) -> Callable[[Any], None]:
        """What refuses meta outputs whose dtype the prototype does not allow."""
        outputs = self.binding.prototype.outputs
        allowed = [
            frozenset(map(int, outputs[r.output].dtypes)) if r.output is not None else frozenset()
            for r in self.binding.returns
        ]
        storage = {int(dtype): int(stored) for dtype, stored in STORED_AS.items()}
        allowed = [dtypes | {storage[d] for d in dtypes if d in storage} for dtypes in allowed]
        subject, returns, single = self.subject, self.binding.returns, len(self.binding.returns) == 1

        def check(meta_outputs: Any) -> None:
            if not returns:
                return
            metas = (meta_outputs,) if single else meta_outputs
            for n, (dtypes, meta) in enumerate(zip(allowed, metas)):  # noqa: B905 - mutated arguments may follow
                one = meta[0] if isinstance(meta, list) and meta else meta
                dtype = getattr(one, "dtype", None)
                if dtypes and dtype is not None and dtype not in dtypes:
                    output = outputs[returns[n].output or 0]
                    raise ConversionError(
                        f"{subject}: return {n} is {DataType(dtype).ge_name} by the meta function, but the output "
                        f"{output.name}, which it is taken for ({returns[n].evidence.value}), allows "
                        f"{', '.join(d.ge_name for d in output.dtypes)}"
                    )

        return check

    def output_sizes(self) -> Callable[[Any], dict[str, int]] | None:
        """What counts the tensors of dynamic outputs, by the raw op's arguments; None where no output is dynamic."""
        returned = {r.output: n for n, r in enumerate(self.binding.returns) if r.output is not None}
        wanted = [(o.size_argument, returned.get(n)) for n, o in enumerate(self.description.outputs) if o.size_argument]
        if not wanted:
            return None
        subject = self.subject
        single = len(self.binding.returns) == 1

        def sizes(meta_outputs: Any) -> dict[str, int]:
            if meta_outputs is None:
                raise ConversionError(f"{subject}: the number of its outputs is not known here; pass converter=")
            metas = [meta_outputs] if single else meta_outputs
            return {name: 0 if n is None else len(metas[n]) for name, n in wanted}

        return sizes

    def promotion(self) -> Callable[[list[Any], Any], None] | None:
        """What casts inputs that are tied to one dtype, where a call gives several; None where none are tied."""
        returned = {r.output: n for n, r in enumerate(self.binding.returns) if r.output is not None}
        ties = [
            (tie, None if tie.output is None else returned.get(tie.output))
            for tie in self.binding.ties
            if tie.kind is TieKind.SYMBOL or tie.output in returned
        ]
        if not ties:
            return None
        cast, tensor_class = self.ge.Cast, self.ge.Tensor
        allowed = [frozenset(map(int, parameter.dtypes)) for parameter in self.binding.prototype.inputs]

        def promote(tensors: list[Any], meta_outputs: Any) -> None:
            for tie, position in ties:
                given = [n for n in tie.inputs if isinstance(tensors[n], tensor_class)]
                # A Const is made of the dtype that the others have, or of a higher one, and does not say of which.
                present = {n: dtype for n in given if (dtype := tensors[n].dtype) != DataType.UNDEFINED}
                target = None
                if position is not None and meta_outputs is not None:
                    metas = meta_outputs if isinstance(meta_outputs, list | tuple) else (meta_outputs,)
                    target = getattr(metas[position], "dtype", None)
                beside = {target} if tie.kind is TieKind.RELATION and len(given) > 1 and target is not None else set()
                if len({*present.values()} | beside) < 2:
                    continue
                if self.may_cast(tie, present, target):
                    for n, dtype in present.items():
                        if dtype != target and (not allowed[n] or target in allowed[n]):
                            tensors[n] = cast(tensors[n], dst_type=target)

        return promote

    def may_cast(self, tie: Tie, present: Mapping[int, int], target: int | None) -> bool:
        """Whether tied inputs of several dtypes are cast to that of the output; refuses where GE would want it."""
        dtypes = {*present.values()}
        alike = target is not None and len({_category(dtype) for dtype in (*dtypes, target)}) == 1
        if tie.kind is TieKind.SYMBOL:
            if target is None or (tie.contradicted and not alike):
                inputs = self.binding.prototype.inputs
                shown = ", ".join(f"{inputs[n].name} {DataType(dtype).ge_name}" for n, dtype in present.items())
                raise ConversionError(
                    f"{self.subject}: the prototype gives {inputs[tie.inputs[0]].symbol} one dtype, the call several: "
                    f"{shown}; cast them in the model"
                )
            return True
        if target is None:
            return False
        if tie.kind is TieKind.RELATION:
            return True
        return _is_promotion(dtypes, target) and (alike or tie.kind is TieKind.PROMOTE_SYMBOL)

    # ---------------------------------------------------------------------------------------------------------- attrs

    def attr_getters(self) -> list[tuple[str, Getter]]:
        sources = {
            attr.name: source for attr, source in zip(self.binding.prototype.attrs, self.binding.attrs, strict=True)
        }
        attrs = {attr.name: attr for attr in self.binding.prototype.attrs}
        return [
            (raw.argument, self.attr_getter(attrs[raw.name], source))
            for raw in self.description.attrs
            if (source := sources[raw.name]) is not None
        ]

    def attr_getter(self, parameter: Attr, source: Source) -> Getter:
        name, default = parameter.name, parameter.default
        get = self.value_getter(source)
        tensor_class, subject = self.ge.Tensor, self.subject
        is_list = parameter.type.name.startswith("LIST")

        if source.conversion is Conversion.DTYPE:
            operands = (*self.binding.prototype.inputs, *self.binding.prototype.outputs)
            known = {dtype for operand in operands for dtype in operand.dtypes}
            taken = {dtype for operand in self.binding.prototype.inputs for dtype in operand.dtypes}
            complete = all(operand.dtypes for operand in operands)

            def number(value: Any) -> int:
                found = ge_dtype(value)
                if complete and found not in known and found != default:
                    raise ConversionError(
                        f"{subject}: {name}={value!r} is {found.ge_name}, which no input or output has; allowed are "
                        f"{', '.join(dtype.ge_name for dtype in sorted(known))}"
                    )
                if found in PACKED_DTYPES and found in taken:
                    raise ConversionError(
                        f"{subject}: {name}={value!r} is {found.ge_name}; GE counts single elements of it, torch stores "
                        f"{PACKED_DTYPES[found]} in one, and an input can have it too; pass converter="
                    )
                return int(found)

            def dtype(values: Sequence[Any]) -> Any:
                value = get(values)
                if value is None:
                    return None
                return [number(item) for item in value] if is_list else number(value)

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

    def results(self) -> Callable[[Any, Sequence[Any], Any], Any]:
        """From what the raw op returns, the arguments and the meta outputs to what the schema returns."""
        pick, described = self.pick(), self.described_outputs()
        if not described:
            return lambda made, values, meta_outputs: pick(made, values)
        dtypes = self.dtype_attrs()
        single = len(self.binding.prototype.outputs) == 1
        only = len(self.binding.returns) == 1

        def results(made: Any, values: Sequence[Any], meta_outputs: Any) -> Any:
            told = {get(values) for get in dtypes}
            outputs = [made] if single else list(made)
            for position, output, told_of in described:
                meta = None
                if meta_outputs is not None and position is not None:
                    meta = meta_outputs if only else meta_outputs[position]
                outputs[output] = told_of(outputs[output], meta, told)
            return pick(outputs[0] if single else outputs, values)

        return results

    def dtype_attrs(self) -> list[Getter]:
        """The values of the attrs that give a dtype."""
        return [
            self.attr_getter(attr, source)
            for attr, source in zip(self.binding.prototype.attrs, self.binding.attrs, strict=True)
            if source is not None and source.conversion is Conversion.DTYPE and not attr.type.name.startswith("LIST")
        ]

    def described_outputs(self) -> list[tuple[int | None, int, Callable[[Any, Any, set[Any]], Any]]]:
        """The outputs whose dtype torch stores as another one: the return, the output, and what tells GE of it.

        A meta function cannot: HIFLOAT8 is uint8 to torch. An attr that gives a dtype does, or that the output has no other.
        What torch packs, two or eight in an element, is bitcast to that element, as TorchAir's own converters do.
        """
        outputs = self.binding.prototype.outputs
        returned = {r.output: n for n, r in enumerate(self.binding.returns) if r.output is not None}
        attrs = self.dtype_attrs()
        return [
            (returned.get(n), n, self.description_of(n, [m for m in range(len(outputs)) if m != n], bool(attrs)))
            for n, output in enumerate(outputs)
            if output.kind is not ParameterKind.DYNAMIC
            and any(dtype in STORED_AS for dtype in output.dtypes)
            and (attrs or len(output.dtypes) == 1)
        ]

    def description_of(self, number: int, others: list[int], by_attr: bool) -> Callable[[Any, Any, set[Any]], Any]:
        outputs = self.binding.prototype.outputs
        output, subject, proto, pack = outputs[number], self.subject, self.ge._ge_dtype_to_ge_proto_dtype, self.pack
        allowed = {int(dtype) for dtype in output.dtypes}
        only = output.dtypes[0] if len(output.dtypes) == 1 else None

        def describe(tensor: Any, meta: Any, told: set[Any]) -> Any:
            stored = getattr(meta, "dtype", None)
            possible = [dtype for dtype in output.dtypes if dtype in STORED_AS and (dtype in told or dtype is only)]
            if stored is not None:
                possible = [dtype for dtype in possible if int(STORED_AS[dtype]) == stored]
            if not possible:
                return tensor
            # An output that can have no other dtype has it; so has one whose tensor is stored as the dtype would be.
            doubtful = only is None and (stored is None or stored in allowed)
            rivals = [outputs[n].name for n in others if doubtful and possible[0] in outputs[n].dtypes]
            if len(possible) > 1 or rivals:
                names = ", ".join([output.name, *rivals])
                raise ConversionError(
                    f"{subject}: which of {names} has the dtype {possible[0].ge_name}? pass converter="
                )
            tensor.desc.dtype = proto(int(possible[0]))
            return pack(tensor, possible[0], meta) if possible[0] in PACKED_DTYPES else tensor

        return describe

    def pack(self, tensor: Any, dtype: DataType, meta: Any) -> Any:
        """The tensor of elements of four bits as torch holds it: several in one element of the last dimension."""
        if meta is None:
            raise ConversionError(f"{self.subject}: the rank of its {dtype.ge_name} output is not known here")
        raw, const, count = self.raw, self.ge.Const, PACKED_DTYPES[dtype]
        divisors = const([1] * (meta.rank - 1) + [count], dtype=DataType.INT32)
        sizes = raw.Div(raw.Shape(tensor), divisors)
        grouped = raw.Reshape(tensor, raw.ConcatV2([sizes, const([count], dtype=DataType.INT32)], concat_dim=0, N=2))
        return raw.Reshape(raw.Bitcast(grouped, type=int(STORED_AS[dtype])), sizes)

    def pick(self) -> Callable[[Any, Sequence[Any]], Any]:
        binding = self.binding
        single = len(binding.prototype.outputs) == 1
        order = [r.output for r in binding.returns]
        assigned = [(m.argument, m.output) for m in binding.mutations if not m.in_place]
        if order and not assigned and order == list(range(len(binding.prototype.outputs))):
            return lambda made, values: made
        assign = self.raw.Assign
        names = [argument.name for argument in binding.schema.arguments]
        returned = [(r.output, r.compute) for r in binding.returns]

        def pick(made: Any, values: Sequence[Any]) -> Any:
            outputs = (made,) if single else made
            for position, output in assigned:
                assign(values[position], outputs[output])
            picked = []
            for number, compute in returned:
                if number is not None:
                    picked.append(outputs[number])
                else:
                    picked.append(None if compute is None else compute(dict(zip(names, values, strict=True))))
            return picked[0] if len(picked) == 1 else tuple(picked) or None

        return pick


#: Dtypes by how torch promotes them: bool, integers, floating point, complex.
_CATEGORIES = (
    {DataType.BOOL},
    {d for d in DataType if "INT" in d.name},
    {d for d in DataType if "FLOAT" in d.name or d in (DataType.DOUBLE, DataType.BF16)},
    {DataType.COMPLEX32, DataType.COMPLEX64, DataType.COMPLEX128},
)


def _category(dtype: int) -> int:
    return next((n for n, members in enumerate(_CATEGORIES) if dtype in members), -1)


def _const_dtypes(items: Sequence[Any]) -> list[DataType]:
    """The dtypes that hold Python numbers, the best first."""
    if any(isinstance(item, complex) for item in items):
        return [DataType.COMPLEX64, DataType.COMPLEX128]
    floats = [DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BF16]
    if any(isinstance(item, float) for item in items):
        return floats
    integers = [DataType.INT64, DataType.INT32]
    return [DataType.BOOL, *integers] if items and all(isinstance(i, bool) for i in items) else [*integers, *floats]


def _holds(dtype: DataType, items: Sequence[Any]) -> bool:
    """Whether a dtype holds these integers exactly."""
    if _category(dtype) != _category(DataType.FLOAT):
        return True
    import torch

    wide = torch.tensor(items, dtype=torch.int64)
    return torch.equal(wide.to(torchair().ge.ge_type_to_torch_type(int(dtype))).to(torch.int64), wide)


def _is_promotion(dtypes: set[int], target: int) -> bool:
    """Whether ``target`` is what torch promotes these dtypes to, so that casting is what the operator does itself."""
    import torch

    to_torch = torchair().ge.ge_type_to_torch_type
    try:
        promoted = None
        for dtype in dtypes:
            one = to_torch(dtype)
            promoted = one if promoted is None else torch.promote_types(promoted, one)
        return bool(promoted == to_torch(target))
    except RuntimeError:
        return False


def _table(hook: Hook, subject: str, name: str) -> Callable[[Any], Any]:
    if not isinstance(hook, Mapping):
        return hook
    table = hook

    def look_up(value: Any) -> Any:
        try:
            return table[value]
        except (KeyError, TypeError):
            raise ConversionError(f"{subject}: {name}={value!r} is none of {', '.join(map(repr, table))}") from None

    return look_up
