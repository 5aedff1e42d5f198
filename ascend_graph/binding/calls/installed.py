"""Comparison of an operator's binding with the installed CANN and operator packages.

A program may load headers of one CANN, or use code generated from them, and run with another. There an input may have
another name, or a function a further parameter. So the bound definition is compared with the installed one before any
call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.aclnn import process_catalog as aclnn_catalog
from ascend_graph.aclnn.declaration import FIRST_PHASE
from ascend_graph.aclnn.diff import compare as compare_functions
from ascend_graph.aclnn.parser import parse_text
from ascend_graph.binding.errors import CannMismatchError
from ascend_graph.prototypes import Attr, OpPrototype, ParameterKind
from ascend_graph.prototypes.catalog import process_catalog as prototype_catalog
from ascend_graph.prototypes.diff import compare as compare_prototypes
from ascend_graph.prototypes.writer import default_text
from ascend_graph.sources.change import Effect, SourceChange
from ascend_graph.sources.installed import made_with


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between the installed definition and the one that an operator is bound to."""

    #: The op or function. ``bound`` and ``installed`` are the two places, each with its CANN version if known.
    subject: str
    bound: str
    installed: str
    #: The changes from the bound definition to the installed one.
    changes: tuple[SourceChange, ...]
    #: The line that fixes it.
    fix: str

    @property
    def breaks(self) -> bool:
        """True if a valid call or node of one definition is rejected, or means something else, by the other."""
        return any(change.effect is Effect.BREAKS for change in self.changes)

    def __str__(self) -> str:
        """Return the difference as one sentence."""
        changes = "; ".join(change.text for change in self.changes)
        return f"{self.subject} is bound by {self.bound}, and installed is {self.installed}: {changes}"


def prototype_difference(prototype: OpPrototype) -> Difference | None:
    """Return the difference between the installed definition of an op and the bound one.

    Returns:
        None if no package defines the op, or if the first definition is equivalent. ``breaks`` means that one side
        rejects the other's nodes, or gives them another meaning. Optional inputs and attrs of only one side do not
        break anything: a node has those that a call uses, and additions of the other side get their defaults.
    """
    installed = prototype_catalog.installed(prototype.op_type)
    if installed is None or installed == prototype:
        return None
    known = {p.name for p in installed.inputs} | {a.name for a in installed.attrs}
    inputs = [p for p in prototype.inputs if p.name in known or p.kind is not ParameterKind.OPTIONAL]
    attrs = [a for a in prototype.attrs if a.name in known or a.required]
    lacking = [p.name for p in prototype.inputs if p not in inputs] + [
        a.name for a in prototype.attrs if a not in attrs
    ]
    # Optional inputs after all others move none of those that a node has.
    own = {p.name for p in prototype.inputs}
    kept = list(installed.inputs)
    while kept and kept[-1].name not in own and kept[-1].kind is ParameterKind.OPTIONAL:
        kept.pop()
    op_type = prototype.op_type
    other_defaults = _other_defaults(attrs, installed)
    settled = {a.name: b for a, b in other_defaults}
    attrs = [settled.get(a.name, a) for a in attrs]
    changes = (
        *(
            SourceChange(op_type, Effect.CHANGES, f"{name} is not there, so that graphs cannot use it")
            for name in lacking
        ),
        *(
            SourceChange(
                op_type,
                Effect.BREAKS,
                f"attr {a.name} had the default {default_text(a)}, now {default_text(b)}, which graphs take where a call "
                "leaves it out",
            )
            for a, b in other_defaults
        ),
        *(
            SourceChange(op_type, Effect.EXTENDS, f"optional input {p.name} is new")
            for p in installed.inputs[len(kept) :]
        ),
        *compare_prototypes(
            [replace(prototype, inputs=tuple(inputs), attrs=tuple(attrs))], [replace(installed, inputs=tuple(kept))]
        ),
    )
    if not changes:
        return None
    return Difference(
        f"REG_OP({op_type})",
        _placed(prototype.place, prototype.file),
        _placed(installed.place, installed.file),
        changes,
        f'ascend_graph.load_prototypes("{installed.file}")  # instead of the other definition; or install the CANN that it is of',
    )


