"""Operators whose eager kernel launches an Ascend C kernel: the kernel, its arguments, and the C++ of the launch.

A launch function computes the values that prototype and signature leave open (the number of blocks, sizes, tiling). It
is one small file per operator and is the author's; :mod:`ascend_graph.codegen.kernels.launch_proposals` proposes its
first version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from ascend_graph.codegen.kernels.launch_model import Instance, KernelArgument, KernelLaunch, LaunchOperand
from ascend_graph.codegen.kernels.launch_proposals import BYTES, NULL, SCRATCH, launch_proposal
from ascend_graph.codegen.kernels.source import (
    ELEMENT_TYPES,
    NUMBER_TYPES,
    KernelFunction,
    KernelParameter,
    KernelSources,
    TilingStruct,
)
from ascend_graph.codegen.operator_package import CPP_KEYWORDS, aclnn_parameters
from ascend_graph.codegen.rendering import GenerationError, identifier, render

from ascend_graph.binding.dtypes import torch_number
from ascend_graph.binding.generated_schema import AclnnArgumentKind, operator_schema
from ascend_graph.prototypes import DataType, Parameter, ParameterKind
from ascend_graph.prototypes.dtypes import NAMED_SETS
from ascend_graph.shapes import Relation

if TYPE_CHECKING:
    from ascend_graph.codegen.eager_library.cpp_operators import CppOperator

#: Names that the generated functions use themselves.
_RESERVED = CPP_KEYWORDS | {"op", "launch", "stream", "block_dim", "kernel", "args"}
_DECLARATION = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:<([\w\s:,]+)>)?\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_ITEM = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::\s*([A-Za-z_]\w*))?\s*\Z")
_ELEMENT_OF = {dtype: name for name, dtype in reversed(ELEMENT_TYPES.items())}
#: Type of an attr in a launch function, and its expressions from the operator's argument and a graph node's.
_ATTRS = {
    AclnnArgumentKind.INT: ("int64_t", "{}", "{}"),
    AclnnArgumentKind.FLOAT: ("double", "{}", "{}"),
    AclnnArgumentKind.BOOL: ("bool", "{}", "{}"),
    AclnnArgumentKind.STRING: ("std::string", "std::string({})", "std::string({})"),
    AclnnArgumentKind.INTS: ("std::vector<int64_t>", "({}).vec()", "std::vector<int64_t>({0}.begin(), {0}.end())"),
    AclnnArgumentKind.FLOATS: ("std::vector<double>", "({}).vec()", "std::vector<double>({0}.begin(), {0}.end())"),
    AclnnArgumentKind.BOOLS: ("std::vector<bool>", "booleans({})", "std::vector<bool>({0}.begin(), {0}.end())"),
    AclnnArgumentKind.DTYPE: (
        "aclDataType",
        "ConvertType(static_cast<at::ScalarType>({}))",
        "static_cast<aclDataType>({})",
    ),
}


def plan_launch(
    op: CppOperator, declaration: str, sources: KernelSources, relation: Relation | None, where: str
) -> KernelLaunch:
    """Return the launch that a declaration denotes.

    Raises:
        GenerationError: It is malformed, has unknown names, or a parameter has a type that cannot be launched with.
    """
    kernel, instance, given = _read(declaration, sources, where)
    operands = tuple(_with_element(o, kernel, given) for o in _operands(op, where))
    tensors = {o.source: o for o in operands if o.parameter is not None}
    arguments = tuple(_argument(p, given.get(p.name), tensors, sources, kernel, where) for p in kernel.parameters)
    used = {a.operand for a in arguments}
    missing = [name for name, o in tensors.items() if name not in used and not o.optional]
    if missing:
        raise GenerationError(
            f"{where}: the kernel {kernel} is not given {', '.join(missing)}; write kernel = {kernel.name}(…)"
        )
    addressed = {a.operand: a for a in arguments if a.operand}
    proposal, unknown = launch_proposal(arguments, operands, relation)
    return KernelLaunch(
        kernel,
        kernel.file.relative_to(sources.root),
        arguments,
        operands,
        (Instance("", instance),) if instance else _instances(kernel, addressed, tensors, relation, where),
        proposal,
        unknown,
    )


def _with_element(operand: LaunchOperand, kernel: KernelFunction, given: Mapping[str, str]) -> LaunchOperand:
    """Take the dtype that the kernel's source reads if the prototype allows every dtype."""
    names = (p.name for p in kernel.parameters if p.is_pointer and given.get(p.name, p.name) == operand.source)
    element = next((ELEMENT_TYPES[e] for n in names if (e := kernel.elements.get(n)) in ELEMENT_TYPES), None)
    if element is None or operand.dtypes or operand.parameter is None:
        return operand
    return replace(operand, dtypes=_scalar_types(replace(operand.parameter, dtypes=(element,))))


