"""Check of one program in all modes: its differences from the CPU, and their causes."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.fuzz import compare, deploy, modes
from benchmarks.fuzz.cases import generate_case
from benchmarks.fuzz.causes import cause_of
from benchmarks.fuzz.findings import FuzzFinding, FuzzTally
from benchmarks.fuzz.generate import generate
from benchmarks.fuzz.known import known_fault
from benchmarks.fuzz.minimize import minimized
from benchmarks.fuzz.programs import FuzzProgram, from_json, to_json
from benchmarks.fuzz.woven import generate_woven


def _error(error: BaseException) -> str:
    """Return the text of the error that a compiler's error wraps, with its innermost source line."""
    error = getattr(error, "inner_exception", None) or error
    frames = traceback.extract_tb(error.__traceback__)
    place = f" [{'/'.join(frames[-1].filename.split('/')[-2:])}:{frames[-1].lineno}]" if frames else ""
    return f"{type(error).__name__}: {str(error)[:1500]}{place}"


def name_of(program: FuzzProgram) -> str:
    """Return the item text that requests a program again."""
    return f"{'operator' if program.operators else 'program'} {program.seed}"


def _promised(
    actual: modes.ModeResult, wanted: modes.ModeResult, mode: str
) -> tuple[modes.ModeResult, modes.ModeResult]:
    """Return the parts of two results that a mode promises: an exported program has no gradients or views of its inputs."""
    if mode in ("export", "exported"):
        return compare.without_memory(actual, gradients=True), compare.without_memory(wanted, gradients=True)
    return (actual, wanted) if mode == "eager" else compare.without_lost_sharing(actual, wanted)


def run_mode(program: FuzzProgram, mode: str, expected: Sequence[modes.ModeResult]) -> tuple[int, FuzzFinding | None]:
    """Return the number of compared calls, and the first difference."""
    compared = 0
    if mode in modes.TRANSFORMS:
        try:
            expected = [modes.transformed(program, "cpu", mode)]
        except (RuntimeError, NotImplementedError, ValueError, IndexError, TypeError):
            return 0, None  # PyTorch has no rule for it
    try:
        for call, actual in modes.results(program, mode):
            compared += 1
            if found := compare.differs(program, mode, call, *_promised(actual, expected[call], mode)):
                return compared, FuzzFinding(name_of(program), mode, found[0], f"call {compared}: {found[1]}")
    except Exception as error:  # of whatever class a compiler raises
        return compared, FuzzFinding(name_of(program), mode, "raises", _error(error))
    return compared, None


def judge(program: FuzzProgram, finding: FuzzFinding, expected: Sequence[modes.ModeResult]) -> tuple[str, str]:
    """Return why a finding is not our fault, ``refused`` or ``known`` and the reason; empty if nothing explains it."""
    if finding.kind == "raises" and (cause := cause_of(finding.message, program)):
        return "refused", cause
    control = modes.CONTROLS.get(finding.mode)
    if control:
        _, same = run_mode(program, control, expected)
        if same is not None and same.kind == finding.kind:
            return (
                ("refused", "PyTorch's own tracing refuses it on the CPU")
                if same.kind == "raises"
                else ("known", "torch-traced")
            )
    if name := known_fault(program, finding):
        return "known", name
    device = modes.ON_DEVICE.get(finding.mode)
    if device and finding.kind == "raises" and not program.operators:
        _, same = run_mode(program, device, expected)
        if same is not None and same.key()[1:] == finding.key()[1:]:
            return "refused", "PyTorch's own tracing refuses it on the device"
    return "", ""


def check_program(
    program: FuzzProgram,
    which: Sequence[str],
    skip: frozenset[str] = frozenset(),
    starting: Callable[[str], None] = lambda mode: None,
) -> FuzzTally:
    """Run a program in the given modes and return the tally."""
    tally = FuzzTally(items=1)
    starting("cpu")
    expected = modes.cpu_results(program)
    for mode in which:
        if mode in skip:
            continue
        starting(mode)
        compared, finding = run_mode(program, mode, expected)
        tally.comparisons += compared
        if finding is None:
            continue
        control = f"control of {mode}"
        if control in skip:  # it died there, and PyTorch's own tracing with it
            tally.known["torch-traced"] += 1
            continue
        starting(control)
        why, reason = judge(program, finding, expected)
        if why == "refused":
            tally.refused[reason] += 1
        elif why == "known":
            tally.known[reason] += 1
        else:
            tally.findings.append(finding)
    return tally


def _program(item: str) -> FuzzProgram:
    """Return the program of an item: ``program 5``, ``woven 5``, ``operator 5``, ``gradient 5``, ``author 5`` are seeds, all else JSON."""
    kind, _, seed = item.partition(" ")
    if kind in ("program", "woven"):
        return (generate if kind == "program" else generate_woven)(int(seed))
    return generate_case(int(seed), kind) if kind in ("operator", "gradient", "author") else from_json(item)


def _registered(program: FuzzProgram) -> FuzzFinding | None:
    """Register the program's operators; return a finding if one is refused, else None."""
    for op in program.operators:
        try:
            deploy.register(op)
        except Exception as error:  # of whatever class registering raises
            return FuzzFinding(name_of(program), "registration", "raises", _error(error))
    return None


def work(
    items: Sequence[str], starting: Callable[[str], None], options: dict[str, Any]
) -> Callable[[int, frozenset[str]], FuzzTally]:
    """Build the package of all items' operators, and return a function that checks one item."""
    drawn = [_program(item) for item in items]
    ops = list({op.name: op for program in drawn for op in program.operators}.values())
    if ops:
        deploy.build_package(ops, Path(tempfile.mkdtemp(prefix="fuzz-")))
    torch.zeros(1, device="npu")
    modes.prepare()

    def check(at: int, skip: frozenset[str]) -> FuzzTally:
        program = drawn[at]
        starting("registration")
        refused = _registered(program)
        if refused is None:
            tally = check_program(program, options.get("modes") or modes.drawn(program), skip, starting)
        elif cause := cause_of(refused.message, program):
            tally = FuzzTally(items=1, refused=Counter([cause]))
        else:
            tally = FuzzTally(items=1, findings=[refused])
        kind = items[at].partition(" ")[0]
        tally.kind = kind if kind in ("program", "woven") else "operator"
        tally.findings = [replace(f, item=items[at]) for f in tally.findings]
        return tally

    return check


def minimize(
    items: Sequence[str], starting: Callable[[str], None], options: dict[str, Any]
) -> Callable[[int, frozenset[str]], FuzzTally]:
    """Return a function that shrinks an item that fails in one mode; its tally has the program as a finding."""
    prepared = work(items, starting, options)
    drawn = [_program(item) for item in items]
    (mode,) = options["modes"]

    def shrink(at: int, skip: frozenset[str]) -> FuzzTally:
        tally = prepared(at, skip)
        if not tally.findings:
            return tally
        wanted = tally.findings[0].key()
        found = minimized(drawn[at], lambda p: any(f.key() == wanted for f in check_program(p, [mode]).findings))
        return FuzzTally(items=1, findings=[replace(tally.findings[0], item=to_json(found))])

    return shrink
