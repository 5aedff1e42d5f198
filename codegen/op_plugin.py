"""Entries of op-plugin's yaml for authors who build into op-plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ascend_graph.codegen.rendering import GenerationError, render

from ascend_graph.aclnn import ConflictingDeclarationsError
from ascend_graph.binding import AclnnCall, BindingError, Part, find_call, msopgen_call
from ascend_graph.binding.generated_schema import OperatorSchema, operator_schema
from ascend_graph.prototypes import OpPrototype, Parameter, ParameterKind
from ascend_graph.shapes import Relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.syntax import Dims, Like, Name


def op_plugin_entries(prototypes: Iterable[OpPrototype], shapes: Mapping[str, str] | None = None) -> str:
    """Return entries of op-plugin's ``op_plugin_functions.yaml`` (section ``custom``), for building into op-plugin.

    ``gen_opapi`` makes op-plugin write the C++: an output is sized like an input if the relation allows it. For other
    outputs the size is left to the author, with the relation next to it. A call that op-plugin's generator cannot make
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
        outputs = [(n, *_op_plugin_size(schema, relation, p)) for n, p in zip(names, schema.returns, strict=True)]
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


def _op_plugin_size(schema: OperatorSchema, relation: Relation | None, output: Parameter) -> tuple[str, str]:
    """Return the size and dtype of an output in op-plugin's terms; an empty size is left to the author."""
    first = next((p.name for p in schema.prototype.inputs if p.kind is ParameterKind.REQUIRED), "")
    tensor = next((t for t in relation.output_tensors if t.name == output.name), None) if relation else None
    if relation is None or tensor is None or len(tensor.alternatives) != 1:
        return "", first
    alternative = tensor.alternatives[0]
    dtype = alternative.dtype.id if isinstance(alternative.dtype, Name) else first
    if dtype not in relation.inputs and alternative.dtype is not None:
        dtype = f"at::k{ {'float32': 'Float', 'float16': 'Half', 'int64': 'Long', 'int32': 'Int', 'bool': 'Bool'}.get(dtype, dtype) }"
    if isinstance(alternative.shape, Like):
        return str(alternative.shape.input), dtype
    same = (
        t.name
        for t in relation.input_tensors
        if isinstance(alternative.shape, Dims) and t.alternatives[0].shape == alternative.shape
    )
    return next(same, ""), dtype
