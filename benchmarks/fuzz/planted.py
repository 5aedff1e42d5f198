"""Faults planted in the worker's process, one at a time, each with the kind of program that must find it.

All are in the Python of their part. C++ below Python (the bridge, csrc/eager) is corrupted at the interface through which
Python or the dispatcher reaches it: a kernel of the dispatch key, the plan that csrc/eager runs, the call into a package's
kernel.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmarks.fuzz.findings import FuzzFinding
from benchmarks.fuzz.workers import Batch, Workers, progress

_LIBRARIES: list[torch.library.Library] = []


@dataclass(frozen=True)
class Planted:
    """Planted fault: its part of the stack, the function that plants it, and the kind of programs that can meet it."""

    name: str
    part: str
    plant: Callable[[], None]
    kind: str = "operator"
    modes: tuple[str, ...] = ("eager", "ge", "npugraph_ex")


FAULTS: list[Planted] = []


def _fault(
    part: str, kind: str = "operator", modes: tuple[str, ...] = ("ge",)
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def note(function: Callable[[], None]) -> Callable[[], None]:
        FAULTS.append(Planted(function.__name__, part, function, kind, modes))
        return function

    return note


def _around(module: str, path: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a function of a module or class by a wrapper."""
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, name, change(getattr(owner, name)))


# ------------------------------------------------------------------------------------------------------------ converter


@_fault("converter")
def attr_is_left_out() -> None:
    _around(
        "ascend_graph.registration.conversion.converter", "_Maker.attr_getters", lambda f: lambda self: f(self)[:-1]
    )


@_fault("converter")
def optional_input_is_left_out() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def getter(self: Any, parameter: Any, source: Any) -> Any:
            return f(self, parameter, None if parameter.kind.name == "OPTIONAL" else source)

        return getter

    _around("ascend_graph.registration.conversion.converter", "_Maker.input_getter", change)


@_fault("converter")
def list_input_is_reversed() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def getter(self: Any, parameter: Any, source: Any) -> Any:
            get = f(self, parameter, source)
            return (lambda values: get(values)[::-1]) if parameter.kind.name == "DYNAMIC" else get

        return getter

    _around("ascend_graph.registration.conversion.converter", "_Maker.input_getter", change)


@_fault("converter")
def returns_are_reversed() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def pick(self: Any) -> Any:
            made = f(self)
            return lambda outputs, values: r[::-1] if isinstance(r := made(outputs, values), tuple) else r

        return pick

    _around("ascend_graph.registration.conversion.converter", "_Maker.pick", change)


# ----------------------------------------------------------------------------------------------------------------- meta


@_fault("meta", modes=("ge", "npugraph_ex"))
def meta_has_a_size_more() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def maker(leaf: Any) -> Any:
            make = f(leaf)
            if leaf is None or leaf.number is not None or leaf.origin is not None:
                return make

            def larger(env: Any, device: torch.device) -> Any:
                t = make(env, device)
                return torch.empty([*t.shape[:-1], t.shape[-1] + 1], dtype=t.dtype, device=device) if t.dim() else t

            return larger

        return maker

    _around("ascend_graph.dispatch.meta", "_leaf_maker", change)


@_fault("meta", modes=("ge", "npugraph_ex"))
def meta_has_another_dtype() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def maker(leaf: Any) -> Any:
            make = f(leaf)

            def other(env: Any, device: torch.device) -> Any:
                t = make(env, device)
                return t.to(torch.float16) if isinstance(t, torch.Tensor) and t.dtype is torch.float32 else t

            return other

        return maker

    _around("ascend_graph.dispatch.meta", "_leaf_maker", change)


# --------------------------------------------------------------------------------------------------------------- engine


@_fault("engine", "program")
def subtraction_is_reversed() -> None:
    _kernel("Sub", lambda f: lambda x, y, **k: f(y, x, **k))


@_fault("engine", "program")
def cast_forgets_a_value() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def cast(x: torch.Tensor, **attrs: Any) -> torch.Tensor:
            y = f(x, **attrs).clone()
            if y.numel():
                y.view(-1)[-1] = 0
            return y

        return cast

    _kernel("Cast", change)


