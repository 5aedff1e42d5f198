"""Simulation of a decoder of custom operators on thousands of ranks: collectives of one step, and cost of derivation.

    make bench NAME=scale

PyTorch's fake process group simulates 8 to 8,192 ranks, and fake tensors the parameters. A training step (forward and
backward) of a decoder with a layer of experts is traced as DTensors on a mesh of data parallelism times tensor parallelism
of eight. All its matmuls, norms, positions, attention and experts are custom operators. Their sharding rules come from their
relations (``batch=``, ``reduce=``), and each declaration was checked by running before. The collectives that this rank would
call are counted.

- ``ranks``, ``collectives``: the number of collectives of a step; the table has them by kind, and the bytes that this rank
  passes to them.
- ``µs per rule``: the CPU time to derive the placements of one operator on this mesh (the rule, and DTensor's choice among the
  allowed ones), the median over the step's operators; ``flat`` is the slowest against the fastest number of ranks.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from _common import run
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, empty
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

import ascend_graph
from ascend_graph.versions import forget_sharding

RANKS = (8, 64, 512, 4096, 8192)
TENSOR_PARALLEL = 8
#: Sizes of the decoder; tokens are those of one data-parallel rank.
LAYERS, WIDTH, HEADS, HEAD, INNER, EXPERTS, CAPACITY, TOKENS, SEQUENCES = 4, 1024, 16, 64, 4096, 16, 32, 256, 8

#: Kinds of collectives by the operators that DTensor calls.
KINDS = {
    "all_reduce": "all-reduce",
    "all_gather_into_tensor": "all-gather",
    "reduce_scatter_tensor": "reduce-scatter",
    "shard_dim_alltoall": "all-to-all",
}

Kernel = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class CustomOperator:
    """Custom operator with its author's declarations."""

    schema: str
    relation: str
    kernel: Kernel
    batch: Sequence[str]
    reduce: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.schema.partition("(")[0]


