"""Converter of a binding: the function that TorchAir calls for an FX node to add the GE node. Generates no code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ascend_graph.binding.bound import Binding, Conversion, ValueSource
from ascend_graph.binding.dtype_constraints import ConstraintKind, DtypeConstraint
from ascend_graph.binding.op_schema import ArgumentKind
from ascend_graph.dispatch.torchair import ConverterFunction, torchair
from ascend_graph.prototypes import DataType, Parameter, ParameterKind
from ascend_graph.raw_ops.description import is_index_type
from ascend_graph.registration.conversion.node_outputs import ConversionError, Getter, NodeOutputs


def make_converter(binding: Binding) -> ConverterFunction:
    """Make a converter for TorchAir that adds the binding's GE node.

    It has the arguments and returns of the schema, with TorchAir's GE tensors for tensors.

    Raises:
        ConversionError: A tensor of a list would have the name of another input or output.

    >>> import torch
    >>> from ascend_graph.prototypes import parse_text
    >>> from ascend_graph.registration import bind, read_schema
    >>> text = "REG_OP(Sinh).INPUT(x, TensorType({DT_FLOAT})).OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Sinh)"
    >>> make_converter(bind(read_schema(torch.ops.aten.sinh.default._schema), parse_text(text).prototypes[0])).__doc__
    'Converter of aten::sinh to Sinh.'
    """
    _check_names(binding)
    made: list[ConverterFunction] = []

    def convert(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> Any:
        # Made at the first node: most registered operators are never converted in a process.
        if not made:
            made.append(_Maker(binding).converter())
        return made[0](*args, meta_outputs=meta_outputs, **kwargs)

    convert.__name__ = f"{binding.schema.name.partition('::')[2]}_converter"
    convert.require_meta = True  # type: ignore[attr-defined]
    convert.__doc__ = f"Converter of {binding.schema.qualified_name} to {binding.prototype.op_type}."
    return convert


def _check_names(binding: Binding) -> None:
    """Raise if the name that a node gives a tensor of a list is that of another input or output, or TorchAir has one's own."""
    prototype = binding.prototype
    if any(a.kwarg_only and a.name == "meta_outputs" for a in binding.schema.arguments):
        raise ConversionError(
            f"{binding.schema.qualified_name}: TorchAir puts the results of a node in the place of an argument with the keyword "
            "meta_outputs; rename it in the schema, or take it out of the keyword-only ones"
        )
    for parameters in (prototype.inputs, prototype.outputs):
        for one in parameters:
            if one.kind is not ParameterKind.DYNAMIC:
                continue
            for other in parameters:
                number = other.name.removeprefix(one.name)
                if number != other.name and number.isdecimal() and str(int(number)) == number:
                    raise ConversionError(
                        f"{binding.schema.qualified_name} ↔ {prototype.op_type}: a GE node calls the tensors of the list "
                        f"{one.name} {one.name}0, {one.name}1 and so on, and {other.name} is a name of its own in REG_OP: "
                        f"rename {other.name} or {one.name} there"
                    )


