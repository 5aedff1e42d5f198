"""Declarations of a generated library's operators in ``operators.ini``: reading, checks and proposals."""

from __future__ import annotations

import ast
import configparser
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ascend_graph.codegen.eager_library.gradients import proposed_gradient
from ascend_graph.codegen.eager_library.sample_calls import DTYPE_NAMES
from ascend_graph.codegen.kernels.launch_proposals import find_kernel, propose_declaration
from ascend_graph.codegen.kernels.source import KernelSources
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding import AclnnCall, find_call
from ascend_graph.binding.dtype_ints import Numbers, dtype_ints, is_dtype_name
from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.generated_schema import OperatorSchema, operator_schema
from ascend_graph.prototypes import AttrType, OpPrototype, ParameterKind
from ascend_graph.shapes import Relation, RelationError, parse_relation
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.unknown import advice


@dataclass(frozen=True, slots=True)
class Declaration:
    """Declaration of one operator in ``operators.ini``."""

    shape: str = ""
    backward: str = ""
    kernel: str = ""
    #: Dtype numbering of ``Int`` attrs: ``dst_type: torch, kind: ge``.
    dtypes: str = ""
    #: Name of the aclnn function, if it is not the op type's, and sources of parameters that names do not settle:
    #: ``alpha: 1, out: y, use_locking: None``.
    aclnn: str = ""
    aclnn_arguments: str = ""
    #: Public schema, or only a name, where they are not the prototype's; and the pairs of names that it leaves open.
    schema: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Overrides:
    """Declarations that the caller gives for new operators, by op type."""

    shapes: Mapping[str, str]
    gradients: Mapping[str, str]
    kernels: Mapping[str, str]
    #: Public schemas and names, and pairs of names; an empty op type stands for the only operator.
    schemas: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------------------ the file


def read_declarations(ini: Path, kernels: KernelSources | None) -> dict[str, Declaration]:
    """Read the declarations of the file; return none if it does not exist yet."""
    if not ini.exists():
        return {}
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None)
    try:
        parser.read_string(ini.read_text(encoding="utf-8"), str(ini))
    except configparser.Error as error:
        raise GenerationError(str(error)) from error
    keys = ("shape", "backward", *(("aclnn", "aclnn_arguments") if kernels is None else ("kernel",)), "dtypes")
    keys = (*keys, "schema", "arguments")
    declared = {}
    for name in parser.sections():
        unknown = set(parser[name]) - set(keys)
        if unknown:
            raise GenerationError(f"{ini}: [{name}] has {', '.join(sorted(unknown))}; it may have {' and '.join(keys)}")
        declared[name] = Declaration(**{key: parser[name].get(key, "").strip() for key in keys})
    return declared


def section(name: str, declaration: Declaration) -> str:
    """Return the text of one operator's section."""
    lines = ["", f"[{name}]", f"shape = {declaration.shape}"]
    if declaration.backward:
        lines.append(f"backward = {declaration.backward}")
    if declaration.kernel:
        lines.append(f"kernel = {declaration.kernel}")
    for key in ("aclnn", "aclnn_arguments", "dtypes", "schema", "arguments"):
        if value := getattr(declaration, key):
            lines.append(f"{key} = {value}")
    return "\n".join(lines) + "\n"


def call_of(prototype: OpPrototype, declaration: Declaration) -> AclnnCall:
    """Return the call plan of the operator's aclnn function.

    Raises:
        BindingError: The function's declaration does not fit.
    """
    settled: dict[str, Any] = {}
    for name, text in re.findall(r"(\w+)\s*:\s*((?:\[[^\]]*\]|\"[^\"]*\"|[^,])+)", declaration.aclnn_arguments):
        try:
            settled[name] = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            settled[name] = text.strip()  # the name of an input, attr or output
    return find_call(prototype, declaration.aclnn or None, settled)


def relation_of(schema: OperatorSchema, declaration: Declaration, ini: Path) -> Relation | None:
    """Return the declared relation of an operator, of fresh outputs only."""
    op_type = schema.prototype.op_type
    if not declaration.shape:
        return None
    try:
        relation = complete_relation(schema.prototype, declaration.shape)
    except RelationError as error:
        raise RelationError(f"{ini}, [{op_type}]: {error}") from error
    known = {p.name for p in (*schema.prototype.inputs, *schema.prototype.outputs)}
    strangers = [n for n in (*relation.inputs, *relation.outputs) if n not in known]
    expected = [p.name for p in schema.returns]
    fresh = [t for t in relation.output_tensors if t.name in expected]
    missing = [n for n in expected if n not in relation.outputs]
    if strangers or missing:
        what = (
            f"{', '.join(strangers)} is not an input or output"
            if strangers
            else f"the output {', '.join(missing)} is missing"
        )
        raise GenerationError(
            f"{ini}, [{op_type}]: {what}; there are {', '.join(sorted(known))}\n  shape = {declaration.shape}"
        )
    attrs = {a.parameter.name for a in schema.arguments if not a.is_tensor}
    unknown = relation.free_names - attrs
    if unknown:
        raise GenerationError(
            f"{ini}, [{op_type}]: {', '.join(sorted(unknown))} must be a dimension or an attr"
            f"{advice(relation, unknown)}\n  shape = {declaration.shape}"
        )
    order = {name: n for n, name in enumerate(expected)}
    return replace(relation, output_tensors=tuple(sorted(fresh, key=lambda t: order[t.name])))


# ----------------------------------------------------------------------------------------------------------- proposals


