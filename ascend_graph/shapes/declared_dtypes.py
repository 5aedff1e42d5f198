"""Dtypes that a prototype declares for outputs of which a relation says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ascend_graph.prototypes import OpPrototype, Parameter, ParameterKind
from ascend_graph.prototypes.dtypes import TORCH_NAMES
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.relation import Relation, parse_relation
from ascend_graph.shapes.syntax import Dims, Expr, FunctionCall, Like, Name, Tensor


def complete_relation(prototype: OpPrototype, relation: str | Relation, source: str = "the relation") -> Relation:
    """Return the relation with the dtypes that the prototype declares, where it says nothing of an output's dtype.

    The first of these that fits is written into the relation:

    1. the promoted dtype of the inputs that the prototype names,
    2. that of an input of the same symbol,
    3. that of the first input, if the output may have all of them: this is what a relation means, and nothing is written,
    4. the only dtype of the output,
    5. that of an input with the same list of dtypes.

    Args:
        prototype: Prototype of the operator. Outputs are known by its names, or by their order.
        relation: Shape relation, or its text.
        source: Where its dtypes are from, for messages.

    Raises:
        RelationError: The relation is malformed; or it says a dtype that the prototype does not list; or the prototype
            forbids the first input's dtypes for an output, and does not say which it has.

    Example:
        >>> from ascend_graph.prototypes import parse_text
        >>> norm = '''REG_OP(Norm).INPUT(x, TensorType({DT_FLOAT16, DT_BF16})).OUTPUT(y, TensorType({DT_FLOAT16, DT_BF16}))
        ...     .OUTPUT(rstd, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Norm)'''
        >>> print(complete_relation(parse_text(norm).prototypes[0], "x[*b, d] -> y[*b, d], rstd[*b]"))
        x[*b, d] -> y[*b, d], rstd[*b]: float32
    """
    parsed = parse_relation(relation)
    outputs = {p.name: p for p in prototype.outputs}
    if not outputs.keys() & set(parsed.outputs) and len(outputs) == len(parsed.outputs):
        outputs = dict(zip(parsed.outputs, prototype.outputs, strict=True))
    completed = tuple([
        tensor if tensor.name not in outputs else _with_dtypes(tensor, outputs[tensor.name], prototype, parsed, source)
        for tensor in parsed.output_tensors
    ])  # fmt: skip
    if completed == parsed.output_tensors:
        return parsed
    return parse_relation(str(replace(parsed, output_tensors=completed)))


def _check_listed(tensor: Tensor, output: Parameter, op_type: str, source: str) -> None:
    """Raise if the relation says a dtype that the prototype does not list for an output."""
    if not output.dtypes or output.unknown_types or not TORCH_NAMES.keys() >= set(output.dtypes):
        return  # a dtype without a name in torch, such as INT4, is in a tensor of another
    for alternative in tensor.alternatives:
        match alternative.dtype:
            case Name(name) if name in CATEGORY and name not in {TORCH_NAMES[dtype] for dtype in output.dtypes}:
                raise RelationError(
                    f"{op_type}: the output {tensor.name} is {name} by {source}; expected a dtype that the prototype "
                    f"lists for it: {_listed(output)}. Correct one of both"
                )


def _with_dtypes(tensor: Tensor, output: Parameter, prototype: OpPrototype, relation: Relation, source: str) -> Tensor:
    _check_listed(tensor, output, prototype.op_type, source)
    if not (output.dtypes or output.promote) or any(a.dtype is not None for a in tensor.alternatives):
        return tensor
    inputs = {p.name: p for p in prototype.inputs if p.name in relation.inputs}
    alternatives = []
    for alternative in tensor.alternatives:
        match alternative.shape:
            case Dims():
                assumed = inputs.get(relation.inputs[0]) if relation.inputs else None
            case Like(Name(name)):
                assumed = inputs.get(name)
            case _:
                alternatives.append(alternative)
                continue
        dtype = _declared(tensor, output, assumed, list(inputs.values()), prototype.op_type)
        alternatives.append(alternative if dtype is None else replace(alternative, dtype=dtype))
    same = all(new is old for new, old in zip(alternatives, tensor.alternatives, strict=True))
    return tensor if same else replace(tensor, alternatives=tuple(alternatives))


def _declared(
    tensor: Tensor, output: Parameter, assumed: Parameter | None, inputs: Sequence[Parameter], op_type: str
) -> Expr | None:
    """Return the dtype to write; None if the assumed input's is allowed, or nothing is known of it."""
    if found := _promoted(output, inputs):
        return found
    same = [p for p in inputs if p.symbol == output.symbol and p.kind is ParameterKind.REQUIRED]
    if output.symbol is not None and same and not any(isinstance(a.shape, Like) for a in tensor.alternatives):
        return None if assumed in same else Name(same[0].name)
    only = TORCH_NAMES.get(output.dtypes[0], "") if len(set(output.dtypes)) == 1 else ""
    written = Name(only) if only in CATEGORY else None
    if assumed is None or assumed.kind is not ParameterKind.REQUIRED:
        return written
    if not assumed.dtypes or set(assumed.dtypes) <= set(output.dtypes):
        return None
    if written is not None:
        return written
    listed = [p for p in inputs if p.kind is ParameterKind.REQUIRED and set(p.dtypes) == set(output.dtypes)]
    if listed:
        return Name(listed[0].name)
    if set(assumed.dtypes) & set(output.dtypes):
        return None
    raise RelationError(
        f"{op_type}: the relation says no dtype for the output {tensor.name}, and the prototype allows "
        f"{_listed(output)}, none of which the input {assumed.name} has ({_listed(assumed)}): write one, such as "
        f"{tensor.name}{tensor.alternatives[-1].shape}: {TORCH_NAMES.get(output.dtypes[0], 'float32')}"
    )


def _promoted(output: Parameter, inputs: Sequence[Parameter]) -> Expr | None:
    """Return the promoted dtype of inputs, if the prototype says so of the output and all of them are always there."""
    promoted = [p for p in inputs if p.symbol in output.promote and p.kind is ParameterKind.REQUIRED]
    if not output.promote or {p.symbol for p in promoted} != set(output.promote):
        return None
    return FunctionCall("promote", tuple([Name(p.name) for p in promoted]))


def _listed(parameter: Parameter) -> str:
    return ", ".join(TORCH_NAMES.get(dtype, dtype.ge_name) for dtype in dict.fromkeys(parameter.dtypes))