def _read(declaration: str, sources: KernelSources, where: str) -> tuple[KernelFunction, str, dict[str, str]]:
    """Return the kernel, the arguments of its template, and the sources of its addresses."""
    match = _DECLARATION.match(declaration)
    if match is None:
        raise GenerationError(
            f"{where}: {declaration!r} is not a kernel; write kernel = add_custom(x, y, z: out, tiling: bytes)"
        )
    kernel = sources.by_name.get(match[1])
    if kernel is None:
        raise GenerationError(f"{where}: unknown kernel {match[1]!r}; expected one of {', '.join(sources.by_name)}")
    given: dict[str, str] = {}
    instance = " ".join((match[2] or "").split())
    if instance and len(instance.split(",")) > len(kernel.templates):
        raise GenerationError(
            f"{where}: {kernel.name}<{instance}>: the kernel has {len(kernel.templates)} template parameters; give at most as many"
        )
    if not instance and not kernel.by_dtype:
        raise GenerationError(
            f"{where}: the template {kernel} is not chosen by dtypes alone; write which instance to launch: "
            f"kernel = {kernel.name}<{', '.join(kernel.templates)}>(…) with values for these"
        )
    for text in (match[3] or "").split(",") if (match[3] or "").strip() else ():
        item = _ITEM.match(text)
        names = [p.name for p in kernel.parameters if p.is_pointer]
        if item is None or item[1] not in names:
            raise GenerationError(
                f"{where}: {text.strip()!r} is not an address of the kernel {kernel}; they are {', '.join(names)}"
            )
        given[item[1]] = item[2] or item[1]
    return kernel, instance, given


def _argument(
    parameter: KernelParameter,
    what: str | None,
    tensors: Mapping[str, LaunchOperand],
    sources: KernelSources,
    kernel: KernelFunction,
    where: str,
) -> KernelArgument:
    name = f"{identifier(parameter.name)}_" if parameter.name in _RESERVED else identifier(parameter.name)
    if parameter.is_pointer:
        what = what or parameter.name
        if what in tensors:
            return KernelArgument(parameter, name, "operand", what)
        if what in (SCRATCH, NULL):
            return KernelArgument(parameter, name, what)
        if what == BYTES or what in sources.structs:
            return KernelArgument(parameter, name, "data", struct=sources.structs.get(what))
        choices = ", ".join([*tensors, SCRATCH, BYTES, NULL, *sources.structs])
        raise GenerationError(
            f"{where}: {parameter.name} of the kernel {kernel} is given {what!r}; it may be given {choices}"
        )
    if parameter.number:
        return KernelArgument(parameter, name, "number")
    if parameter.type in sources.structs:
        return KernelArgument(parameter, name, "struct", struct=sources.structs[parameter.type])
    if re.fullmatch(r"[A-Za-z_][\w:]*", parameter.type) and parameter.type not in (*ELEMENT_TYPES, *kernel.templates):
        return KernelArgument(parameter, name, "struct")
    raise GenerationError(
        f"{where}: the kernel {kernel} takes {parameter.name} as {parameter.type}; a launch passes addresses, structures, and "
        f"numbers of {', '.join(dict.fromkeys(NUMBER_TYPES.values()))}"
    )


