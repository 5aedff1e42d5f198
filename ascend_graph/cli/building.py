"""Commands that build authors' code: ``build`` for projects and repositories, ``survey`` for the causes of failures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph.cli.common import SHAPE_EXAMPLE, by_operator, format_option, print_json, terminal
from ascend_graph.host.architecture import DAV_2201, ArchitectureError, architecture

if TYPE_CHECKING:
    from ascend_graph.host.projects.model import BuildOptions
    from ascend_graph.host.projects.survey import RepositorySurvey


def _build_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the build options to a command, which receives them as one argument, ``build_options``."""
    directory = click.Path(exists=True, file_okay=False, path_type=Path)

    @click.option(
        "-I", "directories", multiple=True, type=directory, help="Look for headers here first; may be repeated."
    )
    @click.option("-D", "definitions", multiple=True, metavar="NAME[=VALUE]", help="Define a macro; may be repeated.")
    @click.option(
        "--cann", multiple=True, type=directory,
        help="A CANN toolkit, or a checkout of its sources: headers that the host toolkit lacks are taken from there.",
    )  # fmt: skip
    @click.option(
        "--npu-arch", "npu_arch", default=DAV_2201.name, show_default=True,
        help="The architecture that is built for, or the name of a chip with it.",
    )  # fmt: skip
    @click.option(
        "--all-keys", is_flag=True,
        help="Compile all tiling keys of every kernel; of many, most are compiled when they are first launched otherwise.",
    )  # fmt: skip
    @wraps(command)
    def with_build_options(
        *arguments: Any,
        all_keys: bool,
        directories: tuple[Path, ...],
        definitions: tuple[str, ...],
        cann: tuple[Path, ...],
        npu_arch: str,
        **options: Any,
    ) -> None:
        from ascend_graph.host.projects.includes import has_headers
        from ascend_graph.host.projects.model import BuildOptions

        for root in cann:
            if not has_headers(root.resolve()):
                raise click.BadParameter(
                    f"{root} has no headers: name the directory of a CANN toolkit, or a checkout of opbase or metadef",
                    param_hint="--cann",
                )
        values = tuple((name, value or "1") for name, _, value in (one.partition("=") for one in definitions))
        roots = (tuple(one.resolve() for one in paths) for paths in (directories, cann))
        try:
            built_for = architecture(npu_arch)
        except ArchitectureError as error:
            raise click.BadParameter(str(error), param_hint="--npu-arch") from None
        given = BuildOptions(next(roots), values, next(roots), built_for, all_keys)
        command(*arguments, build_options=given, **options)

    return with_build_options


@click.command(short_help="Build an operator package from a project.")
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
@_build_options
def build(
    project: Path | None, output: Path | None, shapes: tuple[str, ...], ops: str, jobs: int, build_options: BuildOptions
) -> None:
    """Build an operator package for the host runtime from PROJECT (op_host and op_kernel), for --opp of the launcher.

    PROJECT may be a repository, or a part of one: all its projects become one package. Projects that fail are named and
    left out, and the exit status is 1.

    Without PROJECT: compile the libraries that link PyTorch in advance, the eager kernel and the host runtime's bridge.
    Otherwise both are compiled on first use, and cached.
    """
    if project is not None:
        if output is None:
            raise click.UsageError("the directory of the package is missing; write -o DIRECTORY")
        names = tuple(name.strip() for name in ops.split(",") if name.strip())
        is_project = (project / "op_host").is_dir() or not any(project.glob("*/**/op_host"))
        if names or not is_project:
            if shapes:
                raise click.UsageError("--shape is for one project; build that alone")
            _build_repository(project, output, names, jobs, build_options)
            return
        from ascend_graph.host.projects.build import build_project_package

        relations = by_operator("--shape", shapes, SHAPE_EXAMPLE)
        package = build_project_package(output, project, relations=relations, options=build_options)
        click.echo(f"operator package: {package}")
        return
    if output is not None or shapes or ops:
        raise click.UsageError("-o, --shape and --ops need a PROJECT")
    from ascend_graph.eager.library import eager_library, tangent_library
    from ascend_graph.host.bridge import bridge_library

    libraries = (
        ("eager kernel", eager_library()),
        ("refusal of tangents", tangent_library()),
        ("bridge of the host runtime", bridge_library()),
    )
    for what, library in libraries:
        state = "cached" if library.cached() else "compiled"
        click.echo(f"{what}: {state}: {library.build()}")


