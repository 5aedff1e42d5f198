"""Entries of op-plugin's yaml for authors who build into op-plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from ascend_graph.codegen.output_shapes import ENUMERATORS
from ascend_graph.codegen.rendering import GenerationError, render

from ascend_graph.aclnn import ConflictingDeclarationsError
from ascend_graph.binding import AclnnCall, BindingError, Part, find_call, msopgen_call
from ascend_graph.binding.generated_schema import OperatorSchema, operator_schema
from ascend_graph.eager.shape_code import SCALAR_TYPES
from ascend_graph.prototypes import OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.syntax import Alternative, Dims, FunctionCall, Like, Name


def op_plugin_entries(prototypes: Iterable[OpPrototype], shapes: Mapping[str, str] | None = None) -> str:
    """Return entries of op-plugin's ``op_plugin_functions.yaml`` (section ``custom``), for building into op-plugin.

    ``gen_opapi`` makes op-plugin write the C++: an output is sized like an input if the relation allows it. For other
    outputs the size, or the dtype, is left to the author as ``…``, with the relation next to it. A call that op-plugin's generator cannot make
    as the function's header declares it is a comment instead of an entry.

    >>> from ascend_graph.prototypes import parse_text
    >>> text = "REG_OP(AddCustom).INPUT(x, ALL()).INPUT(y, ALL()).OUTPUT(z, ALL()).OP_END_FACTORY_REG(AddCustom)"
    >>> print(op_plugin_entries(parse_text(text).prototypes, {"AddCustom": "x[*s], y[*s] -> z[*s]"}))
    custom:
      - func: npu_add_custom(Tensor x, Tensor y) -> Tensor z
        op_api: all_version
        gen_opapi:
          out:
            size: x
            dtype: x
          exec: aclnnAddCustom
    <BLANKLINE>
    """
    views: list[dict[str, Any]] = []
    left_out: list[str] = []
    for prototype in prototypes:
        schema = operator_schema(prototype, f"npu_{operator_schema(prototype).name}")
        shape = (shapes or {}).get(prototype.op_type)
        relation = complete_relation(prototype, shape) if shape else None
        names = ["out"] if len(schema.returns) == 1 else [f"out{n}" for n in range(len(schema.returns))]
        outputs = [
            (n, _size(schema, relation, p), _dtype(schema, relation, p))
            for n, p in zip(names, schema.returns, strict=True)
        ]
        try:
            entry = _exec(find_call(prototype), schema, names)
        except (BindingError, ConflictingDeclarationsError, GenerationError) as error:
            left_out.append(f"{prototype.op_type}: {str(error).splitlines()[0]}")
            continue
        views.append({"schema": str(schema), "outputs": outputs, "exec": entry, "relation": str(relation or "")})
    text: str = render("eager_project/op_plugin_functions.yaml.jinja", operators=views, left_out=left_out)
    return text


def _exec(call: AclnnCall, schema: OperatorSchema, outputs: Sequence[str]) -> str:
    """Return the function, with its parameters if they are not in the schema's order.

    Raises:
        GenerationError: op-plugin passes an argument as another C type than the header declares.
    """
    prototype = schema.prototype
    usual = {(a.part, a.index): a.type.canonical for a in msopgen_call(prototype).arguments}
    arguments = {(a.is_input, a.parameter.name): a.name for a in schema.arguments}
    written = []
    for argument in call.arguments:
        expected = usual.get((argument.part, argument.index))
        plain = expected is not None and (expected.base, expected.pointers) == (
            argument.type.canonical.base,
            argument.type.pointers,
        )
        if not plain:
            raise GenerationError(
                f"op-plugin's generator does not pass {argument.type} {argument.name} of {call.function}; generate an "
                "eager library instead"
            )
        if argument.part is Part.OUTPUT:
            position = [p.name for p in schema.returns].index(prototype.outputs[argument.index].name)
            written.append(outputs[position])
        else:
            side = prototype.inputs if argument.part is Part.INPUT else prototype.attrs
            written.append(arguments[argument.part is Part.INPUT, side[argument.index].name])
    if call.unused:
        raise GenerationError(
            f"{call.function} has no parameter for {', '.join(call.unused)}; leave them out, or name the parameters in "
            "aclnn_arguments"
        )
    in_order = [*(a.name for a in schema.arguments), *outputs] == written
    return call.function if in_order else ", ".join([call.function, *written])


def _alternative(relation: Relation | None, output: Parameter) -> Alternative | None:
    """Return the shape and dtype of an output, if the relation has one for all calls."""
    tensor = next((t for t in relation.output_tensors if t.name == output.name), None) if relation else None
    return tensor.alternatives[0] if tensor is not None and len(tensor.alternatives) == 1 else None


def _inputs(schema: OperatorSchema, kind: ParameterKind) -> set[str]:
    return {p.name for p in schema.prototype.inputs if p.kind is kind}


def _size(schema: OperatorSchema, relation: Relation | None, output: Parameter) -> str:
    """Return the size of an output in op-plugin's terms; an empty one is left to the author."""
    required = _inputs(schema, ParameterKind.REQUIRED)
    alternative = _alternative(relation, output)
    if relation is None or alternative is None:
        return ""
    if isinstance(alternative.shape, Like):
        return str(alternative.shape.input) if str(alternative.shape.input) in required else ""
    same = (
        t.name
        for t in relation.input_tensors
        if t.name in required and isinstance(alternative.shape, Dims) and t.alternatives[0].shape == alternative.shape
    )
    return next(same, "")


def _dtype(schema: OperatorSchema, relation: Relation | None, output: Parameter) -> str:
    """Return the dtype of an output in op-plugin's terms; an empty one is left to the author."""
    required, lists = _inputs(schema, ParameterKind.REQUIRED), _inputs(schema, ParameterKind.DYNAMIC)
    alternative = _alternative(relation, output)
    if relation is None or alternative is None or output.kind is ParameterKind.DYNAMIC:
        return ""

    def given(name: str) -> str:
        return name if name in required else f"{name}[0].scalar_type()" if name in lists else ""

    match alternative.dtype:
        case None if isinstance(alternative.shape, Like):
            return given(str(alternative.shape.input))
        case None:  # that of the first input, as a relation means it
            return given(relation.inputs[0]) if relation.inputs else ""
        case Name(name) if name in CATEGORY:
            return f"at::k{ENUMERATORS[SCALAR_TYPES[name]]}"
        case Name(name) if name in relation.inputs:
            return given(name)
        case FunctionCall("promote", names) if required.issuperset(map(str, names)):
            first, *others = (f"{name}.scalar_type()" for name in names)
            return reduce("c10::promoteTypes({}, {})".format, others, first)
    return ""