class _Maker(NodeOutputs):
    """Builder of one converter, with its precomputed parts."""

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
        without_absent = self.absences()

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
                    raise ConversionError(f"{subject}: {name}={value!r} has no place in GE; expected {default!r}")
            tensors = [get(values) for get in inputs]
            if meta_outputs is not None:
                check_outputs(meta_outputs)
            if promote is not None:
                promote(tensors, meta_outputs)
            given: dict[str, Any] = sizes(meta_outputs, tensors, values) if sizes is not None else {}
            for n in copied:
                tensors[n] = copy(tensors[n])
            for name, get in attrs:
                value = get(values)
                if value is not None:
                    given[name] = value
            made = results(raw_op(*tensors, **given), values, meta_outputs)
            # The node has the output all the same: GE gives it no elements, and nothing reads it.
            return made if meta_outputs is None else without_absent(made, meta_outputs)

        return convert

    # --------------------------------------------------------------------------------------------------------- inputs

    def input_getter(self, parameter: Parameter, source: ValueSource | None) -> Getter:
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
                    raise ConversionError(
                        f"{subject}: {name}[{n}] is None; expected tensors only, for dynamic inputs of GE have no gaps"
                    )
                if isinstance(item, tensor_class):
                    check(item)
            return items

        return many

    def copy(self, value: Any) -> Any:
        """Copy a tensor, or each of a list, so that GE may overwrite it."""
        if isinstance(value, list):
            return [self.copy(item) for item in value]
        return self.raw.TensorMove(value) if isinstance(value, self.ge.Tensor) else value

    def const_getter(self, parameter: Parameter, source: ValueSource, get: Getter) -> Getter:
        """Return a getter that turns a Python value, or a list of them, into a Const of an allowed dtype."""
        const, tensor_class = self.ge.Const, self.ge.Tensor
        allowed = parameter.dtypes
        subject, name = self.subject, parameter.name
        same_dtype = self.same_dtype(parameter)
        argument = None if source.argument is None else self.binding.schema.arguments[source.argument]
        # A Scalar takes part in arithmetic, as torch has it; an int may be an index, which keeps its value.
        index = self.binding.prototype.inputs.index(parameter)
        constraints = self.binding.dtype_constraints
        constrained = any(index in c.inputs for c in constraints if c.kind is not ConstraintKind.ALIKE)
        exact = argument is not None and argument.kind is ArgumentKind.INT and not constrained

        def constant(values: Sequence[Any]) -> Any:
            value = get(values)
            if value is None or isinstance(value, tensor_class):
                return value
            items = list(value) if isinstance(value, list | tuple) else [value]
            wanted = _const_dtypes(items)
            beside = [t.dtype for n in same_dtype if isinstance(t := values[n], tensor_class)]
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

    def same_dtype(self, parameter: Parameter) -> list[int]:
        """Return the arguments that share this input's dtype: by a DATATYPE symbol, or by one set of several dtypes."""
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

    def promotion(self) -> Callable[[list[Any], Any], None] | None:
        """Return a function that casts constrained inputs to one dtype if a call has several; None if no inputs are."""
        returned = {r.output: n for n, r in enumerate(self.binding.returns) if r.output is not None}
        constraints = [
            (constraint, None if constraint.output is None else returned.get(constraint.output))
            for constraint in self.binding.dtype_constraints
            if constraint.kind is ConstraintKind.SYMBOL or constraint.output in returned
        ]
        if not constraints:
            return None
        cast, tensor_class, of_proto = self.ge.Cast, self.ge.Tensor, self.ge._ge_proto_dtype_to_ge_dtype
        allowed = [frozenset(map(int, parameter.dtypes)) for parameter in self.binding.prototype.inputs]

        def promote(tensors: list[Any], meta_outputs: Any) -> None:
            for constraint, position in constraints:
                given = [n for n in constraint.inputs if isinstance(tensors[n], tensor_class)]
                # A Const is made of the dtype that the others have, or of a higher one, and does not say of which.
                present = {n: dtype for n in given if (dtype := tensors[n].dtype) != DataType.UNDEFINED}
                consts = {
                    n: of_proto(tensors[n].desc.dtype)
                    for n in given
                    if constraint.kind is ConstraintKind.SYMBOL and n not in present and tensors[n].node.type == "Const"
                }
                target = None
                if position is not None and meta_outputs is not None:
                    metas = meta_outputs if isinstance(meta_outputs, list | tuple) else (meta_outputs,)
                    target = getattr(metas[position], "dtype", None)
                beside = (
                    {target}
                    if constraint.kind is ConstraintKind.RELATION and len(given) > 1 and target is not None
                    else set()
                )
                if len({*present.values(), *consts.values()} | beside) < 2:
                    continue
                if self.may_cast(constraint, present, consts, target):
                    for n, dtype in (present | consts).items():
                        if dtype != target and (not allowed[n] or target in allowed[n]):
                            tensors[n] = cast(tensors[n], dst_type=target)

        return promote

    def may_cast(
        self, constraint: DtypeConstraint, present: Mapping[int, int], consts: Mapping[int, int], target: int | None
    ) -> bool:
        """Return whether constrained inputs of several dtypes are cast to the output's; raise if a symbol forbids it.

        Numbers of the call, which are Consts, are never cast to a lower kind: 1.5 to an integer.
        """
        dtypes = {*present.values(), *consts.values()}
        alike = target is not None and len({_category(dtype) for dtype in (*dtypes, target)}) == 1
        if constraint.kind is ConstraintKind.SYMBOL:
            lowered = target is not None and any(_category(dtype) > _category(target) for dtype in consts.values())
            if target is None or lowered or (constraint.contradicted and not alike):
                inputs = self.binding.prototype.inputs
                shown = ", ".join(
                    f"{inputs[n].name} {DataType(dtype).ge_name}" for n, dtype in {**present, **consts}.items()
                )
                raise ConversionError(
                    f"{self.subject}: the prototype gives {inputs[constraint.inputs[0]].symbol} one dtype, the call several: "
                    f"{shown}; cast them in the model"
                )
            return True
        if target is None:
            return False
        if constraint.kind is ConstraintKind.RELATION:
            return True
        return _is_promotion(dtypes, target) and (alike or constraint.kind is ConstraintKind.PROMOTE_SYMBOL)


#: Dtypes by category in torch's promotion: bool, integers, floating point, complex.
_CATEGORIES = (
    {DataType.BOOL},
    {d for d in DataType if "INT" in d.name},
    {d for d in DataType if "FLOAT" in d.name or d in (DataType.DOUBLE, DataType.BF16)},
    {DataType.COMPLEX32, DataType.COMPLEX64, DataType.COMPLEX128},
)


def _category(dtype: int) -> int:
    return next((n for n, members in enumerate(_CATEGORIES) if dtype in members), -1)


def _const_dtypes(items: Sequence[Any]) -> list[DataType]:
    """Return the dtypes that hold Python numbers, the best first."""
    if any(isinstance(item, complex) for item in items):
        return [DataType.COMPLEX64, DataType.COMPLEX128]
    floats = [DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.BF16]
    if any(isinstance(item, float) for item in items):
        return floats
    integers = [DataType.INT64, DataType.INT32]
    return [DataType.BOOL, *integers] if items and all(isinstance(i, bool) for i in items) else [*integers, *floats]


def _holds(dtype: DataType, items: Sequence[Any]) -> bool:
    """Return whether a dtype holds these integers exactly."""
    if _category(dtype) != _category(DataType.FLOAT):
        return True
    import torch

    wide = torch.tensor(items, dtype=torch.int64)
    return torch.equal(wide.to(torchair().ge.ge_type_to_torch_type(int(dtype))).to(torch.int64), wide)


def _is_promotion(dtypes: set[int], target: int) -> bool:
    """Return whether torch promotes these dtypes to ``target``, as the operator itself would do."""
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
