"""What holds for every operator, as functions that call it and say what does not hold.

Each takes a :class:`Subject` and a sample, and raises :class:`Violation` with what is wrong, or :class:`NotApplicable` where there is
nothing to check.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.checks.guard import Promise
from ascend_graph.checks.results import Result, differences, leaves
from ascend_graph.checks.samples import Sample
from ascend_graph.registration.register import RegisteredOp

Way = Callable[..., Any]


class Violation(Exception):  # noqa: N818 - what is found, not a failure of the check
    """An operator does something that it must not."""


class NotApplicable(Exception):  # noqa: N818
    """There is nothing to check here."""


class Undecided(NotApplicable):
    """A call that cannot be judged by what was given to judge it; where none can be, that is found."""


class Refused(Exception):  # noqa: N818
    """The operator itself refused the call."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The operator under check."""

    overload: Any
    registered: RegisteredOp | None
    device: torch.device
    reference: Callable[..., Any] | None = None
    rtol: float | None = None
    atol: float | None = None

    @property
    def schema(self) -> Any:
        return self.overload._schema

    @property
    def differentiable(self) -> bool:
        """Whether the operator has a gradient."""
        keys = ("AutogradPrivateUse1", "Autograd") if self.device.type != "cpu" else ("AutogradCPU", "Autograd")
        name = self.overload.name()
        gradient = any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)
        if self.registered is not None and "gradient" in self.registered.evidence:
            return gradient and not self.registered.evidence["gradient"].startswith("none")
        return gradient or torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")

    @property
    def lacks(self) -> str:
        """What graphs would need of the operator and nobody has registered; nothing for one that is registered with ascend_graph."""
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
        """For each argument of the schema whether it may be written."""
        return [a.alias_info is not None and a.alias_info.is_write for a in self.schema.arguments]

    def call(self, sample: Sample, way: Way | None = None) -> Any:
        """Call the operator with a sample that is on its device."""
        return (way or self.overload)(*sample.args, **sample.kwargs)

    def run(self, sample: Sample, way: Way | None = None) -> Result:
        """The result of a call with tensors of its own.

        Raises:
            Refused: The operator itself raised.
        """
        placed = sample.on(self.device)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.manual_seed(0)
                returned = self.call(placed, way)
                self.synchronize()
        except Exception as error:  # whatever an operator raises is its refusal
            raise Refused(first_line(error)) from error
        return Result.of(returned, placed.tensors)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).synchronize()

    def differ(self, got: Result, wanted: Result, *, exact: bool = False) -> str:
        """Where two results differ."""
        return "; ".join(differences(got, wanted, exact=exact, rtol=self.rtol, atol=self.atol))


def first_line(error: BaseException) -> str:
    """An exception in one line; of a compiler's, that of the error it met."""
    error = getattr(error, "inner_exception", None) or error
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip() if lines else ''}"


def require_equal(subject: Subject, got: Result, wanted: Result, what: str, *, exact: bool = False) -> None:
    """Raise where two results differ."""
    found = subject.differ(got, wanted, exact=exact)
    if found:
        raise Violation(f"{what}: {found}")


# ------------------------------------------------------------------------------------------------------------ in eager mode


def called(subject: Subject, placed: Sample) -> Any:
    """What the operator returns when the device is done.

    Raises:
        Refused: it raises.
    """
    try:
        with torch.no_grad():
            returned = subject.call(placed)
    except Exception as error:  # whatever an operator raises
        raise Refused(first_line(error)) from error
    subject.synchronize()
    return returned


def arguments(subject: Subject, sample: Sample) -> None:
    """Arguments that the schema does not mark as written stay as they are; results share memory only where it says so."""
    placed = sample.on(subject.device)
    before = [(t, t.detach().clone(), tuple(t.shape), t.stride(), t.untyped_storage().nbytes()) for t in placed.tensors]
    returned = called(subject, placed)
    values = _by_argument(subject, placed)
    for argument, value, writable in zip(subject.schema.arguments, values, subject.written(), strict=True):
        for tensor in _flat(value):
            _, old, shape, strides, nbytes = next(entry for entry in before if entry[0] is tensor)
            if (
                tuple(tensor.shape) != shape
                or tensor.stride() != strides
                or tensor.untyped_storage().nbytes() != nbytes
            ):
                raise Violation(f"argument {argument.name} has another shape, strides or storage after the call")
            found = "" if writable else subject.differ(Result.of(None, [tensor]), Result.of(None, [old]), exact=True)
            if found:
                raise Violation(
                    f"argument {argument.name} is written, and the schema does not say so (Tensor(a!) {argument.name}): {found}"
                )
    _check_aliases(subject, returned, values)


