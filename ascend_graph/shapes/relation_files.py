"""Files of shape relations, one section an operator, as ``operators.ini`` has them. Imports no torch.

``ascend-graph infer`` writes them; :func:`load_relations` reads them where the operators are registered, on a device as on
the host runtime.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ascend_graph.shapes.errors import RelationError
from ascend_graph.shapes.relation import Relation, parse_relation

_SECTION = re.compile(r"\[(\w+)\]")
_HEADER = (
    "# Shape relations by op type, for ascend_graph.load_relations. Written by ascend-graph infer; a section that you\n"
    "# change is yours: the command reports where it differs, and writes the others.\n"
)


class RelationFileWarning(UserWarning):
    """Warning of a line in a file of relations that is left out."""


@dataclass(frozen=True, slots=True)
class FileRelation:
    """Relation of a file, with its text there and its place."""

    relation: Relation
    text: str
    place: str


@dataclass(frozen=True, slots=True)
class RelationProblem:
    """Line of a file that is left out, with the operator whose section it is in, and the message."""

    op_type: str
    message: str


_loaded: dict[str, FileRelation] = {}


def load_relations(path: str | Path) -> tuple[str, ...]:
    """Load the relations of a file: ``register_op`` takes them where it is given no ``shape=``.

    A later file replaces what an earlier one says of an operator.

    Args:
        path: The file, as ``ascend-graph infer`` writes it.

    Returns:
        The op types of the file.

    Raises:
        RelationError: The file cannot be read.

    Warns:
        RelationFileWarning: A line cannot be read; the message has file and line. Other operators are loaded.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "relations.ini")
    >>> _ = file.write_text("[ScaleFileExample]\\nshape = x[*s] -> y[*s]\\n")
    >>> load_relations(file)
    ('ScaleFileExample',)
    """
    found, problems = read_relations(Path(path))
    for problem in problems:
        warnings.warn(problem.message, RelationFileWarning, stacklevel=2)
    _loaded.update(found)
    return tuple(found)


def loaded_relation(op_type: str) -> FileRelation | None:
    """Return the loaded relation of an operator, or None."""
    return _loaded.get(op_type)


def read_relations(path: Path) -> tuple[dict[str, FileRelation], list[RelationProblem]]:
    """Read a file of relations, and return the relations by op type, and each line that is left out.

    Raises:
        RelationError: The file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RelationError(
            f"{path}: cannot be read: {reason}; expected a file written by ascend-graph infer"
        ) from None
    return read_relations_text(text, path)


def read_relations_text(text: str, path: Path) -> tuple[dict[str, FileRelation], list[RelationProblem]]:
    """Read the text of a file of relations, as :func:`read_relations` does."""
    found: dict[str, FileRelation] = {}
    problems: list[RelationProblem] = []
    op_type = ""
    for number, line in enumerate(text.splitlines(), 1):
        place, stripped = f"{path}:{number}", line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        section = _SECTION.fullmatch(stripped)
        key, equals, value = (part.strip() for part in stripped.partition("="))
        if section is not None:
            op_type = section[1]
        elif not equals or key != "shape" or not op_type:
            message = f"{place}: {stripped!r} cannot be read; expected [OpType], or shape = RELATION under one"
            problems.append(RelationProblem(op_type, message))
        elif op_type in found:
            message = f"{place}: {op_type} has a relation already, of {found[op_type].place}; remove one of them"
            problems.append(RelationProblem(op_type, message))
        else:
            try:
                found[op_type] = FileRelation(parse_relation(value), value, place)
            except RelationError as error:
                problems.append(RelationProblem(op_type, f"{place}: {op_type}: {error}"))
    return found, problems


def relation_file(relations: Mapping[str, Relation], notes: Mapping[str, Iterable[str]]) -> str:
    """Return the text of a file.

    Args:
        relations: The relations by op type.
        notes: Lines of comment by op type; operators without a relation have only these.
    """
    parts = [_HEADER]
    for op_type in sorted({*relations, *notes}):
        comments = "".join(f"# {line}\n" for note in notes.get(op_type, ()) for line in str(note).splitlines())
        if op_type in relations:
            parts.append(f"{comments}[{op_type}]\nshape = {relations[op_type]}\n")
        else:
            parts.append(f"# {op_type}: no relation\n{comments}")
    return "\n".join(parts)
