"""``doctor``: what of an installation and of operators works together, and the line that mends what does not.

Each part looks at one thing and yields findings: ``installation``, ``caches``, ``packages`` (of operators), ``variables``,
``operators`` (what serves one). ``messages`` is the table of what programs print when these do not go together.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ascend_graph.checks.doctor.caches import caches
from ascend_graph.checks.doctor.finding import Finding
from ascend_graph.checks.doctor.installation import installation
from ascend_graph.checks.doctor.messages import Diagnosis, diagnose, without_answer
from ascend_graph.checks.doctor.operators import extension, named_operator
from ascend_graph.checks.doctor.packages import packages
from ascend_graph.checks.doctor.variables import variables
from ascend_graph.checks.running import launcher_arguments

__all__ = ["Diagnosis", "Finding", "diagnose", "examine", "examine_operators", "without_answer"]


def examine(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the installation that ``environment`` selects. Nothing is imported, compiled or written."""
    yield from installation(environment)
    yield from caches()
    yield from packages(environment)
    yield from variables(environment)


def examine_operators(
    modules: Sequence[str], names: Sequence[str], environment: Mapping[str, str]
) -> Iterator[Finding]:
    """What serves operators.

    Args:
        modules: Modules, ``.py`` files or libraries that define operators; they are imported in a process of their own.
        names: Op types and aclnn functions, which are looked up in files; ``namespace::operator``, which needs that process.
        environment: What selects operator packages.
    """
    for name in names:
        if "::" not in name:
            yield from named_operator(name, environment)
    loadable = []
    for module in modules:
        findings = list(extension(Path(module))) if module.endswith(".so") else []
        yield from findings
        if not any(finding.is_wrong for finding in findings):
            loadable.append(module)
    operators = [name for name in names if "::" in name]
    if operators or any(not module.endswith(".so") for module in loadable):
        yield from _in_process(loadable, operators)


def _in_process(modules: Sequence[str], operators: Sequence[str]) -> Iterator[Finding]:
    """The findings of a process that imports torch and the modules, on the host runtime where there is no CANN."""
    request = json.dumps({"modules": list(modules), "operators": list(operators)})
    reading, writing = os.pipe()
    command = [sys.executable, *launcher_arguments(), "-m", "ascend_graph.checks.doctor", request, str(writing)]
    with subprocess.Popen(command, pass_fds=(writing,), stdout=sys.stderr) as process:
        os.close(writing)
        with os.fdopen(reading) as lines:
            for line in lines:
                yield Finding(**json.loads(line))
    if process.returncode != 0:
        how = (
            f"by {signal.Signals(-process.returncode).name}" if process.returncode < 0 else f"with {process.returncode}"
        )
        text = f"the process that imports them ended {how}"
        yield Finding(", ".join((*modules, *operators)), text, True, "ascend-graph doctor  # what it needs")
