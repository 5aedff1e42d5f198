"""Prototypes and declarations of a repository, where one name means one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.adoption.bound.extensions import Extensions
from ascend_graph.adoption.ge_binding import NoBindingError
from ascend_graph.prototypes import OpPrototype


@dataclass(frozen=True, slots=True)
class Known:
    """Prototypes and declarations of a repository."""

    prototypes: Mapping[str, Sequence[OpPrototype]]
    functions: Mapping[str, Sequence[AclnnFunction]]
    #: Python modules of bound functions.
    extensions: Extensions

    def prototype(self, op_type: str) -> OpPrototype | None:
        """Return the prototype of an op type.

        Raises:
            NoBindingError: Several definitions differ in more than dtypes.
        """
        found = self.prototypes.get(op_type, ())
        if len({_signature(one) for one in found}) > 1:
            places = " and ".join(one.place for one in found)
            raise NoBindingError(f"{op_type} has several definitions, at {places}")
        return found[0] if found else None

    def function(self, name: str) -> AclnnFunction | None:
        """Return the declaration of an aclnn function.

        Raises:
            NoBindingError: Headers declare it differently.
        """
        found = self.functions.get(name, ())
        if any(not one.agrees_with(found[0]) for one in found):
            raise NoBindingError(f"{name} is declared differently at {' and '.join(one.place for one in found)}")
        return found[0] if found else None


def _signature(prototype: OpPrototype) -> Any:
    inputs = tuple((p.name, p.kind) for p in prototype.inputs)
    attrs = tuple((a.name, a.type, a.required, repr(a.default)) for a in prototype.attrs)
    return inputs, attrs, tuple((p.name, p.kind) for p in prototype.outputs)
