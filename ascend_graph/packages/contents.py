"""Operators of an operator package: their schemas, their shape relations, and why some are left out. Imports no torch.

Reading a thousand prototypes takes a tenth of a second. So the result is kept in the cache directory, by the content of
the package's headers: another process reads the schemas, and a prototype once its operator is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ascend_graph.aclnn.catalog import header_files
from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.binding import find_call
from ascend_graph.binding.calls.called_schema import called_schema
from ascend_graph.binding.generated_schema import operator_name, operator_schema
from ascend_graph.compilation.cache import cache_directory
from ascend_graph.errors import AscendGraphError
from ascend_graph.prototypes import OpPrototype
from ascend_graph.prototypes.loading import prototype_files, read_all
from ascend_graph.shapes.declared_dtypes import complete_relation
from ascend_graph.shapes.relation_files import read_relations_text
from ascend_graph.sources import Severity
from ascend_graph.sources.installed import HOST_METADATA

#: Form of the cached files.
_FORM = 1
#: File of a package with relations, one section an operator: ``[AddCustom]`` and ``shape = x[*s], y[*s] -> z[*s]``.
RELATIONS = "relations.ini"
#: Types of parameters that make the schema of a function another one than that of its prototype.
_VALUES = re.compile(rb"\b(?:aclScalar|aclScalarList|aclDataType|acl(?:Int|Float|Bool)Array)\b")
_FUNCTION = re.compile(rb"\b(aclnn\w+?)" + FIRST_PHASE.encode() + rb"\s*\(")


@dataclass(frozen=True, slots=True)
class PackagedOp:
    """Operator of a package; ``reason`` says why it is left out, or is empty."""

    op_type: str
    #: Name in torch, without a namespace; empty for what is not an operator, such as a header that cannot be read.
    name: str
    #: Schema without a namespace; empty if it is left out.
    schema: str
    #: Header that defines it.
    file: str
    relation: str = ""
    reason: str = ""


@dataclass(slots=True)
class PackageContents:
    """Operators of one package, by op type."""

    directory: Path
    #: Digest of everything that the operators were read from.
    digest: str
    operators: Mapping[str, PackagedOp]
    _prototypes: dict[str, dict[str, OpPrototype]] = field(default_factory=dict)

    def prototype(self, op_type: str) -> OpPrototype:
        """Return the prototype of an operator; its header is read once.

        Raises:
            AscendGraphError: The header changed since, and does not define the operator.
        """
        file = self.operators[op_type].file
        if file not in self._prototypes:
            self._prototypes[file] = {p.op_type: p for p in reversed(read_all([Path(file)]).prototypes)}
        found = self._prototypes[file].get(op_type)
        if found is None:
            raise AscendGraphError(f"{op_type}: {file} does not define it any more; register the package again")
        return found


def read_package(directory: Path, shapes: Mapping[str, str] | None = None) -> PackageContents:
    """Return the operators of a package, from the cache if nothing changed.

    Args:
        directory: The package.
        shapes: Shape relations by op type, before those of the package.
    """
    sources = _read_sources(directory)
    given = dict(shapes or {})
    digest = hashlib.blake2b(digest_size=16)
    for piece in (str(_FORM).encode(), os.fsencode(directory), json.dumps(given, sort_keys=True).encode()):
        digest.update(len(piece).to_bytes(8, "little") + piece)
    for path, text in sources.items():
        for piece in (os.fsencode(path), text):
            digest.update(len(piece).to_bytes(8, "little") + piece)
    key = digest.hexdigest()
    cached = cache_directory() / "packages" / f"{key}.json"
    operators = _from_cache(cached)
    if operators is None:
        operators = _read_operators(directory, sources, given)
        _to_cache(cached, operators)
    return PackageContents(directory, key, {op.op_type: op for op in operators})


def _read_sources(directory: Path) -> dict[Path, bytes]:
    """Return the files that say what the operators are."""
    paths = [*prototype_files(directory / "op_proto" / "inc"), *header_files(directory / "op_api" / "include")]
    paths += [directory / HOST_METADATA, directory / RELATIONS]
    found = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = path.read_bytes()
    return found


# --------------------------------------------------------------------------------------------------------------- the cache


def _from_cache(path: Path) -> list[PackagedOp] | None:
    """Return the operators of a cached file; None without one, or if it is damaged."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        found = [PackagedOp(*row) for row in rows] if isinstance(rows, list) else None
    except (OSError, ValueError, TypeError):
        return None
    return found if found is not None and all(isinstance(value, str) for row in rows for value in row) else None


