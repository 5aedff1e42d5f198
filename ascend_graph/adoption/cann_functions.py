"""Roles of parameters of aclnn functions: what a call reads, and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ascend_graph.aclnn import AclnnFunction, Direction, ValueKind
from ascend_graph.aclnn.roles import is_reference_name
from ascend_graph.adoption.bound.kernels import kernel_writes
from ascend_graph.adoption.ge_binding import NoBindingError
from ascend_graph.adoption.known import Known
from ascend_graph.binding.calls.call import Part, msopgen_call
from ascend_graph.binding.errors import BindingError
from ascend_graph.prototypes import OpPrototype
from ascend_graph.prototypes.naming import snake_case

_TENSORS = (ValueKind.TENSOR, ValueKind.TENSOR_LIST)
_LETTERS = {Direction.IN: "r", Direction.OUT: "w", Direction.INOUT: "x"}


@cache
def cann_functions() -> dict[str, str]:
    """Return the letters of the parameters of CANN's own functions, by name; see the head of the file.

    >>> cann_functions()["aclnnInplaceAdd"]
    'xrS'
    """
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if line and not line.startswith("#"))


def roles_of(name: str, known: Known, kernel_files: Sequence[Path] = ()) -> str:
    """Return one letter for each parameter of an aclnn function: r, w and x for tensors, h for host memory, others for values.

    A header of the repository comes first, then its prototype with its kernel, then what CANN's own headers declare.

    Args:
        name: The function.
        known: Prototypes and declarations.
        kernel_files: Files with kernels: one may write an input that its prototype does not have as an output, too.

    Raises:
        NoBindingError: Nothing states them, or nothing is written by what states them.
    """
    function = known.function(name)
    prototype = known.prototype(name.removeprefix("aclnn"))
    if function is not None:
        roles, source = _declared(function), function.place
        if not states_writes(function):
            raise NoBindingError(f"{name} is called, and {source} does not tell which tensor it writes")
    elif prototype is not None:
        roles, source = _generated(prototype), prototype.place
        roles = _with_kernel(roles, prototype, kernel_files, known.extensions.root)
    else:
        roles, source = cann_functions().get(name, ""), "CANN's headers"
        if not roles:
            raise NoBindingError(f"{name} is called, and neither a prototype nor a header here tells what it writes")
    if not {*roles} & {"w", "x", "h"}:
        raise NoBindingError(f"{name} is called, and {source} does not tell what it writes")
    return roles


def _with_kernel(roles: str, prototype: OpPrototype, kernel_files: Sequence[Path], root: Path) -> str:
    """Return the roles with the inputs that a prototype's own kernel writes.

    Raises:
        NoBindingError: The prototype has no output, and what its kernel does with an input is not understood.
    """
    kernel = kernel_writes(snake_case(prototype.op_type), kernel_files, root / prototype.file)
    tensors = [n for n, role in enumerate(roles) if role != "."]
    if kernel is None or kernel.count - len(tensors) not in (0, 1, 2):  # workspace and tiling come last
        return roles
    inputs = tensors[: len(prototype.inputs)]
    if not prototype.outputs and kernel.unknown & {*range(len(inputs))}:
        names = ", ".join(one.name for n, one in enumerate(prototype.inputs) if n in kernel.unknown)
        raise NoBindingError(f"what the kernel of {prototype.op_type} does with {names} is not understood")
    return "".join("x" if n in inputs and inputs.index(n) in kernel.written else role for n, role in enumerate(roles))


def states_writes(function: AclnnFunction) -> bool:
    """Return whether a declaration tells what a function writes: one in place whose tensors are all const does not."""
    tensors = [one for one in function.parameters if one.value in _TENSORS]
    marked = any(not one.type.const or one.direction is not Direction.IN for one in tensors[1:])
    first = tensors[0] if tensors else None
    named = first is not None and (not first.type.const or is_reference_name(first.name))
    return (
        not function.name.startswith("aclnnInplace")
        or named
        or (marked and first is not None and first.direction is Direction.IN)
    )


def _declared(function: AclnnFunction) -> str:
    return "".join(
        "h" if one.value is ValueKind.HOST_OUTPUT else "." if one.value not in _TENSORS else _LETTERS[one.direction]
        for one in function.parameters
    )


def _generated(prototype: OpPrototype) -> str:
    try:
        call = msopgen_call(prototype)
    except BindingError as error:
        raise NoBindingError(str(error).splitlines()[0]) from None
    letters = {Part.INPUT: "r", Part.OUTPUT: "w"}
    return "".join(
        "x"
        if one.part is Part.INPUT and prototype.inputs[one.index].name in prototype.in_place
        else letters.get(one.part, ".")
        for one in call.arguments
    )