def _other_defaults(attrs: Iterable[Attr], installed: OpPrototype) -> list[tuple[Attr, Attr]]:
    """Return the attrs that differ from the installed ones in their default alone, which a node gets for those it lacks."""
    there = {a.name: a for a in installed.attrs}
    return [
        (a, there[a.name])
        for a in attrs
        if a.default_known and a != there.get(a.name, a) and replace(there[a.name], default=a.default) == a
    ]


def function_difference(function: AclnnFunction, version: str | None = None) -> Difference | None:
    """Return the difference between the installed declaration of an aclnn function and the bound one.

    Args:
        function: The declaration that calls follow.
        version: Its CANN version; by default the version of its file.

    Returns:
        None if no header declares the function, or if one of them agrees. ``breaks`` means that arguments would be
        mistaken for others: a call by one declaration then corrupts memory in the other's function.
    """
    installed = aclnn_catalog.installed(function.name)
    if not installed or any(other.agrees_with(function) for other in installed):
        return None
    changes = compare_functions([_as_called(function)], [_as_called(installed[0])])
    if not changes:
        return None
    return Difference(
        function.name,
        _placed(function.place, function.file, version),
        _placed(installed[0].place, installed[0].file),
        tuple(changes),
        f'ascend_graph.load_aclnn("{installed[0].file}")  # instead of the other header; or install the CANN that it is of',
    )


def check_function(function: AclnnFunction, version: str | None = None) -> Difference | None:
    """Reject calls that corrupt memory; return any other difference.

    Raises:
        CannMismatchError: The installed CANN, or operator package, declares the function with other parameters.
    """
    difference = function_difference(function, version)
    if difference is not None and difference.breaks:
        raise CannMismatchError(
            f"{difference}. A call with the parameters of the one corrupts the memory of the other. Write: {difference.fix}"
        )
    return difference


def check_declarations(text: str, version: str = "") -> None:
    """Compare the declarations that C++ was compiled with against the installed headers, before any call.

    Generated libraries call it on import.

    Args:
        text: C declarations of the functions' first phases.
        version: The version of CANN whose headers they were generated from; empty if unknown.

    Raises:
        CannMismatchError: the installed CANN, or operator package, declares one with other parameters.

    >>> check_declarations('''
    ... aclnnStatus aclnnNobodysGetWorkspaceSize(const aclTensor *x, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor);
    ... ''')
    """
    for function in parse_text(text).functions:
        difference = function_difference(function, version or None)
        if difference is not None and difference.breaks:
            raise CannMismatchError(
                f"{difference}. The library was compiled with the former: generate and build it anew with the CANN that is installed"
            )


def declaration(function: AclnnFunction) -> str:
    """Return the first phase as C declares it, with the parameters that end every first phase.

    >>> from ascend_graph.aclnn import CType, AclnnParameter
    >>> print(declaration(AclnnFunction("aclnnAbs", (AclnnParameter("self", CType("aclTensor", 1, True)),))))
    aclnnStatus aclnnAbsGetWorkspaceSize(const aclTensor *self, uint64_t *workspaceSize, aclOpExecutor **executor);
    """
    parameters = [*map(str, function.parameters), "uint64_t *workspaceSize", "aclOpExecutor **executor"]
    return f"aclnnStatus {function.name}{FIRST_PHASE}({', '.join(parameters)});"


def _as_called(function: AclnnFunction) -> AclnnFunction:
    """Return a function without details that do not affect the call.

    These are the alternative names of a type, the defaults, and whether a parameter is optional.
    """
    parameters = (replace(p, type=p.type.canonical, optional=False, default="") for p in function.parameters)
    return replace(function, parameters=tuple(parameters))


def _placed(place: str, file: str, version: str | None = None) -> str:
    version = version or (made_with(file) if file else None)
    return f"{place}{f' (CANN {version})' if version else ''}"
