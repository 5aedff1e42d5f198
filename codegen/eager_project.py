"""A C++ library of eager kernels as a project: from prototypes, shapes and gradients to a package that builds into a wheel.

What is generated again and again lies in ``csrc/generated``, ``<package>/_generated.py`` and ``tests/<package>_calls.py``; everything
else is written once and is the author's from then on. Shapes and gradients are declared in one small file, ``<package>/operators.ini``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from ascend_graph.codegen import declared_functions, eager_texts
from ascend_graph.codegen.cpp_operators import (
    ACLNN_HELPERS,
    HELPERS,
    NO_FUNCTION,
    CppArgument,
    CppOperator,
    cpp_operator,
)
from ascend_graph.codegen.declarations import (
    Declaration,
    Given,
    call_of,
    kernel_declaration,
    numbered,
    propose,
    read_declarations,
    relation_of,
    section,
)
from ascend_graph.codegen.gradients import cpp_gradient
from ascend_graph.codegen.kernel_launch import (
    launch_files,
    launch_function,
    plan_launch,
)
from ascend_graph.codegen.kernel_source import KernelSources, kernel_files, read_kernels
from ascend_graph.codegen.launch_proposals import proposed_prototypes
from ascend_graph.codegen.op_plugin import op_plugin_entries
from ascend_graph.codegen.rendering import GenerationError, render, write_if_different
from ascend_graph.codegen.sample_calls import sample_call

from ascend_graph.aclnn import ConflictingDeclarationsError, Value
from ascend_graph.binding import BindingError, Call, Part
from ascend_graph.binding.dtype_ints import Numbers, dtype_ints
from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.installed import declaration as c_declaration
from ascend_graph.binding.own_schema import OperatorSchema, operator_schema
from ascend_graph.errors import AscendGraphError
from ascend_graph.gradients import parse_wiring
from ascend_graph.prototypes import parse_text, read_prototypes
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.prototypes.writer import to_reg_op
from ascend_graph.shapes import Relation
from ascend_graph.shapes.syntax import Dims
from ascend_graph.sources.installed import made_with
from ascend_graph.versions import requirement

__all__ = ["LAUNCHES", "CppArgument", "CppOperator", "Project", "generate_project", "op_plugin_entries"]

_BINDINGS = ("torch", "pybind", "both")
#: How an operator reaches the NPU: through its aclnn function, or by a launch of its kernel.
LAUNCHES = ("aclnn", "kernel")

#: The functions of eager_texts that templates call.
_TEXTS = (
    *(
        "attr_value",
        "gradient_values",
        "gradient_results",
        "optional_inputs",
        "binding_type",
        "binding_value",
        "binding_arguments",
        "docstring",
    ),
    *("python_definition", "python_documentation", "python_numbers", "python_relation", "python_values"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """What :func:`generate_project` did."""

    directory: Path
    #: The files that were written, relative to the directory.
    written: tuple[Path, ...]
    operators: tuple[str, ...]
    #: Declarations that were proposed, to be checked by the author: ``shape of AddCustom: …``.
    proposed: tuple[str, ...]
    #: Other files with proposals in them, and what these are: ``csrc/launch/add_custom.cpp: the launch of …``.
    drafts: tuple[str, ...]
    #: Operators that were left out, and why.
    skipped: tuple[tuple[str, str], ...]


def generate_project(
    directory: str | Path,
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    launch: str | None = None,
    bindings: str | None = None,
    shapes: Mapping[str, str] | None = None,
    gradients: Mapping[str, str] | None = None,
    kernels: Mapping[str, str] | None = None,
) -> Project:
    """Write a project that builds into a Python package with eager kernels, or bring one up to date.

    Args:
        directory: The project; its last part is the package's name and the operators' namespace.
        sources: A header with REG_OPs, headers of aclnn functions, which become operators by their declarations, or whatever :func:`ascend_graph.prototypes.read_prototypes` reads, and for
            ``launch="kernel"`` sources of Ascend C kernels or a directory with some; several where they are apart. They
            are copied into the project. ``None`` takes the project's own copies. Kernels without prototypes get proposed
            ones.
        launch: How the operators reach the NPU: ``aclnn`` (through their aclnn functions) or ``kernel`` (by a launch of
            their Ascend C kernels). The project's own by default, ``aclnn`` in a new one.
        bindings: How Python calls the operators: ``torch`` (``torch.ops``), ``pybind`` (a C++ module), or ``both``. The
            project's own by default, ``torch`` in a new one.
        shapes: Shape relations by op type, for a new ``operators.ini``.
        gradients: The gradient operators by op type, likewise.
        kernels: What they launch by op type, likewise: ``add_custom(x, y, z: out)``.

    Raises:
        GenerationError: There is nothing to generate, or a declaration is wrong; nothing is written then.
        RelationError: A shape relation is malformed.
    """
    target = Path(directory).resolve()
    package = _package_name(target.name)
    header = target / package / "op_proto.h"
    given = [] if sources is None else [Path(sources)] if isinstance(sources, str | Path) else list(map(Path, sources))
    if not given and not header.exists():
        raise GenerationError(f"{target} is no project yet; say which prototypes it is for: --from op_proto.h")
    existing = "kernel" if (target / "kernels").is_dir() else "aclnn"
    launch = launch or existing
    if launch not in LAUNCHES:
        raise GenerationError(f"launch={launch!r}: there are {', '.join(LAUNCHES)}")
    if header.exists() and launch != existing:
        raise GenerationError(
            f"{target} is a project of launch {existing}, whose setup.py is yours by now; generate another for launch {launch}"
        )
    kernel_sources = None
    if launch == "kernel":
        given, kernel_sources = _kernel_sources(target, given)
    declarations_of = target / package / declared_functions.FILE
    functions = declared_functions.aclnn_headers(given) if launch == "aclnn" else []
    declared_text = "\n".join(path.read_text(errors="replace") for path in functions)
    if not functions and launch == "aclnn" and declarations_of.exists():
        declared_text = declarations_of.read_text(errors="replace")
    given = [path for path in given if path not in functions]
    only_functions = bool(declared_text) and not header.exists() and not _has_prototypes(given)
    text, drafts = (_NO_PROTOTYPES, []) if only_functions else _header(header, given, kernel_sources)
    ini = target / package / "operators.ini"
    declared = read_declarations(ini, kernel_sources)
    schemas, skipped = _schemas(text)
    said = {name: declaration.shape for name, declaration in declared.items()} | dict(shapes or {})
    by_function, not_derived, nulls = declared_functions.declared_operators(declared_text, said)
    for name, operator in by_function.items():
        if any(schema.name == operator.schema.name for schema in schemas.values()):
            not_derived.append((name, f"another operator is {operator.schema.name}"))
        else:
            schemas[name] = operator.schema
    skipped += not_derived
    if not schemas:
        reasons = (
            "; ".join(f"{name}: {why}" for name, why in skipped) or "there is no REG_OP in it, and no aclnn function"
        )
        raise GenerationError(f"nothing to generate from {', '.join(map(str, given)) or header}: {reasons}")
    new, proposed = propose(schemas, declared, Given(shapes or {}, gradients or {}, kernels or {}), kernel_sources)
    proposed += [text for text in nulls if text.rpartition(":")[0].rpartition(" of ")[2] in new]
    declarations = {**declared, **new}
    schemas = {
        name: s if name in by_function else numbered(s, declarations.get(name, Declaration()), ini)
        for name, s in schemas.items()
    }
    unsaid = {name for name in schemas if not (declared.get(name, Declaration()).kernel or (kernels or {}).get(name))}
    operators, left_out = _operators(
        schemas, declarations, ini, kernel_sources, unsaid, {name: o.call for name, o in by_function.items()}
    )
    if not operators and kernel_sources is not None:
        reasons = "; ".join(f"{name}: {why}" for name, why in (*skipped, *left_out))
        raise GenerationError(f"{reasons}{'' if ini.exists() else '; for a new project: --kernel OP=…'}")
    if kernel_sources is not None:
        launched = {o.launch.kernel.name for o in operators if o.launch}
        idle = [name for name in kernel_sources.by_name if name not in launched]
        left_out += [(f"the kernel {name}", "no operator launches it; add a prototype of its own") for name in idle]
    bindings = bindings or _bindings_of(target)
    if bindings not in _BINDINGS:
        raise GenerationError(f"bindings={bindings!r}: there are {', '.join(_BINDINGS)}")
    values = {
        "package": package,
        "operators": operators,
        "gradients": [o for o in operators if o.gradient is not None],
        "helpers": (*HELPERS, *(ACLNN_HELPERS if launch == "aclnn" else ())),
        "bindings": bindings,
        "pybind": bindings != "torch",
        "launch": launch,
        "chevrons": any(o.launch.source.suffix != ".cpp" for o in operators if o.launch),
        "samples": {o.op_type: sample_call(o) for o in operators},
        "declarations": declarations,
        "declared": by_function,
        "prototypes": text != _NO_PROTOTYPES,
        "tested": requirement(),
        "compiled": _compiled(operators),
        **{name: getattr(eager_texts, name) for name in _TEXTS},
    }
    generated: dict[str, str | bytes] = {
        f"{package}/_generated.py": render("eager_project/generated.py.jinja", **values),
        "csrc/generated/operators.h": render("eager_project/operators.h.jinja", **values),
        "csrc/generated/operators.cpp": render("eager_project/operators.cpp.jinja", **values),
        "csrc/generated/autograd.cpp": render("eager_project/autograd.cpp.jinja", **values),
        "csrc/generated/module.cpp": render("eager_project/module.cpp.jinja", **values),
        "csrc/generated/.clang-format": "DisableFormat: true\n",
        **{f"csrc/generated/ascend_graph/{path.name}": path.read_text() for path in _runtime_headers(launch)},
        f"{package}/op_proto.h": text,
        f"tests/{package}_calls.py": render("eager_project/calls.py.jinja", **values),
    }
    if declared_text:
        generated[f"{package}/{declared_functions.FILE}"] = declared_text
    if values["gradients"]:
        generated["csrc/generated/gradients.cpp"] = render("eager_project/gradients.cpp.jinja", **values)
    own = {
        "pyproject.toml": render("eager_project/pyproject.toml.jinja", **values),
        "setup.py": render("eager_project/setup.py.jinja", **values),
        "README.md": render("eager_project/README.md.jinja", **values),
        # A source distribution, which `python -m build` makes the wheel from, has the headers too.
        "MANIFEST.in": "graft csrc\ngraft tests\nglobal-exclude *.py[cod]\n",
        ".gitignore": "build/\ndist/\n*.egg-info/\n*.so\n__pycache__/\n",
        f"{package}/__init__.py": render("eager_project/init.py.jinja", **values),
        f"{package}/py.typed": "",
        f"tests/test_{package}.py": render("eager_project/test.py.jinja", **values),
    }
    if kernel_sources is not None:
        generated |= launch_files(package, operators, kernel_sources)
        generated |= {f"kernels/{file}": (kernel_sources.root / file).read_bytes() for file in kernel_sources.files}
        own |= {f"csrc/launch/{o.name}.cpp": launch_function(package, o) for o in operators}
        drafts += [
            f"csrc/launch/{o.name}.cpp: the launch of {o.launch.kernel}"
            + (f", which has to say {', '.join(o.launch.unknown)}" if o.launch.unknown else "")
            for o in operators
            if o.launch and not (target / f"csrc/launch/{o.name}.cpp").exists()
        ]
    written = [name for name, content in generated.items() if write_if_different(target / name, content)]
    written += [
        name
        for name, content in own.items()
        if not (target / name).exists() and write_if_different(target / name, content)
    ]
    if new or not ini.exists():
        before = ini.read_text() if ini.exists() else render("eager_project/operators.ini.jinja", **values)
        write_if_different(ini, before.rstrip("\n") + "\n" + "".join(section(name, d) for name, d in new.items()))
        written.append(f"{package}/operators.ini")
    for stale in (*target.glob("csrc/generated/*.cpp"), *target.glob("kernels/generated/*.*")):
        if stale.relative_to(target).as_posix() not in generated:
            stale.unlink()
    return Project(
        target,
        tuple(Path(n) for n in written),
        tuple(o.op_type for o in operators),
        tuple(proposed),
        tuple(drafts),
        (*skipped, *left_out),
    )


# ------------------------------------------------------------------------------------------------------------- reading


def _package_name(name: str) -> str:
    if not (name.isascii() and name.isidentifier() and name.islower()):
        raise GenerationError(
            f"{name!r} cannot be the name of the package and namespace: write it in lower case, as my_ops"
        )
    return name


def _kernel_sources(target: Path, given: Sequence[Path]) -> tuple[list[Path], KernelSources]:
    """Which sources have prototypes, and the kernels of the others; without any, the project's own kernels."""
    prototypes, kernels = [], []
    for path in given:
        found = list(kernel_files(path)) if path.is_dir() else []
        if read_prototypes(path).prototypes:
            prototypes.append(path)
        elif not path.is_dir():
            found = [path]
        elif not found:
            raise GenerationError(f"{path} has neither prototypes nor kernels in it")
        kernels += found
    if kernels:
        return prototypes, read_kernels(kernels)
    own = target / "kernels"
    if not own.is_dir():
        raise GenerationError(f"{target} has no kernels yet; say which it launches: --from add_custom.cpp")
    return prototypes, read_kernels(kernel_files(own), own)