def _build_repository(repository: Path, output: Path, names: tuple[str, ...], jobs: int, options: BuildOptions) -> None:
    from rich.markup import escape
    from rich.table import Table

    from ascend_graph.host.projects.collection import BuildResult, build_repository_package
    from ascend_graph.host.projects.survey_errors import first_error

    def progress(one: BuildResult) -> None:
        state = (
            f"failed [{one.seconds:.0f} s]: {first_error(one.error)}" if one.error else f"built [{one.seconds:.0f} s]"
        )
        click.echo(f"{one.project.name}: {state}", err=True)

    results = build_repository_package(output, repository, ops=names, jobs=jobs, progress=progress, options=options)
    failed = sum(bool(one.error) for one in results)
    table = Table(title=f"{len(results) - failed} of {len(results)} projects built", title_justify="left")
    for heading in ("project", "operators", "first error"):
        table.add_column(heading, overflow="fold")
    for one in results:
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


@click.command(short_help="Try everything in a checkout, or list what wheels miss.")
@click.argument("targets", metavar="DIR|WHEEL…", nargs=-1, required=True)
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
@click.option(
    "--import", "imports", is_flag=True,
    help="Of wheels: import their modules and entry points, each in a process of its own. This executes their code.",
)  # fmt: skip
@format_option("table", "json")
@_build_options
def survey(
    targets: tuple[str, ...],
    output: Path | None,
    kinds: tuple[str, ...],
    ops: str,
    jobs: int,
    time_limit: float,
    imports: bool,
    output_format: str,
    build_options: BuildOptions,
) -> None:
    """Try everything in DIR that the host runtime builds, or list what wheels miss of the host runtime.

    Operator projects, extensions of PyTorch and samples of a checkout DIR are found by their files. Each is built, loaded,
    and its own test run if it has one; nothing is written to DIR.

    WHEEL is a .whl file, an unpacked wheel, or the name of an installed distribution; there may be several. Of each, the
    native libraries with their missing symbols, the operator packages and the entry points are listed. Nothing of a
    wheel is executed without --import.
    """
    import tempfile

    from ascend_graph.cli.wheels import names_a_wheel, survey_wheels

    if any(map(names_a_wheel, targets)):
        if output or kinds or ops:
            raise click.UsageError("-o, --kind and --ops are for a checkout DIR; leave them out for wheels")
        survey_wheels(targets, imports=imports, time_limit=time_limit, output_format=output_format)
        return
    if len(targets) > 1 or imports:
        raise click.UsageError(f"{', '.join(targets)}: expected one checkout DIR, or wheels; --import is for wheels")
    directory = Path(targets[0])
    from ascend_graph.host.projects.survey import ProjectKind, SurveyResult
    from ascend_graph.host.projects.survey import survey as run

    work = output or Path(tempfile.mkdtemp(prefix="ascend-graph-survey-"))
    chosen = [kind for kind in ProjectKind if not kinds or kind.name.lower() in kinds]
    names = [name.strip() for name in ops.split(",") if name.strip()]

    def progress(one: SurveyResult) -> None:
        reason = f": {one.cause}" if one.cause else ""
        click.echo(f"{one.path} ({one.kind.value}): {one.state.value}{reason} [{one.seconds:.0f} s]", err=True)

    found = run(
        directory,
        work,
        kinds=chosen,
        names=names,
        jobs=jobs,
        time_limit=time_limit,
        progress=progress,
        options=build_options,
    )
    if output_format == "json":
        print_json(found.as_json())
        return
    _print_survey(found, directory)
    click.echo(f"logs: {work}")


def _print_survey(found: RepositorySurvey, directory: Path) -> None:
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


COMMANDS = (build, survey)
