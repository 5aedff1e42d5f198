"""Modes of running a program: CPU, eager, GE graphs, npugraph_ex captures, export; each gives one result per call."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch

from benchmarks.fuzz.programs import FuzzProgram, make_arguments
from benchmarks.fuzz.settings import PLAIN, Holder, Setting
from benchmarks.operators.trees import Mover, tensors

#: Transforms of torch.func, and their compositions.
TRANSFORMS = ("jvp", "vmap", "grad", "vmap_grad", "vmap_jvp", "jvp_grad")
MODES = ("eager", "ge", "ge_dynamic", "npugraph_ex", "npugraph_ex_dynamic", "export", *TRANSFORMS)
#: End of a mode's name under which npugraph_ex runs without the pass that makes operators write in place.
FUNCTIONAL = "_functional"
#: End of a mode's name under which npugraph_ex runs without the pass that removes copies.
COPIES = "_copies"
#: End of a mode's name under which npugraph_ex runs without the pass that computes into parts of a concatenation.
CATS = "_cats"
#: End of a mode's name under which GE graphs are compiled without the pass that reorders views.
VIEWS = "_views"
#: Control modes: the same tracing by PyTorch itself on the CPU, to attribute a refusal or a value.
CONTROLS = {
    **{transform: f"{transform}_cpu" for transform in TRANSFORMS}, "ge": "traced", "npugraph_ex": "traced", "ge_dynamic": "traced_dynamic", "npugraph_ex_dynamic": "traced_dynamic", "export": "exported",
}  # fmt: skip
#: The same of a mode, by PyTorch's tracing on the device, whose fake kernels are others.
ON_DEVICE = {mode: f"device_{control}" for mode, control in CONTROLS.items() if control.startswith("traced")}


@dataclass(frozen=True)
class ModeResult:
    """Result of a call, on the CPU: outputs, arguments after it, gradients, and pairs of tensors that share memory."""

    outputs: Any
    arguments: Any
    gradients: Any
    shared: tuple[tuple[str, str], ...]
    #: Arguments of earlier calls that this one changed.
    earlier: tuple[str, ...] = ()


@contextmanager
def quiet() -> Iterator[None]:
    """Reset dynamo before and after the block, and suppress warnings within it."""
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch._dynamo.reset()


def _shared(outputs: Any, arguments: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    named = [(f"argument {i}", a) for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
    inputs = len(named)
    named += [(f"output {i}", o) for i, o in enumerate(outputs) if isinstance(o, torch.Tensor)]
    places = [(name, t.untyped_storage()._cdata, t.numel()) for name, t in named]
    return tuple(
        (a, b)
        for j, (b, there, n) in enumerate(places)
        if j >= inputs
        for a, here, m in places[:j]
        if here == there and n and m
    )


def call_once(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    device: str,
    grad: bool,
    before: Earlier | None = None,
    holder: Holder | None = None,
) -> ModeResult:
    """Call a function on copies of the arguments on a device, with backward, and return the result on the CPU."""
    placed = Mover(device)(list(arguments))
    if holder is not None:
        placed = holder.keep(placed, before.forget if before else lambda t: None)
    outputs = function(*placed)
    gradients: Any = ()
    if grad:
        losses = [o.float().sum() * (i + 1) for i, o in enumerate(tensors(outputs)) if o.requires_grad]
        leaves = [a for a in placed if isinstance(a, torch.Tensor) and a.requires_grad]
        if losses and leaves:
            gradients = torch.autograd.grad(torch.stack(losses).sum(), leaves, allow_unused=True)
    shared = _shared(outputs, placed)
    back = Mover("cpu")
    made = ModeResult(*back([list(outputs), placed, list(gradients)]), shared)
    return made if before is None else replace(made, earlier=before.changed(placed))


class Earlier:
    """Arguments of the calls so far, with their values."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        self._calls = 0

    def forget(self, tensor: torch.Tensor) -> None:
        """Remove an argument that another call gets with other values."""
        self._seen = [one for one in self._seen if one[1] is not tensor]

    def changed(self, placed: Sequence[Any]) -> tuple[str, ...]:
        """Return the names of those whose values are others now, and add the arguments of a new call."""
        found = tuple(name for name, t, values in self._seen if not torch.equal(t.detach().cpu(), values))
        self._calls += 1
        self._seen += [
            (f"argument {i} of call {self._calls}", t, t.detach().cpu().clone())
            for i, t in enumerate(placed)
            if isinstance(t, torch.Tensor)
        ]
        return found


