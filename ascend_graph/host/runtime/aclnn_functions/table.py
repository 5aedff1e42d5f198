"""Table of aclnn functions: C parameters, and the kernel that receives them.

It is read when libopapi is built, by a Python without any package, so it imports only the standard library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("functions.txt")

#: C types by the table's types, which leave out ``const`` and the pointer of ACL's objects.
C_TYPES: Mapping[str, str] = {
    **{name: f"const {name}*" for name in ("aclTensor", "aclTensorList", "aclScalar")},
    **{name: f"const {name}*" for name in ("aclIntArray", "aclFloatArray", "aclBoolArray")},
    "string": "char*",
    "aclDataType": "int32_t",
    **{name: name for name in ("int64_t", "int32_t", "int8_t", "double", "float", "bool")},
}


class TableError(ValueError):
    """Error for a line of the table that cannot be read, or that contradicts itself."""


@dataclass(frozen=True, slots=True)
class CParameter:
    """Parameter of a C function."""

    type: str
    name: str
    #: True if its memory may hold it in blocks, as FRACTAL_NZ does.
    in_blocks: bool = False


@dataclass(frozen=True, slots=True)
class OutputParameter:
    """Parameter that receives an output of the kernel; the name is None for an output that nobody reads."""

    name: str | None
    #: True if the caller may pass null, or a tensor without elements, for an output that it does not want.
    optional: bool


@dataclass(frozen=True, slots=True)
class Function:
    """Function of aclnn: ``aclnn<name>GetWorkspaceSize`` has the parameters, ``aclnn<name>`` runs the kernel.

    It may also be an operation of libatb, ``atb::<name>``, without C functions.
    """

    #: Name without ``aclnn``; operations keep ``atb::``.
    name: str
    parameters: tuple[CParameter, ...]
    #: GE operator whose kernel it runs.
    op_type: str
    #: Values of its inputs, by position, and of its attrs: expressions over the parameters.
    inputs: tuple[ast.expr, ...]
    attrs: Mapping[str, ast.expr]
    outputs: tuple[OutputParameter, ...]
    #: Parameters that a host kernel does not use: null, without elements, or 0.
    absent: tuple[str, ...]

    @property
    def is_exported(self) -> bool:
        """Presence of C functions."""
        return not self.name.startswith(_OPERATIONS)

    @property
    def symbol(self) -> str:
        """Name in messages."""
        return f"aclnn{self.name}" if self.is_exported else self.name


@cache
def functions() -> Mapping[str, Function]:
    """Return all functions of the table by name, without ``aclnn``; operations keep ``atb::``.

    Raises:
        TableError: the table is malformed.
    """
    found: dict[str, Function] = {}
    for function in read(TABLE.read_text()):
        if function.name in found:
            raise TableError(f"{function.symbol} is declared twice; remove one")
        found[function.name] = function
    return found


#: Functions that may be called in the place of an attr.
_CALLS = frozenset({"dtype_of", "is_null", "rows_of"})
#: Prefix of the names of libatb's operations.
_OPERATIONS = "atb::"
_ENTRY = re.compile(
    r"(?:aclnn|(?=atb::))(?P<name>(?:atb::)?\w+)\((?P<parameters>[^)]*)\) = (?P<call>.+?)(?: -> (?P<outputs>[\w?, ]+?))?(?: without (?P<absent>[\w, ]+))?$"
)


def read(text: str) -> Iterator[Function]:
    """Return the functions that a table declares, in its order.

    >>> [function] = read("aclnnCeil(aclTensor self, aclTensor out)\\n    = Ceil(self) -> out")
    >>> function.name, function.op_type, function.outputs
    ('Ceil', 'Ceil', (OutputParameter(name='out', optional=False),))
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    entries: list[str] = []
    for line in lines:
        if line[0].isspace() and entries:
            entries[-1] += " " + line.strip()
        else:
            entries.append(line.strip())
    return map(_function, entries)


def _function(entry: str) -> Function:
    match = _ENTRY.match(entry)
    if match is None:
        raise TableError(f"not of the form 'aclnnX(type name, …) = Kernel(…) -> output, …': {entry}")
    parameters = tuple(_parameter(text, entry) for text in match["parameters"].split(", "))
    names = {p.name for p in parameters}
    call = ast.parse(match["call"], mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TableError(f"expected the call of a kernel: {match['call']}")
    attrs = {keyword.arg or "": keyword.value for keyword in call.keywords}
    outputs = tuple(
        OutputParameter(None if text == "_" else text.rstrip("?"), text.endswith("?"))
        for text in (match["outputs"] or "").split(", ")
        if text
    )
    used = {node.id for part in (*call.args, *attrs.values()) for node in ast.walk(part) if isinstance(node, ast.Name)}
    absent = tuple((match["absent"] or "").split(", ")) if match["absent"] else ()
    unknown = (used - _CALLS | {o.name for o in outputs if o.name} | {*absent}) - names
    if unknown:
        raise TableError(
            f"{entry.partition('(')[0]} has no parameter {', '.join(sorted(unknown))}; expected names of its parameters"
        )
    return Function(match["name"], parameters, call.func.id, tuple(call.args), attrs, outputs, absent)


def _parameter(text: str, entry: str) -> CParameter:
    kind, _, name = text.strip().partition(" ")
    kind, colon, form = kind.partition(":")
    is_tensor = kind in ("aclTensor", "aclTensorList")
    if kind not in C_TYPES or not name.isidentifier() or (colon and (form != "NZ" or not is_tensor)):
        raise TableError(
            f"'{text}' is not a parameter; expected a type of {', '.join(C_TYPES)}, aclTensor:NZ, aclTensorList:NZ: "
            f"{entry}"
        )
    return CParameter(kind, name, bool(colon))
