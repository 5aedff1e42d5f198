"""Survey of wheels for the command line: which targets are wheels, and the tables of their facts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph.cli.common import print_json, terminal

if TYPE_CHECKING:
    from ascend_graph.doctor.wheels import ImportResult, LibraryFacts, PackageFacts, WheelSurvey

#: Number of missing symbols that a table names; ``--format json`` has all of them.
_NAMED = 40


def names_a_wheel(target: str) -> bool:
    """Return whether a target of ``survey`` is a wheel instead of a checkout's directory."""
    path = Path(target)
    return not path.is_dir() or any(path.glob("*.dist-info"))


def survey_wheels(wheels: Sequence[str], *, imports: bool, time_limit: float, output_format: str) -> None:
    """Print the facts about wheels, and the results of their imports if they are asked for."""
    from ascend_graph.doctor.wheels import AvailableSymbols, opened, survey_wheel, try_imports

    machine, printed = AvailableSymbols(), []
    for wheel in wheels:
        with opened(wheel) as files:
            found = survey_wheel(files, machine)
            targets = [*found.modules, *(value for _, _, value in found.entry_points)] if imports else []
            results = list(try_imports(files.root, targets, time_limit=time_limit))
        if output_format == "json":
            imported = {"imports": [_import_json(one) for one in results]} if imports else {}
            printed.append({**found.as_json(), **imported})
        else:
            _print(found, results)
    if output_format == "json":
        print_json(printed)


def _import_json(one: ImportResult) -> dict[str, Any]:
    return {"target": one.target, "state": one.state, "error": one.error, "operators": list(one.operators)}


def _print(found: WheelSurvey, results: Sequence[ImportResult]) -> None:
    loadable = sum(library.loads for library in found.libraries)
    have = f"{loadable} of {len(found.libraries)} libraries have all they need, {len(found.missing)} symbols missing"
    click.echo(f"{found.name} {found.version}: {have if found.libraries else 'it has no native libraries'}")
    rows = [_library_row(role, libraries) for role, libraries in _by_role(found.libraries).items()]
    _table("native libraries", ("role", "libraries", "complete", "missing", "other"), rows)
    for sentence in found.python:
        click.echo(f"{found.name}: {sentence}")
    _table("operator packages", ("package", "operators", "functions", "kernels"), map(_package_row, found.packages))
    missing = _readable(found.missing)
    more = f", {len(missing) - _NAMED} more with --format json" if len(missing) > _NAMED else ""
    rows = [(str(count), name) for name, count in list(missing.items())[:_NAMED]]
    _table(f"in neither the wheel nor the host runtime{more}", ("libraries", "symbol"), rows)
    _table("entry points", ("group", "name", "object"), found.entry_points)
    _table(
        "imports",
        ("target", "state", "operators", "error"),
        ((one.target, one.state, str(len(one.operators)), one.error) for one in results),
    )


def _by_role(libraries: Sequence[LibraryFacts]) -> dict[str, list[LibraryFacts]]:
    found: dict[str, list[LibraryFacts]] = {}
    for library in libraries:
        found.setdefault(library.role, []).append(library)
    return found


def _library_row(role: str, libraries: Sequence[LibraryFacts]) -> tuple[str, ...]:
    missing = {symbol for library in libraries for symbol in library.missing}
    of_torch = {symbol for library in libraries for symbol in library.missing_torch or ()}
    absent = {name for library in libraries for name in library.missing_libraries}
    other = sorted({sentence for library in libraries for sentence in library.abi})
    other += [f"not found: {', '.join(sorted(absent))}"] if absent else []
    other += [f"{len(of_torch)} symbols of another PyTorch or torch_npu"] if of_torch else []
    complete = sum(library.loads for library in libraries)
    return role, str(len(libraries)), str(complete), str(len(missing)), "; ".join(other)


def _package_row(package: PackageFacts) -> tuple[str, ...]:
    operators = sorted({name for names in package.operators.values() for name in names} | {*package.prototypes})
    binaries = ", ".join(f"{count} for {soc}" for soc, count in package.binaries.items())
    kernels = [f"{len(package.sources)} sources"] if package.sources else []
    kernels += [f"binaries: {binaries}"] if binaries else []
    return package.path, ", ".join(operators), str(len(package.functions)), "; ".join(kernels) or "none"


def _readable(missing: dict[str, int]) -> dict[str, int]:
    from ascend_graph.doctor.wheels import readable

    found: dict[str, int] = {}
    for symbol, count in missing.items():  # overloads have one name
        found[readable(symbol)] = max(count, found.get(readable(symbol), 0))
    return found


def _table(title: str, headings: Sequence[str], rows: Any) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    if table.row_count:
        terminal().print(table)