def norm(x: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    scale = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    return x * scale * gamma, scale


def norm_grad(dy: Tensor, x: Tensor, scale: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    g = dy * gamma
    dx = scale * (g - x * scale.square() * (g * x).mean(-1, keepdim=True))
    return dx, (dy * x * scale).reshape(-1, x.size(-1)).sum(0)


def rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ v


def attend_grad(dy: Tensor, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    p = (q @ k.mT).softmax(-1)
    dp = dy @ v.mT
    ds = p * (dp - (dp * p).sum(-1, keepdim=True))
    return ds @ k, ds.mT @ q, p.mT @ dy


def gated_grad(dy: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    s = a.sigmoid()
    return dy * b * s * (1 + a * (1 - s)), dy * a * s


OPERATORS = (
    CustomOperator(
        "norm(Tensor x, Tensor gamma) -> (Tensor, Tensor)", "x[*s, n], gamma[n] -> y[*s, n], scale[*s, 1]", norm, ("s",)
    ),
    CustomOperator(
        "norm_grad(Tensor dy, Tensor x, Tensor scale, Tensor gamma) -> (Tensor, Tensor)",
        "dy[*s, n], x[*s, n], scale[*s, 1], gamma[n] -> dx[*s, n], dgamma[n]",
        norm_grad,
        (),
        ("s",),
    ),
    CustomOperator(
        "linear(Tensor x, Tensor w) -> Tensor",
        "x[*s, k], w[n, k] -> y[*s, n]",
        lambda x, w: x @ w.t(),
        ("s", "n"),
        ("k",),
    ),
    CustomOperator(
        "linear_dx(Tensor dy, Tensor w) -> Tensor", "dy[*s, n], w[n, k] -> dx[*s, k]", torch.matmul, ("s", "k"), ("n",)
    ),
    CustomOperator(
        "linear_dw(Tensor dy, Tensor x) -> Tensor",
        "dy[*s, n], x[*s, k] -> dw[n, k]",
        lambda dy, x: dy.reshape(-1, dy.size(-1)).t() @ x.reshape(-1, x.size(-1)),
        ("n", "k"),
        ("s",),
    ),
    CustomOperator(
        "rope(Tensor x, Tensor cos, Tensor sin) -> Tensor",
        "x[b, h, s, 2*d], cos[s, d], sin[s, d] -> y[b, h, s, 2*d]",
        rope,
        ("b", "h", "s"),
    ),
    CustomOperator(
        "attend(Tensor q, Tensor k, Tensor v) -> Tensor",
        "q[b, h, s, d], k[b, h, t, d], v[b, h, t, d] -> y[b, h, s, d]",
        attend,
        ("b", "h", "s"),
    ),
    CustomOperator(
        "attend_grad(Tensor dy, Tensor q, Tensor k, Tensor v) -> (Tensor, Tensor, Tensor)",
        "dy[b, h, s, d], q[b, h, s, d], k[b, h, t, d], v[b, h, t, d] -> dq[b, h, s, d], dk[b, h, t, d], dv[b, h, t, d]",
        attend_grad,
        ("b", "h"),
        ("s",),
    ),
    CustomOperator(
        "gated(Tensor a, Tensor b) -> Tensor",
        "a[*s], b[*s] -> y[*s]",
        lambda a, b: a * a.sigmoid() * b,
        ("s",),
    ),
    CustomOperator(
        "gated_grad(Tensor dy, Tensor a, Tensor b) -> (Tensor, Tensor)",
        "dy[*s], a[*s], b[*s] -> da[*s], db[*s]",
        gated_grad,
        ("s",),
    ),
    CustomOperator(
        "dispatch(Tensor mask, Tensor x) -> Tensor",
        "mask[g, t, e, c], x[g, t, h] -> y[e, g, c, h]",
        lambda mask, x: torch.einsum("gtec,gth->egch", mask, x),
        ("g", "e", "c", "h"),
        ("t",),
    ),
    CustomOperator(
        "combine(Tensor mask, Tensor y) -> Tensor",
        "mask[g, t, e, c], y[e, g, c, h] -> x[g, t, h]",
        lambda mask, y: torch.einsum("gtec,egch->gth", mask, y),
        ("g", "t", "h"),
        ("e", "c"),
    ),
    CustomOperator(
        "experts(Tensor x, Tensor w) -> Tensor",
        "x[e, g, c, k], w[e, n, k] -> y[e, g, c, n]",
        lambda x, w: torch.einsum("egck,enk->egcn", x, w),
        ("e", "g", "c", "n"),
        ("k",),
    ),
    CustomOperator(
        "experts_dx(Tensor dy, Tensor w) -> Tensor",
        "dy[e, g, c, n], w[e, n, k] -> dx[e, g, c, k]",
        lambda dy, w: torch.einsum("egcn,enk->egck", dy, w),
        ("e", "g", "c", "k"),
        ("n",),
    ),
    CustomOperator(
        "experts_dw(Tensor dy, Tensor x) -> Tensor",
        "dy[e, g, c, n], x[e, g, c, k] -> dw[e, n, k]",
        lambda dy, x: torch.einsum("egcn,egck->enk", dy, x),
        ("e", "n", "k"),
        ("g", "c"),
    ),
)

#: Gradients of the operators, as functions of their saved inputs and outputs.
ops = torch.ops.scale
GRADIENTS: Mapping[str, Callable[..., Any]] = {
    "norm": lambda saved, dy, _: ops.norm_grad(dy, saved[0], saved[-1], saved[1]),
    "linear": lambda saved, dy: (ops.linear_dx(dy, saved[1]), ops.linear_dw(dy, saved[0])),
    "rope": lambda saved, dy: (ops.rope(dy, saved[1], -saved[2]), None, None),
    "attend": lambda saved, dy: ops.attend_grad(dy, *saved[:3]),
    "gated": lambda saved, dy: ops.gated_grad(dy, *saved[:2]),
    "dispatch": lambda saved, dy: (None, ops.combine(saved[0], dy)),
    "combine": lambda saved, dy: (None, ops.dispatch(saved[0], dy)),
    "experts": lambda saved, dy: (ops.experts_dx(dy, saved[1]), ops.experts_dw(dy, saved[0])),
}


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs, *(output if isinstance(output, tuple) else (output,)))


@contextmanager
def registered() -> Iterator[None]:
    """Register the operators with their rules in the block; every declaration is checked by running."""
    library = torch.library.Library("scale", "DEF")
    handles = []
    for op in OPERATORS:
        library.define(op.schema)
        library.impl(op.name, op.kernel, "CPU")
    for name, gradient in GRADIENTS.items():
        torch.library.register_autograd(
            f"scale::{name}", lambda ctx, *dys, g=gradient: g(ctx.saved_tensors, *dys), setup_context=_keep, lib=library
        )
    ascend_graph.load_prototypes("".join(map(_prototype, OPERATORS)))
    for op in OPERATORS:
        handles.append(
            ascend_graph.register_op(
                f"Scale_{op.name}", eager=getattr(ops, op.name), shape=op.relation, batch=op.batch, reduce=op.reduce
            )
        )
    yield
    for handle in handles:
        handle.unregister()
    library._destroy()


def _prototype(op: CustomOperator) -> str:
    """Return the operator's REG_OP text, from its schema."""
    overload = getattr(ops, op.name).default
    relation = ascend_graph.parse_relation(op.relation)
    inputs = "".join(f".INPUT({a.name}, TensorType({{DT_FLOAT}}))" for a in overload._schema.arguments)
    outputs = "".join(f".OUTPUT({name}, TensorType({{DT_FLOAT}}))" for name in relation.outputs)
    return f"REG_OP(Scale_{op.name}){inputs}{outputs}.OP_END_FACTORY_REG(Scale_{op.name})\n"


# -------------------------------------------------------------------------------------------------------------- the step


@dataclass(slots=True)
class TrainingStep:
    """Training step: its collectives, and the seconds of each derivation."""

    ranks: int
    counts: Counter[str] = field(default_factory=Counter)
    #: Bytes that this rank passes to them.
    bytes: int = 0
    derived: dict[str, list[float]] = field(default_factory=dict)

    @property
    def microseconds(self) -> float:
        """Median over the operators of each one's fastest derivation, in microseconds."""
        return statistics.median(min(found) for found in self.derived.values()) * 1e6


class Volume(TorchDispatchMode):
    """Dispatch mode that sums the bytes passed to collectives."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(t, DTensor) for t in types):
            return NotImplemented
        if (
            func.namespace in ("_c10d_functional", "_dtensor")
            and func.name().partition("::")[2].partition(".")[0] in KINDS
        ):
            self.bytes += args[0].numel() * args[0].element_size()
        return func(*args, **(kwargs or {}))


@contextmanager
def timed(step: TrainingStep) -> Iterator[None]:
    """Record how long DTensor needs in the block to derive the placements of each custom operator."""
    propagator = DTensor._op_dispatcher.sharding_propagator
    funcs = propagator.op_strategy_funcs
    custom = {op: rule for op, rule in funcs.items() if op.namespace == "scale"}

    def watched(op: Any, rule: Kernel) -> Kernel:
        def derive(schema: Any) -> Any:
            rule(schema)  # what is made once only, for instance the specs of a mesh
            start = time.process_time()  # other processes do not count
            found = rule(schema)
            step.derived.setdefault(op.name(), []).append(time.process_time() - start)
            return found

        return derive

    funcs.update({op: watched(op, rule) for op, rule in custom.items()})
    yield
    funcs.update(custom)


class Decoder:
    """Decoder with parameters sharded as by hand: columns, then rows; experts separately; the rest replicated."""

    def __init__(self, mesh: DeviceMesh) -> None:
        self.mesh, self.data = mesh, mesh.size(0)
        self.batch = SEQUENCES * self.data
        self.layers = [
            {
                "norm": self.parameter(WIDTH),
                "q": self.parameter(WIDTH, WIDTH, shard=0),
                "k": self.parameter(WIDTH, WIDTH, shard=0),
                "v": self.parameter(WIDTH, WIDTH, shard=0),
                "o": self.parameter(WIDTH, WIDTH, shard=1),
                "norm2": self.parameter(WIDTH),
                **(self.experts() if number % 2 else self.feed_forward()),
            }
            for number in range(LAYERS)
        ]
        self.cos, self.sin = (self.parameter(TOKENS, HEAD // 2).detach() for _ in range(2))

    def parameter(self, *shape: int, shard: int | None = None) -> DTensor:
        placed: tuple[Placement, ...] = (Replicate(), Replicate() if shard is None else Shard(shard))
        return empty(*shape, device_mesh=self.mesh, placements=placed, requires_grad=True)

    def feed_forward(self) -> dict[str, Tensor]:
        return {
            "gate": self.parameter(INNER, WIDTH, shard=0),
            "up": self.parameter(INNER, WIDTH, shard=0),
            "down": self.parameter(WIDTH, INNER, shard=1),
        }

    def experts(self) -> dict[str, Tensor]:
        return {
            "gate": self.parameter(EXPERTS, INNER, WIDTH, shard=0),
            "up": self.parameter(EXPERTS, INNER, WIDTH, shard=0),
            "down": self.parameter(EXPERTS, WIDTH, INNER, shard=0),
        }

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (HEADS, HEAD)).transpose(1, 2)

    def attention(self, layer: Mapping[str, Tensor], x: Tensor) -> Tensor:
        q, k, v = (self.heads(ops.linear(x, layer[name])) for name in "qkv")
        y = ops.attend(ops.rope(q, self.cos, self.sin), ops.rope(k, self.cos, self.sin), v)
        return ops.linear(y.transpose(1, 2).flatten(2), layer["o"])

    def mixed(self, layer: Mapping[str, Tensor], x: Tensor, mask: Tensor) -> Tensor:
        """Run the experts' layer: tokens move to the ranks that have their experts, and back."""
        mask, x = (t.redistribute(self.mesh, (Shard(0), Shard(0))) for t in (mask, x))
        y = ops.dispatch(mask, x).redistribute(self.mesh, (Shard(1), Shard(0)))
        y = ops.experts(ops.gated(ops.experts(y, layer["gate"]), ops.experts(y, layer["up"])), layer["down"])
        return ops.combine(mask, y.redistribute(self.mesh, (Shard(1), Shard(1))))

    def step(self) -> None:
        """Run forward and backward, and redistribute the gradients like the parameters."""
        placed = (Shard(0), Replicate())
        x = empty(self.batch, TOKENS, WIDTH, device_mesh=self.mesh, placements=placed)
        mask = empty(self.batch, TOKENS, EXPERTS, CAPACITY, device_mesh=self.mesh, placements=placed)
        for layer in self.layers:
            x = x + self.attention(layer, ops.norm(x, layer["norm"])[0]).redistribute(self.mesh, placed)
            h = ops.norm(x, layer["norm2"])[0]
            if layer["gate"].dim() == 3:
                h = self.mixed(layer, h, mask)
            else:
                h = ops.linear(ops.gated(ops.linear(h, layer["gate"]), ops.linear(h, layer["up"])), layer["down"])
            x = x + h.redistribute(self.mesh, placed)
        x.sum().backward()
        for layer in self.layers:
            for weight in layer.values():
                weight.grad.redistribute(self.mesh, weight.placements)


def simulate(ranks: int) -> TrainingStep:
    """Simulate one step of rank 0 among ``ranks`` ranks."""
    found = TrainingStep(ranks)
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    try:
        mesh = init_device_mesh("npu", (ranks // TENSOR_PARALLEL, TENSOR_PARALLEL), mesh_dim_names=("data", "tensor"))
        mesh._flatten("all")  # what is reduced over both is reduced by one collective
        forget_sharding()
        counted = CommDebugMode()
        with FakeTensorMode(allow_non_fake_inputs=True), timed(found), Volume() as volume, counted:
            Decoder(mesh).step()
        found.counts.update({KINDS[str(kind).rpartition(".")[2]]: n for kind, n in counted.get_comm_counts().items()})
        found.bytes = volume.bytes
    finally:
        dist.destroy_process_group()
    return found


def main(ranks: Sequence[int] = RANKS) -> dict[str, Any]:
    """Simulate all numbers of ranks, print the table and return the figures."""
    table = Table("ranks", *KINDS.values(), "MiB", "µs per rule")
    with registered():
        simulate(TENSOR_PARALLEL)  # what is imported and compiled at its first use
        steps = [simulate(n) for n in ranks]
    for step in steps:
        kinds = (str(step.counts[kind]) for kind in KINDS.values())
        table.add_row(str(step.ranks), *kinds, f"{step.bytes / 2**20:.0f}", f"{step.microseconds:.0f}")
    Console(width=120).print(table)
    times = [step.microseconds for step in steps]
    return {
        "ranks": [step.ranks for step in steps],
        "operators": len(OPERATORS),
        "collectives": [step.counts.total() for step in steps],
        "microseconds": [round(t) for t in times],
        "flat": round(max(times) / min(times), 2),
    }


if __name__ == "__main__":
    run(main)
