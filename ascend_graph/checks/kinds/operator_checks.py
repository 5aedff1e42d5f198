"""Checks that apply to every operator, as functions that call it.

Each takes a :class:`Subject` and a sample. It raises :class:`Violation` with what is wrong, or :class:`NotApplicable` if
there is nothing to check.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.guard import Promise
from ascend_graph.checks.kinds.free_memory import OUTSIDE, behind_allocations
from ascend_graph.checks.kinds.subject import (
    Faulted,
    NotApplicable,
    Subject,
    Undecided,
    Violation,
    called,
    first_line,
    flattened,
    refusal,
    require_equal,
)
from ascend_graph.checks.results import CallResult, leaves
from ascend_graph.environment import is_active
from ascend_graph.host import pipes_checked

# ------------------------------------------------------------------------------------------------------------ in eager mode


def runs(subject: Subject, sample: Sample) -> None:
    """Check that no kernel breaks a hardware rule: a call that fits relation and prototype completes or is refused."""
    subject.run(sample)


def arguments(subject: Subject, sample: Sample) -> None:
    """Check that the operator writes only arguments and returns only aliases that the schema declares."""
    placed = sample.on(subject.device)
    before = [(t, t.detach().clone(), tuple(t.shape), t.stride(), t.untyped_storage().nbytes()) for t in placed.tensors]
    returned = called(subject, placed)
    values = _by_argument(subject, placed)
    for argument, value, writable in zip(subject.schema.arguments, values, subject.written(), strict=True):
        for tensor in flattened(value):
            _, old, shape, strides, nbytes = next(entry for entry in before if entry[0] is tensor)
            if (
                tuple(tensor.shape) != shape
                or tensor.stride() != strides
                or tensor.untyped_storage().nbytes() != nbytes
            ):
                raise Violation(
                    f"argument {argument.name} has another shape, strides or storage after the call; expected the same"
                )
            found = (
                ""
                if writable
                else subject.differ(CallResult.of(None, [tensor]), CallResult.of(None, [old]), exact=True)
            )
            if found:
                raise Violation(
                    f"argument {argument.name} is written, and the schema must say so (Tensor(a!) {argument.name}): "
                    f"{found}"
                )
    _check_aliases(subject, returned, values)
    _check_results(subject, returned, sample)


def _check_results(subject: Subject, returned: Any, sample: Sample) -> None:
    """Check that results of a call are not memory of an earlier call's results, which are still in use."""
    placed = sample.on(subject.device)
    own = {t.untyped_storage().data_ptr() for t in placed.tensors}
    again = flattened(called(subject, placed))
    earlier = {t.untyped_storage().data_ptr() for t in flattened(returned) if t.untyped_storage().nbytes()}
    for number, tensor in enumerate(again):
        if tensor.untyped_storage().data_ptr() in earlier - own:
            raise Violation(
                f"return {number} is memory of a result of an earlier call, which this call writes over; make a new tensor "
                "in each call, such as at::empty_like(x)"
            )


def _check_aliases(subject: Subject, returned: Any, values: Sequence[Any]) -> None:
    results = returned if isinstance(returned, tuple) else (returned,)
    seen: dict[int, str] = {}
    for declared, result, number in zip(subject.schema.returns, results, range(len(results)), strict=False):
        allowed = set() if declared.alias_info is None else declared.alias_info.before_set
        for tensor in (t for t in flattened(result) if t.untyped_storage().nbytes()):
            storage = tensor.untyped_storage()._cdata
            for argument, value in zip(subject.schema.arguments, values, strict=True):
                own = set() if argument.alias_info is None else argument.alias_info.before_set
                if not (own & allowed) and any(t.untyped_storage()._cdata == storage for t in flattened(value)):
                    raise Violation(
                        f"return {number} is memory of argument {argument.name}, and the schema does not say so; return a "
                        "copy, such as x.clone(): graphs take a return for a new tensor"
                    )
            if storage in seen and not allowed:
                raise Violation(
                    f"return {number} is memory of {seen[storage]}; return a copy of it, such as y.clone(): graphs take each "
                    "return for a tensor of its own"
                )
            seen[storage] = f"return {number}"


def _by_argument(subject: Subject, sample: Sample) -> list[Any]:
    """Return the values of all arguments of the schema in order."""
    positional = list(sample.args)
    values = []
    for argument in subject.schema.arguments:
        if positional and not argument.kwarg_only:
            values.append(positional.pop(0))
        else:
            values.append(sample.kwargs.get(argument.name, argument.default_value))
    return values


def waits(subject: Subject, sample: Sample) -> None:
    """Check that each pipe of a kernel in Ascend C waits for the pipes whose memory it uses; on a host runtime alone."""
    if not is_active():
        raise NotApplicable("a device does not show it; run opcheck on the host runtime")
    subject.synchronize()
    try:
        with pipes_checked() as launches:
            subject.run(sample)
            if not launches():
                raise NotApplicable("the operator has no kernel in Ascend C")
    except Faulted:
        try:
            subject.run(sample)
        except Faulted as other:  # a fault of the call, which `runs` names
            raise NotApplicable("the call fails") from other
        raise


def repeats(subject: Subject, sample: Sample) -> None:
    """Check that the same call gives the same bits, whatever the memory of its results contained before."""
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


