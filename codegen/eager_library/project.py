"""Project of a C++ library of eager kernels: from prototypes, shapes and gradients to a package for a wheel.

The files in ``csrc/generated``, ``<package>/_generated.py`` and ``tests/<package>_calls.py`` are generated on every
run. Everything else is written once and is the author's from then on. Shapes and gradients are declared in one small
file, ``<package>/operators.ini``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_graph.codegen.declarations import (
    Declaration,
    Overrides,
    numbered,
    propose,
    read_declarations,
)
from ascend_graph.codegen.eager_library import declared_functions, texts
from ascend_graph.codegen.eager_library.cpp_operators import (
    ACLNN_HELPERS,
    HELPERS,
    CppArgument,
    CppOperator,
)
from ascend_graph.codegen.eager_library.files import add_launches, render_files, write_files
from ascend_graph.codegen.eager_library.planning import compiled_declarations, idle_kernels, plan_operators
from ascend_graph.codegen.eager_library.public_schema import for_operators, with_pairs
from ascend_graph.codegen.eager_library.sample_calls import sample_call
from ascend_graph.codegen.eager_library.sources import (
    NO_PROTOTYPES,
    has_prototypes,
    kernels_among,
    package_name,
    read_header,
    read_schemas,
)
from ascend_graph.codegen.kernels.source import KernelSources
from ascend_graph.codegen.op_plugin import op_plugin_entries
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.generated_schema import OperatorSchema
from ascend_graph.versions import requirement

__all__ = ["LAUNCHES", "CppArgument", "CppOperator", "Project", "generate_project", "op_plugin_entries"]

_BINDINGS = ("torch", "pybind", "both")
#: Ways in which an operator reaches the NPU: through its aclnn function, or by a launch of its kernel.
LAUNCHES = ("aclnn", "kernel")

#: Functions of ``texts`` that templates call.
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
    *("python_definition", "python_documentation", "python_arguments", "python_relation", "python_values"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """Result of :func:`generate_project`."""

    directory: Path
    #: Files that were written, relative to the directory.
    written: tuple[Path, ...]
    operators: tuple[str, ...]
    #: Proposed declarations, which the author should check: ``shape of AddCustom: …``.
    proposed: tuple[str, ...]
    #: Other files with proposals, described: ``csrc/launch/add_custom.cpp: the launch of …``.
    drafts: tuple[str, ...]
    #: Operators that were left out, with the reason.
    skipped: tuple[tuple[str, str], ...]


def _launch_of(target: Path, launch: str | None, header: Path) -> str:
    """Return the launch of the operators; raise if the project has another."""
    existing = "kernel" if (target / "kernels").is_dir() else "aclnn"
    launch = launch or existing
    if launch not in LAUNCHES:
        raise GenerationError(f"launch={launch!r}: there are {', '.join(LAUNCHES)}")
    if header.exists() and launch != existing:
        raise GenerationError(
            f"{target} is a project of launch {existing}, whose setup.py is yours by now; generate another for launch {launch}"
        )
    return launch


def _without_prototype(declared: Mapping[str, Declaration], known: set[str]) -> list[tuple[str, str]]:
    """Return the operators of an existing operators.ini that the sources do not have, with the reason."""
    why = "operators.ini has it, and no source does; give its header to --from, too, or remove its section"
    return [(name, why) for name in declared if name not in known]


def _declarations(
    schemas: Mapping[str, OperatorSchema],
    declared: Mapping[str, Declaration],
    overrides: Overrides,
    kernel_sources: KernelSources | None,
    nulls: Sequence[str],
    by_function: Mapping[str, Any],
    ini: Path,
) -> tuple[dict[str, Declaration], list[str], dict[str, Declaration], dict[str, OperatorSchema]]:
    """Return the new declarations, the proposed ones as text, all declarations, and the schemas with dtype numbers."""
    new, proposed = propose(schemas, declared, overrides, kernel_sources)
    proposed += [text for text in nulls if text.rpartition(":")[0].rpartition(" of ")[2] in new]
    declarations = {**declared, **new}
    schemas = {
        name: s if name in by_function else numbered(s, declarations.get(name, Declaration()), ini)
        for name, s in schemas.items()
    }
    return new, proposed, declarations, schemas


def _package_in(target: Path) -> str:
    """Return the package of a project, whatever its directory is called now; an empty text if there is none yet."""
    found = [path.parent.name for path in target.glob("*/operators.ini") if (path.parent / "_generated.py").exists()]
    return found[0] if len(found) == 1 else ""


def generate_project(
    directory: str | Path,
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    launch: str | None = None,
    bindings: str | None = None,
    shapes: Mapping[str, str] | None = None,
    gradients: Mapping[str, str] | None = None,
    kernels: Mapping[str, str] | None = None,
    schemas: Mapping[str, str] | None = None,
    arguments: Mapping[str, str] | None = None,
) -> Project:
    """Write a project that builds into a Python package with eager kernels, or update one.

    Args:
        directory: The project; its last part is the package's name and the operators' namespace.
        sources: A header with REG_OPs, headers of aclnn functions, which become operators by their declarations, or any
            source that :func:`ascend_graph.prototypes.read_prototypes` reads. For ``launch="kernel"`` also sources of
            Ascend C kernels or a directory with some; several if they are apart. They are copied into the project.
            ``None`` takes the project's own copies. Kernels without prototypes get proposed ones.
        launch: The way to the NPU: ``aclnn`` (through their aclnn functions) or ``kernel`` (by a launch of
            their Ascend C kernels). The project's own by default, ``aclnn`` in a new one.
        bindings: The bindings for Python: ``torch`` (``torch.ops``), ``pybind`` (a C++ module), or ``both``. The
            project's own by default, ``torch`` in a new one.
        shapes: Shape relations by op type, for a new ``operators.ini``.
        gradients: The gradient operators by op type, likewise.
        kernels: Their launches by op type, likewise: ``add_custom(x, y, z: out)``.
        schemas: Their public schemas, or only names, by op type, likewise; a namespace is optional:
            ``myops::my_op(Tensor self, Tensor other) -> Tensor``. An empty op type stands for the only operator.
        arguments: The pairs of names that these leave open, likewise: ``other: y``.

    Raises:
        GenerationError: There is nothing to generate, or a declaration is wrong; nothing is written then.
        RelationError: A shape relation is malformed.
    """
    target = Path(directory).resolve()
    package = _package_in(target) or package_name(target.name)
    header = target / package / "op_proto.h"
    given = [] if sources is None else [Path(sources)] if isinstance(sources, str | Path) else list(map(Path, sources))
    if not given and not header.exists():
        raise GenerationError(f"{target} is not a project yet; say which prototypes it is for: --from op_proto.h")
    launch = _launch_of(target, launch, header)
    kernel_sources = None
    if launch == "kernel":
        given, kernel_sources = kernels_among(target, given)
    declarations_of = target / package / declared_functions.FILE
    functions = declared_functions.aclnn_headers(given) if launch == "aclnn" else []
    declared_text = "\n".join(path.read_text(errors="replace") for path in functions)
    if not functions and launch == "aclnn" and declarations_of.exists():
        declared_text = declarations_of.read_text(errors="replace")
    given = [path for path in given if path not in functions]
    only_functions = bool(declared_text) and not header.exists() and not has_prototypes(given)
    text, drafts = (NO_PROTOTYPES, []) if only_functions else read_header(header, given, kernel_sources)
    ini = target / package / "operators.ini"
    declared = read_declarations(ini, kernel_sources)
    generated_schemas, skipped = read_schemas(text)
    said = {name: declaration.shape for name, declaration in declared.items()} | dict(shapes or {})
    by_function, not_derived, nulls = declared_functions.declared_operators(declared_text, said)
    for name, operator in by_function.items():
        if any(schema.name == operator.schema.name for schema in generated_schemas.values()):
            not_derived.append((name, f"another operator is {operator.schema.name}"))
        else:
            generated_schemas[name] = operator.schema
    skipped += [*not_derived, *_without_prototype(declared, {*generated_schemas, *dict(skipped), *dict(not_derived)})]
    if not generated_schemas:
        reasons = "; ".join(f"{name}: {why}" for name, why in skipped) or "expected a REG_OP or an aclnn function"
        raise GenerationError(
            f"nothing to generate: give other sources than {', '.join(map(str, given)) or header}: {reasons}"
        )
    overrides = Overrides(
        shapes or {},
        gradients or {},
        kernels or {},
        for_operators("schema", schemas or {}, generated_schemas),
        for_operators("arguments", arguments or {}, generated_schemas),
    )
    new, proposed, declarations, generated_schemas = _declarations(
        generated_schemas, declared, overrides, kernel_sources, nulls, by_function, ini
    )
    unsaid = {
        name
        for name in generated_schemas
        if not (declared.get(name, Declaration()).kernel or overrides.kernels.get(name))
    }
    operators, left_out = plan_operators(
        generated_schemas,
        declarations,
        ini,
        kernel_sources,
        unsaid,
        {name: o.call for name, o in by_function.items()},
        package,
    )
    new, paired = with_pairs(new, operators)
    proposed += paired
    idle_kernels(operators, kernel_sources, skipped, left_out, ini)
    bindings = bindings or _bindings_of(target)
    if bindings not in _BINDINGS:
        raise GenerationError(f"bindings={bindings!r}: there are {', '.join(_BINDINGS)}")
    values = {
        "package": package,
        "namespaces": sorted({package, *(o.namespace for o in operators)}),
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
        "prototypes": text != NO_PROTOTYPES,
        "tested": requirement(),
        "compiled": compiled_declarations(operators),
        **{name: getattr(texts, name) for name in _TEXTS},
    }
    generated, own = render_files(package, values, launch, text, declared_text)
    add_launches(kernel_sources, generated, package, operators, own, drafts, target)
    written = write_files(generated, target, own, new, ini, values, package)
    return Project(
        target,
        tuple(Path(n) for n in written),
        tuple(o.op_type for o in operators),
        tuple(proposed),
        tuple(drafts),
        (*skipped, *left_out),
    )


# ------------------------------------------------------------------------------------------------------------- reading


def _bindings_of(target: Path) -> str:
    module = target / "csrc/generated/module.cpp"
    first = module.read_text().partition("\n")[0] if module.exists() else ""
    return next((b for b in _BINDINGS if first.endswith(f"bindings: {b}")), "torch")


# ------------------------------------------------------------------------------------------------------------ operators
