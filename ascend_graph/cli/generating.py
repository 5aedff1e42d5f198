"""Commands that write sources: ``new``, ``gen``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ascend_graph.cli.common import (
    PATHS,
    SHAPE_EXAMPLE,
    CommandGroup,
    by_operator,
    counted,
    exit_on_errors,
    for_one_operator,
    format_option,
    print_diagnostics,
    print_json,
    read_paths,
)


@click.command(short_help="Write a project of eager kernels in C++.")
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
@click.option(
    "--schema",
    "schemas",
    multiple=True,
    metavar="[OP=]SCHEMA",
    help="The public schema of a new operator, myops::my_op(Tensor self, Tensor other) -> Tensor; may be repeated.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="[OP=]NAME",
    help="Only the public name of a new operator, myops::my_op; may be repeated.",
)
@click.option(
    "--arguments",
    "arguments",
    multiple=True,
    metavar="[OP=]PAIRS",
    help="The arguments of a schema that names do not settle, other: y; may be repeated.",
)
@format_option("text", "json")
def new(
    output_format: str,
    directory: Path,
    sources: tuple[Path, ...],
    launch: str | None,
    bindings: str | None,
    shapes: tuple[str, ...],
    kernels: tuple[str, ...],
    schemas: tuple[str, ...],
    names: tuple[str, ...],
    arguments: tuple[str, ...],
) -> None:
    """Write a project of eager kernels in C++ that builds into a Python package, or bring one up to date.

    Generated code lies in directories called generated, in <package>/_generated.py and in tests/<package>_calls.py; all
    other files are written once and are yours.

    \b
    ascend-graph new my_ops --from op_proto.h
    ascend-graph new my_ops --launch kernel --from op_proto.h --from add_custom.cpp
    ascend-graph new my_ops --from op_proto.h --schema 'myops::my_op(Tensor self, Tensor other) -> Tensor'
    """
    from ascend_graph.codegen.eager_library.project import generate_project

    public = for_one_operator(schemas)
    for op_type, name in for_one_operator(names).items():
        if op_type in public:
            raise click.BadParameter(
                f"{name!r}: --schema gives this operator a name; leave --name out", param_hint="--name"
            )
        public[op_type] = name

    project = generate_project(
        directory,
        sources or None,
        launch=launch,
        bindings=bindings,
        shapes=by_operator("--shape", shapes, SHAPE_EXAMPLE),
        kernels=by_operator("--kernel", kernels, "AddCustom=add_custom(x, y, z: out)"),
        schemas=public,
        arguments=for_one_operator(arguments),
    )
    remarks = {
        "proposed": ("proposed, check operators.ini: ", project.proposed),
        "drafts": ("proposed, check ", project.drafts),
    }
    _report(project.directory, project.operators, project.written, remarks, dict(project.skipped), output_format)


def _report(
    directory: Path,
    operators: Sequence[str],
    written: Sequence[Path],
    remarks: Mapping[str, tuple[str, Sequence[object]]],
    left_out: Mapping[str, str],
    output_format: str,
) -> None:
    """Print the written files and remarks; ``remarks`` maps JSON names to the words before each item in text."""
    if output_format == "json":
        found = {name: list(map(str, items)) for name, (_, items) in remarks.items()}
        print_json(
            {
                "directory": str(directory),
                "operators": list(operators),
                "written": list(map(str, written)),
                **found,
                "left_out": left_out,
            }
        )
        return
    click.echo(f"{directory}: {counted(len(operators), 'operator')}, {counted(len(written), 'file')} written")
    for path in written:
        click.echo(f"  {path}")
    for words, items in remarks.values():
        for item in items:
            click.echo(f"{words}{item}")
    for op_type, reason in left_out.items():
        click.echo(f"left out: {op_type}: {reason}")


@click.group(cls=CommandGroup)
def gen() -> None:
    """Generate source files from prototypes."""


@gen.command("raw-ops", short_help="Generate a Python module of GE raw ops.")
@PATHS
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The module.")
@click.option("--stub/--no-stub", default=True, show_default=True, help="Also write a type stub next to it.")
@format_option("text", "json")
def gen_raw_ops(paths: tuple[Path, ...], output: Path, stub: bool, output_format: str) -> None:
    """Generate a Python module of GE raw ops, written only if it differs.

    The exit status is 1 if anything could not be read; nothing is written then.
    """
    from ascend_graph.codegen.raw_op_module import raw_op_module
    from ascend_graph.codegen.rendering import write_if_different

    result = read_paths(paths)
    print_diagnostics(result.diagnostics)
    exit_on_errors(result)
    if not result.prototypes:
        raise click.ClickException(
            f"no REG_OP in {', '.join(map(str, paths))}: expected at least one; nothing was written"
        )
    module = raw_op_module(result.prototypes)
    written = [write_if_different(output, module.source)]
    if stub:
        written.append(write_if_different(output.with_suffix(".pyi"), module.stub))
    count = len(result.prototypes) - len(module.skipped)
    if output_format == "json":
        left_out = {prototype.op_type: reason for prototype, reason in module.skipped}
        print_json({"file": str(output), "raw_ops": count, "written": any(written), "left_out": left_out})
        return
    for prototype, reason in module.skipped:
        click.echo(f"{prototype.place}: {prototype.op_type} is left out: {reason}", err=True)
    state = "written" if any(written) else "already up to date"
    click.echo(f"{output}: {count} raw ops, {state}", err=True)


_SHAPES = click.option(
    "--shape", "shapes", multiple=True, required=True, metavar="OP=RELATION",
    help="The output shapes of an operator; may be repeated.",
)  # fmt: skip


@gen.command("infer-shape", short_help="Generate InferShape in C++ from shape relations.")
@PATHS
@_SHAPES
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The source; printed without it.")
@format_option("text", "json")
def gen_infer_shape(paths: tuple[Path, ...], shapes: tuple[str, ...], output: Path | None, output_format: str) -> None:
    """Generate InferShape and InferDataType in C++ from shape relations.

    They are functions of the namespace ascend_graph_OP, for SetInferShape and SetInferDataType of the operator's OpDef.

    \b
    ascend-graph gen infer-shape op_proto.h --shape 'AddCustom=x[...], y[...] -> z[...]' -o op_host/add_custom_infershape.cpp
    """
    from ascend_graph.codegen.infer_shape import infer_shape_source
    from ascend_graph.codegen.rendering import GenerationError, write_if_different
    from ascend_graph.shapes.declared_dtypes import complete_relation

    result = read_paths(paths)
    print_diagnostics(result.diagnostics)
    exit_on_errors(result)
    known = {prototype.op_type: prototype for prototype in result.prototypes}
    relations = by_operator("--shape", shapes, SHAPE_EXAMPLE)
    if missing := [name for name in relations if name not in known]:
        raise GenerationError(f"no REG_OP of {', '.join(missing)}: the sources define {', '.join(known) or 'none'}")
    source = "\n".join(
        infer_shape_source(known[name], complete_relation(known[name], text)) for name, text in relations.items()
    )
    functions = [f"ascend_graph_{name}::{f}" for name in relations for f in ("InferShape", "InferDataType")]
    written = output is not None and write_if_different(output, source)
    if output_format == "json":
        print_json({"file": output and str(output), "written": written, "functions": functions, "source": source})
    elif output is None:
        click.echo(source, nl=False)
    else:
        click.echo(f"{output}: {', '.join(functions)}, {'written' if written else 'already up to date'}", err=True)


@gen.command("op-project", short_help="Write an operator project as msOpGen lays it out.")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--from", "sources", multiple=True, required=True, type=click.Path(exists=True, path_type=Path),
    help="A header with REG_OPs, or the source of an Ascend C kernel; may be repeated.",
)  # fmt: skip
@_SHAPES
@click.option(
    "--soc", "socs", multiple=True, default=("ascend910b",), show_default=True, help="An SoC; may be repeated."
)
@click.option("--vendor", default="customize", show_default=True, help="The name of the package once it is installed.")
@format_option("text", "json")
def gen_op_project(
    directory: Path,
    sources: tuple[Path, ...],
    shapes: tuple[str, ...],
    socs: tuple[str, ...],
    vendor: str,
    output_format: str,
) -> None:
    """Write an operator project as msOpGen lays it out, or bring one up to date.

    Definition and shape functions are generated each time; tiling, kernel, build files and tests are written once and yours.

    \b
    ascend-graph gen op-project add --from op_proto.h --shape 'AddCustom=x[*s], y[*s] -> z[*s]'
    ascend-graph build add -o opp                             without an NPU
    ascend-graph run --opp opp -m pytest add/tests
    """
    from ascend_graph.codegen.op_project import generate_op_project

    relations = by_operator("--shape", shapes, SHAPE_EXAMPLE)
    project = generate_op_project(directory, sources, shapes=relations, socs=socs, vendor=vendor)
    remarks = {"drafts": ("yours to write: ", project.drafts)}
    _report(project.directory, project.operators, project.written, remarks, dict(project.left_out), output_format)


COMMANDS = (new, gen)