def _calls(program: FuzzProgram, dynamic: bool) -> list[int]:
    """Return the numbers of the calls that a mode makes: of a program whose sizes change one without dynamic sizes."""
    return list(range(len(program.sizes))) if dynamic or not program.dynamic else [0]


def cpu_results(program: FuzzProgram) -> list[ModeResult]:
    """Return PyTorch's results on the CPU, call by call."""
    function = program.function()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [call_once(function, make_arguments(program, c), "cpu", program.grad) for c in range(len(program.sizes))]


@functools.lru_cache(maxsize=1)
def prepare() -> None:
    """Compile for GE once: a process that compiles for npugraph_ex first cannot compile for GE afterwards."""
    torch.compile(torch.neg, backend=backend_of("ge"))(torch.ones(1, device="npu"))


def backend_of(name: str, setting: Setting = PLAIN, *, views: bool = True) -> Any:
    """Return the backend of GE graphs or captures, with the options of a setting that belong to it."""
    import torch_npu  # noqa: F401 - torchair can only be imported after it
    import torchair

    if name not in ("ge", "npugraph_ex") or (name != "ge" and not setting.older):
        return name
    config = torchair.CompilerConfig()
    if name == "npugraph_ex":
        config.mode = "reduce-overhead"
        return torchair.get_npu_backend(compiler_config=config)
    for option, value in (*setting.ge, *((("enable_view_optimize", False),) if not views else ())):
        setattr(config.experimental_config, option, value)
    return torchair.get_npu_backend(compiler_config=config)