def _operands(op: CppOperator, where: str) -> tuple[LaunchOperand, ...]:
    schema = op.op_schema
    node = {p.source_name: p.name for p in aclnn_parameters(schema.prototype)}
    operands = []
    # The members keep the prototype's names when the operator's arguments are renamed: launch functions are the author's.
    names = {(a.is_input, a.parameter.name): a.name for a in operator_schema(schema.prototype, schema.name).arguments}
    for cpp in op.arguments:
        argument, parameter = cpp.argument, cpp.argument.parameter
        member = _cpp_name(names[argument.is_input, parameter.name])
        if isinstance(parameter, Parameter):
            if parameter.kind is ParameterKind.DYNAMIC:
                raise GenerationError(f"{where}: {parameter.name} is a list of tensors; expected single tensors")
            operands.append(
                LaunchOperand(
                    member, "Tensor", f"shape_of({cpp.name})", f"args.{node[parameter.name]}",
                    source=parameter.name, argument=cpp.name, optional=parameter.kind is ParameterKind.OPTIONAL,
                    in_place=parameter.name in schema.prototype.in_place, dtypes=_scalar_types(parameter), parameter=parameter,
                )
            )  # fmt: skip
        elif argument.kind in _ATTRS:
            type_, eager, graph = _ATTRS[argument.kind]
            in_node = graph.format(f"args.{node[parameter.name]}")
            operands.append(
                LaunchOperand(member, type_, eager.format(cpp.value), in_node, parameter.name, argument=cpp.name)
            )
        else:
            raise GenerationError(
                f"{where}: attr {parameter.name} is a list of dtypes, which no launch function takes; expected a "
                "number, a bool or a list of numbers"
            )
    for position, output in enumerate(schema.returns):
        if output.kind is ParameterKind.DYNAMIC:
            raise GenerationError(f"{where}: {output.name} is a list of tensors; expected single tensors")
        member = _cpp_name(output.name)
        operands.append(
            LaunchOperand(
                member, "Tensor", "", f"args.{node[output.name]}", source=output.name, output=position,
                dtypes=_scalar_types(output), parameter=output,
            )
        )  # fmt: skip
    return tuple(operands)


def _cpp_name(name: str) -> str:
    return f"{identifier(name)}_" if name in CPP_KEYWORDS else identifier(name)


def _scalar_types(parameter: Parameter) -> tuple[str, ...]:
    """Return the dtypes to check for, of those that torch has; empty if every dtype is allowed."""
    from ascend_graph.codegen.output_shapes import ENUMERATORS

    if set(parameter.dtypes) >= set(NAMED_SETS["ALL"]):
        return ()
    numbers = [ENUMERATORS.get(torch_number(dtype)) for dtype in parameter.dtypes]
    return tuple(f"at::ScalarType::{name}" for name in numbers if name)


