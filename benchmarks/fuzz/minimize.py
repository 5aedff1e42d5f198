"""Minimizer of failing programs: fewer outputs, lines, arguments, calls, and plainer inputs, with the same failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.fuzz import modes
from benchmarks.fuzz.overlaps import NoOverlaps
from benchmarks.fuzz.programs import FuzzProgram, ProgramLine
from benchmarks.fuzz.settings import PLAIN

Fails = Callable[[FuzzProgram], bool]


def valid(program: FuzzProgram) -> bool:
    """Return whether the CPU accepts the program, and its values do not depend on the order of a kernel's writes."""
    try:
        with NoOverlaps():
            modes.cpu_results(program)
    except Exception:  # of whatever class PyTorch raises
        return False
    return True


def _names(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]\d+(?:_\d+)?\b", text))


def _renamed(text: str, old: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(old)}\b", new, text)


def _without_line(program: FuzzProgram, index: int, instead: str | None) -> FuzzProgram:
    """Return the program without a line; users of its values use another name, or are removed, too."""
    gone = set(program.nodes[index].targets)
    nodes: list[ProgramLine] = list(program.nodes[:index])
    for node in program.nodes[index + 1 :]:
        used = gone & (set(node.args) | _names(node.text))
        if used and instead is None:
            gone |= set(node.targets)
            continue
        text = node.text
        for name in used:
            text = _renamed(text, name, instead or "")
        nodes.append(ProgramLine(text, tuple(instead or a if a in gone else a for a in node.args), node.targets))
    outputs = []
    for output in program.outputs:
        used = gone & _names(output)
        if used and instead is None:
            continue
        renamed = output
        for name in used:
            renamed = _renamed(renamed, name, instead or "")
        outputs.append(renamed)
    return replace(program, nodes=tuple(nodes), outputs=tuple(outputs))


def _lines(program: FuzzProgram) -> Iterator[FuzzProgram]:
    half = len(program.nodes) // 2
    if half > 1:
        yield replace(program, nodes=program.nodes[half:])
        yield replace(program, nodes=program.nodes[:half])
    for index in reversed(range(len(program.nodes))):
        yield _without_line(program, index, None)
        node = program.nodes[index]
        for name in dict.fromkeys([*node.args, *_names(node.text)]):
            if node.targets:
                yield _without_line(program, index, name)


def _arguments(program: FuzzProgram) -> Iterator[FuzzProgram]:
    """Yield programs with an argument of an operator, or an attr, left out."""
    for index, node in enumerate(program.nodes):
        if not node.text.startswith("op"):
            continue
        for found in re.finditer(
            r", \w+=(?:\[[^\]]*\]|[^,()\[\]]+)(?=[,)])|\w+=(?:\[[^\]]*\]|[^,()\[\]]+), ", node.text
        ):
            text = node.text[: found.start()] + node.text[found.end() :]
            yield replace(
                program, nodes=(*program.nodes[:index], replace(node, text=text), *program.nodes[index + 1 :])
            )
        for name in _names(node.text) - {"op0"}:
            text = re.sub(rf"(?<=[(, ]){name}(?=[,)])", "None", node.text)
            yield replace(
                program, nodes=(*program.nodes[:index], replace(node, text=text), *program.nodes[index + 1 :])
            )


def _inputs(program: FuzzProgram) -> Iterator[FuzzProgram]:
    used = set().union(*(_names(n.line()) for n in program.nodes), *map(_names, program.outputs))
    for index, spec in enumerate(program.inputs):

        def changed(index: int = index, **fields: object) -> FuzzProgram:
            inputs = list(program.inputs)
            inputs[index] = replace(inputs[index], **fields)  # type: ignore[arg-type]
            return replace(program, inputs=tuple(inputs))

        if spec.name not in used and not any(other.alias == spec.name for other in program.inputs):
            yield replace(program, inputs=program.inputs[:index] + program.inputs[index + 1 :])
        if spec.alias:
            yield changed(alias="")
        if spec.layout != "plain":
            yield changed(layout="plain")
        if spec.grad:
            yield changed(grad=False)
        if spec.dtype != "float32":
            yield changed(dtype="float32")
        for axis in range(len(spec.sizes)):
            yield changed(sizes=spec.sizes[:axis] + spec.sizes[axis + 1 :])


def _calls(program: FuzzProgram) -> Iterator[FuzzProgram]:
    for index in range(len(program.sizes)):
        if len(program.sizes) > 1:
            yield replace(program, sizes=program.sizes[:index] + program.sizes[index + 1 :])
    for index, sizes in enumerate(program.sizes):
        for name, size in sizes.items():
            if size > 2:
                smaller = ({**sizes, name: 2}, {**sizes, name: size - 1})
                for other in smaller:
                    yield replace(program, sizes=(*program.sizes[:index], other, *program.sizes[index + 1 :]))
    if program.checkpoint:
        yield replace(program, checkpoint=False)
    for field in ("held", "owner", "exchanged", "grad_mode", "automatic", "captures", "ge", "older"):
        yield replace(program, setting=replace(program.setting, **{field: getattr(PLAIN, field)}))
    for name in program.setting.held:
        held = tuple(other for other in program.setting.held if other != name)
        yield replace(program, setting=replace(program.setting, held=held))
    for kind in ("captures", "ge"):
        for option in getattr(program.setting, kind):
            kept = tuple(other for other in getattr(program.setting, kind) if other != option)
            yield replace(program, setting=replace(program.setting, **{kind: kept}))
    named = {s for i in program.inputs for s in i.sizes if isinstance(s, str)}
    if any(set(s) - named for s in program.sizes):
        yield replace(program, sizes=tuple({k: v for k, v in s.items() if k in named} for s in program.sizes))


def _needed(program: FuzzProgram) -> FuzzProgram:
    """Return the program without lines whose values nothing uses, and without inputs that no line names."""
    used = set().union(*map(_names, program.outputs))
    nodes: list[ProgramLine] = []
    for node in reversed(program.nodes):
        if not node.targets or used & set(node.targets):
            used |= _names(node.line())
            nodes.insert(0, node)
    bases = {i.alias for i in program.inputs if i.name in used}
    inputs = tuple(i for i in program.inputs if i.name in used | bases)
    return replace(program, nodes=tuple(nodes), inputs=inputs)


def smaller(program: FuzzProgram) -> Iterator[FuzzProgram]:
    """Yield programs that are a step smaller, the largest steps first."""
    yield _needed(program)
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield replace(program, outputs=(output,))
        for index in range(len(program.outputs)):
            yield replace(program, outputs=program.outputs[:index] + program.outputs[index + 1 :])
    yield from _lines(program)
    yield from _inputs(program)
    yield from _arguments(program)
    yield from _calls(program)


def minimized(program: FuzzProgram, fails: Fails, tries: int = 400) -> FuzzProgram:
    """Return a smaller program that still fails; candidates that the CPU refuses are not tried."""
    left = tries
    shrunk = True
    while shrunk and left > 0:
        shrunk = False
        for candidate in smaller(program):
            if candidate == program or not candidate.outputs or not valid(candidate):
                continue
            left -= 1
            if fails(candidate):
                program, shrunk = candidate, True
                break
            if left <= 0:
                break
    return program
