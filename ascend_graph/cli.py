"""The command ``ascend-graph``. Commands read arguments and print; what they do is in the modules they call.

A further command is a function with ``@main.command()`` that imports its module inside, so that no command pays for
another's imports.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph import __version__
from ascend_graph.errors import AscendGraphError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ascend_graph.aclnn import AclnnFunction
    from ascend_graph.headers import Headers
    from ascend_graph.prototypes import Diagnostic, OpPrototype

#: Work on fewer files than this is done before a progress bar could be read.
_PROGRESS_FROM = 20


class _Group(click.Group):
    """A group whose commands end with one line, not a traceback, where the package refuses something."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AscendGraphError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ascend-graph")
def main() -> None:
    """Custom Ascend operators from their REG_OP prototypes."""


_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))


@main.command()
@_PATHS
@click.option("--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True)
def parse(paths: tuple[Path, ...], output_format: str) -> None:
    """Read the prototypes and aclnn functions of headers, directories, op_host/*_def.cpp and msOpGen JSON files.

    The exit status is 1 if anything could not be read.
    """
    result = _read(paths)
    if output_format == "json":
        click.echo(json.dumps(result.as_json(), indent=2, ensure_ascii=False, allow_nan=False))
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
            _console().print(table)
        if result.functions:
            _console().print(_functions_table(result.functions))
        _print_diagnostics(result.diagnostics)
    _exit_on_errors(result)
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
@click.option("--format", "output_format", type=click.Choice(["text", "json", "reg-op"]), default="text")
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

        click.echo(json.dumps(prototype_as_json(prototype), indent=2, ensure_ascii=False, allow_nan=False))
    elif output_format == "reg-op":
        from ascend_graph.prototypes.writer import to_reg_op

        click.echo(to_reg_op(prototype))
    else:
        _show(prototype)


@main.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="The header with the REG_OPs; with --launch kernel also the kernels' sources, or a directory with both. Needed "
    "the first time, copied into the project; may be repeated.",
)
@click.option(
    "--launch",
    type=click.Choice(["aclnn", "kernel"]),
    help="How the operators reach the NPU: through their aclnn functions (the default), or by a launch of their Ascend C "
    "kernels.",
)
@click.option("--bindings", type=click.Choice(["torch", "pybind", "both"]), help="How Python calls the operators.")
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="OP=RELATION",
    help="An output shape, for a new operator; may be repeated.",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="OP=KERNEL",
    help="What a new operator launches: add_custom(x, y, z: out); may be repeated.",
)
def new(
    directory: Path,
    sources: tuple[Path, ...],
    launch: str | None,
    bindings: str | None,
    shapes: tuple[str, ...],
    kernels: tuple[str, ...],
) -> None:
    """Write a project of eager kernels in C++ that builds into a Python package, or bring one up to date.

    What is generated lies in directories called generated and in <package>/_generated.py; all other files are written
    once and are yours.

    \b
    ascend-graph new my_ops --from op_proto.h
    ascend-graph new my_ops --launch kernel --from op_proto.h --from add_custom.cpp
    """
    from ascend_graph.codegen.eager_project import generate_project

    project = generate_project(
        directory,
        sources or None,
        launch=launch,
        bindings=bindings,
        shapes=_by_operator("--shape", shapes, _SHAPE_EXAMPLE),
        kernels=_by_operator("--kernel", kernels, "AddCustom=add_custom(x, y, z: out)"),
    )
    click.echo(f"{project.directory}: {len(project.operators)} operators, {len(project.written)} files written")
    for path in project.written:
        click.echo(f"  {path}")
    for proposal in project.proposed:
        click.echo(f"proposed, check operators.ini: {proposal}")
    for draft in project.drafts:
        click.echo(f"proposed, check {draft}")
    for op_type, reason in project.skipped:
        click.echo(f"left out: {op_type}: {reason}")


_SHAPE_EXAMPLE = "AddCustom=x[*s], y[*s] -> z[*s]"