def _to_cache(path: Path, operators: Iterable[PackagedOp]) -> None:
    """Write a cached file as a whole; without a writable directory the next process reads the package again."""
    rows = [[op.op_type, op.name, op.schema, op.file, op.relation, op.reason] for op in operators]
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".package-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(rows))
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


# ----------------------------------------------------------------------------------------------------------------- reading


def _read_operators(directory: Path, sources: Mapping[Path, bytes], given: Mapping[str, str]) -> list[PackagedOp]:
    """Read the operators of a package from its headers."""
    headers = [path for path in sources if path.is_relative_to(directory / "op_proto")]
    result = read_all(headers)
    relations, problems = _relations(directory, sources)
    relations |= given
    infers = (directory / "op_proto" / "lib").is_dir()
    described = _metadata(sources.get(directory / HOST_METADATA))
    by_value = {
        name.decode()
        for path, text in sources.items()
        if path.is_relative_to(directory / "op_api") and _VALUES.search(text)
        for name in _FUNCTION.findall(text)
    }
    found: dict[str, PackagedOp] = {}
    for prototype in result.prototypes:
        if prototype.op_type in found:
            continue
        op_type = prototype.op_type
        author = infers or bool(described.get(op_type, {}).get("infer_shape"))
        found[op_type] = _operator(prototype, relations.get(op_type, ""), author, f"aclnn{op_type}" in by_value)
    for diagnostic in result.diagnostics:
        if diagnostic.severity is Severity.ERROR:
            # What is wrong with a whole file goes by the file's name.
            key, name = diagnostic.op_type or Path(diagnostic.file).name, operator_name(diagnostic.op_type)
            found.setdefault(key, PackagedOp(key, name, "", diagnostic.file, "", str(diagnostic)))
    for op_type, problem in problems.items():
        if op_type in found and not given.get(op_type):
            found[op_type] = replace(found[op_type], schema="", relation="", reason=problem)
    return list(found.values())


def _operator(prototype: OpPrototype, relation: str, author: bool, by_value: bool) -> PackagedOp:
    """Return an operator with its schema, or with the reason to leave it out."""
    op_type, file = prototype.op_type, prototype.file or ""
    try:
        parsed = complete_relation(prototype, relation) if relation else None
        call = find_call(prototype) if by_value else None
        schema = str(called_schema(operator_schema(prototype), call, parsed))
        returns = [p.name for p in prototype.outputs if p.name not in prototype.in_place]
        reason = ""
        if not prototype.inputs:
            reason = "it has no inputs, so nothing says on which device it runs. Write the operator by hand"
        elif parsed is None and returns and not author:
            reason = (
                f'the shape of {", ".join(returns)} is not known. Write shapes={{"{op_type}": "… -> {", ".join(returns)}[…]"}}, '
                f"or a section [{op_type}] in {RELATIONS} of the package"
            )
    except AscendGraphError as error:
        reason = str(error)
    if reason:
        reason = f"{prototype.place}: {reason}" if prototype.place else reason
        return PackagedOp(op_type, operator_name(op_type), "", file, "", reason)
    return PackagedOp(op_type, schema.partition("(")[0], schema, file, relation)


def _metadata(text: bytes | None) -> Mapping[str, Mapping[str, Any]]:
    """Return what a package of the host runtime says of its operators; empty if it cannot be read."""
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return {k: v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}


def _relations(directory: Path, sources: Mapping[Path, bytes]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the relations of a package by op type, and what is wrong with some."""
    described = _metadata(sources.get(directory / HOST_METADATA))
    relations = {name: text for name, of in described.items() if isinstance(text := of.get("relation"), str) and text}
    path = directory / RELATIONS
    if path not in sources:
        return relations, {}
    found, problems = read_relations_text(sources[path].decode("utf-8", errors="replace"), path)
    relations |= {op_type: one.text for op_type, one in found.items()}
    return relations, {problem.op_type: problem.message for problem in problems}