def _check_aliases(subject: Subject, returned: Any, values: Sequence[Any]) -> None:
    results = returned if isinstance(returned, tuple) else (returned,)
    seen: dict[int, str] = {}
    for declared, result, number in zip(subject.schema.returns, results, range(len(results)), strict=False):
        allowed = set() if declared.alias_info is None else declared.alias_info.before_set
        for tensor in (t for t in _flat(result) if t.untyped_storage().nbytes()):
            storage = tensor.untyped_storage()._cdata
            for argument, value in zip(subject.schema.arguments, values, strict=True):
                own = set() if argument.alias_info is None else argument.alias_info.before_set
                if not (own & allowed) and any(t.untyped_storage()._cdata == storage for t in _flat(value)):
                    raise Violation(
                        f"return {number} is memory of argument {argument.name}, and the schema does not say so"
                    )
            if storage in seen and not allowed:
                raise Violation(f"return {number} is memory of {seen[storage]}")
            seen[storage] = f"return {number}"


def _by_argument(subject: Subject, sample: Sample) -> list[Any]:
    """The values of all arguments of the schema in order."""
    positional = list(sample.args)
    values = []
    for argument in subject.schema.arguments:
        if positional and not argument.kwarg_only:
            values.append(positional.pop(0))
        else:
            values.append(sample.kwargs.get(argument.name, argument.default_value))
    return values


def _flat(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]


def repeats(subject: Subject, sample: Sample) -> None:
    """The same call gives the same bits, whatever was in the memory that results are made in."""
    if torch.Tag.nondeterministic_seeded in subject.overload.tags:
        raise NotApplicable("the operator is tagged as random")
    first = subject.run(sample)
    for pattern in (0x00, 0xFF, 0x5A):
        held = _fill_free_memory(subject, first, pattern)
        again = subject.run(sample)
        require_equal(
            subject,
            again,
            first,
            f"the result depends on what was in its memory before (0x{pattern:02x} now): something is not written, "
            "or read before it is",
            exact=True,
        )
        del held


def _fill_free_memory(subject: Subject, result: Result, pattern: int) -> list[int]:
    """Leave a pattern in the free memory that tensors of these sizes are made in next; the addresses."""
    sizes = [t.numel() * t.element_size() for t in (*result.returns, *result.arguments) if isinstance(t, torch.Tensor)]
    made = [torch.empty(size, dtype=torch.uint8, device=subject.device) for size in sizes for _ in range(3)]
    for tensor in made:
        tensor.fill_(pattern)
    subject.synchronize()
    return [tensor.data_ptr() for tensor in made]


def outside(subject: Subject, sample: Sample) -> None:
    """Nothing is written before or behind a tensor: each lies in the middle of a larger one, whose rest stays as it is."""
    margins: list[tuple[torch.Tensor, int, int]] = []
    padding = 64

    def embed(tensor: torch.Tensor) -> torch.Tensor:
        size = tensor.element_size()
        extent = (
            sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1 if tensor.numel() else 0
        )
        whole = torch.full(((extent + 2 * padding) * size,), 0x5A, dtype=torch.uint8, device=tensor.device)
        inner = whole.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), padding)
        inner.copy_(tensor)
        margins.append((whole, padding * size, (padding + extent) * size))
        return inner

    placed = sample.on(subject.device, embed)
    returned = called(subject, placed)
    for number, (whole, start, end) in enumerate(margins):
        for where, part in (("before", whole[:start]), ("behind", whole[end:])):
            if bool((part.cpu() != 0x5A).any()):
                raise Violation(f"bytes {where} tensor {number} of the call are written")
    require_equal(
        subject,
        Result.of(returned, placed.tensors),
        subject.run(sample),
        "with tensors that begin in the middle of their storage",
        exact=True,
    )
    _behind_results(subject, sample)