@_fault("engine", "author")
def what_is_written_is_not_isolated() -> None:
    _around(
        "ascend_graph.host.runtime.engine.compiler",
        "_GraphCompiler._isolated",
        lambda f: lambda self, kernel, sources, position: sources,
    )


@_fault("engine", modes=("ge",))
def attr_of_a_list_loses_its_last() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda attr: v[:-1] if isinstance(v := f(attr), list) and len(v) > 1 else v

    _around("ascend_graph.host.runtime.engine.model", "attr_value", change)
    _around("ascend_graph.host.runtime.engine.compiler", "attr_value", change)


def _kernel(op_type: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    from ascend_graph.host.kernels import registry

    known = registry.find_host_kernel(op_type)
    assert known is not None
    registry._KERNELS[op_type] = replace(known, function=change(known.function))


# --------------------------------------------------------------------------------------------------------------- bridge


def _dispatched(overload: str, kernel: Callable[..., Any]) -> None:
    torch.zeros(1, device="npu")  # planted before its first use, a kernel has no effect
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl(overload, kernel, "PrivateUse1")
    _LIBRARIES.append(library)


@_fault("bridge", "program", ("eager", "npugraph_ex"))
def strides_are_forgotten() -> None:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        memory = torch.empty(0, dtype=x.dtype, device=x.device).set_(
            x.untyped_storage(), 0, x.shape, torch.empty(x.shape, device="meta").stride()
        )
        return torch.abs(memory.cpu()).to(x.device)

    _dispatched("abs", kernel)


@_fault("bridge", "program", ("eager",))
def in_place_writes_to_a_copy() -> None:
    def kernel(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        x.cpu().neg_()
        return x

    _dispatched("neg_", kernel)


@_fault("bridge", "program", ("eager",))
def dtype_is_not_promoted() -> None:
    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.mul(x.cpu(), y.cpu()).to(x.dtype).to(x.device)

    _dispatched("mul.Tensor", kernel)


# --------------------------------------------------------------------------------------------------------- eager kernel


@_fault("eager kernel", modes=("eager",))
def aclnn_attrs_are_reversed() -> None:
    """Swap the values of two attrs of one kind on their way to the package."""

    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def plan(schema: Any, argument: Any) -> Any:
            made = f(schema, argument)
            same = [
                n
                for n, a in enumerate(schema.arguments)
                if not a.is_tensor and made.source >= 0 and a.kind == schema.arguments[made.source].kind
            ]
            if argument.part.name != "OUTPUT" and len(same) > 1 and made.source in same:
                return replace(made, source=same[::-1][same.index(made.source)])
            return made

        return plan

    _around("ascend_graph.eager.operators", "_parameter", change)


@_fault("eager kernel", modes=("eager",))
def default_of_an_attr_is_forgotten() -> None:
    """Call a package's kernel with zero for a number."""

    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def caller(package_dir: str, op_type: str, arguments: Any) -> None:
            f(
                package_dir,
                op_type,
                [0 if isinstance(a, (int, float)) and not isinstance(a, bool) else a for a in arguments],
            )

        return caller

    _around("ascend_graph.host.packages.python_kernels", "call_python_kernel", change)


@_fault("eager kernel", modes=("eager",))
def absent_input_is_zeros() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def caller(package_dir: str, op_type: str, arguments: Any) -> None:
            first = next((a for a in arguments if isinstance(a, torch.Tensor)), None)
            f(
                package_dir,
                op_type,
                [torch.zeros_like(first) if a is None and first is not None else a for a in arguments],
            )

        return caller

    _around("ascend_graph.host.packages.python_kernels", "call_python_kernel", change)


# -------------------------------------------------------------------------------------------------------------- binding


@_fault("binding", modes=("ge",))
def tensors_of_a_schema_are_bound_by_position() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def binding(self: Any) -> Any:
            made = f(self)
            sources = [s for s in made.inputs if s is not None]
            ordered = iter(sorted(sources, key=lambda s: s.argument))
            return replace(made, inputs=tuple(None if s is None else next(ordered) for s in made.inputs))

        return binding

    _around("ascend_graph.binding.arguments", "_Matcher.binding", change)


@_fault("binding", modes=("ge",))
def attrs_are_bound_to_the_next() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def binding(self: Any) -> Any:
            made = f(self)
            kinds = [a.type for a in made.prototype.attrs]
            attrs = list(made.attrs)
            for n in range(len(attrs) - 1):
                if kinds[n] == kinds[n + 1]:
                    attrs[n], attrs[n + 1] = attrs[n + 1], attrs[n]
            return replace(made, attrs=tuple(attrs))

        return binding

    _around("ascend_graph.binding.arguments", "_Matcher.binding", change)


# ------------------------------------------------------------------------------------------------------------- autograd


@_fault("autograd", "gradient", ("eager",))
def gradients_are_doubled() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def gradient_function(function: Any, binding: Any) -> Any:
            made = f(function, binding)

            def doubled(ctx: Any, *grads: Any) -> Any:
                return tuple(g * 2 if isinstance(g, torch.Tensor) else g for g in made.function(ctx, *grads))

            return replace(made, function=doubled)

        return gradient_function

    _around("ascend_graph.autograd.register", "gradient_function", change)


@_fault("autograd", "gradient", ("eager",))
def saved_tensors_are_reversed() -> None:
    def change(f: Callable[..., Any]) -> Callable[..., Any]:
        def keep(self: Any, ctx: Any, inputs: Any, keywords: Any, output: Any) -> None:
            f(replace(self, inputs=self.inputs[::-1]), ctx, inputs, keywords, output)

        return keep

    _around("ascend_graph.autograd.saved_call", "SavedCall.keep", change)


@_fault("writing", "woven", ("npugraph_ex",))
def parts_lie_in_their_concatenation() -> None:
    _around("ascend_graph.registration.writing.graph_passes", "keep_parts_apart", lambda f: lambda graph: None)


@_fault("writing", "woven")
def returned_copies_are_dropped() -> None:
    _around("ascend_graph.registration.writing.graph_passes", "keep_returned_copies", lambda f: lambda graph: None)


def plant(name: str) -> None:
    """Plant one fault in this process."""
    next(fault for fault in FAULTS if fault.name == name).plant()


#: Number of programs for one fault, and of those that share a process.
DRAWN, TOGETHER = 60, 12


def _first(workers: Workers, fault: Planted, items: list[str], setup: str) -> FuzzFinding | None:
    """Return the first finding among items.

    Raises:
        RuntimeError: an item cannot be drawn, or the fault cannot be planted; a death of that kind shows no fault.
    """
    options = (("modes", fault.modes),)
    for start in range(0, len(items), TOGETHER):
        batch = Batch("benchmarks.fuzz.check:work", tuple(items[start : start + TOGETHER]), options, setup)
        for tally in workers.run([batch]):
            if tally.findings:
                workers.stop()
                found = tally.findings[0]
                if found.mode == "start":
                    raise RuntimeError(f"{fault.name}: {found.item} was not drawn or built: {found.message}")
                return found
    return None


def search(seed: int, names: Sequence[str] = ()) -> tuple[int, list[str]]:
    """Plant each fault and draw until a finding vanishes without the fault; return the total and the missed faults."""
    chosen = [f for f in FAULTS if not names or f.name in names]
    missed = []
    with Workers(1, limit=300.0) as workers:
        for fault in chosen:
            left = [f"{fault.kind} {seed + i}" for i in range(DRAWN)]
            found = None
            while left:
                found = _first(workers, fault, left, f"benchmarks.fuzz.planted:plant:{fault.name}")
                if found is None or _first(workers, fault, [found.item], "") is None:
                    break
                # A finding without the fault does not show the fault.
                left, found = left[left.index(found.item) + 1 :], None
            progress(
                f"{fault.part}: {fault.name}: {f'{found.item}, {found.mode}, {found.kind}' if found else 'NOT FOUND'}"
            )
            if found is None:
                missed.append(fault.name)
    return len(chosen), missed