def _exported(program: FuzzProgram, arguments: Sequence[Any], device: str) -> Callable[..., Any]:
    function = program.function(device)

    class ProgramModule(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    placed = Mover(device)(list(arguments))
    return torch.export.export(ProgramModule(), tuple(placed), strict=False).module()


def compiled(program: FuzzProgram, mode: str, holder: Holder) -> Callable[..., Any]:
    """Return the program's function as a mode runs it; its holder has the inputs that stay."""
    function = program.function("cpu" if mode in CONTROLS.values() else "npu")
    if mode == "eager":
        return holder.bound(function, lambda whole: whole)
    if mode in ("export", "exported"):
        return _exported(program, make_arguments(program, 0), "npu" if mode == "export" else "cpu")
    name = mode
    for end in (FUNCTIONAL, COPIES, CATS, VIEWS, "_dynamic"):
        name = name.removesuffix(end)
    views = not mode.endswith(VIEWS)
    backend = "aot_eager" if name in ("traced", "device_traced") else backend_of(name, program.setting, views=views)
    options = dict(program.setting.captures) if name == "npugraph_ex" else None
    if options is not None and mode.endswith(FUNCTIONAL):
        options["inplace_pass"] = False
    if options is not None and mode.endswith(COPIES):
        options["remove_noop_ops"] = False
    if options is not None and mode.endswith(CATS):
        options["remove_cat_ops"] = False
    if options is not None and program.grad and "_dynamic" in mode:
        options["reuse_graph_pool_in_same_fx"] = False  # W11 of docs/wheel-faults.md ends every such program otherwise
    dynamic = None if "_dynamic" in mode and program.setting.automatic else "_dynamic" in mode
    return holder.bound(
        function, functools.partial(torch.compile, backend=backend, dynamic=dynamic, fullgraph=True, options=options)
    )


def results(program: FuzzProgram, mode: str) -> Iterator[tuple[int, ModeResult]]:
    """Yield each call's number and result; the first call is repeated at the end, to test kept state."""
    device = "cpu" if mode in CONTROLS.values() else "npu"
    if mode.removesuffix("_cpu") in TRANSFORMS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield 0, transformed(program, device, mode.removesuffix("_cpu"))
        return
    with quiet(), program.setting.functionalization():
        is_exported = mode in ("export", "exported")
        holder = Holder(PLAIN if is_exported else program.setting, program.names())
        function = compiled(program, mode, holder)
        dynamic = mode == "eager" or "_dynamic" in mode
        before = Earlier()
        for call in [*_calls(program, dynamic), 0]:
            with program.setting.mode():
                arguments, grad = make_arguments(program, call), program.grad and not is_exported
                result = call_once(function, arguments, device, grad, before, holder)
            yield call, result


def drawn(program: FuzzProgram) -> tuple[str, ...]:
    """Return a program's default modes: eager, one of GE's, one of npugraph_ex's, and sometimes others."""
    random = Random(f"modes {program.seed}")
    dynamic = program.dynamic and random.random() < 0.7
    chosen = [
        "eager",
        "ge_dynamic" if dynamic else "ge",
        "npugraph_ex_dynamic" if dynamic and random.random() < 0.3 else "npugraph_ex",
    ]
    chosen += [mode for mode, often in (("export", 0.2), ("jvp", 0.4), ("vmap", 0.4)) if random.random() < often]
    if any(op.backward or op.forward for op in program.operators):
        chosen += [mode for mode in TRANSFORMS if mode not in chosen and random.random() < 0.4]
    return tuple(mode for mode in chosen if mode not in TRANSFORMS or functional(program))


def functional(program: FuzzProgram) -> bool:
    """Return whether the program has no writes, aliases or gradients, so that it is a function of tensors."""
    writes = any(op.written for op in program.operators)
    return (
        not writes
        and not any(i.grad or i.alias for i in program.inputs)
        and all(node.targets and "out=" not in node.text for node in program.nodes)
    )


def _tensor_results(outputs: Any) -> tuple[torch.Tensor, ...]:
    return tuple(o for o in tensors(outputs) if o.is_floating_point())


def transformed(program: FuzzProgram, device: str, mode: str) -> ModeResult:
    """Return what a transform gives of the program's floating outputs; of a batch of two where it maps."""
    function = program.function(device)
    arguments = Mover(device)(make_arguments(program, 0))
    floating = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor) and a.is_floating_point()]

    def call(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        full = list(arguments)
        for place, value in zip(floating, given, strict=True):
            full[place] = value
        return _tensor_results(function(*full))

    def loss(*given: torch.Tensor) -> torch.Tensor:
        return torch.stack([o.float().square().sum() * (i + 1) for i, o in enumerate(call(*given))]).sum()

    def tangents(*given: torch.Tensor) -> Any:
        return torch.func.jvp(call, given, tuple(torch.ones_like(v) for v in given))

    gradients = torch.func.grad(loss, argnums=tuple(range(len(floating))))
    if not floating:
        return ModeResult((), (), (), ())
    values = tuple(arguments[i] for i in floating)
    function = {"jvp": tangents, "vmap": call, "grad": gradients, "vmap_grad": gradients, "vmap_jvp": tangents}.get(
        mode, lambda *given: torch.func.jvp(gradients, given, tuple(torch.ones_like(v) for v in given))
    )
    if mode.startswith("vmap"):
        outputs = torch.func.vmap(function)(*(torch.stack([v, v * 2]) for v in values))
    else:
        outputs = function(*values)
    return ModeResult(Mover("cpu")(list(outputs)), (), (), ())