def _behind_results(subject: Subject, sample: Sample) -> None:
    """On the host runtime: the rest of the block of memory that a result lies in stays as it is."""
    from ascend_graph.host.toolkit import is_active

    if subject.device.type == "cpu" or not is_active():
        return
    block = 512  # what torch_npu's allocator rounds to, 32 bytes of which are its own
    first = subject.run(sample)
    sizes = [t.numel() * t.element_size() for t in first.returns if isinstance(t, torch.Tensor)]
    whole = [-(-(size + 32) // block) * block - 32 for size in sizes]
    made = [torch.full((n,), 0x5A, dtype=torch.uint8, device=subject.device) for n in whole for _ in range(3)]
    subject.synchronize()
    known = {tensor.data_ptr(): tensor.numel() for tensor in made}
    del made
    placed = sample.on(subject.device)
    before = _allocations(subject)
    with torch.no_grad():
        returned = subject.call(placed)
    subject.synchronize()
    if _allocations(subject) - before != len({t.untyped_storage().data_ptr() for t in _flat(returned)}):
        return  # memory of something in between may have become that of a result, with what was left there
    for number, tensor in enumerate(leaves(returned)):
        if not isinstance(tensor, torch.Tensor) or tensor.untyped_storage().data_ptr() not in known:
            continue
        start, used = tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()
        rest = ctypes.string_at(start + used, max(known[start] - used, 0))
        if rest.strip(b"\x5a"):
            raise Violation(f"bytes behind return {number} are written")


def _allocations(subject: Subject) -> int:
    """How many pieces of memory were asked for so far."""
    return int(torch.get_device_module(subject.device).memory_stats()["allocation.all.allocated"])


def layout(subject: Subject, sample: Sample) -> None:
    """Tensors that are not contiguous mean the same as contiguous ones."""
    candidates = [t for t in sample.tensors if t.numel() > 1]
    if not candidates:
        raise NotApplicable("no tensor has two elements")
    wanted = subject.run(sample)

    def stretch(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0:
            return tensor
        room = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype, device=tensor.device)
        room[..., 1::2] = 1
        room[..., ::2] = tensor
        return room[..., ::2]

    def transpose(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.dim() > 1 else stretch(tensor)

    for name, change in (("with gaps between elements", stretch), ("transposed in memory", transpose)):
        placed = sample.on(subject.device, change)
        try:
            with torch.no_grad():
                torch.manual_seed(0)
                returned = subject.call(placed)
        except Exception as error:  # whatever an operator raises
            raise Violation(f"tensors {name} are refused: {first_line(error)}") from error
        subject.synchronize()
        require_equal(subject, Result.of(returned, placed.tensors), wanted, f"tensors {name}")


def reference(subject: Subject, sample: Sample) -> None:
    """The results are those of the reference, and so is what is written."""
    if subject.reference is None:
        raise NotApplicable("no reference= is given")
    copied = sample.on(torch.device("cpu"))
    try:
        expected = subject.reference(*copied.args, **copied.kwargs)
    except Exception as error:  # whatever an author's function raises
        raise Undecided(f"the reference refuses the call: {first_line(error)}") from error
    wanted = Result.of(expected, copied.tensors)
    require_equal(subject, subject.run(sample), wanted, "against the reference")


def meta(subject: Subject, sample: Sample) -> None:
    """The meta function says what the kernel returns: shapes, dtypes, strides, devices, aliases."""
    if subject.lacks:
        raise NotApplicable(subject.lacks)
    placed = sample.on(subject.device)
    promise = Promise(subject.overload, placed.args, dict(placed.kwargs))
    try:
        with torch.no_grad():
            returned = subject.call(placed)
    except Exception as error:  # whatever an operator raises
        if promise.refusal:
            return
        raise Refused(first_line(error)) from error
    subject.synchronize()
    found = [
        f"{m.what} of return {m.output}: {m.promised}, not {m.returned}"
        for m in promise.compare(returned, strides=True)
    ]
    if found:
        raise Violation(f"the meta function says {'; '.join(found)}")
    _fake(subject, sample, returned)


def _fake(subject: Subject, sample: Sample, returned: Any) -> None:
    """The same with sizes that are symbols, as torch.compile calls it."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    placed = sample.on(subject.device)
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=False)
    with mode, torch.no_grad():
        args, kwargs = tree_map_only(torch.Tensor, mode.from_tensor, (placed.args, dict(placed.kwargs)))
        try:
            said = subject.overload(*args, **kwargs)
        except Exception as error:  # whatever an operator raises
            raise Violation(f"the meta function refuses sizes that are symbols: {first_line(error)}") from error
    for number, (a, b) in enumerate(zip(leaves(said), leaves(returned), strict=True)):
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
            continue
        shape = tuple(int(n) for n in a.shape)
        if shape != tuple(b.shape) or a.dtype != b.dtype:
            raise Violation(
                f"with symbolic sizes return {number} is {a.dtype}{list(shape)}, not {b.dtype}{list(b.shape)}"
            )
        if a.device.type != b.device.type:
            raise Violation(f"the meta function puts return {number} on {a.device.type}, the kernel on {b.device.type}")


# ----------------------------------------------------------------------------------------------------------------- gradients


def _leaves_for_gradient(sample: Sample) -> tuple[Sample, list[torch.Tensor]]:
    wanted: list[torch.Tensor] = []

    def track(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.dtype.is_floating_point:
            return tensor
        tensor.requires_grad_()
        wanted.append(tensor)
        return tensor

    args, kwargs = tree_map_only(torch.Tensor, track, (sample.args, dict(sample.kwargs)))
    return Sample(args, kwargs, sample.why), wanted


def gradients(subject: Subject, sample: Sample, way: Way | None = None) -> tuple[list[Any], Any]:
    """The gradients of the sum of weighted results; the weights are the same for the same shapes."""
    tracked, wanted = _leaves_for_gradient(sample.on(subject.device))
    if not wanted or any(subject.written()):
        raise NotApplicable("no argument has a gradient" if not wanted else "the operator writes its arguments")
    torch.manual_seed(0)
    try:
        returned = subject.call(tracked, way)
    except Exception as error:  # whatever an operator raises
        if "not differentiable" in str(error):
            raise NotApplicable(first_line(error)) from error
        raise Refused(first_line(error)) from error
    results = [t for t in _flat(returned) if t.requires_grad]
    if not results:
        raise NotApplicable("no result has a gradient")
    try:
        found = torch.autograd.grad(results, wanted, [_weights(t) for t in results], allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        # What torch says of an operator without a formula, and what it may say instead of a gradient.
        if re.search(r"derivative for \S+ is not implemented|has no gradient", str(error)):
            raise NotApplicable(first_line(error)) from error
        raise
    subject.synchronize()
    return [None if g is None else g.detach().cpu() for g in found], returned


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    generator = torch.Generator().manual_seed(tensor.numel())
    return torch.randn(tensor.shape, generator=generator).to(tensor.dtype).to(tensor.device)


def gradient(subject: Subject, sample: Sample) -> None:
    """The gradient is that of the reference, or else what the results change by when the arguments do."""
    if not subject.differentiable:
        raise NotApplicable("the operator has no gradient")
    if any(t.dtype in (torch.float16, torch.bfloat16) for t in sample.tensors):
        raise NotApplicable("half precision")
    found, returned = gradients(subject, sample)
    if subject.reference is not None:
        on_cpu = Subject(subject.reference, None, torch.device("cpu"))
        tracked, wanted = _leaves_for_gradient(sample.on(torch.device("cpu")))
        returned = on_cpu.overload(*tracked.args, **tracked.kwargs)
        results = [t for t in _flat(returned) if t.requires_grad]
        if results:
            right = torch.autograd.grad(results, wanted, [_weights(t) for t in results], allow_unused=True)
            _compare_gradients(subject, found, right, "the gradient of the reference")
            return
    _check_by_differences(subject, sample, found, [t.requires_grad for t in _flat(returned)])


def _compare_gradients(subject: Subject, found: Sequence[Any], right: Sequence[Any], what: str) -> None:
    for number, (got, wanted_) in enumerate(zip(found, right, strict=True)):
        if got is None and wanted_ is None:
            continue
        a = torch.zeros_like(wanted_) if got is None else got
        b = torch.zeros_like(got) if wanted_ is None else wanted_
        wanted = Result((b.detach().cpu(),), ())
        text = "; ".join(differences(Result((a,), ()), wanted, rtol=subject.rtol or 1e-3, atol=subject.atol or 1e-4))
        if text:
            raise Violation(f"the gradient of tensor {number} is not {what}: {text.partition(': ')[2]}")


def _check_by_differences(subject: Subject, sample: Sample, found: Sequence[Any], counted: Sequence[bool]) -> None:
    """Central differences along random directions, in which single precision has enough digits."""
    generator = torch.Generator().manual_seed(0)
    index = -1
    floating = [t for t in sample.tensors if t.dtype.is_floating_point]
    for tensor, gradient_ in zip(floating, found, strict=True):
        index += 1
        if tensor.numel() == 0:
            continue
        direction = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
        direction /= max(float(direction.norm()), 1e-9)
        estimates = []
        for step in (2e-2, 1e-2):
            sides = [_weighted(subject, sample, tensor, direction * sign * step, counted) for sign in (1, -1)]
            estimates.append((sides[0] - sides[1]) / (2 * step))
        said = 0.0 if gradient_ is None else float((gradient_.double() * direction).sum())
        # Where two step sizes disagree the function has a kink or too few digits; their distance is what is not known.
        slack = 4 * abs(estimates[0] - estimates[1]) + 1e-2 * max(1.0, abs(estimates[1]))
        if abs(said - estimates[1]) > slack:
            raise Violation(
                f"the gradient of tensor {index} along a random direction is {said:.5g}; the results change by {estimates[1]:.5g}"
            )


def _weighted(
    subject: Subject, sample: Sample, tensor: torch.Tensor, change: torch.Tensor, counted: Sequence[bool]
) -> float:
    """The weighted sum of those results that have a gradient, with one tensor changed."""

    def moved(other: torch.Tensor) -> torch.Tensor:
        return (other.double() + change).to(other.dtype) if other is tensor else other

    args, kwargs = tree_map_only(torch.Tensor, moved, (sample.args, dict(sample.kwargs)))
    result = subject.run(Sample(args, kwargs, sample.why))
    results = [t for t in result.returns if isinstance(t, torch.Tensor)]
    summed = [t for t, has_gradient in zip(results, counted, strict=True) if has_gradient]
    return sum(float((t.double() * _weights(t).double()).sum()) for t in summed)
