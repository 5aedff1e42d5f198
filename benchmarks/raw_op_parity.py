"""Parity of our raw ops with those in the torch_npu wheel: the same arguments must give the same GE node.

For each function of torchair's auto_generated_ge_raw_ops, the prototype is read from its docstring, our raw op is made
from that prototype, and both are called with the same arguments, drawn by hypothesis. The signature, the whole resulting
graph, field by field, and the returned values are compared. A difference counts as explained only if a reason is listed for
that function and that field.

make bench NAME=raw_op_parity
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch_npu  # noqa: F401 - torchair can only be imported after it
from _common import run
from _raw_op_parity_explained import EXPLAINED, REPAIRED_DOCSTRINGS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ascend_graph.prototypes import AttrType, OpPrototype, ParameterKind, parse_text
from ascend_graph.raw_ops import NodeStyle, RawOp, describe, make_raw_op

EXAMPLES = 10

_ge = importlib.import_module("torchair.ge._ge_graph")
_wheel = importlib.import_module("torchair._ge_concrete_graph.auto_generated_ge_raw_ops")
_compat = importlib.import_module("torchair._ge_concrete_graph.compat_ir")

#: Queries of the raw op under test to CANN about its op: the op type, the optional inputs and attrs in use.
asked: list[tuple[Any, ...]] = []


def _compatible(*question: Any, **named: Any) -> str:
    """Record a query and return "" in place of the installed CANN, which knows no ops on a machine without CANN."""
    asked.append((*question, *named.values()))
    return ""


@dataclass
class Comparison:
    """Comparison of one function of the wheel with ours: the fields that differ."""

    name: str
    style: NodeStyle
    differences: dict[str, str] = field(default_factory=dict)


def wheel_functions() -> dict[str, Callable[..., Any]]:
    """Return the raw ops of the wheel's module by name, in its order."""
    found = {}
    for name, value in vars(_wheel).items():
        if inspect.isfunction(value) and inspect.unwrap(value).__module__ == _wheel.__name__ and value.__doc__:
            found[name] = value
    return found


def prototype_of(function: Callable[..., Any]) -> OpPrototype:
    """Return the prototype in a docstring, which lacks only its end."""
    doc = inspect.unwrap(function).__doc__ or ""
    match = re.search(r"REG_OP\((\w+)\)", doc)
    if match is None:
        raise ValueError(f"{function.__name__}: its docstring has no REG_OP")
    text = doc[match.start() :]
    if function.__name__ in REPAIRED_DOCSTRINGS:
        wrong, right = REPAIRED_DOCSTRINGS[function.__name__]
        if wrong not in text:
            raise ValueError(f"{function.__name__}: its docstring no longer has {wrong!r}")
        text = text.replace(wrong, right)
    result = parse_text(f"{text}\n.OP_END_FACTORY_REG({match.group(1)})", function.__name__)
    if result.errors:
        raise ValueError(str(result.errors[0]))
    return result.prototypes[0]


_INT64 = st.integers(-(2**63), 2**63 - 1)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_DTYPE = st.integers(0, 41)
_FLOAT = st.floats(width=32, allow_nan=False)
_VALUES = {
    AttrType.INT: _INT64,
    AttrType.FLOAT: _FLOAT,
    AttrType.BOOL: st.booleans(),
    AttrType.STRING: _TEXT,
    AttrType.TYPE: _DTYPE,
    AttrType.LIST_INT: st.lists(_INT64, max_size=3),
    AttrType.LIST_FLOAT: st.lists(_FLOAT, max_size=3),
    AttrType.LIST_BOOL: st.lists(st.booleans(), max_size=3),
    AttrType.LIST_STRING: st.lists(_TEXT, max_size=3),
    AttrType.LIST_TYPE: st.lists(_DTYPE, max_size=3),
    AttrType.LIST_LIST_INT: st.lists(st.lists(_INT64, max_size=3), max_size=3),
}


