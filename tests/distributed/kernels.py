"""Run by torchrun, with the package of tests/host/runtime/communication: kernels that communicate, eager, in GE
graphs and in captured graphs."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor
from torch_npu.dynamo import torchair

import ascend_graph

#: The ways of the operator that this compares, by their numbers.
ALL_REDUCE, ALL_REDUCE_MAX, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = range(5)
COMPUTE_FIRST, WINDOWS, QUERY = 8, 9, 12
PART = 192
#: The same ranks on the CPU.
CPU: list[dist.ProcessGroup] = []


def expected(way: int, x: Tensor, rank: int, ranks: int) -> Tensor:
    """What gloo makes of it, on the CPU; of a reduced part the first of the result alone."""
    everything = [torch.empty_like(x) for _ in range(ranks)]
    dist.all_gather(everything, x, group=CPU[0])
    whole = torch.stack(everything)
    parts = whole.view(ranks, ranks, PART)
    return {
        ALL_REDUCE: lambda: whole.sum(0),
        ALL_REDUCE_MAX: lambda: whole.amax(0),
        ALL_GATHER: lambda: parts[:, 0].reshape(-1),
        QUERY: lambda: parts[:, 0].reshape(-1),
        REDUCE_SCATTER: lambda: parts[:, rank].sum(0),
        ALL_TO_ALL: lambda: parts[:, rank].reshape(-1),
        COMPUTE_FIRST: lambda: 2 * whole.sum(0),
        WINDOWS: lambda: whole[(rank + ranks - 1) % ranks],
    }[way]()


def check(compiled: Callable[[Callable[..., Tensor]], Callable[..., Tensor]], rank: int, ranks: int, name: str) -> int:
    count = 0
    op = torch.ops.ascend.communicate
    world = dist.distributed_c10d._get_default_group()
    for way in (ALL_REDUCE, ALL_REDUCE_MAX, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, COMPUTE_FIRST, WINDOWS, QUERY):
        torch._dynamo.reset()
        model = compiled(lambda x, way=way: op(x, group=name, second="", way=way))
        for number in range(2):  # a second run is a replay
            x = (torch.arange(ranks * PART) % 31 + 8 * rank + number).float()
            found = model(x.npu()).cpu()
            right = expected(way, x, rank, ranks)
            torch.testing.assert_close(found[: right.numel()], right, rtol=0, atol=0)
            count += 1
    torch._dynamo.reset()
    # Between two collectives of the same communicator.
    model = compiled(
        lambda x: functional.all_reduce(
            op(functional.all_reduce(x, "sum", world) + 1, group=name, second="", way=ALL_GATHER), "sum", world
        )
    )
    for number in range(2):
        x = torch.full((ranks * PART,), float(rank + number))
        total = float(sum(range(ranks)) + ranks * number)
        torch.testing.assert_close(model(x.npu()).cpu(), torch.full_like(x, ranks * (total + 1)), rtol=0, atol=0)
        count += 1
    return count


def backend(mode: str) -> Callable[..., object]:
    config = torchair.CompilerConfig()
    config.mode = mode
    return torchair.get_npu_backend(compiler_config=config)


def main() -> None:
    dist.init_process_group("hccl")
    CPU.append(dist.new_group(backend="gloo"))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.npu.set_device(rank)
    world = dist.distributed_c10d._get_default_group()
    dist.all_reduce(torch.ones(1).npu())  # the communicator is made by its first collective
    name = world._get_backend(torch.device("npu")).get_hccl_comm_name(rank)
    ascend_graph.register_op("Communicate", shape="x[*s] -> y[*s]")
    count = check(lambda f: f, rank, ranks, name)
    for mode in ("max-autotune", "reduce-overhead"):
        made = backend(mode)
        count += check(
            lambda f, made=made: torch.compile(f, backend=made, dynamic=False, fullgraph=True), rank, ranks, name
        )
    with pytest.raises(RuntimeError, match="no communicator is named 'nobody'"):
        torch.ops.ascend.communicate(torch.ones(PART * ranks).npu(), group="nobody", second="", way=ALL_REDUCE)
    dist.barrier()
    print(f"rank {rank}: {count} runs are equal", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
