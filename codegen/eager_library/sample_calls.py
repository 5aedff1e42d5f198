"""Sample calls of each operator, for the first test of a generated library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascend_graph.binding.generated_schema import ATTR_KINDS, AclnnArgumentKind
from ascend_graph.prototypes import Attr, Parameter, ParameterKind
from ascend_graph.shapes import parse_relation
from ascend_graph.shapes.syntax import DimensionGroup, Dims, Ellipsis_, Literal, Name, Size

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


def _sample_shapes(operator: CppOperator) -> dict[str, tuple[int, ...]]:
    if not operator.relation:
        return {}
    sizes: dict[str, int] = {}
    found = {}
    for tensor in parse_relation(operator.relation).input_tensors:
        shape = tensor.alternatives[-1].shape
        if not isinstance(shape, Dims):
            continue
        dims: list[int] = []
        for item in shape.items:
            if isinstance(item, Ellipsis_ | DimensionGroup):
                large = operator.launch is not None
                dims += ([] if large else [2]) if isinstance(item, Ellipsis_) else _KERNEL_SAMPLE if large else [2, 3]
            elif isinstance(item, Size) and isinstance(item.value, Literal) and isinstance(item.value.value, int):
                dims.append(item.value.value)
            elif isinstance(item, Size) and isinstance(item.value, Name):
                size = 4 + len(sizes) if operator.launch is None else 32 + 32 * len(sizes)
                dims.append(sizes.setdefault(item.value.id, size))
            else:
                dims.append(4)
        found[tensor.name] = tuple(dims)
    return found


def _sample_dtype(parameter: Parameter, operator: CppOperator) -> str:
    if operator.launch is not None and (element := operator.launch.element_of(parameter)) is not None:
        return DTYPE_NAMES.get(element.name, "float32")
    names = [DTYPE_NAMES[d.name] for d in parameter.dtypes if d.name in DTYPE_NAMES]
    return "float32" if not names or "float32" in names else names[0]