@dataclass(frozen=True)
class RawOpCall:
    """Arguments of one call; an int among the inputs indexes a tensor of the pool, a 1-tuple is a number to convert."""

    inputs: tuple[Any, ...]
    keywords: dict[str, Any]
    dependencies: int
    node_name: str | None


@st.composite
def calls(draw: st.DrawFn, raw_op: RawOp, *, with_node: bool) -> RawOpCall:
    """Draw arguments for a raw op; ``with_node`` adds dependencies and a node name."""
    tensor = st.integers(0, 3)
    # A number becomes a constant; of the other inputs' dtypes only one kind may be there, so all tensors are float32.
    number = st.floats(-8, 8, width=32).map(lambda value: (value,))
    inputs: list[Any] = []
    for raw_input in raw_op.inputs:
        if raw_input.kind is ParameterKind.DYNAMIC:
            inputs.append(draw(st.lists(tensor, min_size=1, max_size=3)))
        elif raw_input.kind is ParameterKind.OPTIONAL:
            inputs.append(draw(st.none() | tensor))
        else:
            inputs.append(draw(st.integers(-8, 8).map(lambda v: (v,)) if raw_input.is_index else tensor | number))
    keywords: dict[str, Any] = {}
    for output in raw_op.outputs:
        if output.size_argument:
            keywords[output.size_argument] = draw(st.integers(0, 3))
    for attr in raw_op.attrs:
        if attr.required or draw(st.booleans()):
            keywords[attr.argument] = draw(_VALUES[attr.type])
    if not with_node:
        return RawOpCall(tuple(inputs), keywords, 0, None)
    return RawOpCall(
        tuple(inputs), keywords, draw(st.integers(0, 2)), draw(st.none() | st.sampled_from(["named", "a/b"]))
    )


def build(function: Callable[..., Any], call: RawOpCall) -> Any:
    """Call a raw op in a separate graph; return the graph as a dict and the returned values, or the error."""
    with _ge.GeGraph() as graph:
        pool = [_ge.Const(float(index)) for index in range(4)]

        def argument(value: Any) -> Any:
            if isinstance(value, list):
                return [pool[index] for index in value]
            if isinstance(value, tuple):
                return value[0]
            return None if value is None else pool[value]

        keywords = dict(call.keywords)
        if call.dependencies:
            keywords["dependencies"] = pool[: call.dependencies]
        if call.node_name is not None:
            keywords["node_name"] = call.node_name
        asked.clear()
        try:
            returned = function(*[argument(value) for value in call.inputs], **keywords)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        nodes = {f"{'Const' if node.type == 'Const' else 'node'} {i}": node for i, node in enumerate(graph.op)}
        found = {path: value for name, node in nodes.items() for path, value in flatten(node, name)}
        found["returned"] = shape_of(returned)
        found["question"] = list(asked)
        return found


