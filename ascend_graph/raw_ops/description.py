"""Description of a prototype's raw op in Python: names, order, defaults, the fields of the GE node.

Run-time raw ops and generated modules are both built from this description. It imports no torch.

The rules are those of TorchAir's generated module, so that converters written for it work unchanged: inputs in REG_OP
order, positional and without defaults; then, by keyword, ``size_of_<output>`` for each dynamic output, required attrs,
attrs with a default, ``dependencies`` and ``node_name``. The name gets a leading underscore if an output is dynamic.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass
from functools import lru_cache

from ascend_graph.prototypes.dtypes import DataType
from ascend_graph.prototypes.model import Attr, AttrType, AttrValue, OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.writer import reg_op_calls

#: Keyword arguments that every raw op has.
RESERVED_ARGUMENTS = ("dependencies", "node_name")


@dataclass(frozen=True, slots=True)
class AttrField:
    """Field of an attr's value in ``ge.proto.AttrDef``."""

    #: Path under AttrDef, e.g. ``i`` or ``list.i``.
    path: str
    #: ``AttrDef.ListValue.val_type`` of a list, 0 for other values. GE drops a list that has 0 there.
    list_type: int
    annotation: str


#: Field of each attr type. The list types' numbers are those of the enum ListValueType in ge_ir.proto.
ATTR_FIELDS = {
    AttrType.INT: AttrField("i", 0, "int"),
    AttrType.FLOAT: AttrField("f", 0, "float"),
    AttrType.BOOL: AttrField("b", 0, "bool"),
    AttrType.STRING: AttrField("s", 0, "str"),
    AttrType.BYTES: AttrField("bt", 0, "bytes"),
    AttrType.TYPE: AttrField("dt", 0, "int"),
    AttrType.TENSOR: AttrField("t", 0, "Any"),
    AttrType.NAMED_ATTRS: AttrField("func", 0, "Any"),
    AttrType.LIST_STRING: AttrField("list.s", 1, "Sequence[str]"),
    AttrType.LIST_INT: AttrField("list.i", 2, "Sequence[int]"),
    AttrType.LIST_FLOAT: AttrField("list.f", 3, "Sequence[float]"),
    AttrType.LIST_BOOL: AttrField("list.b", 4, "Sequence[bool]"),
    AttrType.LIST_TENSOR: AttrField("list.t", 7, "Sequence[Any]"),
    AttrType.LIST_NAMED_ATTRS: AttrField("list.na", 9, "Sequence[Any]"),
    AttrType.LIST_TYPE: AttrField("list.dt", 10, "Sequence[int]"),
    AttrType.LIST_LIST_INT: AttrField("list_list_int", 0, "Sequence[Sequence[int]]"),
    AttrType.LIST_LIST_FLOAT: AttrField("list_list_float", 0, "Sequence[Sequence[float]]"),
}


@dataclass(frozen=True, slots=True)
class RawInput:
    """Input of a raw op: its name in GE and in Python."""

    name: str
    argument: str
    kind: ParameterKind
    #: True if a Python number passed here becomes an int64 constant regardless of the other inputs.
    is_index: bool


@dataclass(frozen=True, slots=True)
class RawOutput:
    """Output of a raw op; ``size_argument`` is the keyword for the number of tensors of a dynamic one."""

    name: str
    size_argument: str | None


@dataclass(frozen=True, slots=True)
class RawAttr:
    """Attr of a raw op: its name in GE and in Python, and the field of its value."""

    name: str
    argument: str
    type: AttrType
    field: AttrField
    required: bool
    default: AttrValue


@dataclass(frozen=True, slots=True)
class RawGraph:
    """Subgraph argument of a raw op; a dynamic one takes a sequence."""

    name: str
    argument: str
    dynamic: bool


@dataclass(frozen=True, slots=True)
class RawOp:
    """Python interface of one GE op."""

    op_type: str
    function_name: str
    inputs: tuple[RawInput, ...]
    #: Required attrs first, then those with a default; each group in the order of the prototype.
    attrs: tuple[RawAttr, ...]
    outputs: tuple[RawOutput, ...]
    graphs: tuple[RawGraph, ...]
    docstring: str

    @property
    def returns(self) -> str:
        """Return annotation."""
        kinds = ["list[Tensor]" if output.size_argument else "Tensor" for output in self.outputs]
        if not kinds:
            return "None"
        return kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


