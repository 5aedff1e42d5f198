"""Dtypes in ``Int`` attrs: which attrs hold a dtype, and in whose numbering. No torch.

GE's prototypes have ``Int`` attrs whose values are numbers of ``ge::DataType``, which equal those of ``aclDataType``.
torch numbers the same dtypes differently (``c10::ScalarType``). A caller of a torch operator means one or the other.
The decision belongs to the attr: the schema's default, the eager kernel, the converter, the meta function and
generated code all follow it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import lru_cache

from ascend_graph.binding.errors import EagerError
from ascend_graph.prototypes import AttrType, OpPrototype
from ascend_graph.shapes import Relation
from ascend_graph.shapes.dtypes import CATEGORY
from ascend_graph.shapes.parsing.grammar import DTYPE_FUNCTIONS
from ascend_graph.shapes.syntax import Binary, Conditional, Expr, FunctionCall, Name, Tensor, Tuple, walk


class Numbers(enum.Enum):
    """Numbering of dtypes in the values of an ``Int`` attr, for a caller of the torch operator."""

    #: torch's numbers, or torch_npu's if torch does not have the dtype; a ``torch.dtype`` arrives as its number.
    TORCH = "torch"
    #: GE's and aclnn's own numbers, passed on as they are.
    GE = "ge"


def is_dtype_name(name: str) -> bool:
    """Return whether a name marks a value that is a dtype.

    >>> [is_dtype_name(name) for name in ("dst_type", "yDtype", "out_type", "type_id")]
    [True, True, True, False]
    """
    normal = name.replace("_", "").lower()
    return any(part in normal for part in ("dtype", "dsttype", "outtype", "outputtype"))


@lru_cache(maxsize=256)
def used_as_dtype(relation: Relation | None) -> frozenset[str]:
    """Return the names that a relation uses as dtypes, dtypes and inputs included.

    ``-> y[*s]: dst_type`` uses one, and a comparison with a dtype does: ``dst_type == float16``.
    """
    if relation is None:
        return frozenset()
    tensors = (*relation.input_tensors, *relation.output_tensors)
    return frozenset(name for tensor in tensors for name in _dtype_names(tensor)) | _compared(relation)


def _compared(relation: Relation) -> set[str]:
    """Return the names that a relation compares with dtypes."""
    found: set[str] = set()
    for node in (node for expression in relation.expressions() for node in walk(expression)):
        match node:
            case Binary("==" | "!=" | "in" | "not in", left, right):
                items = [left, *(right.items if isinstance(right, Tuple) else (right,))]
                if any(_is_dtype(item) for item in items):
                    found |= {item.id for item in items if isinstance(item, Name)}
    return found


def _is_dtype(node: Expr) -> bool:
    return (isinstance(node, Name) and node.id in CATEGORY) or (
        isinstance(node, FunctionCall) and node.function in DTYPE_FUNCTIONS
    )


def _dtype_names(tensor: Tensor) -> set[str]:
    found: set[str] = set()
    todo: list[Expr] = [a.dtype for a in tensor.alternatives if a.dtype is not None]
    while todo:
        match todo.pop():
            case Name(name):
                found.add(name)
            case FunctionCall("dtype" | "real", arguments):
                todo += arguments
            case Conditional(then, _, otherwise):
                todo += (then, otherwise)
    return found


def dtype_ints(
    prototype: OpPrototype, relation: Relation | None = None, said: Mapping[str, Numbers] | None = None
) -> dict[str, Numbers]:
    """Return the ``Int`` attrs of an operator that are dtypes, and the numbering of their values.

    Args:
        prototype: The operator.
        relation: Its shape relation, in the prototype's names: an attr that gives a dtype takes torch's numbers, like
            an attr of the type ``Type``.
        said: The explicit numbering of attrs, which takes precedence.

    Raises:
        EagerError: ``said`` names something other than an ``Int`` attr.
    """
    said = said or {}
    ints = {attr.name for attr in prototype.attrs if attr.type is AttrType.INT}
    strangers = said.keys() - ints
    if strangers:
        raise EagerError(
            f"{prototype.op_type}: whose numbers {', '.join(sorted(strangers))} takes is said, but it is not an Int attr; expected "
            f"one of: {', '.join(sorted(ints)) or 'none'}"
        )
    used = used_as_dtype(relation)
    return {
        name: said.get(name, Numbers.TORCH)
        for name in (attr.name for attr in prototype.attrs)
        if name in said or (name in ints and name in used)
    }
