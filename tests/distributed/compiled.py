"""Run by torchrun: programs with custom operators, sharded and compiled, give what they give eagerly.

Each takes the way it is compiled (None: not at all) and gives what all ranks have together.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
import torch_npu
from lacks import lacking
from sharding import norm, register
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch_npu.dynamo import torchair

import ascend_graph
from ascend_graph.host.kernels import host_kernel

WIDTH = 16
Way = str | None


def compiled(function: Any, way: Way) -> Any:
    if way is None:
        return function
    config = torchair.CompilerConfig()
    if way == "aclgraph":
        config.mode = "reduce-overhead"
    backend = "aot_eager" if way == "aot" else ascend_graph.dtensor_backend(config)
    return torch.compile(function, backend=backend, dynamic=False)


def graph_kernels() -> None:
    """What GE graphs of the host run for the operators."""
    host_kernel("ShardMatMul")(lambda a, b: a @ b)
    host_kernel("ShardNorm")(norm)
    host_kernel("ShardAdd")(lambda x, y: x + y)


@cache
def ranks() -> DeviceMesh:
    return init_device_mesh("npu", (dist.get_world_size(),))


def data(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)).npu()


def sharded(mesh: DeviceMesh, way: Sequence[Placement], *shapes: Sequence[int]) -> list[DTensor]:
    return [
        distribute_tensor(data(*shape, seed=n), mesh, [p]) for n, (shape, p) in enumerate(zip(shapes, way, strict=True))
    ]


def feed_forward(x: Tensor, gamma: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """Of custom operators alone; DTensor places what lies between."""
    ops = torch.ops.sharded
    h = ops.mm(ops.mm(ops.norm(x, gamma)[0], up), down)
    if isinstance(h, DTensor):
        h = h.redistribute(placements=[Replicate()])
    return ops.add(h, x)


def columns_and_rows(way: Way) -> list[Tensor]:
    """The sum over the ranks is a partial result of the second product."""
    placed = (Replicate(), Replicate(), Shard(1), Shard(0))
    given = sharded(ranks(), placed, (8, WIDTH), (WIDTH,), (WIDTH, 32), (32, WIDTH))
    with torch.no_grad():
        run = compiled(feed_forward, way)
        return [run(*given).full_tensor() for _ in range(3)][-1:]


def rows_of_data(way: Way) -> list[Tensor]:
    placed = (Shard(0), Replicate(), Replicate(), Replicate())
    given = sharded(ranks(), placed, (8, WIDTH), (WIDTH,), (WIDTH, 32), (32, WIDTH))
    with torch.no_grad():
        run = compiled(feed_forward, way)
        return [run(*given).full_tensor() for _ in range(3)][-1:]


class Product(nn.Module):
    """A linear layer by the custom product."""

    def __init__(self, inner: int, outer: int, seed: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(data(inner, outer, seed=seed))

    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.sharded.mm(x, self.weight)


class Block(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.up, self.down = Product(WIDTH, 32, seed), Product(32, WIDTH, seed + 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.down(torch.tanh(self.up(x))))


def whole(t: Tensor) -> Tensor:
    return (t.full_tensor() if isinstance(t, DTensor) else t).detach()


def train(module: nn.Module, run: Callable[[Tensor], Tensor], rank: int) -> list[Tensor]:
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-2, foreach=False)
    losses = []
    for step in range(
        5
    ):  # FSDP2 gathers parameters elsewhere in the first steps: graphs are captured, and run again from the fourth on
        loss = run(data(8, WIDTH, seed=10 * step + rank)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(whole(loss))
    return [*losses, *map(whole, module.parameters())]


def fsdp(way: Way) -> list[Tensor]:
    """Each block is compiled; its parameters are gathered before it and its gradients scattered behind it."""
    mesh = ranks()
    module = nn.Sequential(Block(0), Block(2))
    for number, block in enumerate(module):
        module[number] = compiled(block, way)
        fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)
    return train(module, module, dist.get_rank())


class Parallel(nn.Module):
    """The custom product with DTensors as parameters; what comes and goes are plain tensors, as in PyTorch's plans."""

    def __init__(self, mesh: DeviceMesh) -> None:
        super().__init__()
        self.mesh = mesh
        self.up = nn.Parameter(distribute_tensor(data(WIDTH, 32, seed=1), mesh, [Shard(1)]))
        self.down = nn.Parameter(distribute_tensor(data(32, WIDTH, seed=2), mesh, [Shard(0)]))

    def forward(self, x: Tensor) -> Tensor:
        mm = torch.ops.sharded.mm
        given = DTensor.from_local(x, self.mesh, [Replicate()], run_check=False)
        h = mm(torch.tanh(mm(given, self.up)), self.down)
        return h.redistribute(placements=[Replicate()]).to_local()