@lru_cache(maxsize=8192)
def describe(prototype: OpPrototype) -> RawOp:
    """Describe the raw op of a prototype.

    >>> from ascend_graph.prototypes import parse_text
    >>> raw_op = describe(parse_text('''
    ... REG_OP(Pick)
    ...     .INPUT(from, TensorType::ALL())
    ...     .DYNAMIC_OUTPUT(y, TensorType::ALL())
    ...     .ATTR(axis, Int, 0)
    ...     .REQUIRED_ATTR(from, Int)
    ...     .OP_END_FACTORY_REG(Pick)
    ... ''').prototypes[0])
    >>> raw_op.function_name, raw_op.outputs[0].size_argument
    ('_Pick', 'size_of_y')
    >>> [argument.argument for argument in (*raw_op.inputs, *raw_op.attrs)]
    ['from_changed_as_is_python_key', 'from_changed_as_duplicate_with_input', 'axis']
    """
    taken = set(RESERVED_ARGUMENTS)
    inputs = []
    for parameter in prototype.inputs:
        argument = _unique(python_name(parameter.name), taken)
        inputs.append(RawInput(parameter.name, argument, parameter.kind, is_index_type(parameter)))
    outputs = []
    for parameter in prototype.outputs:
        size = None
        if parameter.kind is ParameterKind.DYNAMIC:
            size = _unique(f"size_of_{python_name(parameter.name)}", taken)
        outputs.append(RawOutput(parameter.name, size))
    input_names = {parameter.name for parameter in prototype.inputs}
    attrs = []
    for attr in sorted(prototype.attrs, key=_has_default):
        wanted = f"{attr.name}_changed_as_duplicate_with_input" if attr.name in input_names else python_name(attr.name)
        required = not _has_default(attr)
        attrs.append(
            RawAttr(attr.name, _unique(wanted, taken), attr.type, ATTR_FIELDS[attr.type], required, attr.default)
        )
    graphs = [
        RawGraph(graph.name, _unique(python_name(graph.name), taken), graph.kind is ParameterKind.DYNAMIC)
        for graph in prototype.graphs
    ]
    is_dynamic = any(output.size_argument for output in outputs)
    function_name = python_name(f"_{prototype.op_type}" if is_dynamic else prototype.op_type)
    return RawOp(
        prototype.op_type,
        function_name,
        tuple(inputs),
        tuple(attrs),
        tuple(outputs),
        tuple(graphs),
        docstring(prototype),
    )


def _has_default(attr: Attr) -> bool:
    # A default that is not a constant cannot be written into a signature: the caller has to say it.
    return not attr.required and attr.default_known


def python_name(name: str) -> str:
    """Return a GE name as a Python name: the same, unless it is a keyword.

    >>> python_name("x"), python_name("lambda")
    ('x', 'lambda_changed_as_is_python_key')
    """
    return f"{name}_changed_as_is_python_key" if keyword.iskeyword(name) else name


def _unique(name: str, taken: set[str]) -> str:
    if name in RESERVED_ARGUMENTS:
        name = f"{name}_changed_as_is_reserved"
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def is_index_type(parameter: Parameter) -> bool:
    """Return whether the type is GE's IndexNumberType: int32 or int64."""
    return len(parameter.dtypes) == 2 and set(parameter.dtypes) == {DataType.INT32, DataType.INT64}


def docstring(prototype: OpPrototype) -> str:
    """Return the documentation of the raw op: the comment above the prototype, then the prototype."""
    parts = [prototype.doc] if prototype.doc else []
    parts.append("\n".join([f"REG_OP({prototype.op_type})", *(f"    {call}" for call in reg_op_calls(prototype))]))
    return "\n\n".join(parts)


def signature_text(raw_op: RawOp) -> str:
    """Return the raw op's signature as one line of documentation.

    >>> from ascend_graph.prototypes import parse_text
    >>> text = "REG_OP(Neg).INPUT(x, TensorType::ALL()).OUTPUT(y, TensorType::ALL()).OP_END_FACTORY_REG(Neg)"
    >>> signature_text(describe(parse_text(text).prototypes[0]))
    'Neg(x, *, dependencies=(), node_name=None) -> Tensor'
    """
    parts = [value.argument for value in raw_op.inputs]
    parts.append("*")
    parts += [output.size_argument for output in raw_op.outputs if output.size_argument]
    parts += [graph.argument for graph in raw_op.graphs]
    parts += [attr.argument if attr.required else f"{attr.argument}={_shown(attr.default)}" for attr in raw_op.attrs]
    parts += ["dependencies=()", "node_name=None"]
    return f"{raw_op.function_name}({', '.join(parts)}) -> {raw_op.returns}"


def _shown(value: AttrValue) -> str:
    return value.ge_name if isinstance(value, DataType) else repr(value)
