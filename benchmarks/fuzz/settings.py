"""Setting of a program's calls: inputs that stay, modes of autograd, sizes that become dynamic, options of compilers.

They have random sources of their own, so that a seed's lines stay the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch

#: Owners of inputs that stay: a module, a closure, or the caller, who gives the same tensors again.
OWNERS = ("module", "closure", "caller")
#: Layouts in memory that a tensor's values can be written to.
_WRITABLE = ("plain", "transposed", "gaps", "offset", "stepped")
_MODES: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
}


#: Options of captures with the values that are not the default, none of which changes what a program computes.
CAPTURE_OPTIONS: Mapping[str, Sequence[Any]] = {
    "force_eager": (True,), "clone_output": (True,), "capture_limit": (1, 2), "inplace_pass": (False,),
    "input_inplace_pass": (False,), "remove_noop_ops": (False,), "remove_cat_ops": (False,), "pattern_fusion_pass": (False,),
    "reuse_graph_pool_in_same_fx": (False,), "frozen_parameter": (True,), "static_kernel_compile": (True,), "super_kernel_optimize": (True,),
}  # fmt: skip
#: The same of GE graphs, of ``CompilerConfig().experimental_config``.
GE_OPTIONS: Mapping[str, Sequence[Any]] = {
    "keep_inference_input_mutations": (False,), "enable_ref_data": (True,), "remove_noop_ops": (False,), "memory_efficiency": (True,),
    "pattern_fusion_pass": (False,), "topology_sorting_strategy": ("BFS", "RDFS", "StableRDFS"), "tiling_schedule_optimize": (True,),
    "static_model_ops_lower_limit": (-1, 4), "enable_view_optimize": (False,), "npu_fx_pass": (True,), "frozen_parameter": (True,),
}  # fmt: skip
Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Setting:
    """Setting of a program's calls."""

    #: Names of inputs that are the same tensors in every call, with the values of each, and who owns them.
    held: tuple[str, ...] = ()
    owner: str = "caller"
    #: True if they are other tensors from the second call on, as after ``load_state_dict(assign=True)``.
    exchanged: bool = False
    #: Autograd's mode of the calls: ``no_grad``, ``inference`` or none.
    grad_mode: str = ""
    #: True if dynamic modes compile for sizes that were seen to change, instead of all.
    automatic: bool = False
    #: Options of captures, and of GE graphs, that are not the default.
    captures: Options = ()
    ge: Options = ()
    #: True if captures are those of TorchAir's mode ``reduce-overhead``, which has a compiler of its own.
    older: bool = False
    #: True if PyTorch's nodes of calls that write have the arguments themselves, as vLLM's configuration has it.
    by_arguments: bool = False

    def mode(self) -> AbstractContextManager[Any]:
        """Return autograd's mode as a context."""
        return _MODES[self.grad_mode]()

    def functionalization(self) -> AbstractContextManager[Any]:
        """Return PyTorch's form of nodes of calls that write, as a context."""
        import torch._inductor.config

        return torch._inductor.config.patch(enable_auto_functionalized_v2=not self.by_arguments)


def setting_from_data(data: Mapping[str, Any]) -> Setting:
    """Return the setting of what JSON made of it."""
    options = {kind: tuple(map(tuple, data[kind])) for kind in ("captures", "ge")}
    return Setting(**{**data, "held": tuple(data["held"]), **options})


#: The setting of most programs.
PLAIN = Setting()


def drawn_setting(inputs: Sequence[Any], grad: bool, r: Random) -> Setting:
    """Return the setting of a program with these inputs: of two in five another than the default."""
    if r.random() < 0.6:
        return PLAIN
    mode = "" if grad else r.choice(["", "no_grad", "inference"])
    automatic = r.random() < 0.4
    if any(i.alias for i in inputs):
        return Setting(grad_mode=mode, automatic=automatic)
    held = tuple(i.name for i in inputs if i.layout in _WRITABLE and r.random() < 0.6)
    return Setting(held, r.choice(OWNERS), r.random() < 0.25, mode, automatic)


def _drawn_options(known: Mapping[str, Sequence[Any]], r: Random) -> Options:
    names = r.sample(sorted(known), r.choice([1, 1, 2, 3]))
    return tuple((name, r.choice(known[name])) for name in names)


def with_options(setting: Setting, r: Random) -> Setting:
    """Return the setting with options of the compilers: of two in five programs others than the default."""
    if r.random() < 0.6:
        return setting
    captures, ge = _drawn_options(CAPTURE_OPTIONS, r), _drawn_options(GE_OPTIONS, r)
    if setting.exchanged:  # whoever freezes a parameter promises that it stays where it is
        captures, ge = (tuple(o for o in options if o[0] != "frozen_parameter") for options in (captures, ge))
    return replace(setting, captures=captures, ge=ge, older=r.random() < 0.4, by_arguments=r.random() < 0.25)


class Holder:
    """Owner of the inputs that stay, over the calls of one compiled program."""

    def __init__(self, setting: Setting, names: Sequence[str]) -> None:
        self.setting, self._names = setting, tuple(names)
        self._owned = setting.held if setting.owner != "caller" else ()
        self._module = torch.nn.Module()
        self._tensors: dict[str, torch.Tensor] = {}
        self._calls = 0

    def bound(
        self, function: Callable[..., Any], compile_: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> Callable[..., Any]:
        """Return the compiled function of all inputs, which takes those that are owned from their owner."""
        if not self._owned:
            return compile_(function)
        names, owned, tensors = self._names, self._owned, self._tensors

        def closure(*given: Any) -> Any:
            rest = iter(given)
            return function(*[tensors[name] if name in owned else next(rest) for name in names])

        class HoldingModule(torch.nn.Module):
            def forward(self, *given: Any) -> Any:
                rest = iter(given)
                return function(*[getattr(self, name) if name in owned else next(rest) for name in names])

        self._module = HoldingModule()
        inner = compile_(self._module if self.setting.owner == "module" else closure)
        return lambda *args: inner(*(a for name, a in zip(names, args, strict=True) if name not in owned))

    def keep(self, placed: Sequence[Any], forget: Callable[[torch.Tensor], None] = lambda t: None) -> list[Any]:
        """Return a call's inputs with the tensors that stay, which get the call's values; ``forget`` is told of them."""
        self._calls += 1
        found = list(placed)
        for place, name in enumerate(self._names):
            if name in self.setting.held:
                found[place] = self._kept(name, found[place], forget)
        return found

    def _kept(self, name: str, fresh: torch.Tensor, forget: Callable[[torch.Tensor], None]) -> torch.Tensor:
        kept = self._tensors.get(name)
        changed = kept is None or kept.shape != fresh.shape or kept.stride() != fresh.stride()
        if kept is None or changed or (self.setting.exchanged and self._calls == 2):
            if self.setting.owner == "module":
                is_parameter = fresh.requires_grad
                fresh = torch.nn.Parameter(fresh.detach()) if is_parameter else fresh
                setattr(self._module, name, fresh) if is_parameter else self._module.register_buffer(name, fresh)
            self._tensors[name] = fresh
            return fresh
        forget(kept)
        with torch.no_grad():
            kept.copy_(fresh)
        return kept
