"""Schema of a generated operator with the types that its aclnn function takes. No torch."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_graph.binding.calls.call import AclnnCall
from ascend_graph.binding.dtype_ints import Numbers, dtype_ints
from ascend_graph.binding.generated_schema import OperatorSchema, operator_schema
from ascend_graph.shapes import Relation


def called_schema(
    schema: OperatorSchema,
    call: AclnnCall | None,
    relation: Relation | None,
    numbers: Mapping[str, Numbers] | None = None,
) -> OperatorSchema:
    """Return a prototype's schema with the types of a call.

    An attr that the function takes as aclDataType is a dtype, whatever the prototype calls it; an input that it takes by
    value is a number.

    Args:
        schema: The schema of the prototype alone.
        call: The call, or None if it is of the usual form.
        relation: The shape relation, which may use an Int attr as a dtype.
        numbers: The dtype numbering of Int attrs, as the author gives it.
    """
    prototype = schema.prototype
    typed = {} if call is None else dict.fromkeys(call.dtype_attrs(prototype), Numbers.TORCH)
    said = dtype_ints(prototype, relation, typed | dict(numbers or {}))
    passed = None if call is None else call.number_inputs(prototype)
    return operator_schema(prototype, schema.name, said, passed) if said or passed else schema