def tensor_parallel(way: Way) -> list[Tensor]:
    module = Parallel(ranks())
    return train(module, compiled(module, way), 0)


def plan(way: Way) -> list[Tensor]:
    """A plan of PyTorch's around a layer with a custom operator inside."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.up, self.down = nn.Linear(WIDTH, 32).npu(), nn.Linear(32, WIDTH).npu()

        def forward(self, x: Tensor) -> Tensor:
            h = self.up(x)
            return self.down(torch.ops.sharded.add(h, torch.tanh(h)))

    module = Layer()
    columns = ColwiseParallel(use_local_output=False)
    parallelize_module(module, ranks(), {"up": columns, "down": RowwiseParallel()})
    with torch.no_grad():
        run = compiled(module, way)
        return [run(data(8, WIDTH)) for _ in range(3)][-1:]


def two_meshes(way: Way) -> list[Tensor]:
    """One graph with DTensors of a line of the ranks, and of a grid of them; forward and gradient."""
    line, grid = ranks(), init_device_mesh("npu", (dist.get_world_size(), 1), mesh_dim_names=("rows", "columns"))
    shapes = (8, WIDTH), (WIDTH, WIDTH)
    given = sharded(line, (Replicate(), Shard(1)), *shapes) + [
        distribute_tensor(data(*shape, seed=n), grid, [p, Replicate()])
        for n, (shape, p) in enumerate(zip(shapes, (Shard(0), Replicate()), strict=True), 2)
    ]
    for tensor in given:
        tensor.requires_grad_()

    def both(x: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
        mm = torch.ops.sharded.mm
        on_line, on_grid = mm(x, w), mm(u, v)
        assert isinstance(on_line, DTensor)
        assert isinstance(on_grid, DTensor)
        whole_line = on_line.redistribute(placements=[Replicate()]).to_local()
        return torch.tanh(whole_line + on_grid.redistribute(placements=[Replicate()] * 2).to_local())

    run = compiled(both, way)
    for _ in range(3):
        for tensor in given:
            tensor.grad = None
        result = run(*given)
        result.sum().backward()
    return [result.detach(), *(whole(t.grad) for t in given if t.grad is not None)]


PROGRAMS = (columns_and_rows, rows_of_data, fsdp, tensor_parallel, plan, two_meshes)
WAYS = ("ge", "aot", "aclgraph")


def main() -> None:
    """Run every program in every way; a difference names both and ends the process with 1."""
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("hccl")
    rank, library = dist.get_rank(), register()
    graph_kernels()
    wrong, count, lacks = [], 0, set()
    chosen = sys.argv[1:] or WAYS
    for program in PROGRAMS:
        expected = program(None)
        for way in chosen:
            torch._dynamo.reset()
            count += 1
            try:
                torch.testing.assert_close(program(way), expected)
            except Exception as error:  # of any kind: it is reported with its case, and the other cases run
                if lack := lacking(error, torch_npu.__version__):
                    lacks.add(lack)
                    continue
                wrong.append(f"rank {rank}: {program.__name__} in {way}: {traceback.format_exc()}")
    dist.barrier()
    library._destroy()
    dist.destroy_process_group()
    print("\n".join([*lacks, *(wrong or [f"rank {rank}: {count} cases are equal"])]), flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
