"""Attrs and outputs of a GE node, as a binding has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ascend_graph.binding.bound import Binding, Conversion, Hook, ValueSource
from ascend_graph.binding.dtypes import PACKED_DTYPES, STORED_AS, ge_dtype
from ascend_graph.dispatch.torchair import torchair
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import Attr, DataType, ParameterKind
from ascend_graph.raw_ops import NodeStyle, describe, make_raw_op


class ConversionError(AscendGraphError, ValueError):
    """Error of a call that cannot become the GE node, with a value, dtype or symbolic size that GE cannot hold."""


Getter = Callable[[Sequence[Any]], Any]


class NodeOutputs:
    """Results of one GE node: the schema's returns among them, and their dtypes."""

    def __init__(self, binding: Binding) -> None:
        pieces = torchair()
        self.binding = binding
        self.ge, self.raw = pieces.ge, pieces.raw
        self.description = describe(binding.prototype)
        self.raw_op = make_raw_op(binding.prototype, NodeStyle.COMPACT)
        self.subject = f"{binding.schema.qualified_name} → {binding.prototype.op_type}"

    def value_getter(self, source: ValueSource) -> Getter:
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

    def output_check(self) -> Callable[[Any], None]:
        """Return a function that refuses meta outputs whose dtype the prototype does not allow."""
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

    def output_sizes(self) -> Callable[[Any, Sequence[Any], Sequence[Any]], dict[str, int]] | None:
        """Return a function that counts the tensors of dynamic outputs by raw op argument, or None if there are none.

        A list that the call writes has as many tensors as the argument; another list as many as the meta function
        returns.
        """
        prototype = self.binding.prototype
        returned = {r.output: n for n, r in enumerate(self.binding.returns) if r.output is not None}
        written = {m.output: m.argument for m in self.binding.mutations}
        inputs = {parameter.name: n for n, parameter in enumerate(prototype.inputs)}
        wanted = [(n, o.size_argument) for n, o in enumerate(self.description.outputs) if o.size_argument]
        if not wanted:
            return None
        subject = self.subject
        single = len(self.binding.returns) == 1

        def size(n: int, meta_outputs: Any, tensors: Sequence[Any], values: Sequence[Any]) -> int:
            name = prototype.outputs[n].name
            if name in prototype.in_place:
                return len(tensors[inputs[name]])
            if n in written:
                return len(values[written[n]])
            if n not in returned:
                return 0
            if meta_outputs is None:
                raise ConversionError(f"{subject}: the number of its outputs is not known here; pass converter=")
            return len(meta_outputs if single else meta_outputs[returned[n]])

        def sizes(meta_outputs: Any, tensors: Sequence[Any], values: Sequence[Any]) -> dict[str, int]:
            return {argument: size(n, meta_outputs, tensors, values) for n, argument in wanted}

        return sizes

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

    def attr_getter(self, parameter: Attr, source: ValueSource) -> Getter:
        name, get = parameter.name, self.value_getter(source)
        tensor_class, subject = self.ge.Tensor, self.subject
        is_list = parameter.type.name.startswith("LIST")

        if source.conversion is Conversion.DTYPE:
            taken = {dtype for operand in self.binding.prototype.inputs for dtype in operand.dtypes}

            def number(value: Any) -> int:
                found = ge_dtype(value)
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

    def results(self) -> Callable[[Any, Sequence[Any], Any], Any]:
        """Return a function from the raw op's outputs, the arguments and the meta outputs to the schema's returns."""
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
        """Return getters of the attrs that give a dtype."""
        return [
            self.attr_getter(attr, source)
            for attr, source in zip(self.binding.prototype.attrs, self.binding.attrs, strict=True)
            if source is not None and source.conversion is Conversion.DTYPE and not attr.type.name.startswith("LIST")
        ]

    def described_outputs(self) -> list[tuple[int | None, int, Callable[[Any, Any, set[Any]], Any]]]:
        """Return the outputs whose dtype torch stores as another: return, output, and the function that sets it for GE.

        A meta function cannot tell: HIFLOAT8 is uint8 to torch. An attr with a dtype can, or an output with only one
        dtype. Two or eight elements that torch packs in one are bitcast to that one, as TorchAir's own converters do.
        """
        outputs = self.binding.prototype.outputs
        returned = {r.output: n for n, r in enumerate(self.binding.returns) if r.output is not None}
        attrs = self.dtype_attrs()
        return [
            (returned.get(n), n, self.description_of(n, [m for m in range(len(outputs)) if m != n]))
            for n, output in enumerate(outputs)
            if output.kind is not ParameterKind.DYNAMIC
            and any(dtype in STORED_AS for dtype in output.dtypes)
            and (attrs or len(output.dtypes) == 1)
        ]

    def description_of(self, number: int, others: list[int]) -> Callable[[Any, Any, set[Any]], Any]:
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
        """Pack a tensor of elements of four bits as torch holds it: several in one element of the last dimension."""
        if meta is None:
            raise ConversionError(
                f"{self.subject}: the rank of its {dtype.ge_name} output is not known here; pass converter="
            )
        raw, const, count = self.raw, self.ge.Const, PACKED_DTYPES[dtype]
        divisors = const([1] * (meta.rank - 1) + [count], dtype=DataType.INT32)
        sizes = raw.Div(raw.Shape(tensor), divisors)
        grouped = raw.Reshape(tensor, raw.ConcatV2([sizes, const([count], dtype=DataType.INT32)], concat_dim=0, N=2))
        return raw.Reshape(raw.Bitcast(grouped, type=int(STORED_AS[dtype])), sizes)

    def absences(self) -> Callable[[Any, Any], Any]:
        """Return a function that replaces results by None if the meta function makes them None."""
        outputs = self.binding.prototype.outputs
        returned = [
            n
            for n, r in enumerate(self.binding.returns)
            if r.output is not None and outputs[r.output].kind is not ParameterKind.DYNAMIC
        ]
        only = len(self.binding.returns) == 1

        def take_out(made: Any, meta_outputs: Any) -> Any:
            metas = [meta_outputs] if only else meta_outputs
            gone = [n for n in returned if getattr(metas[n], "dtype", None) is None]
            if not gone:
                return made
            return None if only else tuple(None if n in gone else value for n, value in enumerate(made))

        return take_out

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
                given, made_of = values[position], outputs[output]
                for target, value in (
                    zip(given, made_of, strict=True) if isinstance(given, list) else ((given, made_of),)
                ):
                    assign(target, value)
            picked = []
            for number, compute in returned:
                if number is not None:
                    picked.append(outputs[number])
                else:
                    picked.append(None if compute is None else compute(dict(zip(names, values, strict=True))))
            return picked[0] if len(picked) == 1 else tuple(picked) or None

        return pick


def _table(hook: Hook, subject: str, name: str) -> Callable[[Any], Any]:
    if not isinstance(hook, Mapping):
        return hook
    table = hook

    def look_up(value: Any) -> Any:
        try:
            return table[value]
        except (KeyError, TypeError):
            raise ConversionError(f"{subject}: {name}={value!r} is not one of {', '.join(map(repr, table))}") from None

    return look_up
