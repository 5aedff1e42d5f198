"""Definition of an operator whose package CANN built, as a source of op_host: the rest of its build is that of any project."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ascend_graph.codegen.operator_package import TilingStructure
from ascend_graph.codegen.rendering import cpp_string, identifier, render
from ascend_graph.environment import toolkit_directory
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.prebuilt.contents import PrebuiltOperator
from ascend_graph.host.prebuilt.tiling_structures import TilingLibraryFacts
from ascend_graph.prototypes import Attr
from ascend_graph.prototypes.writer import default_text

#: Bytes of tiling data that a function may write if neither a structure nor a binary says so, as on a device.
_DEFAULT_CAPACITY = 2048
_STRUCTURE = re.compile(r"BEGIN_TILING_DATA_DEF\((\w+)\)(.*?)END_TILING_DATA_DEF", re.DOTALL)
_FIELD = re.compile(r"TILING_DATA_FIELD_DEF\w*\([^()]*?(\w+)\)")


def definition_source(
    operator: PrebuiltOperator,
    facts: TilingLibraryFacts,
    shapes: tuple[bool, bool, tuple[int, ...]],
    headers: Sequence[str] = (),
) -> str:
    """Return the source.

    Args:
        operator: The operator as its package has it.
        facts: What its library of tiling functions tells.
        shapes: If its other library has an InferShape function, an InferDataType function, and the inputs whose values the
            first reads.
        headers: Headers of the kernel that declare its template instances, as the source names them.

    Raises:
        GenerationError: A name in the package's files is not an identifier.
        OperatorPackageError: A structure of the toolkit has other fields in the package.
    """
    infers_shapes, infers_dtypes, read = shapes
    structures = tuple(map(_checked, facts.structures))
    there = toolkit_structures()
    for one in structures:
        if one.name in there and there[one.name] != tuple(field.name for field in one.fields):
            raise OperatorPackageError(
                f"{operator.prototype.op_type}: {operator.tiling_library} has {one.name} with other fields than the host's "
                f"kernel_tiling.h; expected {', '.join(there[one.name])}"
            )
    parameters = [("Input", one) for one in operator.inputs] + [("Output", one) for one in operator.outputs]
    for _, one in parameters:
        for name in (one.name, *one.formats):
            identifier(name)
    text: str = render(
        "operator_package/prebuilt.cpp.jinja",
        op=operator.prototype,
        headers=headers,
        structures=structures,
        there=there,
        names=frozenset(one.name for one in structures),
        parameters=parameters,
        attrs=[_attr(one) for one in operator.prototype.attrs],
        tiling_library=cpp_string(str(operator.tiling_library)),
        shape_library=cpp_string(str(operator.shape_library)) if infers_shapes else "",
        infers_dtypes=infers_dtypes,
        soc=identifier(operator.soc),
        kernel_file=identifier(operator.kernel.stem),
        interface=identifier(operator.interface),
        capacity=_capacity(operator, structures),
        data_inputs=sorted({*facts.data_inputs, *read}),
    )
    return text


def toolkit_structures() -> Mapping[str, tuple[str, ...]]:
    """Return the fields of the tiling structures that the toolkit's headers define: kernels have these."""
    text = (toolkit_directory() / "include/kernel_tiling/kernel_tiling.h").read_text()
    return {name: tuple(_FIELD.findall(body)) for name, body in _STRUCTURE.findall(text)}


def _checked(one: TilingStructure) -> TilingStructure:
    for name in (one.name, *one.ops, *(word for field in one.fields for word in (field.type, field.name))):
        identifier(name)
    return one


def _attr(one: Attr) -> tuple[str, str, str, str]:
    need = "REQUIRED" if one.required else "OPTIONAL"
    return identifier(one.name), need, one.type.value, "" if one.required else default_text(one)


def _capacity(operator: PrebuiltOperator, structures: Sequence[TilingStructure]) -> int:
    return max((one.size for one in structures), default=operator.tiling_bytes or _DEFAULT_CAPACITY)
