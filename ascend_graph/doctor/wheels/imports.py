"""Imports of a wheel's modules and entry points, each in a process of its own on the host runtime."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.workers import answers, launcher_arguments


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Result of one import."""

    #: Module, or ``module:object`` of an entry point.
    target: str
    #: State: ``imported``, ``failed`` or ``died``.
    state: str
    #: Error in one line, or how the process ended.
    error: str
    #: Operators that the import registered with PyTorch.
    operators: tuple[str, ...] = ()


def try_imports(root: Path, targets: Sequence[str], *, time_limit: float) -> Iterator[ImportResult]:
    """Import modules and entry points from a wheel's directory, and yield each result.

    This executes code of the wheel. A process that crashes or exceeds the time limit ends that import alone.
    """
    for target in dict.fromkeys(targets):
        arguments = [*launcher_arguments(on_host=True), "-m", "ascend_graph.doctor.wheels.imports"]
        request = {"root": str(root.resolve()), "target": target}
        answer: dict[str, object] | None = None
        for said in answers(arguments, request, limit=time_limit):
            if "state" in said:
                answer = said
            elif "died" in said and answer is None:
                answer = {"state": "died", "error": said["died"], "operators": ()}
        assert answer is not None
        operators = tuple(map(str, answer["operators"]))  # type: ignore[call-overload]
        yield ImportResult(target, str(answer["state"]), str(answer["error"]), operators)


def main(arguments: Sequence[str]) -> int:
    """Import the target of a request (JSON) and write the result as one line (JSON) to a file descriptor."""
    request = json.loads(arguments[0])
    sys.path.insert(0, request["root"])
    module, _, attribute = request["target"].partition(":")
    with os.fdopen(int(arguments[1]), "w", buffering=1) as lines:
        lines.write(json.dumps({"begins": module}) + "\n")  # from here on the time limit counts
        before = _registered()
        state, error = "imported", ""
        try:
            found: object = importlib.import_module(module)
            for name in filter(None, attribute.split(".")):
                found = getattr(found, name)
        except (Exception, SystemExit) as problem:  # whatever the module does
            state, error = "failed", f"{type(problem).__name__}: {problem}".splitlines()[0]
        operators = sorted(_registered() - before)
        lines.write(json.dumps({"state": state, "error": error, "operators": operators}) + "\n")
    return 0


def _registered() -> set[str]:
    """Return the names of PyTorch's operators; empty if PyTorch has not been imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        return set()
    return set(torch._C._dispatch_get_all_op_names())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
