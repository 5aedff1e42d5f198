"""Worker process that checks the operators of a module one after the other and writes its findings line by line.

``ascend-graph check`` starts it: if an operator crashes this process, a new process continues after that operator.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ascend_graph.doctor.messages import hint
from ascend_graph.workers import ModuleError, import_operators

if TYPE_CHECKING:
    from ascend_graph.registration.registered import RegisteredOp


def main(arguments: Sequence[str]) -> int:
    """Check the operators of a request (JSON) and write lines (JSON) to a file descriptor.

    The lines are ``{"begins": module}``, ``{"operators": […]}``, and for each of them ``{"start": name}`` and ``{"report": {…}}``.
    """
    request = json.loads(arguments[0])
    with os.fdopen(int(arguments[1]), "w", buffering=1) as lines:
        _say(lines, {"begins": request["module"]})
        try:
            import torch  # noqa: F401 - entry points of other wheels register theirs

            from ascend_graph.registration.registered import registered_by

            names, own = registered_by(lambda: import_operators(request["module"]))
        except ModuleError as error:
            _say(lines, {"error": str(error)})
            return 1
        except Exception as error:  # whatever the module does
            where = traceback.extract_tb(error.__traceback__)[-1]
            known = hint(error)
            said = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
            _say(lines, {"error": f"{said}\n{known}" if known else said})
            return 1
        _check(lines, request, own, names.get("REFERENCES", {}), names.get("SAMPLES", {}))
    return 0


def _names(op: RegisteredOp) -> set[str]:
    """Return the names of an operator: op type, namespace::name with and without its overload, and as torch prints it."""
    return {op.op_type, op.overload.name(), op.overload._schema.name, str(op.overload)}


def _say(lines: TextIO, what: dict[str, Any]) -> None:
    lines.write(json.dumps(what) + "\n")


def _check(
    lines: TextIO,
    request: dict[str, Any],
    own: Sequence[RegisteredOp],
    references: Mapping[str, Callable[..., Any]],
    samples: Mapping[str, Sequence[Any]],
) -> None:
    from ascend_graph.checks.calls.samples import SampleError
    from ascend_graph.checks.opcheck import check_names, opcheck
    from ascend_graph.checks.report import CheckReport, CheckResult, CheckState
    from ascend_graph.errors import AscendGraphError
    from ascend_graph.registration.registered import registered_ops

    try:
        check_names(request["checks"] or None)
    except SampleError as error:
        _say(lines, {"unknown": str(error)})
        return
    found = {str(op.overload): op for op in registered_ops()}
    named = request["operators"]
    chosen = {str(op.overload): op for op in own}
    if named:
        chosen = {name: op for name, op in found.items() if _names(op) & set(named)}
    missing = [name for name in named if not any(name in _names(op) for op in chosen.values())]
    if missing:
        _say(lines, {"operators": [], "registered": list(found), "missing": missing})
        return
    for what, names in (("REFERENCES", references), ("SAMPLES", samples)):
        if unused := [name for name in names if not any(name in _names(op) for op in found.values())]:
            text = (
                f"{what} of {request['module']} names {', '.join(unused)}, which nothing registers; expected one of: "
            )
            print(f"{text}{', '.join(found)}", file=sys.stderr)
    _say(lines, {"operators": list(chosen), "registered": list(found)})
    for name, op in chosen.items():
        if name in request["done"]:
            continue
        _say(lines, {"start": name})
        try:
            report = opcheck(
                op,
                next((samples[key] for key in samples if key in _names(op)), None),
                reference=next((references[key] for key in references if key in _names(op)), None),
                checks=request["checks"] or None,
                count=request["count"],
                seed=request["seed"],
                raise_exception=False,
            )
        except AscendGraphError as error:
            report = CheckReport(name, (CheckResult("samples", CheckState.FAILED, message=str(error)),))
        _say(lines, {"report": report.as_dict()})


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
