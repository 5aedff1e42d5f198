"""Operators of a project: their calls and their gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from ascend_graph.codegen.declarations import Declaration, call_of, kernel_declaration, relation_of
from ascend_graph.codegen.eager_library.cpp_operators import CppOperator, cpp_operator
from ascend_graph.codegen.eager_library.gradients import cpp_gradient
from ascend_graph.codegen.eager_library.public_schema import PublicSchema, public_schema
from ascend_graph.codegen.kernels.launch import plan_launch
from ascend_graph.codegen.kernels.source import KernelSources
from ascend_graph.codegen.rendering import GenerationError, identifier

from ascend_graph.aclnn import ConflictingDeclarationsError, ValueKind
from ascend_graph.autograd import parse_wiring
from ascend_graph.binding import AclnnCall, BindingError, Part
from ascend_graph.binding.calls.installed import declaration as c_declaration
from ascend_graph.binding.dtype_ints import Numbers, dtype_ints
from ascend_graph.binding.generated_schema import OperatorSchema, operator_schema
from ascend_graph.errors import AscendGraphError
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import Dims
from ascend_graph.sources.installed import made_with


def idle_kernels(
    operators: Sequence[CppOperator],
    kernel_sources: KernelSources | None,
    skipped: Sequence[tuple[str, str]],
    left_out: list[tuple[str, str]],
    ini: Path,
) -> None:
    """Add kernels that no operator launches to ``left_out``; raise if there are no operators."""
    if not operators and kernel_sources is not None:
        reasons = "; ".join(f"{name}: {why}" for name, why in (*skipped, *left_out))
        raise GenerationError(f"{reasons}{'' if ini.exists() else '; give --kernel OP=… for a new project'}")
    if kernel_sources is not None:
        launched = {o.launch.kernel.name for o in operators if o.launch}
        idle = [name for name in kernel_sources.by_name if name not in launched]
        left_out += [(f"the kernel {name}", "no operator launches it; add a prototype of its own") for name in idle]


def plan_operators(
    schemas: Mapping[str, OperatorSchema],
    declarations: Mapping[str, Declaration],
    ini: Path,
    kernels: KernelSources | None,
    proposed: Set[str],
    calls: Mapping[str, AclnnCall],
    package: str,
) -> tuple[list[CppOperator], list[tuple[str, str]]]:
    """Return the operators, and those left out because of their shape, call or proposed kernel."""
    operators: list[CppOperator] = []
    left_out: list[tuple[str, str]] = []
    for op_type, schema in schemas.items():
        declaration = declarations.get(op_type, Declaration())
        if schema.returns and not declaration.shape:
            left_out.append((op_type, f"{ini.name} does not say its output shapes: write shape = … below [{op_type}]"))
            continue
        if op_type in calls and (declaration.aclnn or declaration.aclnn_arguments or declaration.dtypes):
            raise GenerationError(
                f"{ini}, [{op_type}]: aclnn, aclnn_arguments and dtypes are for prototypes. Leave them out: this "
                "operator is the function itself"
            )
        relation = relation_of(schema, declaration, ini)
        where = f"{ini}, [{op_type}]"
        call = None
        if kernels is None:
            try:
                call = calls.get(op_type) or call_of(schema.prototype, declaration)
                _check_numbers(schema, call, relation)
                called = schema if op_type in calls else _as_called(schema, call, relation)
            except (BindingError, ConflictingDeclarationsError, GenerationError) as error:
                left_out.append((op_type, str(error)))
                continue
            public = public_schema(called, declaration.schema, declaration.arguments, package, where)
            relation = relation_of(public.schema, declaration, ini)
            try:
                operator = cpp_operator(public.schema, relation, declaration, call)
            except GenerationError as error:
                left_out.append((op_type, str(error)))
                continue
        else:
            public = public_schema(schema, declaration.schema, declaration.arguments, package, where)
            relation = relation_of(public.schema, declaration, ini)
            operator = cpp_operator(public.schema, relation, declaration)
            try:
                text = declaration.kernel or kernel_declaration(schema, kernels, alone=len(schemas) == 1)
                launch = plan_launch(operator, text, kernels, relation, where)
            except GenerationError as error:
                if op_type not in proposed:
                    raise
                left_out.append((op_type, str(error)))
                continue
            operator = replace(operator, launch=launch)
        operator = _published(operator, public, schema, operators, declared=op_type in calls, where=where)
        operators.append(operator)
    return _with_gradients(operators, declarations, ini), left_out


def _published(
    operator: CppOperator,
    public: PublicSchema,
    schema: OperatorSchema,
    others: Sequence[CppOperator],
    *,
    declared: bool,
    where: str,
) -> CppOperator:
    """Return an operator with its public names; ``schema`` is the one that its own files are called by."""
    if declared and operator.shapes is None and public.renamed:
        raise GenerationError(
            f"{where}: shape = {operator.relation} is more than C++ writes, and a function's meta function in Python "
            f"takes its names: expected {', '.join(public.renamed.values())}, got {', '.join(public.renamed)}"
        )
    same = next((other for other in others if other.name == operator.name), None)
    if same is not None:
        raise GenerationError(
            f"{where}: the name {operator.name} is that of {same.op_type}, too; expected one of its own. "
            f"Write schema = {public.namespace}::{operator.name}_2"
        )
    return replace(operator, namespace=public.namespace, file=identifier(schema.name), renamed=public.renamed)


def _check_numbers(schema: OperatorSchema, call: AclnnCall, relation: Relation | None) -> None:
    """Refuse a relation that gives a shape to an output that is one number in host memory."""
    outputs = schema.prototype.outputs
    numbers = {
        outputs[a.index].name for a in call.arguments if a.part is Part.OUTPUT and a.type.value is ValueKind.HOST_OUTPUT
    }
    for output in relation.output_tensors if relation is not None else ():
        shapes = [alternative.shape for alternative in output.alternatives]
        if output.name in numbers and not all(isinstance(shape, Dims) and not shape.items for shape in shapes):
            raise GenerationError(
                f"{output.name} of its aclnn function is host memory for one number, and the relation gives it a shape: {output}; "
                f"write {output.name}[] with its dtype"
            )


def _as_called(schema: OperatorSchema, call: AclnnCall, relation: Relation | None) -> OperatorSchema:
    """Return the schema with numbers for inputs that the function takes by value, and with its dtype attrs."""
    numbers = call.number_inputs(schema.prototype)
    dtypes = dict.fromkeys(call.dtype_attrs(schema.prototype), Numbers.TORCH) | dict(schema.dtype_ints)
    if not numbers and dtypes == dict(schema.dtype_ints):
        return schema
    shaped = [t.name for t in relation.input_tensors if t.name in numbers] if relation is not None else []
    if shaped:
        raise GenerationError(
            f"{call.function} takes the values of {shaped[0]}, numbers in the schema; the relation {relation} takes it for a "
            "tensor: leave it out there, or use register_op"
        )
    return operator_schema(schema.prototype, schema.name, dtype_ints(schema.prototype, None, dtypes), numbers)


def _with_gradients(
    operators: Sequence[CppOperator],
    declarations: Mapping[str, Declaration],
    ini: Path,
) -> list[CppOperator]:
    known = {o.op_type: o.op_schema for o in operators}
    complete = []
    for operator in operators:
        declaration = declarations.get(operator.op_type, Declaration())
        gradient = None
        if declaration.backward:
            schema = operator.op_schema
            try:
                wiring = parse_wiring(declaration.backward)
                gradient = cpp_gradient(schema, relation_of(schema, declaration, ini), wiring, known)
            except AscendGraphError as error:
                raise GenerationError(f"{ini}, [{operator.op_type}]: {error}") from error
        complete.append(replace(operator, gradient=gradient))
    return complete


def compiled_declarations(operators: Sequence[CppOperator]) -> dict[str, list[str]]:
    """Return the declarations that the library is compiled by, once per function, by CANN version of their headers."""
    functions = {o.declared.name: o.declared for o in operators if o.declared is not None}
    found: dict[str, list[str]] = {}
    for function in functions.values():
        found.setdefault(made_with(function.file) or "", []).append(c_declaration(function))
    return found