def _fill_free_memory(subject: Subject, result: CallResult, pattern: int) -> list[int]:
    """Fill the free memory that the next tensors of these sizes get with a pattern, and return the addresses."""
    sizes = [t.numel() * t.element_size() for t in (*result.returns, *result.arguments) if isinstance(t, torch.Tensor)]
    made = [torch.empty(size, dtype=torch.uint8, device=subject.device) for size in sizes for _ in range(3)]
    for tensor in made:
        tensor.fill_(pattern)
    subject.synchronize()
    return [tensor.data_ptr() for tensor in made]


def outside(subject: Subject, sample: Sample) -> None:
    """Check that nothing is written before or after a tensor: the larger tensor around it must not change."""
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
                raise Violation(
                    f"{OUTSIDE} {where} tensor {number} of the call are written; write within the tensor only"
                )
    require_equal(
        subject,
        subject.result(returned, placed),
        subject.run(sample),
        "with tensors that begin in the middle of their storage",
        exact=True,
    )
    _behind_results(subject, sample)
    behind_allocations(subject, sample)


def _behind_results(subject: Subject, sample: Sample) -> None:
    """Check on the host runtime that the rest of the memory block that holds a result does not change."""
    from ascend_graph.environment import is_active

    if subject.device.type == "cpu" or not is_active():
        return
    first = subject.run(sample)
    sizes = [t.numel() * t.element_size() for t in first.returns if isinstance(t, torch.Tensor)]
    whole = [_whole_block(size) for size in sizes]
    made = [torch.full((n,), 0x5A, dtype=torch.uint8, device=subject.device) for n in whole for _ in range(3)]
    subject.synchronize()
    known = {tensor.data_ptr(): tensor.numel() for tensor in made}
    del made
    placed = sample.on(subject.device)
    before = _allocations(subject)
    with torch.no_grad():
        returned = subject.call(placed)
    subject.synchronize()
    if _allocations(subject) - before != len({t.untyped_storage().data_ptr() for t in flattened(returned)}):
        return  # memory of something in between may have become that of a result, with what was left there
    for number, tensor in enumerate(leaves(returned)):
        if not isinstance(tensor, torch.Tensor) or tensor.untyped_storage().data_ptr() not in known:
            continue
        start, used = tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()
        # A larger free block may have been cut in two: the memory after this result's own belongs to another tensor.
        rest = ctypes.string_at(start + used, max(min(known[start], _whole_block(used)) - used, 0))
        if rest.strip(b"\x5a"):
            raise Violation(f"{OUTSIDE} past return {number} are written; write to the output only")


def _whole_block(size: int) -> int:
    """Return the usable bytes of a tensor's memory block: torch_npu rounds up to 512 and keeps 32 for itself."""
    return -(-(size + 32) // 512) * 512 - 32


def _allocations(subject: Subject) -> int:
    """Return the number of memory allocations so far."""
    return int(torch.get_device_module(subject.device).memory_stats()["allocation.all.allocated"])


def layout(subject: Subject, sample: Sample) -> None:
    """Check that non-contiguous tensors give the same results as contiguous ones."""
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
        require_equal(subject, subject.result(returned, placed), wanted, f"tensors {name}")


def reference(subject: Subject, sample: Sample) -> None:
    """Check that the results and the written arguments equal those of the reference."""
    if subject.reference is None:
        raise NotApplicable("no reference= is given")
    copied = sample.on(torch.device("cpu"))
    try:
        expected = subject.reference(*copied.args, **copied.kwargs)
    except Exception as error:  # whatever an author's function raises
        raise Undecided(f"the reference refuses the call: {first_line(error)}") from error
    wanted, got = subject.result(expected, copied), subject.run(sample)
    if len(got.returns) != len(wanted.returns):
        names = [a.name for a, written in zip(subject.schema.arguments, subject.written(), strict=True) if written]
        writes = f", and writes {', '.join(names)}: write to them in the reference, too" if names else ""
        raise Violation(
            f"the reference returns {len(wanted.returns)} values; the operator returns {len(got.returns)}{writes}"
        )
    require_equal(subject, got, wanted, "against the reference")


def meta(subject: Subject, sample: Sample) -> None:
    """Check that the meta function predicts what the kernel returns: shapes, dtypes, strides, devices, aliases."""
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
        raise refusal(error) from error
    subject.synchronize()
    found = [
        f"{m.what} of return {m.output}: {m.promised}, not {m.returned}"
        for m in promise.compare(returned, strides=True)
    ]
    if found:
        raise Violation(f"the meta function says {'; '.join(found)}")
    _fake(subject, sample, returned)


def _fake(subject: Subject, sample: Sample, returned: Any) -> None:
    """Check the meta function with symbolic sizes, as torch.compile calls it."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    placed = sample.on(subject.device)
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=False)
    with mode, torch.no_grad():
        args, kwargs = tree_map_only(torch.Tensor, mode.from_tensor, (placed.args, dict(placed.kwargs)))
        try:
            said = subject.overload(*args, **kwargs)
        except Exception as error:  # whatever an operator raises
            raise Violation(f"the meta function must take sizes that are symbols: {first_line(error)}") from error
    for number, (a, b) in enumerate(zip(leaves(said), leaves(returned), strict=True)):
        if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
            continue
        shape = tuple(int(n) for n in a.shape)
        if shape != tuple(b.shape) or a.dtype != b.dtype:
            raise Violation(
                f"with symbolic sizes return {number} is {a.dtype}{list(shape)}; expected {b.dtype}{list(b.shape)}, as "
                "with numbers"
            )
        if a.device.type != b.device.type:
            raise Violation(
                f"the meta function puts return {number} on {a.device.type}; expected {b.device.type}, as the kernel "
                "does"
            )


# ----------------------------------------------------------------------------------------------------------------- gradients