def flatten(message: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every set field with its path; maps by key, lists by index."""
    for descriptor, value in message.ListFields():
        here = f"{path}.{descriptor.name}"
        if descriptor.message_type is not None and descriptor.message_type.GetOptions().map_entry:
            for key in value:
                yield f"{here}[{key}]", "set"
                yield from flatten(value[key], f"{here}[{key}]")
        elif hasattr(value, "ListFields"):
            yield here, "set"
            yield from flatten(value, here)
        elif hasattr(value, "__len__") and not isinstance(value, str | bytes):
            yield f"{here}.length", len(value)
            for index, item in enumerate(value):
                if hasattr(item, "ListFields"):
                    yield from flatten(item, f"{here}[{index}]")
                else:
                    yield f"{here}[{index}]", item
        else:
            yield here, value


def shape_of(returned: Any) -> Any:
    """Return a raw op's result with tensors by name."""
    if isinstance(returned, list | tuple):
        return type(returned)(shape_of(item) for item in returned)
    return None if returned is None else returned.tensor


def compare_signatures(theirs: Callable[..., Any], ours: Callable[..., Any]) -> dict[str, str]:
    """Return differences in names, order, kinds and defaults; an empty list and an empty tuple are the same default."""

    def normal(value: Any) -> Any:
        return tuple(map(normal, value)) if isinstance(value, list | tuple) else value

    left, right = inspect.signature(theirs).parameters, inspect.signature(ours).parameters
    found = {}
    if list(left) != list(right):
        found["signature"] = f"{list(left)} / {list(right)}"
    for name in left.keys() & right.keys():
        if left[name].kind is not right[name].kind:
            found[f"signature.{name}.kind"] = f"{left[name].kind} / {right[name].kind}"
        if normal(left[name].default) != normal(right[name].default):
            found[f"signature.{name}.default"] = f"{left[name].default!r} / {right[name].default!r}"
    return found


def compare(name: str, function: Callable[..., Any]) -> Comparison:
    """Compare one function of the wheel with ours."""
    prototype = prototype_of(function)
    is_new = "ge_op" in inspect.unwrap(function).__code__.co_names
    result = Comparison(name, NodeStyle.COMPACT if is_new else NodeStyle.COMPLETE)
    if name in REPAIRED_DOCSTRINGS:
        result.differences["docstring"] = " / ".join(REPAIRED_DOCSTRINGS[name])
    raw_op = describe(prototype)
    ours = make_raw_op(prototype, result.style)
    if raw_op.function_name != name:
        result.differences["name"] = f"{name} / {raw_op.function_name}"
    result.differences.update(compare_signatures(function, ours))

    if any(path.endswith((".kind", "signature")) for path in result.differences):
        return result  # there is no call that means the same to both

    def agree(call: RawOpCall) -> None:
        theirs, mine = build(function, call), build(ours, call)
        paths = theirs.keys() | mine.keys()
        for path in {"error"} if "error" in paths else paths:
            if theirs.get(path) != mine.get(path):
                # A field is named without the number of the node and the position in a list.
                node, _, inside = path.rpartition(" ")
                shown = re.sub(r"\[\d+\]", "", re.sub(r"^\d+\.", "Const." if node == "Const" else "", inside))
                result.differences.setdefault(shown, f"{theirs.get(path)!r} / {mine.get(path)!r}")

    for with_node in (False, True):
        drawn = given(calls(raw_op, with_node=with_node))
        limited = settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        limited(drawn(agree))()
    return result


def main() -> dict[str, Any]:
    """Compare every function of the wheel."""
    _compat.is_cann_compat = _compatible
    comparisons = [compare(name, function) for name, function in wheel_functions().items()]
    unexplained: list[tuple[str, str, str]] = []
    explained: list[tuple[str, str, str]] = []
    seen: set[tuple[str, str]] = set()
    for comparison in comparisons:
        reasons = EXPLAINED.get(comparison.name, {})
        for path, values in sorted(comparison.differences.items()):
            seen.add((comparison.name, path))
            if path in reasons:
                explained.append((comparison.name, path, reasons[path]))
            else:
                unexplained.append((comparison.name, path, values))
    idle = [(name, path) for name, reasons in EXPLAINED.items() for path in reasons if (name, path) not in seen]

    table = Table(title="Raw ops of the wheel whose nodes differ from ours", title_justify="left")
    for heading in ("function", "field", "reason, or theirs / ours"):
        table.add_column(heading, overflow="fold")
    for row in explained:
        table.add_row(*map(escape, row))
    for row in unexplained:
        table.add_row(*map(escape, row), style="red")
    for name, path in idle:
        table.add_row(name, escape(path), "listed as explained, but there is no difference", style="yellow")
    Console(width=160).print(table)
    if "--json" in sys.argv:
        print(json.dumps(unexplained, indent=0))
    differing = {comparison.name for comparison in comparisons if comparison.differences}
    unexplained_names = {name for name, _, _ in unexplained}
    return {
        "total": len(comparisons),
        "equal": len(comparisons) - len(differing),
        "explained": len(differing - unexplained_names),
        "unexplained": len(unexplained_names),
        "idle_explanations": len(idle),
        "examples_per_function": 2 * EXAMPLES,
    }


if __name__ == "__main__":
    run(main)
