"""Function ``explain``: one readable page about a registered operator, and the same as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ascend_graph.binding import AclnnCall, Part
from ascend_graph.binding.bound import Binding, Conversion, ReturnSource, ValueSource
from ascend_graph.binding.dtype_ints import Numbers
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import Attr, DataType, OpPrototype, Parameter
from ascend_graph.prototypes.writer import reg_op_calls
from ascend_graph.registration.registered import RegisteredOp, find_registered, registered_ops

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderResult
    from rich.table import Table


class ExplainError(AscendGraphError, LookupError):
    """Request to explain an operator that is not registered."""


class Explanation:
    """Result of :func:`explain`: a page for ``print`` and rich, ``as_dict`` for tools."""

    def __init__(self, registered: RegisteredOp) -> None:
        self._op = registered

    def as_dict(self) -> dict[str, Any]:
        """Return everything on the page as JSON-compatible values: ``json.dumps(explain(op).as_dict())``."""
        op = self._op
        binding, prototype = op.binding, op.binding.prototype
        in_graphs = op.prototype is not None
        arguments = binding.schema.arguments
        return {
            "operator": binding.schema.qualified_name,
            "schema": binding.schema.text,
            "op_type": op.op_type,
            "prototype": {"text": reg_op_calls(prototype), "place": prototype.place} if in_graphs else None,
            "registered": op.registered,
            "inputs": [
                _pair(binding, n, parameter, source)
                for n, (parameter, source) in enumerate(zip(prototype.inputs, binding.inputs, strict=True))
            ],
            "attrs": [
                _pair(binding, None, attr, source) for attr, source in zip(prototype.attrs, binding.attrs, strict=True)
            ],
            "returns": [_returned(binding, n, source) for n, source in enumerate(binding.returns)],
            "mutations": [
                {
                    "argument": arguments[m.argument].name,
                    "output": prototype.outputs[m.output].name,
                    "how": "GE writes over the input" if m.in_place else "the output is assigned to it",
                }
                for m in binding.mutations
            ],
            "unused_arguments": [
                {"argument": arguments[n].name, "may_only_be": repr(arguments[n].default)} for n in binding.unused
            ],
            "shape_only_arguments": [arguments[n].name for n in binding.shape_only],
            "doubts": list(binding.doubts) if in_graphs else [],
            "dropped_outputs": [prototype.outputs[n].name for n in binding.dropped],
            "aclnn": None if op.call is None else _call(op.call, op.called),
            "relation": None if op.relation is None else str(op.relation),
            "evidence": dict(op.evidence),
        }

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=120, no_color=True, legacy_windows=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __repr__(self) -> str:
        return str(self)

    def __rich_console__(self, console: Any, options: ConsoleOptions) -> RenderResult:
        from rich.markup import escape
        from rich.table import Table
        from rich.text import Text

        facts = self.as_dict()
        yield Text(f"{facts['operator']} → {facts['op_type']}", style="bold")
        if not facts["registered"]:
            yield Text("not registered any more", style="yellow")
        yield Text(f"\nSchema\n  {facts['schema']}")
        if facts["prototype"] is None:
            known = (
                "registered by its schema and kernel"
                if facts["aclnn"] is None
                else "no op_type= says which GE operator it is"
            )
            yield Text(f"\nPrototype\n  none: {known}")
        else:
            yield Text(f"\nPrototype ({facts['prototype']['place']})\n  REG_OP({facts['op_type']})")
            for call in facts["prototype"]["text"]:
                yield Text(f"    {call}")
            yield Text("\nBinding")
            yield self._bound(facts)
        if facts["aclnn"] is not None:
            call = facts["aclnn"]
            yield Text(f"\naclnn function\n  {call['function']}: {call['source']}")
            table = Table(box=None, padding=(0, 2, 0, 2), show_edge=False)
            source = "GE" if facts["prototype"] is not None else "operator"
            for column in (source, "", "parameter", "evidence"):
                table.add_column(column, overflow="fold")
            for argument in call["arguments"]:
                table.add_row(escape(argument["from"]), "→", escape(argument["parameter"]), argument["evidence"])
            for name in call["unused"]:
                table.add_row(escape(name), "", "—", "the function has nothing for it: only its default")
            yield table
        yield Text(f"\nShape relation\n  {facts['relation'] or 'none; the meta function decides'}")
        yield Text("\nEvidence")
        for what, why in facts["evidence"].items():
            yield Text(f"  {what}: {why}")
        for doubt in facts["doubts"]:
            yield Text(f"  doubtful: {doubt}", style="yellow")

    @staticmethod
    def _bound(facts: dict[str, Any]) -> Table:
        """Return a table of how the arguments map to GE's inputs, attrs and outputs in a graph."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 2), show_edge=False)
        for column in ("torch", "", "GE", "evidence", "note"):
            table.add_column(column, overflow="fold")
        for kind in ("inputs", "attrs"):
            for pair in facts[kind]:
                left = pair["argument"] or pair["value"]
                target = f"{pair['name']} ({pair['kind']})"
                table.add_row(escape(left), "→", escape(target), pair["evidence"], escape(pair["note"]))
        for returned in facts["returns"]:
            table.add_row(returned["return"], "←", returned["output"], returned["evidence"], returned["note"])
        for mutation in facts["mutations"]:
            table.add_row(mutation["argument"], "⇐", mutation["output"], "written by the operator", mutation["how"])
        for unused in facts["unused_arguments"]:
            table.add_row(
                unused["argument"], "", "—", "", escape(f"GE has nothing for it: only {unused['may_only_be']}")
            )
        for name in facts["shape_only_arguments"]:
            table.add_row(name, "", "—", "arguments=", "only the shapes of outputs need it")
        for dropped in facts["dropped_outputs"]:
            table.add_row("—", "", dropped, "", "no return takes it")
        return table


