"""Sources of a project: prototypes, aclnn headers and kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ascend_graph.codegen.eager_library.cpp_operators import NO_FUNCTION
from ascend_graph.codegen.kernels.launch_proposals import proposed_prototypes
from ascend_graph.codegen.kernels.source import KernelSources, kernel_files, read_kernels
from ascend_graph.codegen.rendering import GenerationError

from ascend_graph.binding.errors import EagerError
from ascend_graph.binding.generated_schema import OperatorSchema, operator_schema
from ascend_graph.prototypes import parse_text, read_prototypes
from ascend_graph.prototypes.naming import snake_case
from ascend_graph.prototypes.writer import to_reg_op


def package_name(name: str) -> str:
    if not (name.isascii() and name.isidentifier() and name.islower()):
        raise GenerationError(
            f"{name!r} cannot be the name of the package and namespace: write it in lower case, as my_ops"
        )
    return name


def kernels_among(target: Path, given: Sequence[Path]) -> tuple[list[Path], KernelSources]:
    """Return the sources with prototypes, and the kernels of the others, or else the project's own kernels."""
    prototypes, kernels, named = [], [], []
    for path in given:
        found = list(kernel_files(path)) if path.is_dir() else []
        if read_prototypes(path).prototypes:
            prototypes.append(path)
        elif not path.is_dir():
            found = [path]
            named.append(path)
        elif not found:
            raise GenerationError(
                f"{path} has neither prototypes nor kernels in it; expected a REG_OP or a __global__ function"
            )
        kernels += found
    if kernels:
        return prototypes, read_kernels(kernels, named=named)
    own = target / "kernels"
    if not own.is_dir():
        raise GenerationError(f"{target} has no kernels yet; say which it launches: --from add_custom.cpp")
    return prototypes, read_kernels(kernel_files(own), own)


def read_header(header: Path, sources: Sequence[Path], kernels: KernelSources | None) -> tuple[str, list[str]]:
    """Return the text of ``op_proto.h``, and remarks on the prototypes that are only proposals."""
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
        return header.read_text(encoding="utf-8"), []
    text = proposed_prototypes(kernels)
    drafts = []
    for prototype in parse_text(text).prototypes:
        unknown = [p.name for p in (*prototype.inputs, *prototype.outputs) if len(p.dtypes) > 1]
        dtypes = f", whose source does not say the dtypes of {', '.join(unknown)}" if unknown else ""
        drafts.append(f"{header.name}: the prototype of {prototype.op_type}, made from its kernel{dtypes}")
    return text, drafts


#: Text of op_proto.h in a project made from aclnn headers alone.
NO_PROTOTYPES = "// No prototypes: the operators are declared in aclnn.h.\n"


def has_prototypes(sources: Sequence[Path]) -> bool:
    return any(read_prototypes(source).prototypes for source in sources)


def read_schemas(text: str) -> tuple[dict[str, OperatorSchema], list[tuple[str, str]]]:
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