def _header(header: Path, sources: Sequence[Path], kernels: KernelSources | None) -> tuple[str, list[str]]:
    """The text of ``op_proto.h``, and what of it is only a proposal."""
    if sources:
        single = sources[0] if len(sources) == 1 else None
        if single is not None and single.is_file() and single.suffix in (".h", ".hpp"):
            return single.read_text(errors="replace"), []
        results = [read_prototypes(source) for source in sources]
        errors = [str(e) for source, r in zip(sources, results, strict=True) if source.is_file() for e in r.errors]
        if errors:
            raise GenerationError("\n".join(errors))
        texts = [to_reg_op(prototype) for result in results for prototype in result.prototypes]
        return "\n".join(['#include "graph/operator_reg.h"\n\nnamespace ge {\n', *texts, "}  // namespace ge\n"]), []
    if header.exists() or kernels is None:
        return header.read_text(), []
    text = proposed_prototypes(kernels)
    drafts = []
    for prototype in parse_text(text).prototypes:
        unknown = [p.name for p in (*prototype.inputs, *prototype.outputs) if len(p.dtypes) > 1]
        dtypes = f", whose source does not say the dtypes of {', '.join(unknown)}" if unknown else ""
        drafts.append(f"{header.name}: the prototype of {prototype.op_type}, made from its kernel{dtypes}")
    return text, drafts