def explain(operator: Any) -> Explanation:
    """Return a page about a registered operator: prototype, schema, binding, relation, converter, each with its reason.

    Args:
        operator: The result of ``register_op``, the torch operator, or the op type.

    Returns:
        An object to print; ``as_dict()`` has the same for tools.

    Raises:
        ExplainError: The operator is not registered.

    >>> explain("NoSuchOp")
    Traceback (most recent call last):
        ...
    ascend_graph.checks.explain.ExplainError: 'NoSuchOp' is not registered; registered are: ...
    """
    if isinstance(operator, RegisteredOp):
        return Explanation(operator)
    found = find_registered(operator)
    if found is None:
        known = ", ".join(f"{op.op_type} ({op.overload})" for op in registered_ops()) or "none"
        raise ExplainError(f"{operator!r} is not registered; expected one of: {known}")
    return Explanation(found)


def _pair(binding: Binding, index: int | None, target: Parameter | Attr, source: ValueSource | None) -> dict[str, Any]:
    is_input = isinstance(target, Parameter)
    kind = f"{target.kind.value} input" if isinstance(target, Parameter) else f"{target.type.value} attr"
    pair: dict[str, Any] = {
        "name": target.name,
        "kind": kind,
        "argument": None,
        "value": "",
        "evidence": "",
        "note": "",
    }
    if source is None:
        pair["value"] = "—"
        pair["note"] = "absent" if is_input else f"stays at {_value(getattr(target, 'default', None))}"
        return pair
    pair["evidence"] = source.evidence.value
    if source.argument is None:
        pair["value"] = "computed" if callable(source.value) else repr(source.value)
    else:
        argument = binding.schema.arguments[source.argument]
        pair["argument"] = f"{argument.type_text} {argument.name}"
    notes = []
    if source.hook is not None:
        notes.append("converted by a table" if hasattr(source.hook, "keys") else f"converted by {_name(source.hook)}")
    if source.conversion is Conversion.DTYPE:
        notes.append("as GE's number of the dtype")
    if source.numbers is Numbers.GE and "GE's own" not in source.reason:
        notes.append("GE's own number of a dtype")
    if source.conversion is Conversion.CONST:
        notes.append("as a Const")
    if source.argument is not None and source.value is not None:
        notes.append(f"None stands for {source.value!r}")
    if index is not None and index in binding.copied:
        notes.append("copied first: GE writes over it")
    if source.reason:
        notes.append(source.reason)
    pair["note"] = "; ".join(notes)
    return pair


def _call(call: AclnnCall, prototype: OpPrototype) -> dict[str, Any]:
    sides: dict[Part, Sequence[Parameter | Attr]] = {
        Part.INPUT: prototype.inputs,
        Part.ATTR: prototype.attrs,
        Part.OUTPUT: prototype.outputs,
    }
    return {
        "function": call.function,
        "declared": None if call.declared is None else call.declared.place,
        "source": call.source,
        "arguments": [
            {
                "parameter": f"{argument.type}{'' if argument.type.pointers else ' '}{argument.name}",
                "from": "null"
                if argument.part is Part.CONSTANT and argument.value is None
                else repr(argument.value)
                if argument.part is Part.CONSTANT
                else str(argument.value)
                if argument.part is Part.COMPUTED
                else f"{sides[argument.part][argument.index].name} ({argument.part.value})",
                "evidence": argument.evidence.value,
            }
            for argument in call.arguments
        ],
        "unused": list(call.unused),
        "dropped": list(call.dropped),
    }


def _returned(binding: Binding, position: int, source: ReturnSource) -> dict[str, Any]:
    returned = binding.schema.returns[position]
    output = binding.prototype.outputs[source.output].name if source.output is not None else "—"
    note = "computed from the arguments" if source.compute is not None else "no GE output: graphs do not have it"
    if source.output is not None:
        note = (
            "" if source.argument is None else f"the argument {binding.schema.arguments[source.argument].name} itself"
        )
    name = f"return {position}{f' {returned.name}' if returned.name else ''}"
    return {"return": name, "output": output, "evidence": source.evidence.value, "note": note}


def _value(value: Any) -> str:
    return value.ge_name if isinstance(value, DataType) else repr(value)


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", None) or repr(hook)
