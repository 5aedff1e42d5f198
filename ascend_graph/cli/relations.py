"""The parts of ``ascend-graph infer`` that ask InferShape and meta functions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ascend_graph.cli.common import print_diagnostics, print_json, read_paths

if TYPE_CHECKING:
    from ascend_graph.checks.shape_evidence import SourceResult
    from ascend_graph.prototypes import OpPrototype
    from ascend_graph.shapes.functions import ShapeFunction


def report_functions(
    package: Path | None,
    op_types: Sequence[str],
    compiled: Sequence[Path],
    sources: Sequence[Path],
    output: Path | None,
    output_format: str,
) -> None:
    """Print the relations of InferShape functions, or write them to a file; exit with status 1 if there are none."""
    from ascend_graph.checks.shape_evidence import SourceResult, search

    results: list[SourceResult] = []
    if package is not None:
        from ascend_graph.host.infer_shape.packages import package_functions

        results += [search(function) for function in package_functions(package, op_types)]
    for path in compiled:
        functions, problems = _functions_of(path, _prototypes(sources))
        results += [search(function) for function in functions]
        results += [SourceResult(name, str(path), None, 0, reason) for name, reason in problems]
    remarks = [] if output is None else _write(output, results)
    if output_format == "json":
        print_json({"file": output and str(output), "operators": [r.as_dict() for r in results], "remarks": remarks})
    else:
        for result in results:
            click.echo(_line(result))
        for remark in remarks:
            click.echo(remark, err=True)
    sys.exit(not any(result.relation is not None for result in results))


def _functions_of(path: Path, prototypes: Sequence[OpPrototype]) -> tuple[list[ShapeFunction], list[tuple[str, str]]]:
    """Compile a source, and return its functions and the operators that cannot be asked; a failure is one of these."""
    from ascend_graph.compilation import BuildError
    from ascend_graph.host.infer_shape.sources import ShapeSourceError, source_functions

    try:
        found = source_functions(path, prototypes=prototypes)
    except (BuildError, ShapeSourceError) as error:
        return [], [(path.stem, str(error))]
    missing = "its prototype is not known: neither OpDef nor REG_OP lies in its project. Write --from HEADER"
    return list(found.functions), [(name, missing) for name in found.without_prototype]


def _prototypes(sources: Sequence[Path]) -> tuple[OpPrototype, ...]:
    if not sources:
        return ()
    read = read_paths(sources)
    print_diagnostics(read.diagnostics)
    return tuple(read.prototypes)


def _line(result: SourceResult) -> str:
    if result.relation is None:
        return f"# {result.op_type}: no relation: {result.reason}"
    notes = "".join(f"\n# {note}" for note in result.notes)
    return f'register_op("{result.op_type}", shape={str(result.relation)!r}){notes}'


def _write(path: Path, results: Sequence[SourceResult]) -> list[str]:
    """Write the file of relations; keep a section that differs, and return a remark for each."""
    from ascend_graph.codegen.rendering import write_if_different
    from ascend_graph.shapes.relation_files import read_relations, relation_file

    kept, problems = read_relations(path) if path.exists() else ({}, [])
    remarks = [problem.message for problem in problems]
    relations = {name: one.relation for name, one in kept.items()}
    notes: dict[str, list[str]] = {}
    for result in results:
        own = relations.get(result.op_type)
        if result.relation is None:
            notes[result.op_type] = [result.reason.splitlines()[0]]
            continue
        notes[result.op_type] = [*result.notes]
        if own is not None and own != result.relation:
            place = kept[result.op_type].place
            remarks.append(
                f"{place}: {result.op_type}: kept {own}; {result.source} says {result.relation}. Remove the section to take that"
            )
            continue
        relations[result.op_type] = result.relation
    written = write_if_different(path, relation_file(relations, notes))
    state = "written" if written else "already up to date"
    return [*remarks, f"{path}: {len(relations)} relations, {state}"]


#: Options that say nothing, by the way in which relations are asked for.
_IGNORED = {
    "--meta": {"-o"},
    "sources": {"--op", "--import", "--device"},
    "--package": {"--import", "--device"},
    "NAMESPACE::OP": {"--op", "--from", "-o"},
}


def refuse_ignored(meta: str | None, package: Path | None, compiled: Sequence[Path], options: set[str]) -> None:
    """Raise for options that would have no effect."""
    way = "--meta" if meta else "sources" if compiled else "--package" if package else "NAMESPACE::OP"
    if unused := sorted(options & _IGNORED[way]):
        raise click.UsageError(f"{', '.join(unused)} does not go with {way}: leave it out")


def report_kernel(name: str, modules: Sequence[str], device: str | None, output_format: str) -> None:
    """Print the relation that an operator's kernel follows, found by running it."""
    from ascend_graph.inference import infer_overload
    from ascend_graph.registration.lookup import find_overload, import_extension, kernel_device

    for module in modules:
        import_extension(module)
    overload = find_overload(name)
    relation = str(infer_overload(overload, device=device or kernel_device(overload)))
    if output_format == "json":
        print_json({"operator": str(overload), "relation": relation})
    else:
        click.echo(relation)