#: The op_proto.h of a project that is made of aclnn headers alone.
_NO_PROTOTYPES = "// No prototypes: the operators are declared in aclnn.h.\n"


def _has_prototypes(sources: Sequence[Path]) -> bool:
    return any(read_prototypes(source).prototypes for source in sources)


def _schemas(text: str) -> tuple[dict[str, OperatorSchema], list[tuple[str, str]]]:
    found: dict[str, OperatorSchema] = {}
    skipped: list[tuple[str, str]] = []
    result = parse_text(text)
    if result.errors:
        raise GenerationError("\n".join(map(str, result.errors)))
    for prototype in result.prototypes:
        name = snake_case(prototype.op_type)
        try:
            schema = operator_schema(prototype, f"{name}_op" if name in NO_FUNCTION else name)
        except EagerError as error:
            skipped.append((prototype.op_type, str(error)))
            continue
        if not prototype.inputs:
            skipped.append((prototype.op_type, "it has no inputs, so nothing says that it runs on the NPU"))
        elif any(s.name == schema.name for s in found.values()):
            skipped.append((prototype.op_type, f"another operator is {schema.name}"))
        else:
            found[prototype.op_type] = schema
    return found, skipped


def _bindings_of(target: Path) -> str:
    module = target / "csrc/generated/module.cpp"
    first = module.read_text().partition("\n")[0] if module.exists() else ""
    return next((b for b in _BINDINGS if first.endswith(f"bindings: {b}")), "torch")


