"""Checks of the operator in compiled graphs: values, gradients and recompilations.

The graphs are GE with static and dynamic shapes, npugraph_ex and export.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ascend_graph.checks.calls.samples import Sample
from ascend_graph.checks.kinds.gradient_checks import gradients
from ascend_graph.checks.kinds.subject import (
    CallRefused,
    Faulted,
    NotApplicable,
    Subject,
    Violation,
    first_line,
    flattened,
    require_equal,
)
from ascend_graph.checks.results import CallResult, differences


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Reset dynamo before and after the block, and suppress warnings within it."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch._dynamo.reset()


def _backend(name: str) -> Any:
    from ascend_graph.dispatch.torchair import torchair

    torchair()  # imports it, or says what is missing
    import torchair as installed

    if name == "ge":
        return installed.get_npu_backend()
    compile_for_ge_once()
    return name


@functools.lru_cache(maxsize=1)
def compile_for_ge_once() -> None:
    """Compile a graph for GE first: a process that starts with npugraph_ex cannot compile for GE afterwards."""
    # It fails where the program has compiled for npugraph_ex before. That works on, and the check of GE says what does not.
    with contextlib.suppress(Exception):
        torch.compile(torch.neg, backend=_backend("ge"))(torch.ones(1, device="npu"))


def _in_graph(subject: Subject, sample: Sample, compile_: Callable[..., Any], what: str) -> None:
    if subject.device.type == "cpu":
        raise NotApplicable("the operator has no kernel for the NPU")
    if subject.lacks:
        raise NotApplicable(subject.lacks)
    if what.startswith("GE") and _lacks_converter(subject):
        raise NotApplicable("TorchAir has no converter for it")
    wanted = subject.run(sample)
    with _quiet():
        try:
            got = subject.run(sample, compile_(_calling(subject)))
        except CallRefused as error:
            raise Violation(f"{what} refuses what eager mode takes: {error}") from error
        except Faulted as error:
            raise Violation(f"{what} fails where eager mode does not: {error}") from error
    require_equal(subject, got, wanted, f"{what} against eager mode")


def _lacks_converter(subject: Subject) -> bool:
    """Return whether an operator that was not registered with a prototype lacks a converter.

    An operator that PyTorch decomposes needs no converter.
    """
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(subject.overload.name(), "CompositeImplicitAutograd")
    if composite or (subject.registered is not None and subject.registered.prototype is not None):
        return False
    from ascend_graph.dispatch.torchair import existing_converter

    return existing_converter(subject.overload) is None


def _calling(subject: Subject) -> Callable[..., Any]:
    overload = subject.overload

    def call(*args: Any, **kwargs: Any) -> Any:
        return overload(*args, **kwargs)

    return call


def ge(subject: Subject, sample: Sample) -> None:
    """Check that a GE graph with static shapes returns the same as eager mode."""
    _in_graph(subject, sample, lambda f: torch.compile(f, backend=_backend("ge"), dynamic=False, fullgraph=True), "GE")


def ge_dynamic(subject: Subject, sample: Sample) -> None:
    """Check that a GE graph with symbolic sizes returns the same as eager mode."""
    _in_graph(
        subject,
        sample,
        lambda f: torch.compile(f, backend=_backend("ge"), dynamic=True, fullgraph=True),
        "GE with dynamic shapes",
    )


def npugraph_ex(subject: Subject, sample: Sample) -> None:
    """Check that a captured graph returns the same as eager mode."""
    if subject.device.type != "cpu" and torch.Tag.nondeterministic_seeded not in subject.overload.tags:
        _recorded(subject, sample)
    _in_graph(
        subject,
        sample,
        lambda f: torch.compile(f, backend=_backend("npugraph_ex"), dynamic=False, fullgraph=True),
        "npugraph_ex",
    )


def _recorded(subject: Subject, sample: Sample) -> None:
    """Check that a capture records what the operator launches: a replay makes results anew."""
    wanted = subject.run(sample)
    placed = sample.on(subject.device)
    module = torch.get_device_module(subject.device)
    graph, stream = module.NPUGraph(), module.Stream()
    stream.wait_stream(module.current_stream())
    try:
        with torch.no_grad(), module.stream(stream):
            graph.capture_begin()
            try:
                returned = subject.call(placed)
            finally:
                graph.capture_end()
    except Exception:  # whatever stops a capture: the compiled graph, which comes next, has the words for it
        return
    module.synchronize()
    # What ran while the graph was captured is undone.
    for tensor, original in zip(placed.tensors, sample.on(subject.device).tensors, strict=True):
        tensor.copy_(original)
    own = {t.untyped_storage().data_ptr() for t in placed.tensors}
    for tensor in flattened(returned):
        if tensor.untyped_storage().data_ptr() not in own:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
            whole.set_(tensor.untyped_storage()).fill_(0x5A)
    graph.replay()
    module.synchronize()
    require_equal(
        subject, subject.result(returned, placed), wanted, "no capture records all that it launches; a replay"
    )


def export(subject: Subject, sample: Sample) -> None:
    """Check that an exported program returns the same as eager mode."""
    if subject.lacks:
        raise NotApplicable(subject.lacks)
    wanted = subject.run(sample)
    flat, structure = tree_flatten((sample.args, dict(sample.kwargs)))

    class CallModule(torch.nn.Module):
        """Module whose inputs are the tensors of the call; its other values are constants of the program."""

        def forward(self, *tensors: Any) -> Any:
            rest = iter(tensors)
            values = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in flat]
            args, kwargs = tree_unflatten(values, structure)
            return subject.overload(*args, **kwargs)

    def run(*args: Any, **kwargs: Any) -> Any:
        return program(*[leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)])

    with _quiet(), torch.no_grad():
        try:
            program = torch.export.export(CallModule(), tuple(sample.on(subject.device).tensors)).module()
        except Exception as error:  # of whatever the exporter raises
            raise Violation(f"torch.export refuses it: {first_line(error)}") from error
        require_equal(subject, subject.run(sample, run), wanted, "the exported program against eager mode")


def gradient_in_graphs(subject: Subject, sample: Sample) -> None:
    """Check that GE and npugraph_ex give the gradients of eager mode."""
    if subject.device.type == "cpu" or not subject.differentiable:
        raise NotApplicable("the operator has no gradient on the NPU")
    if subject.lacks:
        raise NotApplicable(subject.lacks)
    wanted, _ = gradients(subject, sample)
    for name in ("npugraph_ex",) if _lacks_converter(subject) else ("ge", "npugraph_ex"):
        with _quiet():
            compiled = torch.compile(_calling(subject), backend=_backend(name), dynamic=False, fullgraph=True)
            try:
                got, _ = gradients(subject, sample, compiled)
            except CallRefused as error:
                raise Violation(f"{name} refuses what eager mode takes: {error}") from error
            except Faulted as error:
                raise Violation(f"{name} fails where eager mode does not: {error}") from error
        found = list(differences(CallResult(tuple(got), ()), CallResult(tuple(wanted), ())))
        if found:
            raise Violation(f"gradients in {name} against eager mode: {'; '.join(found).replace('return', 'tensor')}")


def recompilations(subject: Subject, samples: Sequence[Sample]) -> None:
    """Check that one compilation with symbolic sizes serves all samples that differ only in sizes."""
    if subject.lacks:
        raise NotApplicable(subject.lacks)
    compiled = 0

    def backend(module: Any, _: Any) -> Any:
        nonlocal compiled
        compiled += 1
        return module.forward

    with _quiet(), torch.no_grad():
        function = torch.compile(_calling(subject), backend=backend, dynamic=True, fullgraph=True)
        for sample in samples:
            placed = sample.on(subject.device)
            try:
                function(*placed.args, **placed.kwargs)
            except Exception as error:  # of whatever class compiling makes of it
                raise Violation(f"torch.compile refuses what eager mode takes: {first_line(error)}") from error
    if compiled > 1:
        raise Violation(
            f"{len(samples)} calls that differ in sizes alone are compiled {compiled} times: the meta function asks "
            "for a size. Write it without int(), bool() and comparisons of sizes"
        )
