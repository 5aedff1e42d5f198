"""Command that registers the operators of a repository: ``adopt``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_graph.cli.common import counted, format_option, print_diagnostics, print_json, terminal

if TYPE_CHECKING:
    from ascend_graph.adoption import AdoptionReport


@click.command(short_help="Write the module that registers a repository's operators.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The module to write; <directory>_operators.py in the current directory by default.",
)
@click.option("--tests/--no-tests", default=True, show_default=True, help="Write test_<module>.py next to it.")
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if the module differs from the sources.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@format_option("text", "json")
def adopt(directory: Path, output: Path | None, tests: bool, check: bool, as_json: bool, output_format: str) -> None:
    """Write one Python module that registers the operators of a repository, from its sources.

    It reads TORCH_LIBRARY schemas, functions that pybind11 binds, op-plugin's YAML, kernels with their aclnn calls, meta
    functions, torch.library in Python, converters, OpDefs, REG_OPs and aclnn headers. Nothing is compiled, and torch is not needed. What the sources do not state stays a
    line to complete. Run again, it keeps what you changed.

    The exit status is 1 with --check if the module is missing or drifted.
    """
    from ascend_graph.adoption import adopt as run
    from ascend_graph.adoption.adopt import default_output

    report = run(directory, output or default_output(directory), write=not check, tests=tests)
    if as_json or output_format == "json":
        print_json(report.as_json())
    else:
        _show(report, written=not check)
    if check and report.drifted:
        sys.exit(1)


def _show(report: AdoptionReport, *, written: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    counts = report.as_json()
    console = terminal()
    console.print(
        f"{counted(counts['operators'], 'operator')}: {counts['by_names']} registered by names, {counts['with_arguments']} with arguments, "
        f"{len(report.undecided)} undecided, {len(report.impossible)} impossible; {counted(report.lines_ours, 'line')} for "
        f"{report.lines_theirs} of theirs; {report.seconds:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    if not report.decisions:
        console.print(_nothing(report), highlight=False, soft_wrap=True)
    table = Table(title_justify="left")
    for heading in ("operator", "state", "why", "defined at"):
        table.add_column(heading, overflow="fold")
    for one in (*report.undecided, *report.impossible):
        table.add_row(one.name, one.state.value, escape(one.reason), escape(one.place))
    if table.row_count:
        console.print(table)
    if report.undecided:
        console.print(
            f"complete what is undecided in {report.output}: its calls are comments there, with … for what is missing",
            highlight=False,
            soft_wrap=True,
        )
    for label, names in (
        ("changed", report.merged.changed),
        ("kept, as you changed it", report.merged.kept),
        ("kept, though the sources now say something else: compare it with what follows", report.merged.outdated),
        ("not written again, as you removed it", report.merged.removed),
        ("no longer in the sources", [one for one in report.merged.gone if one not in report.merged.orphaned]),
        ("no longer in the sources, and kept, as you changed it: delete its region", report.merged.orphaned),
    ):
        if names and (label != "changed" or not written):
            console.print(f"{label}: {', '.join(names)}", highlight=False, soft_wrap=True)
        for text in names.values() if isinstance(names, dict) else ():
            console.print(escape(text), highlight=False, soft_wrap=True)
    print_diagnostics(report.diagnostics)
    if written:
        also = f" and {report.tests}" if report.tests is not None else ""
        console.print(f"wrote {report.output}{also}", highlight=False, soft_wrap=True)
    else:
        console.print(_drift(report), highlight=False)


def _drift(report: AdoptionReport) -> str:
    merged = report.merged
    if merged.orphaned and not (merged.changed or merged.outdated or len(merged.gone) > len(merged.orphaned)):
        return "drifted: delete what is no longer in the sources"
    return "drifted: run adopt without --check" if report.drifted else "up to date"


def _nothing(report: AdoptionReport) -> str:
    """Return why a repository has no operator to register, and what registers what it has."""
    text = (
        f"{report.root}: defines no operator; expected TORCH_LIBRARY, torch.library, functions of tensors in "
        "PYBIND11_MODULE, or op-plugin's YAML. Methods of classes are not read: bind a function that takes the tensors. "
    )
    if report.prototypes:
        return f"{text}It has {counted(report.prototypes, 'prototype')}: build the package, and write ascend_graph.register_package(…)"
    return f"{text}Operators of torch_npu that its Python calls are registered by torch_npu"


COMMANDS = (adopt,)
