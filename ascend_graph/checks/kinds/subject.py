"""Operator under check: calls of it and the classification of their failures."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ascend_graph.autograd.register import refuses_itself
from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.results import CallResult, differences, leaves
from ascend_graph.checks.tolerances import Tolerances
from ascend_graph.registration.registered import RegisteredOp

Way = Callable[..., Any]


class Violation(Exception):  # noqa: N818 - what is found, not a failure of the check
    """Violation of a rule by the operator."""


class NotApplicable(Exception):  # noqa: N818
    """Check that does not apply to this operator or call."""


class Undecided(NotApplicable):
    """Call that the given reference cannot judge; the check fails if it can judge none."""


class CallRefused(Exception):  # noqa: N818
    """Refusal of the call by the operator itself."""


class Faulted(Violation):
    """Failure of the kernel or tiling function in a call that the operator accepted."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Operator under check."""

    overload: Any
    registered: RegisteredOp | None
    device: torch.device
    reference: Callable[..., Any] | None = None
    tolerances: Tolerances = field(default_factory=Tolerances)
    #: Notes of checks that passed, for the report.
    remarks: list[str] = field(default_factory=list, compare=False)

    @property
    def schema(self) -> Any:
        return self.overload._schema

    @property
    def differentiable(self) -> bool:
        """True if the operator has a gradient."""
        keys = ("AutogradPrivateUse1", "Autograd") if self.device.type != "cpu" else ("AutogradCPU", "Autograd")
        name = self.overload.name()
        gradient = any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)
        gradient = gradient and not refuses_itself(self.overload)
        if self.registered is not None and "gradient" in self.registered.evidence:
            return gradient and not self.registered.evidence["gradient"].startswith("none")
        return gradient or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")

    @property
    def lacks(self) -> str:
        """Message about a missing meta function; empty if the operator has one or is registered with ascend_graph."""
        name = self.overload.name()
        keys = (
            "Meta",
            "CompositeExplicitAutograd",
            "CompositeImplicitAutograd",
            "CompositeExplicitAutogradNonFunctional",
        )
        if self.registered is not None or any(
            torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys
        ):
            return ""
        entry = torch._library.simple_registry.singleton.find(self.overload._schema.name)
        return "" if entry.fake_impl.kernel is not None else "it has no meta function"

    def written(self) -> list[bool]:
        """Return for each argument of the schema whether the operator may write it."""
        return [a.alias_info is not None and a.alias_info.is_write for a in self.schema.arguments]

    def call(self, sample: Sample, way: Way | None = None) -> Any:
        """Call the operator with a sample that is on its device."""
        return (way or self.overload)(*sample.args, **sample.kwargs)

    def run(self, sample: Sample, way: Way | None = None) -> CallResult:
        """Run a call on a copy of its tensors and return its result.

        Raises:
            CallRefused: The operator itself raised.
            Faulted: Its kernel or its tiling function failed.
        """
        placed = sample.on(self.device)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.manual_seed(0)
                returned = self.call(placed, way)
                self.synchronize()
        except Exception as error:  # whatever an operator raises is its refusal, but for a fault of the device
            raise refusal(error) from error
        return self.result(returned, placed)

    def result(self, returned: Any, placed: Sample) -> CallResult:
        """Return the result of a call: its returns and its arguments afterwards."""
        return CallResult.of(returned, placed.tensors, self.tensor_names(placed))

    def tensor_names(self, sample: Sample) -> list[str]:
        """Return the argument name of each of a sample's tensors."""
        names = [a.name for a in self.schema.arguments if not a.kwarg_only]
        given = [*zip(names, sample.args, strict=False), *sample.kwargs.items()]
        return [name for name, value in given for _ in flattened(value)]

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).synchronize()

    def differ(self, got: CallResult, wanted: CallResult, *, exact: bool = False) -> str:
        """Return the differences of two results, in words."""
        return "; ".join(differences(got, wanted, exact=exact, tolerances=self.tolerances))


#: Error codes with which a runtime reports that a kernel failed on the device: exceptions, traps and timeouts of cores.
_FAULT = re.compile(r"\b(?:error(?: code is)?|status|ret(?:Code)?\s?=)\s*(507(?:01[1-8]|03[4-6]|05\d))\b")


#: Messages of the host runtime for a failed host function of an author: on a device it would crash the process.
_FAULT_OF_HOST_CODE = re.compile(
    r"\w+: the \w+ function (?:accesses memory through|divides by zero|exhausts its stack|did not end in|ended by signal)"
    r"|\w+: the tiling function (?:made \d+ bytes of tiling data|set no number of blocks)"
)


#: Message of the host runtime with the rule that a kernel broke and the block.
_RULE = re.compile(r"(?:^|: )(kernel \S.*?, block \d+ of \d+: .*)")


#: Messages of Python for a call of a function with other arguments than it has: an error of the program, not a refusal.
_OTHER_ARGUMENTS = re.compile(r"\S+\(\) (missing \d+ required|takes \d+ |takes from \d+ |got an unexpected keyword)")


def fault(error: BaseException) -> str:
    """Return how a kernel or a tiling function failed, with the rule that it broke; empty for a refusal."""
    error = getattr(error, "inner_exception", None) or error
    text = str(error)
    if isinstance(error, TypeError) and (other := _OTHER_ARGUMENTS.match(text)):
        why = "; PyTorch leaves out arguments that equal the schema's default: give the kernel's parameter that default"
        return text.splitlines()[0] + (why if other[1].startswith("missing") else "")
    code = _FAULT.search(text)
    rule = next((found[1] for line in text.splitlines() if (found := _RULE.search(line.strip()))), "")
    if code is not None:
        return f"error {code[1]}: {rule or next(line.strip() for line in text.splitlines() if code[1] in line)}"
    own = _FAULT_OF_HOST_CODE.search(text)
    return "" if own is None else text[own.start() :].splitlines()[0].strip()


def refusal(error: BaseException) -> CallRefused | Faulted:
    """Return the exception for an error of a call: Faulted if kernel or tiling function failed, else CallRefused."""
    failed = fault(error)
    return Faulted(failed) if failed else CallRefused(first_line(error))


def first_line(error: BaseException) -> str:
    """Return an exception in one line.

    For a compiler's exception this is the error it met, for a device fault the rule that was broken.
    """
    error = getattr(error, "inner_exception", None) or error
    if failed := fault(error):
        return failed
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip() if lines else ''}"


def require_equal(subject: Subject, got: CallResult, wanted: CallResult, what: str, *, exact: bool = False) -> None:
    """Raise Violation if two results differ."""
    found = subject.differ(got, wanted, exact=exact)
    if found:
        raise Violation(f"{what}: {found}")


def called(subject: Subject, placed: Sample) -> Any:
    """Call the operator, wait for the device and return the results.

    Raises:
        CallRefused: The operator raised.
        Faulted: Its kernel or its tiling function failed.
    """
    try:
        with torch.no_grad():
            returned = subject.call(placed)
        subject.synchronize()
    except Exception as error:  # whatever an operator raises
        raise refusal(error) from error
    return returned


def flattened(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]