def _by_operator(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """``OP=…`` options as a mapping."""
    found = {}
    for text in texts:
        op_type, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: write OP=…, e.g. {example!r}", param_hint=option)
        found[op_type.strip()] = value.strip()
    return found


@main.command()
def doctor() -> None:
    """Say what of this installation works together: Python, torch and torch_npu, the compiler, CANN.

    The exit status is 1 if something has to be done.
    """
    import os

    from ascend_graph.checks.doctor import examine

    findings = list(examine(os.environ))
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        click.echo(f"{'!!' if finding.is_wrong else 'ok'}  {finding.subject:{width}}  {finding.text}")
    if any(finding.is_wrong for finding in findings):
        raise SystemExit(1)


@main.command()
@click.argument("operator", metavar="NAMESPACE::OP[.OVERLOAD]")
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A module that defines the operator, e.g. its extension; may be repeated.",
)
@click.option("--device", help="Where its kernel runs: npu where it has a kernel there, otherwise cpu.")
def infer(operator: str, modules: tuple[str, ...], device: str | None) -> None:
    """Run an operator on small inputs and print its shape relation, to paste into register_op.

    Without an NPU: python -m ascend_graph.host -m ascend_graph.cli infer …
    """
    from ascend_graph.registration.inference import infer_overload
    from ascend_graph.registration.lookup import find_overload, import_extension, kernel_device

    for module in modules:
        import_extension(module)
    overload = find_overload(operator)
    click.echo(str(infer_overload(overload, device=device or kernel_device(overload))))


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...]) -> None:
    """Run a script, "-m MODULE", "-c CODE", a program or a build script on the host runtime, without an NPU."""
    from ascend_graph.host.__main__ import launch

    launch(list(command))