def compare_meta(
    name: str,
    op_type: str | None,
    sources: Sequence[Path],
    modules: Sequence[str],
    device: str | None,
    output_format: str,
) -> None:
    """Print the relation of a meta function and its differences to prototype, InferShape and kernel.

    The exit status is 1 if there is no relation, or if two of them differ.
    """
    from ascend_graph.checks.shape_evidence import compare_sources, prototype_differences, search

    functions = _meta_sources(name, op_type, sources, modules, device)
    results = [search(function) for function in functions[:2]]
    relations = [result.relation for result in results]
    compared = compare_sources(functions, relations)
    against_prototype = prototype_differences(functions[0], relations[0])
    differ = any(one.differing for one in compared) or bool(against_prototype)
    if output_format == "json":
        comparisons = [
            {
                "first": one.first,
                "second": one.second,
                "compared": one.compared,
                "differing": one.differing,
                "example": one.example,
            }
            for one in compared
        ]
        print_json(
            {"sources": [r.as_dict() for r in results], "comparisons": comparisons, "prototype": against_prototype}
        )
    else:
        for result in results:
            click.echo(f"# from {result.source}\n{_line(result)}")
        for line in (*map(str, compared), *against_prototype):
            click.echo(line)
    sys.exit(differ or relations[0] is None)


def _meta_sources(
    name: str, op_type: str | None, sources: Sequence[Path], modules: Sequence[str], device: str | None
) -> list[ShapeFunction]:
    """Return the meta function, then InferShape of a source or an installed package, then the kernel, as far as there are any."""
    from ascend_graph.checks.shape_evidence import (
        EvidenceError,
        overload_kernel,
        overload_meta,
        prototype_of,
        python_meta,
        schema_prototype,
    )
    from ascend_graph.prototypes import find_prototype
    from ascend_graph.registration.lookup import find_overload, import_extension, kernel_device
    from ascend_graph.workers import import_operators

    for module in modules:
        import_extension(module)
    infer_shape = [
        path for path in sources if path.suffix in (".cpp", ".cc", ".cxx") and not path.name.endswith("_def.cpp")
    ]
    known = _prototypes([path for path in sources if path not in infer_shape])
    asked: list[ShapeFunction] = []
    for path in infer_shape:
        functions, problems = _functions_of(path, known)
        asked += functions
        for operator, reason in problems:
            click.echo(f"{operator}: {reason}", err=True)
    known = (*known, *(function.prototype for function in asked))
    named = (
        next((p for p in known if p.op_type == op_type), None)
        if op_type
        else prototype_of(name.rpartition(":")[2], known)
    )
    prototype: Any = named or (find_prototype(op_type) if op_type else None)
    found: list[ShapeFunction] = []
    if "::" in name:
        overload = find_overload(name)
        prototype = prototype or schema_prototype(overload)
        found = [overload_meta(overload, prototype)]
        if overload.has_kernel_for_dispatch_key(_key("CPU")) or overload.has_kernel_for_dispatch_key(
            _key("PrivateUse1")
        ):
            found.append(overload_kernel(overload, prototype, device or kernel_device(overload)))
    else:
        module, _, function = name.rpartition(":")
        names = import_operators(module) if module else {}
        if not callable(names.get(function)):
            raise EvidenceError(f"{name}: is not a function; expected MODULE:FUNCTION or NAMESPACE::OP")
        if prototype is None:
            raise EvidenceError(
                f"{name}: the op type is not known; expected --op OP, and --from HEADER if it is not installed"
            )
        found = [python_meta(names[function], prototype)]
    return [found[0], *(one for one in asked if one.prototype == prototype), *_installed(prototype), *found[1:]]


def _key(name: str) -> Any:
    import torch

    return getattr(torch._C.DispatchKey, name)


def _installed(prototype: OpPrototype) -> list[ShapeFunction]:
    from ascend_graph.environment import is_active

    if not is_active():
        return []
    from ascend_graph.host.packages.author_shapes import author_function

    function = author_function(prototype)
    return [] if function is None else [function]
