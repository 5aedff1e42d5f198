"""Shared parts of all commands: groups that end errors with one line, reading headers, options, and printing."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph.compilation.processes import ended_by_signals
from ascend_graph.errors import AscendGraphError

if TYPE_CHECKING:
    from rich.console import Console

    from ascend_graph.headers import Headers
    from ascend_graph.prototypes import Diagnostic

#: Minimum number of files for a progress bar; fewer are done before it could be read.
_PROGRESS_FROM = 20

PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
SHAPE_EXAMPLE = "AddCustom=x[*s], y[*s] -> z[*s]"


class CommandGroup(click.Group):
    """Command group that reports an error of the package in one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; the exit status is 1 for an error of the package, 2 for a wrong command line."""
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except AscendGraphError as error:
            raise click.ClickException(str(error)) from error
        except (ImportError, OSError, RuntimeError) as error:
            from ascend_graph.doctor.messages import hint
            from ascend_graph.environment import without_cann

            sentence = without_cann(error) or hint(error)
            if sentence is None and isinstance(error, OSError) and error.filename and error.strerror:
                # What a user named cannot be read or written.
                sentence = f"{error.filename}: {error.strerror.lower()}; name another path, or change what lies there"
            if sentence is None:
                raise
            raise click.ClickException(sentence) from error


def format_option(*formats: str) -> Callable[[Any], Any]:
    """Return the option ``--format``: the first format is the default, and every command has ``json``."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="What is printed.",
    )


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "operator"), counted(0, "file")
    ('1 operator', '0 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_json(value: Any) -> None:
    """Print a command's result as JSON, for programs."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def by_operator(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Return ``OP=…`` options as a mapping."""
    found = {}
    for text in texts:
        op_type, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r}: write OP=…, e.g. {example!r}", param_hint=option)
        found[op_type.strip()] = value.strip()
    return found


def for_one_operator(texts: Iterable[str]) -> dict[str, str]:
    """Return ``[OP=]…`` options as a mapping, with an empty op type where none is given."""
    found = {}
    for text in texts:
        match = re.match(r"\s*(?:([A-Za-z_]\w*)\s*=)?(.*)", text, re.DOTALL)
        assert match is not None
        found[match[1] or ""] = match[2].strip()
    return found


def needs_torch_npu(command: Sequence[str]) -> None:
    """Restart a command on the host runtime if there is no CANN, without which torch_npu does not load."""
    from ascend_graph.environment import is_active, real_cann
    from ascend_graph.versions import installed

    if installed("torch_npu") is None or is_active() or real_cann(os.environ):
        return
    from ascend_graph.host.__main__ import launch

    launch(["--quiet", "-m", "ascend_graph.cli", *command])


def read_paths(paths: Iterable[Path]) -> Headers:
    """Read the prototypes and functions of files and directories."""
    from ascend_graph.headers import read_headers
    from ascend_graph.prototypes.loading import prototype_files

    files: list[Path] = []
    for path in paths:
        files += prototype_files(path) if path.is_dir() else [path]
    with _progress("reading headers", files) as progressing:
        return read_headers(progressing)


@contextmanager
def _progress(title: str, items: list[Path]) -> Iterator[Iterable[Path]]:
    """Yield the items, with a progress bar on the terminal if there are many."""
    if len(items) < _PROGRESS_FROM or not sys.stderr.isatty():
        yield items
        return
    from rich.progress import Progress

    with Progress(console=terminal(stderr=True), transient=True) as progress:
        yield progress.track(items, description=title)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print remarks on the error stream."""
    for diagnostic in diagnostics:
        click.echo(str(diagnostic), err=True)


def exit_on_errors(result: Headers) -> None:
    """Exit with status 1 if something could not be read."""
    if result.errors:
        sys.exit(1)


def terminal(*, stderr: bool = False) -> Console:
    """Return the console on which tables are printed."""
    from rich.console import Console

    console = Console(stderr=stderr)
    if not console.is_terminal:
        console.width = 160  # a file or a pipe has no width of its own
    return console
