"""Command ``doctor``: it checks that an installation and its operators work together, and proposes fixes.

Each module checks one subject and yields findings: ``installation``, ``caches``, ``packages`` (of operators),
``variables``, ``operators`` (the function, header and library of one), ``sources`` (calls in C++). ``messages`` explains known error messages of
programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ascend_graph.doctor.caches import caches
from ascend_graph.doctor.finding import Finding
from ascend_graph.doctor.installation import installation
from ascend_graph.doctor.messages import Diagnosis, diagnose, without_answer
from ascend_graph.doctor.operators import extension, named_operator
from ascend_graph.doctor.packages import packages
from ascend_graph.doctor.sources import sources
from ascend_graph.doctor.variables import variables
from ascend_graph.workers import answers, launcher_arguments

__all__ = ["Diagnosis", "Finding", "diagnose", "examine", "examine_operators", "without_answer"]


def examine(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check the installation that ``environment`` selects, without importing, compiling or writing anything."""
    yield from installation(environment)
    yield from caches()
    yield from packages(environment)
    yield from variables(environment)


def examine_operators(
    modules: Sequence[str], names: Sequence[str], environment: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield findings about the functions, headers and libraries of operators.

    Args:
        modules: Modules, ``.py`` files or libraries that define operators; they are imported in a separate process. A directory
            of C++ sources is read.
        names: Op types and aclnn functions, which are looked up in files; ``namespace::operator``, which needs that process.
        environment: The environment that selects operator packages.
    """
    for name in names:
        if "::" not in name:
            yield from named_operator(name, environment)
    loadable = []
    for module in modules:
        if Path(module).is_dir() and not (Path(module) / "__init__.py").exists():
            yield from sources(Path(module))
            continue
        findings = list(extension(Path(module))) if module.endswith(".so") else []
        yield from findings
        if not any(finding.is_wrong for finding in findings):
            loadable.append(module)
    operators = [name for name in names if "::" in name]
    if operators or any(not module.endswith(".so") for module in loadable):
        yield from _in_process(loadable, operators)


def _in_process(modules: Sequence[str], operators: Sequence[str]) -> Iterator[Finding]:
    """Yield the findings of a process that imports torch and the modules, on the host runtime without a CANN."""
    request = {"modules": list(modules), "operators": list(operators)}
    for line in answers([*launcher_arguments(), "-m", "ascend_graph.doctor"], request):
        if "died" not in line:
            yield Finding(**line)
        elif line["exit"] != 0:
            text = f"importing them {line['died']}"
            yield Finding(", ".join((*modules, *operators)), text, True, "ascend-graph doctor  # what it needs")
