"""Command ``ascend-graph``. Its commands only read arguments and print; the called modules do the work.

A new command is a function with ``@main.command()`` that imports its module inside, so that no command pays for
another's imports. ``generating`` has the commands that write sources, ``checking`` those that check operators, and
``building`` those that build projects.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph import __version__
from ascend_graph.cli import adopting, building, checking, generating
from ascend_graph.cli.common import (
    PATHS,
    CommandGroup,
    exit_on_errors,
    format_option,
    print_diagnostics,
    print_json,
    read_paths,
    terminal,
)

if TYPE_CHECKING:
    from rich.table import Table

    from ascend_graph.aclnn import AclnnFunction
    from ascend_graph.prototypes import OpPrototype


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ascend-graph")
def main() -> None:
    """Register, generate, build and check custom Ascend operators from their REG_OP prototypes.

    The exit status is 0 on success, 1 if something failed or is refused, 2 if the command line is wrong.

    \b
    ascend-graph doctor                    what does not fit together here
    ascend-graph doctor --message "TEXT"   what an error message means
    ascend-graph run script.py             a program without an NPU
    """


for _command in (*generating.COMMANDS, *adopting.COMMANDS, *checking.COMMANDS, *building.COMMANDS):
    main.add_command(_command)


@main.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash, in ~/.bashrc:  eval "$(ascend-graph completion bash)"
    zsh, in ~/.zshrc:    eval "$(ascend-graph completion zsh)"
    fish:                ascend-graph completion fish > ~/.config/fish/completions/ascend-graph.fish
    """
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None  # the choices are click's own
    click.echo(complete(main, {}, "ascend-graph", "_ASCEND_GRAPH_COMPLETE").source())


@main.command(short_help="List the prototypes and aclnn functions of sources.")
@PATHS
@format_option("table", "json")
def parse(paths: tuple[Path, ...], output_format: str) -> None:
    """Read the prototypes and aclnn functions of headers, directories, op_host/*_def.cpp and msOpGen JSON files.

    The exit status is 1 if anything could not be read.
    """
    result = read_paths(paths)
    if output_format == "json":
        print_json(result.as_json())
    else:
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=f"{len(result.prototypes)} prototypes", title_justify="left")
        for heading in ("op", "inputs", "outputs", "attrs", "defined at"):
            table.add_column(heading, overflow="fold")
        for prototype in result.prototypes:
            table.add_row(
                prototype.op_type,
                ", ".join(p.name for p in prototype.inputs),
                ", ".join(p.name for p in prototype.outputs),
                ", ".join(attr.name for attr in prototype.attrs),
                escape(prototype.place),
            )
        if result.prototypes or not result.functions:
            terminal().print(table)
        if result.functions:
            terminal().print(_functions_table(result.functions))
        print_diagnostics(result.diagnostics)
    exit_on_errors(result)
    if not (result.prototypes or result.functions):
        where = ", ".join(map(str, paths))
        raise click.ClickException(f"no operator is defined in {where}; expected a REG_OP or an aclnn function")


@main.command(short_help="Show one prototype, or one aclnn function.")
@click.argument("op_type", metavar="OP")
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A header or directory to read first; may be repeated. Installed operator packages are searched anyway.",
)
@format_option("text", "json", "reg-op")
def show(op_type: str, sources: tuple[Path, ...], output_format: str) -> None:
    """Show one prototype with its inputs, outputs, attrs and raw op, or one aclnn function."""
    from ascend_graph.prototypes import Catalog

    catalog = Catalog()
    if op_type.startswith("aclnn") and op_type not in catalog:
        _show_function(op_type, sources, output_format)
        return
    for source in sources:
        _load_quietly(catalog, source)
    prototype = catalog.find(op_type)
    if output_format == "json":
        from ascend_graph.prototypes.json_format import prototype_as_json

        print_json(prototype_as_json(prototype))
    elif output_format == "reg-op":
        from ascend_graph.prototypes.writer import to_reg_op

        click.echo(to_reg_op(prototype))
    else:
        _show(prototype)


