"""Differences between two sets of prototypes, with their effect on callers of the raw ops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ascend_graph.prototypes.model import Attr, OpPrototype, Parameter, ParameterKind, Subgraph
from ascend_graph.prototypes.writer import default_text
from ascend_graph.sources.change import Effect, SourceChange

__all__ = ["Effect", "SourceChange", "compare"]


def compare(old: Iterable[OpPrototype], new: Iterable[OpPrototype]) -> list[SourceChange]:
    """Return the changes from ``old`` to ``new``, sorted by op type; the first definition of an op counts.

    >>> from ascend_graph.prototypes import parse_text
    >>> old = parse_text("REG_OP(A).INPUT(x, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(A)").prototypes
    >>> new = parse_text("REG_OP(A).INPUT(x, TensorType({DT_FLOAT})).ATTR(n, Int, 1).OP_END_FACTORY_REG(A)").prototypes
    >>> [(change.effect.value, change.text) for change in compare(old, new)]
    [('extends', 'attr n: Int = 1 is new')]
    """
    before, after = _by_name(old), _by_name(new)
    changes: list[SourceChange] = []
    for op_type in sorted(before.keys() | after.keys()):
        if op_type not in after:
            changes.append(SourceChange(op_type, Effect.BREAKS, "the op is gone"))
        elif op_type not in before:
            changes.append(SourceChange(op_type, Effect.EXTENDS, "the op is new"))
        elif before[op_type] != after[op_type]:
            changes += (
                SourceChange(op_type, effect, text) for effect, text in _changes(before[op_type], after[op_type])
            )
    return changes


def _by_name(prototypes: Iterable[OpPrototype]) -> dict[str, OpPrototype]:
    found: dict[str, OpPrototype] = {}
    for prototype in prototypes:
        found.setdefault(prototype.op_type, prototype)
    return found


_Found = list[tuple[Effect, str]]


def _changes(old: OpPrototype, new: OpPrototype) -> _Found:
    changes = _input_changes(old.inputs, new.inputs)
    changes += _output_changes(old.outputs, new.outputs)
    changes += _attr_changes(old, new)
    if old.graphs != new.graphs:
        changes.append((Effect.BREAKS, f"subgraphs {_names(old.graphs)} became {_names(new.graphs)}"))
    if old.symbols != new.symbols and not changes:
        changes.append((Effect.CHANGES, "the DATATYPE declarations differ"))
    if old.in_place != new.in_place:
        changes.append((Effect.BREAKS, f"written in place: {_list(old.in_place)}, now {_list(new.in_place)}"))
    return changes


def _input_changes(old: Sequence[Parameter], new: Sequence[Parameter]) -> _Found:
    changes: _Found = []
    before, after = {p.name: p for p in old}, {p.name: p for p in new}
    for parameter in old:
        if parameter.name not in after:
            changes.append((Effect.BREAKS, f"input {parameter.name} is gone"))
    kept = [p.name for p in old if p.name in after]
    if kept != [p.name for p in new if p.name in before]:
        order = ", ".join(p.name for p in new)
        changes.append((Effect.BREAKS, f"the inputs have another order: {order}"))
    for parameter in new:
        if parameter.name not in before:
            # Raw ops take inputs by position and without defaults: a further one breaks calls even if it is optional.
            changes.append((Effect.BREAKS, f"{parameter.kind.value} input {parameter.name} is new"))
        else:
            changes += _parameter_changes("input", before[parameter.name], parameter)
    return changes


def _output_changes(old: Sequence[Parameter], new: Sequence[Parameter]) -> _Found:
    changes: _Found = []
    if [p.name for p in old] != [p.name for p in new]:
        changes.append((Effect.BREAKS, f"the outputs {_names(old)} became {_names(new)}"))
    before = {p.name: p for p in old}
    for parameter in new:
        if parameter.name in before:
            changes += _parameter_changes("output", before[parameter.name], parameter)
    return changes


def _parameter_changes(side: str, old: Parameter, new: Parameter) -> _Found:
    changes: _Found = []
    if old.kind is not new.kind:
        eased = side == "input" and old.kind is ParameterKind.REQUIRED and new.kind is ParameterKind.OPTIONAL
        effect = Effect.EXTENDS if eased else Effect.BREAKS
        changes.append((effect, f"{side} {old.name} was {old.kind.value} and is {new.kind.value}"))
    lost = [dtype.ge_name for dtype in old.dtypes if dtype not in new.dtypes]
    gained = [dtype.ge_name for dtype in new.dtypes if dtype not in old.dtypes]
    if lost:
        changes.append((Effect.BREAKS, f"{side} {old.name} no longer takes {', '.join(lost)}"))
    if gained:
        changes.append((Effect.EXTENDS, f"{side} {old.name} also takes {', '.join(gained)}"))
    if (old.symbol, old.promote, old.list_type) != (new.symbol, new.promote, new.list_type):
        changes.append((Effect.CHANGES, f"{side} {old.name}: its dtype depends on other parameters in another way"))
    return changes


def _attr_changes(old: OpPrototype, new: OpPrototype) -> _Found:
    changes: _Found = []
    before, after = {attr.name: attr for attr in old.attrs}, {attr.name: attr for attr in new.attrs}
    for attr in old.attrs:
        if attr.name not in after:
            changes.append((Effect.BREAKS, f"attr {attr.name} is gone"))
    for attr in new.attrs:
        earlier = before.get(attr.name)
        if earlier is None:
            effect = Effect.BREAKS if attr.required else Effect.EXTENDS
            changes.append((effect, f"{'required ' if attr.required else ''}attr {_declared(attr)} is new"))
        elif earlier.type is not attr.type:
            changes.append((Effect.BREAKS, f"attr {attr.name} was {earlier.type.value} and is {attr.type.value}"))
        elif earlier.required != attr.required:
            effect = Effect.BREAKS if attr.required else Effect.EXTENDS
            changes.append((effect, f"attr {attr.name} is now {'required' if attr.required else 'optional'}"))
        elif earlier != attr:
            changes.append(
                (Effect.CHANGES, f"attr {attr.name} had the default {default_text(earlier)}, now {default_text(attr)}")
            )
    return changes


def _declared(attr: Attr) -> str:
    return f"{attr.name}: {attr.type.value}" + ("" if attr.required else f" = {default_text(attr)}")


def _names(items: Sequence[Parameter | Subgraph]) -> str:
    return _list([item.name for item in items])


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