# ------------------------------------------------------------------------------------------------------------ operators


def _operators(
    schemas: Mapping[str, OperatorSchema],
    declarations: Mapping[str, Declaration],
    ini: Path,
    kernels: KernelSources | None,
    proposed: Set[str],
    calls: Mapping[str, Call],
) -> tuple[list[CppOperator], list[tuple[str, str]]]:
    """The operators, and those that are left out: no shape is said, or the kernel in ``proposed`` does not fit."""
    operators, left_out = [], []
    for op_type, schema in schemas.items():
        declaration = declarations.get(op_type, Declaration())
        if schema.returns and not declaration.shape:
            left_out.append((op_type, f"{ini.name} does not say its output shapes: write shape = … below [{op_type}]"))
            continue
        if op_type in calls and (declaration.aclnn or declaration.aclnn_arguments or declaration.dtypes):
            raise GenerationError(
                f"{ini}, [{op_type}]: aclnn, aclnn_arguments and dtypes are for prototypes; this operator is the function itself"
            )
        relation = relation_of(schema, declaration, ini)
        call = None
        if kernels is None:
            try:
                call = calls.get(op_type) or call_of(schema.prototype, declaration)
                _check_numbers(schema, call, relation)
                called = schema if op_type in calls else _as_called(schema, call, relation)
                operator = cpp_operator(called, relation, declaration, call)
            except (BindingError, ConflictingDeclarationsError, GenerationError) as error:
                left_out.append((op_type, str(error)))
                continue
        else:
            operator = cpp_operator(schema, relation, declaration)
            try:
                text = declaration.kernel or kernel_declaration(schema, kernels, alone=len(schemas) == 1)
                launch = plan_launch(operator, text, kernels, relation, f"{ini}, [{op_type}]")
            except GenerationError as error:
                if op_type not in proposed:
                    raise
                left_out.append((op_type, str(error)))
                continue
            operator = replace(operator, launch=launch)
        operators.append(operator)
    return _with_gradients(operators, declarations, ini), left_out