@main.command(short_help="Compare two sets of prototypes and aclnn functions.")
@click.argument("old", type=click.Path(exists=True, path_type=Path))
@click.argument("new", type=click.Path(exists=True, path_type=Path))
@format_option("table", "json")
def diff(old: Path, new: Path, output_format: str) -> None:
    """Compare two sets of prototypes and aclnn functions, such as those of two CANN versions.

    The exit status is 1 if callers of the old raw ops or functions break.
    """
    from ascend_graph.aclnn.diff import compare as compare_functions
    from ascend_graph.prototypes.diff import compare
    from ascend_graph.sources.change import Effect

    before, after = read_paths([old]), read_paths([new])
    changes = compare(before.prototypes, after.prototypes)
    changes += compare_functions(before.functions, after.functions)
    breaking = [change for change in changes if change.effect is Effect.BREAKS]
    if output_format == "json":
        found = [{"op": c.op_type, "effect": c.effect.value, "change": c.text} for c in changes]
        print_json({"changes": found, "breaking": len(breaking)})
    else:
        from rich.markup import escape
        from rich.table import Table

        styles = {Effect.BREAKS: "red", Effect.CHANGES: "yellow", Effect.EXTENDS: "green"}
        table = Table(title=f"{len(changes)} changes, {len(breaking)} break callers", title_justify="left")
        for heading in ("op", "effect", "change"):
            table.add_column(heading, overflow="fold")
        for change in changes:
            table.add_row(change.op_type, change.effect.value, escape(change.text), style=styles[change.effect])
        terminal().print(table)
        print_diagnostics((*before.errors, *after.errors))
    exit_on_errors(before)
    exit_on_errors(after)
    if breaking:
        sys.exit(1)


def _load_quietly(catalog: Any, source: Path) -> None:
    import warnings

    from ascend_graph.prototypes import PrototypeWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrototypeWarning)
        catalog.load(source)
    for warning in caught:
        click.echo(str(warning.message), err=True)


def _show(prototype: OpPrototype) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ascend_graph.prototypes.writer import default_text
    from ascend_graph.raw_ops.description import describe, signature_text

    console = terminal()
    console.print(f"[bold]{prototype.op_type}[/bold]  {escape(prototype.place)}", highlight=False)
    if prototype.doc:
        console.print(escape(prototype.doc), style="dim", highlight=False)
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("", "name", "kind", "dtypes or default"):
        table.add_column(heading, overflow="fold")
    for side, parameters in (("input", prototype.inputs), ("output", prototype.outputs)):
        for parameter in parameters:
            dtypes = ", ".join(dtype.ge_name.removeprefix("DT_") for dtype in parameter.dtypes)
            if parameter.symbol:
                dtypes = f"{parameter.symbol}: {dtypes}"
            if side == "output" and parameter.name in prototype.in_place:
                dtypes += " (written in place)"
            if parameter.unknown_types:
                dtypes += f" (not understood: {', '.join(parameter.unknown_types)})"
            table.add_row(side, parameter.name, parameter.kind.value, escape(dtypes))
    for attr in prototype.attrs:
        value = "required" if attr.required else f"= {default_text(attr)}"
        table.add_row("attr", attr.name, attr.type.value, escape(value))
    for graph in prototype.graphs:
        table.add_row("graph", graph.name, graph.kind.value, "")
    console.print(table)
    console.print(f"\nraw op: {escape(signature_text(describe(prototype)))}", highlight=False, soft_wrap=True)


def _show_function(name: str, sources: tuple[Path, ...], output_format: str) -> None:
    import warnings

    from rich.markup import escape
    from rich.table import Table

    from ascend_graph.aclnn import AclnnCatalog, AclnnWarning
    from ascend_graph.aclnn.json_format import function_as_json

    catalog = AclnnCatalog()
    for source in sources:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AclnnWarning)  # it says what the diagnostics say
            result = catalog.load(source)
        print_diagnostics(result.errors)
    function = catalog.find(name)
    if output_format == "reg-op":
        raise click.UsageError(f"{name} is an aclnn function: it has no REG_OP; write --format text or json")
    if output_format == "json":
        print_json(function_as_json(function))
        return
    console = terminal()
    console.print(f"[bold]{function.name}[/bold]  {escape(function.place)}", highlight=False)
    table = Table(show_edge=False, pad_edge=False)
    for heading in ("", "name", "type", ""):
        table.add_column(heading, overflow="fold")
    for parameter in function.parameters:
        note = "optional" if parameter.optional else ""
        if parameter.default:
            note = f"= {parameter.default}"
        table.add_row(parameter.direction.value, parameter.name, escape(str(parameter.type)), escape(note))
    console.print(table)


def _functions_table(functions: Iterable[AclnnFunction]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    functions = tuple(functions)
    table = Table(title=f"{len(functions)} aclnn functions", title_justify="left")
    for heading in ("function", "in", "in and out", "out", "declared at"):
        table.add_column(heading, overflow="fold")
    for function in functions:
        by_direction: dict[str, list[str]] = {"in": [], "inout": [], "out": []}
        for parameter in function.parameters:
            by_direction[parameter.direction.value].append(parameter.name)
        table.add_row(function.name, *map(", ".join, by_direction.values()), escape(function.place))
    return table
