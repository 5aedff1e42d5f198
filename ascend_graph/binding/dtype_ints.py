"""Whether an ``Int`` attr is a dtype, and whose number of one its values are. No torch.

GE's prototypes have attrs of the type ``Int`` whose values are ``ge::DataType``'s numbers, which are ``aclDataType``'s too;
torch numbers the same dtypes otherwise (``c10::ScalarType``). A caller of a torch operator means one or the other. What is
decided here is a property of the attr: the schema's default, the eager kernel, the converter, the meta function and
generated code all follow it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from ascend_graph.binding.errors import EagerError
from ascend_graph.prototypes import AttrType, OpPrototype
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import Call, Conditional, Expr, Name, Tensor


class Numbers(enum.Enum):
    """Whose numbers of dtypes the values of an ``Int`` attr are, for a caller of the torch operator."""

    #: torch's, or torch_npu's where torch does not have the dtype; a ``torch.dtype`` arrives as its number.
    TORCH = "torch"
    #: GE's and aclnn's own: they are handed on as they are.
    GE = "ge"


def is_dtype_name(name: str) -> bool:
    """Whether a name says that its value is a dtype.

    >>> [is_dtype_name(name) for name in ("dst_type", "yDtype", "out_type", "type_id")]
    [True, True, True, False]
    """
    normal = name.replace("_", "").lower()
    return any(part in normal for part in ("dtype", "dsttype", "outtype", "outputtype"))


def used_as_dtype(relation: Relation | None) -> frozenset[str]:
    """The names that a relation takes for dtypes, ``-> y[*s]: dst_type``; names of dtypes and inputs are among them."""
    if relation is None:
        return frozenset()
    tensors = (*relation.input_tensors, *relation.output_tensors)
    return frozenset(name for tensor in tensors for name in _dtype_names(tensor))


def _dtype_names(tensor: Tensor) -> set[str]:
    found: set[str] = set()
    todo: list[Expr] = [a.dtype for a in tensor.alternatives if a.dtype is not None]
    while todo:
        match todo.pop():
            case Name(name):
                found.add(name)
            case Call("dtype" | "real", arguments):
                todo += arguments
            case Conditional(then, _, otherwise):
                todo += (then, otherwise)
    return found


def dtype_ints(
    prototype: OpPrototype, relation: Relation | None = None, said: Mapping[str, Numbers] | None = None
) -> dict[str, Numbers]:
    """The ``Int`` attrs of an operator that are dtypes, and whose numbers they take.

    Args:
        prototype: The operator.
        relation: Its shape relation, in the prototype's names: an attr that gives a dtype takes torch's numbers, as an
            attr of the type ``Type`` does.
        said: What is said of attrs, and goes before that.

    Raises:
        EagerError: ``said`` names something else than an ``Int`` attr.
    """
    said = said or {}
    ints = {attr.name for attr in prototype.attrs if attr.type is AttrType.INT}
    strangers = said.keys() - ints
    if strangers:
        raise EagerError(
            f"{prototype.op_type}: whose numbers {', '.join(sorted(strangers))} takes is said, but it is no Int attr; Int attrs "
            f"are {', '.join(sorted(ints)) or 'none'}"
        )
    used = used_as_dtype(relation)
    return {
        name: said.get(name, Numbers.TORCH)
        for name in (attr.name for attr in prototype.attrs)
        if name in said or (name in ints and name in used)
    }
