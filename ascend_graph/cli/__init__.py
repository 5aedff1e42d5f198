"""The command ``ascend-graph``. Commands read arguments and print; what they do is in the modules they call.

A further command is a function with ``@main.command()`` that imports its module inside, so that no command pays for
another's imports. Those that write sources are in ``generating``, those that look at operators in ``checking``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph import __version__
from ascend_graph.cli import checking, generating
from ascend_graph.cli.common import (
    PATHS,
    SHAPE_EXAMPLE,
    Group,
    by_operator,
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


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ascend-graph")
def main() -> None:
    """Custom Ascend operators from their REG_OP prototypes.

    The exit status is 0 where all is well, 1 where something failed or is refused, 2 where the command itself is wrong.
    """


for _command in (*generating.COMMANDS, *checking.COMMANDS):
    main.add_command(_command)


@main.command()
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


@main.command()
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
        raise click.ClickException(f"no operator is defined in {', '.join(map(str, paths))}")


@main.command()
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
    """Show one prototype: what it takes, what it gives, and its raw op; or one aclnn function."""
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


@main.command()
@click.argument("project", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="The operator package's directory."
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="OP=RELATION",
    help="An output shape for graphs, in place of the project's InferShape; may be repeated.",
)
@click.option(
    "--ops", default="", metavar="A,B", help="Of a repository: the projects with these directory names alone."
)
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many projects at a time.")
def build(project: Path | None, output: Path | None, shapes: tuple[str, ...], ops: str, jobs: int) -> None:
    """Build an operator package for the host runtime from PROJECT (op_host and op_kernel), for --opp of the launcher.

    PROJECT may be a repository, or a part of one: all its projects become one package. What fails is named and left out,
    and the exit status is 1.

    Without PROJECT: compile ahead what links PyTorch, the eager kernel and the host runtime's bridge. Both are compiled
    on first use otherwise, and cached.
    """
    if project is not None:
        if output is None:
            raise click.UsageError("where is the package to be made? Write -o DIRECTORY")
        names = tuple(name.strip() for name in ops.split(",") if name.strip())
        is_project = (project / "op_host").is_dir() or not any(project.glob("*/**/op_host"))
        if names or not is_project:
            if shapes:
                raise click.UsageError("--shape is for one project; build that alone")
            _build_repository(project, output, names, jobs)
            return
        from ascend_graph.host.project import build_project_package

        relations = by_operator("--shape", shapes, SHAPE_EXAMPLE)
        click.echo(f"operator package: {build_project_package(output, project, relations=relations)}")
        return
    if output is not None or shapes or ops:
        raise click.UsageError("-o, --shape and --ops need a PROJECT")
    from ascend_graph.eager.library import eager_library
    from ascend_graph.host.bridge import bridge_library

    for what, library in (("eager kernel", eager_library()), ("bridge of the host runtime", bridge_library())):
        state = "cached" if library.cached() else "compiled"
        click.echo(f"{what}: {state}: {library.build()}")


def _build_repository(repository: Path, output: Path, names: tuple[str, ...], jobs: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ascend_graph.host.collection import Outcome, build_repository_package
    from ascend_graph.host.survey import first_error

    def progress(one: Outcome) -> None:
        state = "failed" if one.error else "built"
        click.echo(f"{one.project.name}: {state} [{one.seconds:.0f} s]", err=True)

    outcomes = build_repository_package(output, repository, ops=names, jobs=jobs, progress=progress)
    failed = sum(bool(one.error) for one in outcomes)
    table = Table(title=f"{len(outcomes) - failed} of {len(outcomes)} projects built", title_justify="left")
    for heading in ("project", "operators", "first error"):
        table.add_column(heading, overflow="fold")
    for one in outcomes:
        table.add_row(
            escape(str(one.project.relative_to(repository.resolve()))),
            ", ".join(one.operators),
            escape(first_error(one.error)),
            style="red" if one.error else "",
        )
    terminal().print(table)
    click.echo(f"operator package: {output}")
    if failed:
        sys.exit(1)


@main.command()
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path),
    help="Where it builds and keeps its logs; a new directory for temporary files otherwise.",
)  # fmt: skip
@click.option(
    "--kind", "kinds", multiple=True, type=click.Choice(["operator", "extension", "sample"]), help="What is tried; all."
)
@click.option("--ops", default="", metavar="A,B", help="Try the directories of these names alone.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many at a time.")
@click.option("--time-limit", type=click.FloatRange(1), default=900.0, show_default=True, help="Seconds for each.")
@format_option("table", "json")
def survey(
    directory: Path,
    output: Path | None,
    kinds: tuple[str, ...],
    ops: str,
    jobs: int,
    time_limit: float,
    output_format: str,
) -> None:
    """Try everything in DIR that the host runtime builds, and say what stops the rest.

    Operator projects, extensions of PyTorch and samples are found by their files. Each is built, loaded, and its own test
    run where it has one; nothing is written to DIR.
    """
    import tempfile

    from ascend_graph.host.survey import Kind, Result
    from ascend_graph.host.survey import survey as run

    work = output or Path(tempfile.mkdtemp(prefix="ascend-graph-survey-"))
    chosen = [kind for kind in Kind if not kinds or kind.name.lower() in kinds]
    names = [name.strip() for name in ops.split(",") if name.strip()]

    def progress(one: Result) -> None:
        reason = f": {one.cause}" if one.cause else ""
        click.echo(f"{one.path} ({one.kind.value}): {one.state.value}{reason} [{one.seconds:.0f} s]", err=True)

    found = run(directory, work, kinds=chosen, names=names, jobs=jobs, time_limit=time_limit, progress=progress)
    if output_format == "json":
        print_json(found.as_json())
        return
    from rich.markup import escape
    from rich.table import Table

    styles = {"failed": "red", "other device": "yellow"}
    listed = Table(
        title=f"{directory}: {len(found.results)} found, {found.built} built, {found.ran} ran", title_justify="left"
    )
    for heading in ("path", "kind", "state", "first error"):
        listed.add_column(heading, overflow="fold")
    for one in found.results:
        state = one.state.value
        listed.add_row(escape(one.path), one.kind.value, state, escape(one.error), style=styles.get(state, ""))
    causes = Table(title="causes", title_justify="left")
    for heading in ("number", "cause"):
        causes.add_column(heading, overflow="fold")
    for cause, count in found.causes.items():
        causes.add_row(str(count), escape(cause))
    terminal().print(listed)
    if found.causes:
        terminal().print(causes)
    click.echo(f"logs: {work}")


@main.command()
@click.argument("old", type=click.Path(exists=True, path_type=Path))
@click.argument("new", type=click.Path(exists=True, path_type=Path))
@format_option("table", "json")
def diff(old: Path, new: Path, output_format: str) -> None:
    """Say what changed between two sets of prototypes and aclnn functions, such as two CANN versions.

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
    from rich.markup import escape
    from rich.table import Table

    from ascend_graph.aclnn import AclnnCatalog
    from ascend_graph.aclnn.json_format import function_as_json

    catalog = AclnnCatalog()
    for source in sources:
        print_diagnostics(catalog.load(source).errors)
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