def propose(
    schemas: Mapping[str, OperatorSchema],
    declared: Mapping[str, Declaration],
    given: Overrides,
    kernels: KernelSources | None,
) -> tuple[dict[str, Declaration], list[str]]:
    """Return declarations of operators without one, and the texts of those that are only proposals."""
    for name in {*given.shapes, *given.gradients, *given.kernels, *given.schemas, *given.arguments} - schemas.keys():
        raise GenerationError(f"{name} is not an operator of the prototypes; there are {', '.join(schemas)}")
    for name, text in (*given.schemas.items(), *given.arguments.items()):
        if name in declared:
            raise GenerationError(
                f"{name}: {text}: operators.ini has a section [{name}], which is yours; expected an operator without one. "
                f"Write schema = and arguments = there"
            )
    new: dict[str, Declaration] = {}
    proposed = []
    for op_type, schema in schemas.items():
        if op_type in declared:
            continue
        shape = given.shapes.get(op_type, "")
        if not shape:
            shape = _proposed_shape(schema) if kernels is None else _proposed_kernel_shape(schema)
            if shape and schema.returns:
                proposed.append(f"shape of {op_type}: {shape}")
        backward = given.gradients.get(op_type, "")
        if not backward:
            backward, reason = proposed_gradient(schema, parse_relation(shape) if shape else None, schemas)
            if backward or reason:
                proposed.append(f"gradient of {op_type}: {backward or f'none, for {reason}'}")
        kernel = given.kernels.get(op_type, "")
        if kernels is not None and not kernel:
            with contextlib.suppress(GenerationError):  # said when the operator is left out
                kernel = kernel_declaration(schema, kernels, alone=len(schemas) == 1)
                proposed.append(f"kernel of {op_type}: {kernel}")
        dtypes = _proposed_dtypes(schema.prototype, shape)
        if dtypes:
            proposed.append(f"dtypes of {op_type}: {dtypes}")
        schema_text, arguments = given.schemas.get(op_type, ""), given.arguments.get(op_type, "")
        new[op_type] = Declaration(shape, backward, kernel, dtypes, schema=schema_text, arguments=arguments)
    return new, proposed


def _proposed_dtypes(prototype: OpPrototype, shape: str) -> str:
    """Propose torch's numbers for an ``Int`` attr that gives an output's dtype, and GE's for others named like one."""
    relation = None
    with contextlib.suppress(RelationError):  # said where the relation is read
        relation = complete_relation(prototype, shape) if shape else None
    found = {a.name: Numbers.GE for a in prototype.attrs if a.type is AttrType.INT and is_dtype_name(a.name)}
    found |= dtype_ints(prototype, relation)
    return ", ".join(f"{name}: {numbers.value}" for name, numbers in found.items())


def numbered(schema: OperatorSchema, declaration: Declaration, ini: Path) -> OperatorSchema:
    """Return the schema with the declared or proposed numbers of dtypes."""
    prototype, place = schema.prototype, f"{ini}, [{schema.prototype.op_type}]"
    said = {}
    for entry in (declaration.dtypes or _proposed_dtypes(prototype, declaration.shape)).split(","):
        name, colon, numbers = (part.strip() for part in entry.partition(":"))
        if not (name or colon):
            continue
        if numbers not in {n.value for n in Numbers}:
            raise GenerationError(
                f"{place}: dtypes = {declaration.dtypes}: write each Int attr with whose numbers of dtypes it takes, torch or ge: "
                f"dtypes = {name or 'dst_type'}: torch"
            )
        said[name] = Numbers(numbers)
    try:
        return operator_schema(prototype, schema.name, dtype_ints(prototype, None, said))
    except EagerError as error:
        raise GenerationError(f"{place}: {error}") from error


def kernel_declaration(schema: OperatorSchema, kernels: KernelSources, *, alone: bool) -> str:
    """Return the declaration of an operator's launch, found by names; ``alone`` if it is the only operator."""
    kernel = find_kernel(schema, kernels, alone=alone)
    if kernel is None:
        raise GenerationError(
            f"no kernel is called {schema.name}; there are {', '.join(kernels.by_name)}: write kernel = … below "
            f"[{schema.prototype.op_type}]"
        )
    return str(propose_declaration(schema, kernel, kernels))


def _proposed_shape(schema: OperatorSchema) -> str:
    """Propose that every fresh output is like the first required input."""
    inputs = [p for p in schema.prototype.inputs if p.kind is ParameterKind.REQUIRED]
    if not inputs or any(p.kind is ParameterKind.DYNAMIC for p in schema.returns):
        return ""
    source = inputs[0].name
    in_place = [f"{name}" for name in schema.prototype.in_place]
    return f"{', '.join(dict.fromkeys([source, *in_place]))} -> {', '.join([*in_place, *[f'{p.name} like {source}' for p in schema.returns]])}"


def _proposed_kernel_shape(schema: OperatorSchema) -> str:
    """Propose one shape for all inputs and outputs, as a kernel reads as much of each operand as it is told."""
    inputs = [p for p in schema.prototype.inputs if p.kind is ParameterKind.REQUIRED]
    if not inputs or any(p.kind is ParameterKind.DYNAMIC for p in schema.returns):
        return ""
    outputs = []
    for output in schema.returns:
        dtype = DTYPE_NAMES.get(output.dtypes[0].name) if len(output.dtypes) == 1 else None
        differs = dtype is not None and output.dtypes != inputs[0].dtypes
        outputs.append(f"{output.name}[*s]{f': {dtype}' if differs else ''}")
    return f"{', '.join(f'{p.name}[*s]' for p in inputs)} -> {', '.join([*schema.prototype.in_place, *outputs])}"
