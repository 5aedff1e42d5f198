"""Commands that check an installation and operators.

They are ``doctor``, ``infer``, ``explain``, ``check``, ``picture``, ``selftest`` and ``run``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ascend_graph.cli.common import format_option, needs_torch_npu, print_json, terminal
from ascend_graph.processors import DEFAULT_PROCESSOR

if TYPE_CHECKING:
    from ascend_graph.pictures import Picture


@click.command(short_help="Check the installation, or explain an error message.")
@click.argument("modules", metavar="[MODULE]…", nargs=-1)
@click.option(
    "--op",
    "operators",
    multiple=True,
    metavar="NAME",
    help="An op type, an aclnn function or namespace::operator; may be repeated.",
)
@click.option(
    "--message", metavar="TEXT", help="A message, a traceback or a log to explain; - reads it from standard input."
)
@format_option("text", "json")
def doctor(modules: tuple[str, ...], operators: tuple[str, ...], message: str | None, output_format: str) -> None:
    """Check that the parts of this installation work together, and print the line that fixes each problem.

    Checked are versions and ABI of torch, torch_npu, CANN and compilers, caches, packages and definitions that hide others,
    variables. With MODULE (or a .py or .so file) or --op: function, header and library of its operators; with a directory
    of C++ sources: calls that pass other types than their aclnn function takes.

    \b
    ascend-graph doctor csrc/
    ascend-graph doctor my_ops --op my_ops::add
    python serve.py 2>&1 | ascend-graph doctor --message -

    The exit status is 1 if something has to be done, or if the message is not known.
    """  # fmt: skip
    import os

    from ascend_graph.doctor import examine, examine_operators

    if message is not None:
        if modules or operators:
            raise click.UsageError("--message is explained alone: leave MODULE and --op out")
        _explain_message(sys.stdin.read() if message == "-" else message, output_format)
        return
    asked = modules or operators
    findings = list(examine_operators(modules, operators, os.environ) if asked else examine(os.environ))
    is_wrong = any(finding.is_wrong for finding in findings)
    if output_format == "json":
        print_json({"findings": [finding.as_dict() for finding in findings], "is_wrong": is_wrong})
        sys.exit(is_wrong)
    width = max((len(finding.subject) for finding in findings), default=0)
    for finding in findings:
        click.echo(f"{'!!' if finding.is_wrong else 'ok'}  {finding.subject:{width}}  {finding.text}")
        if finding.fix:
            click.echo(f"    {'':{width}}  → {finding.fix}")
    sys.exit(is_wrong)


def _explain_message(text: str, output_format: str) -> None:
    """Print the diagnoses of a message; the exit status is 1 if there are none."""
    import os

    from ascend_graph.doctor import diagnose, without_answer

    found = diagnose(text, os.environ)
    if output_format == "json":
        print_json({"known": [diagnosis.as_dict() for diagnosis in found]})
    elif found:
        click.echo("\n\n".join(map(str, found)))
    else:
        click.echo(without_answer(text))
    sys.exit(not found)


@click.command(short_help="Find the shape relations of operators.")
@click.argument("names", metavar="[NAMESPACE::OP | SOURCE | OP]…", nargs=-1)
@click.option(
    "--package",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="An operator package, whose InferShape functions are asked; OP… selects operators.",
)
@click.option(
    "--meta", metavar="MODULE:FUNCTION|NAMESPACE::OP", help="A meta function in Python, or that of an operator, to ask."
)
@click.option(
    "--op",
    "op_type",
    metavar="OP",
    help="With --meta: the op type, if the name does not say it. With --package: as OP.",
)
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A header or directory with prototypes; with --meta also a source of InferShape; may be repeated.",
)
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="A module that defines the operator, e.g. its extension; may be repeated.",
)
@click.option("--device", help="Where its kernel runs: npu where it has a kernel there, otherwise cpu.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file for ascend_graph.load_relations."
)
@format_option("text", "json")
def infer(
    names: tuple[str, ...],
    package: Path | None,
    meta: str | None,
    op_type: str | None,
    sources: tuple[Path, ...],
    modules: tuple[str, ...],
    device: str | None,
    output: Path | None,
    output_format: str,
) -> None:
    """Find the shape relations of operators, to paste into register_op or to commit as a file.

    An operator's kernel is run on small inputs. InferShape functions, of a package or of a source that is compiled here, and
    meta functions are asked instead; the last are compared with the prototype, InferShape and the kernel. Without an NPU it
    runs on the host runtime.

    \b
    ascend-graph infer my_ops::add --import my_ops
    ascend-graph infer --package build/opp -o relations.ini
    ascend-graph infer op_host/add_custom_infershape.cpp
    ascend-graph infer --meta my_ops.fakes:add_meta --op AddCustom --from op_host

    The exit status is 1 if no relation was found, or if sources disagree.
    """  # fmt: skip
    from ascend_graph.cli.relations import compare_meta, refuse_ignored, report_functions, report_kernel

    compiled = tuple(Path(name) for name in names if name.endswith((".cpp", ".cc", ".cxx")))
    options = {"--op": op_type, "--from": sources, "--import": modules, "--device": device, "-o": output}
    refuse_ignored(meta, package, compiled, {name for name, value in options.items() if value})
    if meta is not None:
        if names or package is not None:
            raise click.UsageError("--meta is asked alone: leave OP and --package out, and write --op OP")
        needs_torch_npu(sys.argv[1:])
        compare_meta(meta, op_type, sources, modules, device, output_format)
        return
    if package is not None or compiled:
        if package is None and len(compiled) < len(names):
            raise click.UsageError("give sources alone, or operators alone")
        needs_torch_npu(sys.argv[1:])
        chosen = () if compiled else (*names, *filter(None, [op_type]))
        report_functions(package, chosen, compiled, sources, output, output_format)
        return
    if len(names) != 1 or "::" not in names[0]:
        given = f"{' '.join(names)}: " if names else ""
        raise click.UsageError(
            f"{given}expected one of NAMESPACE::OP, a source SOURCE.cpp, --package DIR, --meta NAME; for an op type alone "
            "write --package DIR OP"
        )
    needs_torch_npu(sys.argv[1:])
    report_kernel(names[0], modules, device, output_format)


@click.command(short_help="Explain how arguments map to GE, and why.")
@click.argument("module", metavar="MODULE")
@click.argument("operator", metavar="[OP]", required=False)
@format_option("text", "json")
def explain(module: str, operator: str | None, output_format: str) -> None:
    """Explain the operators that MODULE (or a .py file) registers: how arguments map to GE, and why.

    OP is an op type or namespace::name; all operators without it. Without an NPU it runs on the host runtime.
    """
    from ascend_graph.workers import import_operators, require_module

    require_module(module)
    needs_torch_npu(sys.argv[1:])
    import torch  # noqa: F401 - entry points of other wheels register theirs

    from ascend_graph.checks.explain import explain as page_of
    from ascend_graph.registration.registered import registered_by

    _, own = registered_by(lambda: import_operators(module))
    pages = [page_of(operator)] if operator else [page_of(one) for one in own]
    if output_format == "json":
        print_json([page.as_dict() for page in pages])
    else:
        click.echo("\n\n".join(map(str, pages)))


@click.command(
    short_help="Run a script or program on the host runtime.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(command: tuple[str, ...]) -> None:
    """Run a script, a module, code or a program on the host runtime, without an NPU.

    COMMAND is script.py, "-m MODULE", "-c CODE", build.sh, ./program, or the name of a program; its own options follow it.

    \b
    Options of the host runtime, before COMMAND:
      --opp DIR        Use this operator package; may be repeated.
      --npu-arch ARCH  Stand for another architecture or chip: dav-3510.
      --strict         Keep device memory from everything but kernels and copies.
      --streams        Reject work that does not wait for the stream it depends on.
      --pipes          End kernels whose pipes do not wait for one another.
      --quiet          Do not say that the host runtime is active.
      --force          Run although this machine has a CANN.

    \b
    ascend-graph run --opp opp use.py
    ascend-graph run --opp opp -m pytest tests
    """
    from ascend_graph.host.__main__ import launch

    launch(list(command))


@click.command(short_help="Check operators in eager mode, in graphs and gradients.")
@click.argument("module", metavar="MODULE")
@click.argument("operators", metavar="[OP]…", nargs=-1)
@click.option(
    "--check", "checks", multiple=True, metavar="NAME", help="Only this check, such as meta or ge; may be repeated."
)
@click.option(
    "--count", default=6, show_default=True, help="Random calls of each operator, in addition to the special ones."
)
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same calls.")
@click.option("--timeout", default=300.0, show_default=True, help="Seconds that one operator may take.")
@click.option("--strict", is_flag=True, help="Keep device memory from everything but kernels and copies.")
@click.option("--pipes", is_flag=True, help="End kernels in Ascend C whose pipes do not wait for one another.")
@format_option("text", "json", "junit")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file for the reports.")
def check(
    module: str,
    operators: tuple[str, ...],
    checks: tuple[str, ...],
    count: int,
    seed: int,
    timeout: float,
    strict: bool,
    pipes: bool,
    output_format: str,
    output: Path | None,
) -> None:
    """Check the operators that MODULE (or a .py file) registers: eager mode, graphs, meta functions and gradients.

    Calls are drawn from their shape relations and prototypes. Operators that crash or hang are reported. The exit status is 1 if
    anything failed.
    """
    from ascend_graph.checks.report import as_text, junit
    from ascend_graph.checks.running import CheckRequest, RequestError, check_module

    console = terminal(stderr=True)
    request = CheckRequest(module, operators, checks, count, seed, timeout, strict, pipes)
    try:
        reports = check_module(request, started=lambda name: console.print(f"checking {name}", markup=False))
    except RequestError as error:
        raise click.UsageError(str(error)) from None
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
        raise click.ClickException(
            f"{len(failed)} of {len(reports)} operators failed: {', '.join(failed)}; see {output or 'the report above'}"
        )


@click.command(short_help="Picture FX and GE graphs side by side.")
@click.argument("graphs", metavar="GRAPH…", nargs=-1, required=True)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A .html, .svg, .txt or .json file."
)
@format_option("text", "json")
def picture(graphs: tuple[str, ...], output: Path | None, output_format: str) -> None:
    """Picture graphs: FX and GE side by side, with shapes, times, source lines and missing kernels.

    GRAPH is a dump of TorchAir (config.debug.graph_dump.type = "pbtxt" or "txt"), a directory of them, or MODULE:NAME (or
    FILE.py:NAME), a function without arguments that returns the function to compile and a tuple of its arguments.

    \b
    ascend-graph picture dumps/ -o graphs.html
    ascend-graph picture model.py:example -o model.svg
    """
    from ascend_graph.pictures import Graph, Pair, Picture, read_dump
    from ascend_graph.pictures.dumps import dump_files

    traced = [name for name in graphs if not Path(name).exists() and ":" in name]
    if traced:
        needs_torch_npu(sys.argv[1:])
    pages = [_traced(name) for name in traced]
    for path in dump_files([Path(name) for name in graphs if name not in traced]):
        pages.append(Picture(path.name, (Pair("GE", Graph(), read_dump(path)),)))
    if output is not None:
        title = pages[0].title if len(pages) == 1 else f"{len(pages)} graphs"
        pairs = tuple(
            pair if len(pages) == 1 else dataclasses.replace(pair, title=f"{page.title}, {pair.title}")
            for page in pages
            for pair in page.pairs
        )
        click.echo(str(Picture(title, pairs, "; ".join(page.error for page in pages if page.error)).save(output)))
    elif output_format == "json":
        print_json([page.as_dict() for page in pages])
    else:
        click.echo("\n\n".join(map(str, pages)))


def _traced(name: str) -> Picture:
    """Return the picture of the function and arguments that ``MODULE:NAME`` returns."""
    from ascend_graph.pictures import PictureError
    from ascend_graph.pictures.tracing import picture as picture_of
    from ascend_graph.workers import import_operators

    module, _, attribute = name.rpartition(":")
    names = import_operators(module)
    if not callable(names.get(attribute)):
        known = ", ".join(sorted(n for n, v in names.items() if callable(v) and not n.startswith("_"))) or "none"
        raise PictureError(f"{module} has no function {attribute!r}; it has: {known}")
    made = names[attribute]()
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0]) and isinstance(made[1], (tuple, list))):
        raise PictureError(f"{name} returned {made!r:.200}: expected what to compile, and a tuple of its arguments")
    return picture_of(made[0], *made[1])


@click.command(short_help="Test the whole installation on this device.")
@click.argument("modules", metavar="[MODULE]…", nargs=-1)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("ascend_graph_selftest.json"),
    show_default=True,
    help="The file of results, to attach to a report.",
)
@click.option("--soc", default=DEFAULT_PROCESSOR, show_default=True, help="The processor that atc compiles graphs for.")
@click.option(
    "--graphs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of exported graphs; by default that of the results.",
)
@click.option(
    "--count", default=6, show_default=True, help="Random calls of each operator, in addition to the special ones."
)
@click.option("--timeout", default=300.0, show_default=True, help="Seconds that one row or operator may take.")
@format_option("text", "json")
def selftest(
    modules: tuple[str, ...],
    output: Path,
    soc: str,
    graphs: Path | None,
    count: int,
    timeout: float,
    output_format: str,
) -> None:
    """Test the whole installation on the present device, and write one file of results with versions and times.

    It runs CANN's own operators in eager mode, GE graphs, captured graphs and a module that trains, and all checks. Each
    graph is exported for CANN's offline compiler, which runs if atc is found. The operators of MODULE are tested too.
    Without an NPU it runs on the host runtime.

    The exit status is 1 if anything failed.
    """  # fmt: skip
    from ascend_graph.selftest import Wanted, as_text
    from ascend_graph.selftest import selftest as tested

    console = terminal(stderr=True)
    place = graphs or output.with_name(f"{output.stem}_graphs")
    wanted = Wanted(place, modules, soc, timeout, count)
    results = tested(wanted, started=lambda name: console.print(name, markup=False, highlight=False))
    text = json.dumps(results, indent=2, ensure_ascii=False)
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be written: {error.strerror or error}. Name another file"
        ) from None
    click.echo(text if output_format == "json" else f"{as_text(results)}\nresults: {output}")
    sys.exit(not results["ok"])


COMMANDS = (doctor, infer, explain, run, check, picture, selftest)