def _check_numbers(schema: OperatorSchema, call: Call, relation: Relation | None) -> None:
    """Refuse a relation that gives a shape to an output which is one number in host memory."""
    outputs = schema.prototype.outputs
    numbers = {
        outputs[a.index].name for a in call.arguments if a.part is Part.OUTPUT and a.type.value is Value.HOST_OUTPUT
    }
    for output in relation.output_tensors if relation is not None else ():
        shapes = [alternative.shape for alternative in output.alternatives]
        if output.name in numbers and not all(isinstance(shape, Dims) and not shape.items for shape in shapes):
            raise GenerationError(
                f"{output.name} of its aclnn function is host memory for one number, and the relation gives it a shape: {output}; "
                f"write {output.name}[] with its dtype"
            )


def _as_called(schema: OperatorSchema, call: Call, relation: Relation | None) -> OperatorSchema:
    """The schema with numbers for the inputs whose values the function takes, and with what it takes as dtypes."""
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


def _compiled(operators: Sequence[CppOperator]) -> dict[str, list[str]]:
    """The declarations that the library is compiled by, each function's once, by the version of CANN whose headers have them."""
    functions = {o.declared.name: o.declared for o in operators if o.declared is not None}
    found: dict[str, list[str]] = {}
    for function in functions.values():
        found.setdefault(made_with(function.file) or "", []).append(c_declaration(function))
    return found


def _runtime_headers(launch: str) -> list[Path]:
    """The headers that generated kernels include; copied, so that a project builds without ascend_graph."""
    import ascend_graph.eager

    for directory in ascend_graph.eager.__path__:
        sources = Path(directory) / "csrc"
        if (sources / "aclnn.h").is_file():
            names = (
                ("aclnn.h", "executor_cache.h")
                if launch == "aclnn"
                else ("kernel_launch.h", "device_bytes.h", "launch.h")
            )
            return [sources / name for name in (*names, "autograd.h", "device.h", "shapes.h", "versions.h")]
    raise GenerationError(
        "the sources of the eager kernels are not installed; install ascend-graph from a wheel or with 'pip install -e .'"
    )
