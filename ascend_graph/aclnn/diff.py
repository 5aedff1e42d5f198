"""Differences between two sets of aclnn functions, with their effect on callers."""

from __future__ import annotations

from collections.abc import Iterable

from ascend_graph.aclnn.model import AclnnFunction
from ascend_graph.sources.change import Effect, SourceChange


def compare(old: Iterable[AclnnFunction], new: Iterable[AclnnFunction]) -> list[SourceChange]:
    """Return the changes from ``old`` to ``new``, sorted by name; the first declaration of a function counts.

    A change of parameters breaks the callers, because they pass parameters by position.

    >>> from ascend_graph.aclnn import parse_text
    >>> text = "int aclnnAbsGetWorkspaceSize(const aclTensor *x, aclTensor *out, uint64_t *size, aclOpExecutor **e);"
    >>> later = text.replace("aclTensor *out", "double p, aclTensor *out")
    >>> for change in compare(parse_text(text).functions, parse_text(later).functions):
    ...     print(change.effect.value, change.text)
    breaks parameter 2 is new: double p
    """
    before, after = _by_name(old), _by_name(new)
    changes: list[SourceChange] = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            changes.append(SourceChange(name, Effect.BREAKS, "the function is gone"))
        elif name not in before:
            changes.append(SourceChange(name, Effect.EXTENDS, "the function is new"))
        elif before[name] != after[name]:
            changes += (SourceChange(name, effect, text) for effect, text in _changes(before[name], after[name]))
    return changes


def _by_name(functions: Iterable[AclnnFunction]) -> dict[str, AclnnFunction]:
    found: dict[str, AclnnFunction] = {}
    for function in functions:
        found.setdefault(function.name, function)
    return found


def _changes(old: AclnnFunction, new: AclnnFunction) -> list[tuple[Effect, str]]:
    changes: list[tuple[Effect, str]] = []
    before = {parameter.name: n for n, parameter in enumerate(old.parameters)}
    after = {parameter.name: n for n, parameter in enumerate(new.parameters)}
    gone = [p for p in old.parameters if p.name not in after]
    come = [p for p in new.parameters if p.name not in before]
    renamed = {}
    for parameter in gone:
        position = before[parameter.name]
        other = new.parameters[position] if position < len(new.parameters) else None
        if other is not None and other in come and other.type == parameter.type:
            renamed[parameter.name] = other.name
            changes.append((Effect.CHANGES, f"parameter {position + 1}, {parameter}, is called {other.name}"))
    for parameter in gone:
        if parameter.name not in renamed:
            changes.append((Effect.BREAKS, f"parameter {before[parameter.name] + 1} is gone: {parameter}"))
    for parameter in come:
        if parameter.name not in renamed.values():
            changes.append((Effect.BREAKS, f"parameter {after[parameter.name] + 1} is new: {parameter}"))
    kept = [name for name in before if name in after]
    if kept != [name for name in after if name in before]:
        changes.append((Effect.BREAKS, f"the parameters have another order: {', '.join(after)}"))
    for name in kept:
        was, now = old.parameters[before[name]], new.parameters[after[name]]
        if was.type != now.type:
            same = (was.type.base, was.type.pointers) == (now.type.base, now.type.pointers)
            effect = Effect.CHANGES if same else Effect.BREAKS
            changes.append((effect, f"{name} was {was.type} and is {now.type}"))
        if was.direction is not now.direction:
            changes.append((Effect.CHANGES, f"{name} was {was.direction.value} and is {now.direction.value}"))
        if was.optional and not now.optional:
            changes.append((Effect.BREAKS, f"{name} was optional and is required"))
        elif now.optional and not was.optional:
            changes.append((Effect.EXTENDS, f"{name} is optional now"))
        if was.default != now.default and was.default and now.default:
            changes.append((Effect.CHANGES, f"{name} had the default {was.default}, now {now.default}"))
    return changes
