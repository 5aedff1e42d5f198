"""Random ATen programs as plain data: stored as JSON, shrunk by the minimizer, printed as the Python that runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional
from torch.utils.checkpoint import checkpoint

from benchmarks.fuzz.operators import FuzzOperator, from_data
from benchmarks.fuzz.settings import PLAIN, Setting, setting_from_data

#: Layouts of an input in memory; arrangements has others.
LAYOUTS = ("plain", "transposed", "gaps", "offset")
#: Step of the values of floating inputs: sums and products of a few of them are exact, so that kernels agree.
STEP = 0.25


@dataclass(frozen=True)
class Input:
    """Tensor argument: sizes are numbers or dimension names, ``alias`` names an earlier input with the same memory."""

    name: str
    dtype: str
    sizes: tuple[str | int, ...]
    layout: str = "plain"
    grad: bool = False
    alias: str = ""


@dataclass(frozen=True)
class ProgramLine:
    """Line of the program: ``targets = text`` with ``{0}``, ``{1}``, … for the arguments; a write has no targets."""

    text: str
    args: tuple[str, ...]
    targets: tuple[str, ...] = ()

    def line(self) -> str:
        """Return the Python statement."""
        call = self.text.format(*self.args)
        return f"{', '.join(self.targets)} = {call}" if self.targets else call


@dataclass(frozen=True)
class FuzzProgram:
    """Program: inputs, lines and outputs, with the sizes of its dimensions for each call.

    A number ``n`` is an argument of every program.
    """

    seed: int
    inputs: tuple[Input, ...]
    nodes: tuple[ProgramLine, ...]
    outputs: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    #: Random operators, which the lines call ``op0``, ``op1``, ….
    operators: tuple[FuzzOperator, ...] = ()
    #: True if the backward pass computes the values again (activation checkpointing).
    checkpoint: bool = False
    #: How its calls are made.
    setting: Setting = PLAIN

    def names(self) -> list[str]:
        """Return the names of the function's arguments."""
        return [*(i.name for i in self.inputs), "n"]

    def source(self, name: str = "program") -> str:
        """Return the program as a Python function."""
        lines = [f"def {name}({', '.join(self.names())}):"]
        lines += [f"    {node.line()}" for node in self.nodes]
        return "\n".join([*lines, f"    return ({''.join(f'{o}, ' for o in self.outputs)})"])

    def function(self, device: str = "cpu") -> Callable[..., Any]:
        """Return the program as a function; on the CPU its operators are the references."""
        scope = self.scope(device)
        exec(compile(self.source(), f"<program {self.seed}>", "exec"), scope)
        found: Callable[..., Any] = scope["program"]
        if not self.checkpoint:
            return found

        def recomputing(*args: Any) -> Any:
            return checkpoint(found, *args, use_reentrant=False)

        return recomputing

    def scope(self, device: str = "cpu") -> dict[str, Any]:
        """Return the global names of the program's lines."""
        from benchmarks.fuzz.deploy import reference_function, register

        make = reference_function if device == "cpu" else register
        operators = {f"op{i}": make(op) for i, op in enumerate(self.operators)}
        return {"torch": torch, "F": torch.nn.functional, **operators}

    @property
    def grad(self) -> bool:
        """True if gradients of inputs are compared."""
        return any(i.grad for i in self.inputs)

    @property
    def dynamic(self) -> bool:
        """True if the calls differ in sizes."""
        return any(self.sizes[0] != other for other in self.sizes)


def to_json(program: FuzzProgram) -> str:
    """Return the program as a line of JSON."""
    return json.dumps(asdict(program))


def from_json(text: str) -> FuzzProgram:
    """Return the program that :func:`to_json` wrote."""
    data = json.loads(text)
    return FuzzProgram(
        data["seed"],
        tuple(Input(**{**i, "sizes": tuple(i["sizes"])}) for i in data["inputs"]),
        tuple(ProgramLine(n["text"], tuple(n["args"]), tuple(n["targets"])) for n in data["nodes"]),
        tuple(data["outputs"]),
        tuple(data["sizes"]),
        tuple(map(from_data, data["operators"])),
        data["checkpoint"],
        setting_from_data(data["setting"]),
    )


def _values(dtype: torch.dtype, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    """Return small values, with which few operations are inexact."""
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point:
        return (torch.randint(-12, 13, shape, generator=generator) * STEP).to(dtype)
    low = 0 if dtype is torch.uint8 else -5
    return torch.randint(low, 6, shape, generator=generator).to(dtype)


def _laid_out(values: torch.Tensor, layout: str, call: int) -> torch.Tensor:
    """Return the values in memory with the given layout; each call has another offset, as layers of a cache have."""
    from benchmarks.fuzz.arrangements import ARRANGEMENTS  # which imports programs

    if layout in ARRANGEMENTS:
        return ARRANGEMENTS[layout](values)
    if layout == "transposed" and values.dim() > 1:
        return values.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "gaps" and values.dim() > 0:
        return torch.stack([values, torch.ones_like(values)], -1)[..., 0]
    if layout == "offset":
        wide = torch.cat([torch.ones(3 + 2 * call, dtype=values.dtype), values.reshape(-1)])
        return wide[3 + 2 * call :].view(values.shape)
    return values


def make_arguments(program: FuzzProgram, call: int) -> list[Any]:
    """Return the arguments of one of the program's calls, on the CPU; the number is the call's plus two.

    An input that aliases another is its second half, if the layout is ``offset`` and the sizes allow it, else a full view.
    """
    sizes = program.sizes[call]
    generator = torch.Generator().manual_seed(program.seed * 64 + call)
    made: dict[str, torch.Tensor] = {}
    for spec in program.inputs:
        if spec.alias:
            base = made[spec.alias]
            made[spec.name] = (
                base[base.shape[0] // 2 :] if spec.layout == "offset" and base.dim() else base.view_as(base)
            )
            continue
        shape = [sizes[s] if isinstance(s, str) else s for s in spec.sizes]
        tensor = _laid_out(_values(getattr(torch, spec.dtype), shape, generator), spec.layout, call)
        made[spec.name] = tensor.detach().requires_grad_(spec.grad)
    return [*made.values(), call + 2]
