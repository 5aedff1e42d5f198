"""Operators whose schema does not say what they write: another operator with the marks stands for them in graphs.

PyTorch drops calls that return and write nothing, and hands copies to captures. A schema that C++ has defined cannot be
changed, so that a second operator has the marks, and functionalization replaces each call of the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.node import _side_effectful_functions, has_side_effect

from ascend_graph.binding.op_schema import SchemaError, read_schema
from ascend_graph.dispatch.definition import forget_kernels
from ascend_graph.dispatch.fake import MetaHandle, existing_meta, register_meta


@dataclass(slots=True)
class KeptCalls:
    """Handle of an operator whose calls graphs keep although they return nothing."""

    overload: Any
    _active: bool = True

    def remove(self) -> None:
        """Let graphs drop the calls again. A second call does nothing."""
        if self._active:
            self._active = False
            _side_effectful_functions.discard(self.overload)


def keep_calls(overload: Any) -> KeptCalls:
    """Make graphs keep calls of an operator that returns and writes nothing by its schema."""
    active = overload not in _side_effectful_functions
    has_side_effect(overload)
    return KeptCalls(overload, active)


@dataclass(slots=True)
class StandIn:
    """Handle of the rules by which another operator stands for one without marks."""

    unmarked: Any
    _earlier: Any
    _kept: KeptCalls
    _meta: MetaHandle | None

    def remove(self) -> None:
        """Unregister the rules. A second call does nothing."""
        table = self.unmarked.python_key_table
        if table.pop(FunctionalTensorMode, None) is not None and self._earlier is not None:
            table[FunctionalTensorMode] = self._earlier
        self._earlier = None
        forget_kernels(self.unmarked)
        self._kept.remove()
        if self._meta is not None:
            self._meta.remove()


def stand_in(marked: Any, unmarked: Any) -> StandIn:
    """Replace calls of an operator in graphs by calls of another one, whose schema says what is written.

    Args:
        marked: The operator with the marks.
        unmarked: The operator that programs call. It keeps its meta function if it has one.
    """

    def replaced(mode: Any, /, *args: Any, **kwargs: Any) -> Any:
        with mode:
            return marked(*args, **kwargs)

    meta = None
    if existing_meta(unmarked) is None:
        meta = register_meta(unmarked, marked)
    earlier = unmarked.python_key_table.pop(FunctionalTensorMode, None)
    unmarked.py_impl(FunctionalTensorMode)(replaced)
    forget_kernels(unmarked)
    return StandIn(unmarked, earlier, keep_calls(unmarked), meta)


def check_marks(marked: Any, unmarked: Any) -> None:
    """Raise if an operator differs from another in more than the marks at what is written.

    Args:
        marked: Schema of the operator with the marks.
        unmarked: The other operator.

    Raises:
        SchemaError: The schemas differ, or nothing is marked.
    """
    other = read_schema(unmarked._schema)
    plain = [replace(one, mutated=False) for one in marked.arguments]
    returns = [(one.kind, one.list_depth) for one in marked.returns]
    if plain != [replace(one, mutated=False) for one in other.arguments] or returns != [
        (one.kind, one.list_depth) for one in other.returns
    ]:
        raise SchemaError(
            f"{marked.qualified_name}: its schema {marked.text} differs from {other.text}; expected the same arguments and "
            "returns, with Tensor(a!) at what is written"
        )
    pairs = list(zip(marked.arguments, other.arguments, strict=True))
    lost = [one.name for one, theirs in pairs if theirs.mutated > one.mutated]
    returned = [one.alias_of for one in marked.returns] != [one.alias_of for one in other.returns]
    if lost or not (returned or any(one.mutated > theirs.mutated for one, theirs in pairs)):
        raise SchemaError(
            f"{marked.qualified_name}: its schema marks {', '.join(lost) + ' less' if lost else 'nothing more'} than {other.text}; expected "
            f"Tensor(a!) at what is written. Without such an argument pass {other.qualified_name} itself as eager="
        )