@main.command()
@click.argument("module", metavar="MODULE")
@click.argument("operators", metavar="[OP]…", nargs=-1)
@click.option("--check", "checks", multiple=True, metavar="NAME", help="Only this check; may be repeated.")
@click.option("--count", default=6, show_default=True, help="Random calls of each operator, beside the special ones.")
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same calls.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds that one operator may take.")
@click.option(
    "--format", "output_format", type=click.Choice(["text", "json", "junit"]), default="text", show_default=True
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file for the reports.")
def check(
    module: str,
    operators: tuple[str, ...],
    checks: tuple[str, ...],
    count: int,
    seed: int,
    timeout: float,
    output_format: str,
    output: Path | None,
) -> None:
    """Check the operators that MODULE (or a .py file) registers: in eager mode, in graphs, their meta functions and gradients.

    Calls are drawn from their shape relations and prototypes. Operators that crash or hang are reported. The exit status is 1 if
    anything failed.
    """
    from ascend_graph.checks.report import as_text, junit
    from ascend_graph.checks.running import Request, check_module

    console = _console(stderr=True)
    request = Request(module, operators, checks, count, seed, timeout)
    reports = check_module(request, started=lambda name: console.print(f"checking {name}", markup=False))
    if output_format == "json":
        text = json.dumps([report.as_dict() for report in reports], indent=2, ensure_ascii=False)
    else:
        text = junit(reports) if output_format == "junit" else as_text(reports)
    if output is not None:
        output.write_text(text + "\n", encoding="utf-8")
    else:
        click.echo(text)
    failed = [report.operator for report in reports if not report.ok]
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(reports)} operators failed: {', '.join(failed)}")


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

        relations = _by_operator("--shape", shapes, _SHAPE_EXAMPLE)
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
    _console().print(table)
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
@click.option("--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True)
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
        click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
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
    _console().print(listed)
    if found.causes:
        _console().print(causes)
    click.echo(f"logs: {work}")


@main.command()
@click.argument("old", type=click.Path(exists=True, path_type=Path))
@click.argument("new", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "output_format", type=click.Choice(["table", "json"]), default="table", show_default=True)
def diff(old: Path, new: Path, output_format: str) -> None:
    """Say what changed between two sets of prototypes and aclnn functions, such as two CANN versions.

    The exit status is 1 if callers of the old raw ops or functions break.
    """
    from ascend_graph.aclnn.diff import compare as compare_functions
    from ascend_graph.prototypes.diff import compare
    from ascend_graph.sources.change import Effect

    before, after = _read([old]), _read([new])
    changes = compare(before.prototypes, after.prototypes)
    changes += compare_functions(before.functions, after.functions)
    breaking = [change for change in changes if change.effect is Effect.BREAKS]
    if output_format == "json":
        found = [{"op": c.op_type, "effect": c.effect.value, "change": c.text} for c in changes]
        click.echo(json.dumps({"changes": found, "breaking": len(breaking)}, indent=2, ensure_ascii=False))
    else:
        from rich.markup import escape
        from rich.table import Table

        styles = {Effect.BREAKS: "red", Effect.CHANGES: "yellow", Effect.EXTENDS: "green"}
        table = Table(title=f"{len(changes)} changes, {len(breaking)} break callers", title_justify="left")
        for heading in ("op", "effect", "change"):
            table.add_column(heading, overflow="fold")
        for change in changes:
            table.add_row(change.op_type, change.effect.value, escape(change.text), style=styles[change.effect])
        _console().print(table)
        _print_diagnostics((*before.errors, *after.errors))
    _exit_on_errors(before)
    _exit_on_errors(after)
    if breaking:
        sys.exit(1)


@main.group(cls=_Group)
def gen() -> None:
    """Generate source files from prototypes."""


@gen.command("raw-ops")
@_PATHS
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The module.")
@click.option("--stub/--no-stub", default=True, show_default=True, help="Also write a type stub beside it.")
def gen_raw_ops(paths: tuple[Path, ...], output: Path, stub: bool) -> None:
    """Generate a Python module of GE raw ops, written only if it differs.

    The exit status is 1 if anything could not be read; nothing is written then.
    """
    from ascend_graph.codegen.raw_op_module import raw_op_module
    from ascend_graph.codegen.rendering import write_if_different

    result = _read(paths)
    _print_diagnostics(result.diagnostics)
    _exit_on_errors(result)
    if not result.prototypes:
        raise click.ClickException(f"no REG_OP in {', '.join(map(str, paths))}: nothing was written")
    module = raw_op_module(result.prototypes)
    written = [write_if_different(output, module.source)]
    if stub:
        written.append(write_if_different(output.with_suffix(".pyi"), module.stub))
    for prototype, reason in module.skipped:
        click.echo(f"{prototype.place}: {prototype.op_type} is left out: {reason}", err=True)
    state = "written" if any(written) else "already up to date"
    click.echo(f"{output}: {len(result.prototypes) - len(module.skipped)} raw ops, {state}", err=True)


def _read(paths: Iterable[Path]) -> Headers:
    from ascend_graph.headers import read_headers
    from ascend_graph.prototypes.loading import prototype_files

    files: list[Path] = []
    for path in paths:
        files += prototype_files(path) if path.is_dir() else [path]
    with _progress("reading headers", files) as progressing:
        return read_headers(progressing)


@contextmanager
def _progress(title: str, items: list[Path]) -> Iterator[Iterable[Path]]:
    """The items, with a progress bar on the terminal where there are many."""
    if len(items) < _PROGRESS_FROM or not sys.stderr.isatty():
        yield items
        return
    from rich.progress import Progress

    with Progress(console=_console(stderr=True), transient=True) as progress:
        yield progress.track(items, description=title)


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

    console = _console()
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
        _print_diagnostics(catalog.load(source).errors)
    function = catalog.find(name)
    if output_format == "reg-op":
        raise click.UsageError(f"{name} is an aclnn function: it has no REG_OP; write --format text or json")
    if output_format == "json":
        click.echo(json.dumps(function_as_json(function), indent=2, ensure_ascii=False))
        return
    console = _console()
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


def _print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    for diagnostic in diagnostics:
        click.echo(str(diagnostic), err=True)


def _exit_on_errors(result: Headers) -> None:
    if result.errors:
        sys.exit(1)


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr)
    if not console.is_terminal:
        console.width = 160  # a file or a pipe has no width of its own
    return console


if __name__ == "__main__":
    main()