def _instances(
    kernel: KernelFunction,
    addressed: Mapping[str, KernelArgument],
    tensors: Mapping[str, LaunchOperand],
    relation: Relation | None,
    where: str,
) -> tuple[Instance, ...]:
    """Return an instance of a template for each combination of dtypes that the prototype allows for its operands.

    An output whose dtype the relation leaves open has the dtype of the first input.
    """
    if not kernel.templates:
        return ()
    choosing: list[tuple[LaunchOperand, list[DataType]]] = []
    for template in kernel.templates:
        named = [name for name, a in addressed.items() if kernel.elements.get(a.parameter.name) == template]
        if not named and len(kernel.templates) == 1:
            named = list(addressed)
        operand = tensors.get(named[0]) if named else None
        dtypes = [d for d in operand.parameter.dtypes if d in _ELEMENT_OF] if operand and operand.parameter else []
        if operand is None or not dtypes or not operand.dtypes:
            raise GenerationError(
                f"{where}: nothing says which dtypes the template {kernel} is compiled for: its {template} must be the element "
                "type of an address, and the prototype must list the dtypes of that operand"
            )
        choosing.append((operand, dtypes))
    first = next(o for o in tensors.values() if o.output is None)
    open_outputs = {t.name for t in relation.output_tensors if t.alternatives[-1].dtype is None} if relation else set()
    instances = []
    for chosen in product(*(dtypes for _, dtypes in choosing)):
        pairs = list(zip((operand for operand, _ in choosing), chosen, strict=True))
        shared = next((dtype for operand, dtype in pairs if operand is first), None)
        if shared is not None and any(dtype != shared for operand, dtype in pairs if operand.source in open_outputs):
            continue
        condition = " && ".join(f"op.{operand.name}.dtype == {_acl_name(dtype)}" for operand, dtype in pairs)
        instances.append(Instance(condition, ", ".join(_ELEMENT_OF[dtype] for dtype in chosen)))
    return tuple(instances)


def _acl_name(dtype: DataType) -> str:
    return f"ACL_{dtype.ge_name.removeprefix('DT_')}"


# -------------------------------------------------------------------------------------------------------------- files


def launch_files(package: str, operators: Sequence[CppOperator], sources: KernelSources) -> dict[str, str]:
    """Return the generated files of a project that launches kernels, by path.

    Raises:
        GenerationError: A template would be launched by ``ACLRT_LAUNCH_KERNEL``, or the sources have mixed suffixes.
    """
    launches = [launch for op in operators if (launch := op.launch) is not None]
    chevrons = {launch.source.suffix != ".cpp" for launch in launches}
    if len(chevrons) > 1:
        names = ", ".join(sorted({str(launch.source) for launch in launches}))
        raise GenerationError(
            f"{names}: sources named .cpp are built by ascendc_library(), others by bisheng; give all of one project one suffix"
        )
    for launch in launches:
        if launch.kernel.templates and chevrons == {False}:
            raise GenerationError(
                f"{launch.source}: the template {launch.kernel} can only be launched with <<<…>>>; name the file "
                f"{launch.source.with_suffix('.asc').name}"
            )
    structs: dict[str, TilingStruct] = {s.name: s for launch in launches for s in launch.structs}
    # A source is compiled once, whatever number of operators its kernels are launched by.
    by_source: dict[str, list[CppOperator]] = {}
    for op in operators:
        by_source.setdefault(str(op.launch.source) if op.launch is not None else op.file, []).append(op)
    units = list(by_source.values())
    values = {
        "package": package,
        "operators": operators,
        "units": units,
        "structs": structs,
        "chevrons": chevrons == {True},
    }
    files = {
        "csrc/generated/kernels.h": render("kernel_project/kernels.h.jinja", **values),
        "kernels/generated/CMakeLists.txt": render(
            "kernel_project/CMakeLists.txt.jinja", **values, sources=sorted({str(k.source) for k in launches})
        ),
        "kernels/generated/operator_package.py": render("kernel_project/operator_package.py.jinja", **values),
    }
    for unit in units:
        launch = render("kernel_project/launch.asc.jinja", unit=unit, **values)
        files[f"kernels/generated/{unit[0].file}.asc"] = launch
        for op in unit:
            host = render("kernel_project/host_op.asc.jinja", op=op, unit=unit, **values)
            files[f"kernels/generated/{op.file}_host.asc"] = host
    if chevrons == {False}:
        files["kernels/generated/launches.cpp"] = render("kernel_project/launches.cpp.jinja", **values)
    return files


def launch_function(package: str, op: CppOperator) -> str:
    """Return the proposed launch function of an operator, a file of the author."""
    return str(render("kernel_project/launch_function.cpp.jinja", package=package, op=op))
