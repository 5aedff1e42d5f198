"""Description of a project: its host sources are compiled, and the library is asked for their definitions."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ascend_graph.codegen.operator_package import TilingField, TilingStructure
from ascend_graph.codegen.rendering import write_if_different
from ascend_graph.environment import toolkit_directory
from ascend_graph.host.packages.format import OperatorPackageError
from ascend_graph.host.projects.libraries import COMPILE_LIMIT, GENERATED_SOURCES, host_library
from ascend_graph.host.projects.model import (
    BuildOptions,
    Description,
    OperatorProject,
    ProjectOperator,
    is_for_others,
    other_devices,
)
from ascend_graph.host.projects.source_text import code_of, named_compute_units
from ascend_graph.processors import COMPUTE_UNITS
from ascend_graph.prototypes import Attr, AttrType, DataType, OpPrototype, Parameter, ParameterKind, PassedAs
from ascend_graph.prototypes.naming import snake_case

#: Seconds that a project's definitions may run.
_DESCRIBE_LIMIT = 60.0
_ASK = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).ascendgraphDescribe(sys.argv[2].encode()))"
_KINDS = {
    "optional": ParameterKind.OPTIONAL,
    "virtual": ParameterKind.OPTIONAL,
    "required": ParameterKind.REQUIRED,
    "dynamic": ParameterKind.DYNAMIC,
}


class ComputeUnitWarning(UserWarning):
    """Definition that names a processor which CANN does not have: it changes nothing."""


def compile_definitions(project: OperatorProject, work: Path) -> Path:
    """Compile a project's host sources, with its headers that only select template instances.

    Raises:
        BuildError: a source does not compile.
        OperatorPackageError: the project is for other devices.
    """
    # Its tiling functions would be missing, so it is refused before it is compiled.
    named = {unit for path in project.host_sources for unit in named_compute_units(code_of(path))}
    if is_for_others(named, project.options.architecture):
        raise OperatorPackageError(f"{project.directory}: {other_devices(named, project.options)}")
    selecting = []
    for index, header in enumerate(project.instance_headers):
        selecting.append(work / GENERATED_SOURCES / f"selections_{index}.cpp")
        write_if_different(selecting[-1], f'#include "{header}"\n')
    source = toolkit_directory() / "include/op_host/ascend_graph/describe.cpp"
    return host_library(project, "libdefinitions", source, work, more=selecting).build(time_limit=COMPILE_LIMIT)


def describe(project: OperatorProject, work: Path) -> Description:
    """Return the operators that a project's host sources define.

    Raises:
        BuildError: a source does not compile.
        OperatorPackageError: the sources define no operator, or one that no kernel can be built for.

    Warns:
        ComputeUnitWarning: a definition names a processor that CANN does not have, next to others.
    """
    description = _description(_ask(compile_definitions(project, work), project), project)
    for operator in description.operators:
        _check_names(operator)
    if project.listed is not None:
        for operator in description.operators:
            _check_compute_units(operator, project.listed.compute_units)
    return description


def _ask(library: Path, project: OperatorProject) -> Mapping[str, Any]:
    """Run the definitions of a library in a separate process and return them."""
    with tempfile.TemporaryDirectory(prefix="ascend-graph-") as scratch:
        result = Path(scratch) / "definitions.json"
        try:
            run = subprocess.run(
                [sys.executable, "-c", _ASK, str(library), str(result)],
                capture_output=True,
                text=True,
                check=False,
                timeout=_DESCRIBE_LIMIT,
            )
        except subprocess.TimeoutExpired:
            raise OperatorPackageError(
                f"{project.directory}: the definitions did not end in {_DESCRIBE_LIMIT:g} seconds; expected "
                "definitions without work of their own"
            ) from None
        if run.returncode != 0:
            ended = f"ended by signal {-run.returncode}" if run.returncode < 0 else "failed"
            raise OperatorPackageError(
                f"{project.directory}: the definitions {ended}; correct the classes of op_host: {run.stderr.strip()[-2000:]}"
            )
        found: Mapping[str, Any] = json.loads(result.read_text())
        return found


def _check_names(operator: ProjectOperator) -> None:
    """Reject an operator whose processors are all unknown to CANN, which builds no kernel for them; warn of single ones."""
    for unknown in sorted(operator.compute_units - COMPUTE_UNITS):
        known = difflib.get_close_matches(unknown.lower(), sorted(COMPUTE_UNITS), 1) or sorted(COMPUTE_UNITS)
        text = (
            f'{operator.prototype.op_type}: AddConfig("{unknown}") names no processor that is known here, and a package for a '
            f'device gets no kernel from a name that CANN does not have; write AddConfig("{known[0]}")'
            + f", or one of {', '.join(known[1:])}"
            * (len(known) > 1)
        )
        if operator.compute_units.isdisjoint(COMPUTE_UNITS):
            raise OperatorPackageError(text)
        warnings.warn(ComputeUnitWarning(text), stacklevel=2)


def _check_compute_units(operator: ProjectOperator, compute_units: Sequence[str]) -> None:
    """Reject an operator without a kernel for any compute unit of the build files: a device's package lacks it too."""
    if compute_units and operator.compute_units and operator.compute_units.isdisjoint(compute_units):
        raise OperatorPackageError(
            f"{operator.prototype.op_type}: AddConfig names {', '.join(sorted(operator.compute_units))} alone, and the "
            f"package is built for {', '.join(compute_units)} (ASCEND_COMPUTE_UNIT); write "
            f'this->AICore().AddConfig("{compute_units[0]}"), or another ASCEND_COMPUTE_UNIT'
        )


