"""Sample calls of each operator, for the first test of a generated library."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from operator import add, floordiv, mod, mul, sub
from typing import TYPE_CHECKING

from ascend_graph.binding.generated_schema import ATTR_KINDS, AclnnArgumentKind
from ascend_graph.prototypes import Attr, AttrType, Parameter, ParameterKind
from ascend_graph.shapes import parse_relation
from ascend_graph.shapes.syntax import Binary, DimensionGroup, Dims, Ellipsis_, Expr, Literal, Name, expressions, walk

if TYPE_CHECKING:
    from ascend_graph.codegen.eager_library.cpp_operators import CppOperator

#: Shape of sample tensors for kernels, which are seldom written for a few elements.
_KERNEL_SAMPLE = (8, 2048)
#: Names in torch of the dtypes of sample tensors.
DTYPE_NAMES = {
    "FLOAT": "float32", "FLOAT16": "float16", "BF16": "bfloat16", "DOUBLE": "float64", "INT8": "int8", "INT16": "int16",
    "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "BOOL": "bool",
}  # fmt: skip


def sample_call(operator: CppOperator) -> str:
    """Return a call's arguments for the generated test, as Python: small tensors that fit, and required attrs."""
    shapes = _sample_shapes(operator)
    default = (2, 3) if operator.launch is None else _KERNEL_SAMPLE
    parts = []
    for cpp in operator.arguments:
        argument = cpp.argument
        parameter = argument.parameter
        if isinstance(parameter, Parameter) and not argument.is_tensor:
            one = {
                AclnnArgumentKind.INTS: "[1]",
                AclnnArgumentKind.FLOATS: "[1.0]",
                AclnnArgumentKind.BOOLS: "[True]",
                AclnnArgumentKind.SCALAR: "1.0",
                AclnnArgumentKind.SCALARS: "[1.0]",
            }[argument.kind]
            parts.append(f'"{argument.name}": {one}')
        elif isinstance(parameter, Parameter):
            tensor = f"_tensor({shapes.get(parameter.name, default)}, torch.{_sample_dtype(parameter, operator)})"
            if parameter.kind is ParameterKind.DYNAMIC:
                tensor = f"[{tensor}, {tensor}]"
            parts.append(f'"{argument.name}": {tensor}')
        elif isinstance(parameter, Attr) and "=" not in argument.text:
            value = {
                "int": "1",
                "float": "1.0",
                "bool": "True",
                "str": '""',
                "int[]": "[1]",
                "float[]": "[1.0]",
                "bool[]": "[True]",
            }
            shown = (
                "torch.float32" if argument.kind is AclnnArgumentKind.DTYPE else value[ATTR_KINDS[parameter.type][0]]
            )
            parts.append(f'"{argument.name}": {shown}')
    return "{" + ", ".join(parts) + "}"


#: Arithmetic of sizes that follow from others.
_OPERATORS = {"+": add, "-": sub, "*": mul, "//": floordiv, "%": mod}


def _sample_shapes(operator: CppOperator) -> dict[str, tuple[int, ...]]:
    if not operator.relation:
        return {}
    relation = parse_relation(operator.relation)
    attrs = {
        a.name: a.default if isinstance(a.default, int) else 1
        for a in (cpp.argument.parameter for cpp in operator.arguments)
        if isinstance(a, Attr) and a.type is AttrType.INT
    }
    divisors: dict[str, int] = {}
    for tensor in (*relation.input_tensors, *relation.output_tensors):
        for node in (inner for one in expressions(tensor) for inner in walk(one)):
            if isinstance(node, Binary) and node.operator in ("//", "%") and isinstance(node.left, Name):
                by = _known(node.right, attrs)
                divisors[node.left.id] = lcm(divisors.get(node.left.id, 1), by if by is not None and by > 0 else 1)
    large = operator.launch is not None
    sizes: dict[str, int] = {}
    found = {}
    for tensor in relation.input_tensors:
        shape = tensor.alternatives[-1].shape
        if not isinstance(shape, Dims):
            continue
        dims: list[int] = []
        for item in shape.items:
            if isinstance(item, Ellipsis_ | DimensionGroup):
                dims += ([] if large else [2]) if isinstance(item, Ellipsis_) else _KERNEL_SAMPLE if large else [2, 3]
                continue
            value = item.value
            if isinstance(value, Name) and value.id not in attrs:
                size, divisor = 32 + 32 * len(sizes) if large else 4 + len(sizes), divisors.get(value.id, 1)
                sizes.setdefault(value.id, size if size % divisor == 0 else 2 * divisor)
            size_of = None if value is None else _known(value, {**attrs, **sizes})
            dims.append(4 if size_of is None or size_of < 0 else size_of)
        found[tensor.name] = tuple(dims)
    return found


def _known(node: Expr, values: Mapping[str, int]) -> int | None:
    """Return the integer that an expression is; None if it is not known."""
    match node:
        case Literal(int() as value) if not isinstance(value, bool):
            return value
        case Name(name):
            return values.get(name)
        case Binary(operator, left, right):
            a, b = _known(left, values), _known(right, values)
            if a is None or b is None or (operator in ("//", "%") and b == 0):
                return None
            return _OPERATORS[operator](a, b) if operator in _OPERATORS else None
    return None


def _sample_dtype(parameter: Parameter, operator: CppOperator) -> str:
    if operator.launch is not None and (element := operator.launch.element_of(parameter)) is not None:
        return DTYPE_NAMES.get(element.name, "float32")
    names = [DTYPE_NAMES[d.name] for d in parameter.dtypes if d.name in DTYPE_NAMES]
    return "float32" if not names or "float32" in names else names[0]
