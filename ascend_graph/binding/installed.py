"""What an operator is bound to, against what the CANN and the operator packages that are installed say of it.

Headers of one CANN are loaded, or code is generated from them, and the program runs with another: an input has another name
there, a function a further parameter. What was decided by the one header is compared with the other before anything is called.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ascend_graph.aclnn import AclnnFunction
from ascend_graph.aclnn import process_catalog as aclnn_catalog
from ascend_graph.aclnn.diff import compare as compare_functions
from ascend_graph.aclnn.parser import FIRST_PHASE, parse_text
from ascend_graph.binding.errors import CannMismatchError
from ascend_graph.prototypes import OpPrototype, ParameterKind
from ascend_graph.prototypes.catalog import process_catalog as prototype_catalog
from ascend_graph.prototypes.diff import compare as compare_prototypes
from ascend_graph.sources.change import Change, Effect
from ascend_graph.sources.installed import made_with


@dataclass(frozen=True, slots=True)
class Difference:
    """What is installed differs from what an operator was bound to."""

    #: The op or function, and the two places, each with the version of CANN where one is known.
    subject: str
    bound: str
    installed: str
    #: From what it was bound to, to what is installed.
    changes: tuple[Change, ...]
    #: The line that mends it.
    mend: str

    @property
    def breaks(self) -> bool:
        """Whether a call or a node by the one is refused, or means something else, by the other."""
        return any(change.effect is Effect.BREAKS for change in self.changes)

    def __str__(self) -> str:
        """One sentence."""
        changes = "; ".join(change.text for change in self.changes)
        return f"{self.subject} is bound by {self.bound}, and installed is {self.installed}: {changes}"


def prototype_difference(prototype: OpPrototype) -> Difference | None:
    """How the installed definition of an op differs from the one that an operator is bound to.

    Returns:
        None where no package defines the op, or the first that does defines it alike. ``breaks`` says that nodes by the one
        are refused by the other, or mean something else. Optional inputs and attrs that only one of them has break nothing:
        a node has those that a call uses, and what the other side adds gets its default.
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
    changes = (
        *(Change(op_type, Effect.CHANGES, f"{name} is not there, so that graphs cannot use it") for name in lacking),
        *(Change(op_type, Effect.EXTENDS, f"optional input {p.name} is new") for p in installed.inputs[len(kept) :]),
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


def function_difference(function: AclnnFunction, version: str | None = None) -> Difference | None:
    """How the installed declaration of an aclnn function differs from the one that it is called by.

    Args:
        function: The declaration that calls go by.
        version: The version of CANN that it is of; found by its file without it.

    Returns:
        None where no header declares the function, or one declares it alike. ``breaks`` says that arguments would be taken for
        others: a call by the one declaration corrupts the memory of the other's.
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
    """Refuse calls that corrupt memory; what differs otherwise.

    Raises:
        CannMismatchError: the installed CANN, or operator package, declares the function with other parameters.
    """
    difference = function_difference(function, version)
    if difference is not None and difference.breaks:
        raise CannMismatchError(
            f"{difference}. A call with the parameters of the one corrupts the memory of the other. Write: {difference.mend}"
        )
    return difference


def check_declarations(text: str, version: str = "") -> None:
    """Compare the declarations that C++ was compiled with against the installed headers, before it is called.

    Generated libraries do so when they are imported.

    Args:
        text: C declarations of the functions' first phases.
        version: The version of CANN whose headers they were generated from; empty where that is not known.

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
    """The first phase as C declares it, with what ends every first phase.

    >>> from ascend_graph.aclnn import CType, AclnnParameter
    >>> print(declaration(AclnnFunction("aclnnAbs", (AclnnParameter("self", CType("aclTensor", 1, True)),))))
    aclnnStatus aclnnAbsGetWorkspaceSize(const aclTensor *self, uint64_t *workspaceSize, aclOpExecutor **executor);
    """
    parameters = [*map(str, function.parameters), "uint64_t *workspaceSize", "aclOpExecutor **executor"]
    return f"aclnnStatus {function.name}{FIRST_PHASE}({', '.join(parameters)});"


def _as_called(function: AclnnFunction) -> AclnnFunction:
    """A function without what makes no difference to the machine: the names of one type, and remarks on what may be left out."""
    parameters = (replace(p, type=p.type.canonical, optional=False, default="") for p in function.parameters)
    return replace(function, parameters=tuple(parameters))


def _placed(place: str, file: str, version: str | None = None) -> str:
    version = version or (made_with(file) if file else None)
    return f"{place}{f' (CANN {version})' if version else ''}"