def _description(found: Mapping[str, Any], project: OperatorProject) -> Description:
    def rank(one: Mapping[str, Any]) -> tuple[bool, int]:
        """Return the rank of a template table: others' architectures first, then tables that only compute keys."""
        return not project.is_other_architecture(Path(one["file"])), len(one["instances"])

    templates = {one["op"]: one for one in sorted(found["templates"], key=rank)}
    only = next(iter(templates.values())) if len(templates) == len(found["operators"]) == 1 else None
    operators = tuple(
        _operator(one, templates.get(one["type"]) or templates.get(snake_case(one["type"])) or only, project)
        for one in found["operators"]
    )
    if not operators:
        raise OperatorPackageError(
            f"{project.directory}: op_host defines no operator; register its class with OP_ADD(…)"
        )
    tilings: dict[str, TilingStructure] = {}
    for one in found["tiling_classes"]:
        fields = tuple(TilingField(f["type"].rpartition("::")[2], f["name"], f["count"]) for f in one["fields"])
        known = tilings.get(one["name"])
        ops = (*(known.ops if known is not None else ()), one["op"])
        tilings[one["name"]] = TilingStructure(ops, one["name"], one["size"], fields)
    return Description(operators, _in_order(tilings))


def _in_order(tilings: Mapping[str, TilingStructure]) -> tuple[TilingStructure, ...]:
    """Return the structures, each after those that it contains."""
    ordered: dict[str, TilingStructure] = {}

    def add(one: TilingStructure) -> None:
        for member in one.fields:
            if member.type in tilings and member.type not in ordered and member.type != one.name:
                add(tilings[member.type])
        ordered.setdefault(one.name, one)

    for one in tilings.values():
        add(one)
    return tuple(ordered.values())


def _operator(
    found: Mapping[str, Any], template: Mapping[str, Any] | None, project: OperatorProject
) -> ProjectOperator:
    _check_operator(found, project.options)
    combinations = tuple(tuple(DataType(number) for number in one) for one in found["combinations"])
    operator = ProjectOperator(
        _prototype(found, combinations, project.directory),
        combinations,
        formats=tuple(map(tuple, found["formats"])),
        infers_shapes=found["infer_shape"],
        data_inputs=tuple(found["data_inputs"]),
        kernel_file=found["kernel_file"],
        compute_units=frozenset(found["socs"]),
        interface=found["kernel"],
    )
    if template is None:
        return operator
    return replace(
        operator,
        instances=tuple((one["key"], tuple(one["arguments"])) for one in template["instances"]),
        template_dtypes=tuple(template["dtypes"]),
        template_bounds=tuple(_bound(one, operator.prototype) for one in template["bounds"]),
    )


def _check_operator(found: Mapping[str, Any], options: BuildOptions) -> None:
    """Reject a definition that no kernel can be built for."""
    op_type = found["type"]
    for parameter in (*found["inputs"], *found["outputs"]):
        if parameter["kind"] not in _KINDS:
            raise OperatorPackageError(
                f"{op_type}: {parameter['name']} is {parameter['kind']}; it must be one of {', '.join(_KINDS)}"
            )
    if is_for_others(found["socs"], options.architecture):
        raise OperatorPackageError(f"{op_type}: {other_devices(found['socs'], options)}")
    if by_kernel := [p["name"] for p in found["outputs"] if p["shape_by_kernel"]]:
        raise OperatorPackageError(
            f"{op_type}: its kernel writes the shape of {', '.join(by_kernel)} (OutputShapeDependOnCompute), which the "
            f"host runtime does not read; return the size as an output"
        )


def _prototype(found: Mapping[str, Any], combinations: Sequence[tuple[DataType, ...]], directory: Path) -> OpPrototype:
    columns = [tuple(dict.fromkeys(column)) for column in zip(*combinations, strict=True)]
    inputs = tuple(
        Parameter(p["name"], _KINDS[p["kind"]], dtypes, passed_as=PassedAs(p["passed_as"]))
        for p, dtypes in zip(found["inputs"], columns, strict=False)
    )
    outputs = tuple(
        # As in CANN's header: REG_OP has no optional outputs.
        Parameter(p["name"], ParameterKind.DYNAMIC if p["kind"] == "dynamic" else ParameterKind.REQUIRED, dtypes)
        for p, dtypes in zip(found["outputs"], columns[len(inputs) :], strict=True)
    )
    return OpPrototype(found["type"], inputs, tuple(map(_attr, found["attrs"])), outputs, file=str(directory))


def _bound(found: Sequence[Any] | None, prototype: OpPrototype) -> int | None:
    """Return the position of the parameter that ASCENDC_TPL_INPUT or ASCENDC_TPL_OUTPUT names, inputs first."""
    if found is None:
        return None
    is_output, index = found
    parameters = prototype.outputs if is_output else prototype.inputs
    if index >= len(parameters):
        which = "OUTPUT" if is_output else "INPUT"
        raise OperatorPackageError(f"{prototype.op_type}: ASCENDC_TPL_{which}({index}): it has {len(parameters)}")
    return int(index) + (len(prototype.inputs) if is_output else 0)


def _attr(found: Mapping[str, Any]) -> Attr:
    kind = AttrType(found["type"])
    if found["required"]:
        return Attr(found["name"], kind, True)
    convert = float if kind in (AttrType.FLOAT, AttrType.LIST_FLOAT) else _as_tuple
    value = found["default"]
    if isinstance(value, list):
        return Attr(found["name"], kind, False, tuple(convert(v) for v in value))
    return Attr(found["name"], kind, False, convert(value))


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
