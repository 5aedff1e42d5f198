"""Run by torchrun: programs of PyTorch's parallelisms give on npu with hccl what they give on the CPU with gloo."""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from lacks import LACKS
from torch import Tensor, nn
from torch.distributed import checkpoint
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, schedules
from torch.distributed.tensor import DTensor, Partial, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

WIDTH = 16


class Block(nn.Module):
    """A feed-forward block as decoders have it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def model(device: str, blocks: int = 2) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(Block() for _ in range(blocks))).to(device)


def batch(device: str, step: int, rank: int | None = None) -> Tensor:
    rank = dist.get_rank() if rank is None else rank
    return torch.randn(4, 8, WIDTH, generator=torch.Generator().manual_seed(100 * step + rank)).to(device)


def whole(t: Tensor) -> Tensor:
    """A tensor's value on the CPU, of a DTensor that of all ranks."""
    return (t.full_tensor() if isinstance(t, DTensor) else t).detach().cpu()


def train(module: nn.Module, device: str, steps: int = 3, rank: int | None = None) -> list[Tensor]:
    """The losses of some steps, and the parameters behind them."""
    # foreach=False: some parameters of a tensor-parallel module are DTensors and some are not.
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, foreach=False)
    losses = []
    for step in range(steps):
        loss = module(batch(device, step, rank)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(whole(loss))
    return [*losses, *map(whole, module.parameters())]


def mesh(device: str, *sizes: int, names: tuple[str, ...] = ("ranks",)) -> DeviceMesh:
    return init_device_mesh(device, sizes or (dist.get_world_size(),), mesh_dim_names=names)


def ddp(device: str) -> list[Tensor]:
    return train(DistributedDataParallel(model(device)), device)


def ddp_static_graph(device: str) -> list[Tensor]:
    return train(DistributedDataParallel(model(device), static_graph=True, gradient_as_bucket_view=True), device)


def ddp_without_sync(device: str) -> list[Tensor]:
    wrapped = DistributedDataParallel(model(device), bucket_cap_mb=0.001)
    with wrapped.no_sync():
        wrapped(batch(device, 7)).square().mean().backward()
    return train(wrapped, device)


def fsdp(device: str) -> list[Tensor]:
    sharded, over = model(device), mesh(device)
    for block in sharded:
        fully_shard(block, mesh=over)
    return train(fully_shard(sharded, mesh=over), device)


def fsdp_mixed_precision(device: str) -> list[Tensor]:
    sharded, over = model(device), mesh(device)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in sharded:
        fully_shard(block, mesh=over, mp_policy=policy, reshard_after_forward=False)
    return train(fully_shard(sharded, mesh=over, mp_policy=policy), device)


def tensor_parallel(device: str) -> list[Tensor]:
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    module, over = model(device), mesh(device)
    for block in module:
        parallelize_module(block, over, plan)
    return train(module, device, rank=0)


def sequence_parallel(device: str) -> list[Tensor]:
    plan = {
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }
    block, over = model(device, 1)[0], mesh(device)
    parallelize_module(block, over, plan)
    x = distribute_tensor(batch(device, 0, 0), over, [Shard(1)])
    y = block(x)
    loss = y.full_tensor().square().mean()
    loss.backward()
    return [whole(loss), whole(y), *(whole(p.grad) for p in block.parameters() if p.grad is not None)]


def fsdp_and_tensor_parallel(device: str) -> list[Tensor]:
    both = mesh(device, 2, dist.get_world_size() // 2, names=("dp", "tp"))
    module = model(device)
    for block in module:
        parallelize_module(block, both["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=both["dp"])
    return train(fully_shard(module, mesh=both["dp"]), device, rank=0)


def dtensors(device: str) -> list[Tensor]:
    over = mesh(device)
    a = torch.randn(8, 12, generator=torch.Generator().manual_seed(1)).to(device)
    b = torch.randn(12, 8, generator=torch.Generator().manual_seed(2)).to(device)
    partial = distribute_tensor(a, over, [Shard(1)]) @ distribute_tensor(b, over, [Shard(0)])
    assert partial.placements == (Partial(),)
    rows = partial.redistribute(over, [Shard(0)])
    columns = rows.redistribute(over, [Shard(1)])
    uneven = distribute_tensor(a[:5], over, [Shard(0)])
    return [*map(whole, (partial, rows, columns, columns.sum(0), uneven.softmax(0), rows.max()))]


def pipeline(schedule: type[ScheduleGPipe] | type[Schedule1F1B]) -> Callable[[str], list[Tensor]]:
    def run(device: str) -> list[Tensor]:
        ranks, rank = dist.get_world_size(), dist.get_rank()
        place = torch.device("npu", rank) if device == "npu" else torch.device("cpu")
        stage_module = model(device, ranks)[rank]
        stage = PipelineStage(stage_module, rank, ranks, place)
        steps = schedule(stage, n_microbatches=4, loss_fn=lambda y, t: (y - t).square().mean())
        x, target = batch(device, 0, 0), batch(device, 1, 0)
        losses: list[Tensor] = []
        if rank == 0:
            steps.step(x)
        elif rank == ranks - 1:
            steps.step(target=target, losses=losses)
        else:
            steps.step()
        return [*map(whole, losses), *(whole(p.grad) for p in stage_module.parameters() if p.grad is not None)]

    return run


def checkpoints(device: str) -> list[Tensor]:
    """Sharded parameters written by all ranks are read into another sharding."""
    over = mesh(device)
    a = torch.randn(8, 6, generator=torch.Generator().manual_seed(1)).to(device)
    directory = [tempfile.mkdtemp() if dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(directory, 0, device=torch.device(device))
    checkpoint.save({"a": distribute_tensor(a, over, [Shard(0)]), "step": 3}, checkpoint_id=Path(directory[0]))
    state = {"a": distribute_tensor(torch.zeros_like(a), over, [Shard(1)]), "step": 0}
    checkpoint.load(state, checkpoint_id=Path(directory[0]))
    assert state["step"] == 3
    return [whole(state["a"])]


PROGRAMS: dict[str, Callable[[str], list[Tensor]]] = {
    "ddp": ddp,
    "ddp static graph": ddp_static_graph,
    "ddp without sync": ddp_without_sync,
    "fsdp": fsdp,
    "fsdp mixed precision": fsdp_mixed_precision,
    "tensor parallel": tensor_parallel,
    "sequence parallel": sequence_parallel,
    "fsdp and tensor parallel": fsdp_and_tensor_parallel,
    "dtensors": dtensors,
    "pipeline gpipe": pipeline(ScheduleGPipe),
    "pipeline 1f1b": pipeline(Schedule1F1B),
    "checkpoints": checkpoints,
}


def gloo_divides() -> bool:
    """Whether gloo's reduce-scatter divides for AVG, which FSDP asks for: that of an older PyTorch leaves the sum."""
    one = torch.empty(1)
    dist.reduce_scatter_tensor(one, torch.ones(dist.get_world_size()), op=dist.ReduceOp.AVG)
    return one.item() == 1


#: Largest differences of programs that are not equal to the bit. A layer norm in bfloat16 keeps mean and rstd in
#: float32 on a device, and the CPU rounds them to bfloat16: the gradients differ, and three steps of AdamW move by the
#: learning rate.
WITHIN = {"fsdp mixed precision": 1e-3}


def main() -> None:
    """Run every program on both devices; a difference names its program and ends the process with 1."""
    dist.init_process_group("cpu:gloo,npu:hccl")
    rank = dist.get_rank()
    torch.npu.set_device(rank)
    wrong = []
    programs, lacks = dict(PROGRAMS), []
    if not gloo_divides():
        lacks.append(f"{LACKS}gloo takes AVG in a reduce-scatter for SUM: no reference for FSDP")
        programs = {name: p for name, p in programs.items() if "fsdp" not in name}
    if not hasattr(schedules, "_wait_batch_p2p"):
        lacks.append(
            f"{LACKS}1F1B waits for the last alone of what it sends and receives at once: with gloo it may never end"
        )
        del programs["pipeline 1f1b"]
    if (2, 9) <= torch.__version__ < (2, 10):
        lacks.append(f"{LACKS}gloo takes one message of a pipeline for another, and ends the process: no reference")
        programs = {name: p for name, p in programs.items() if "pipeline" not in name}
    for name, program in programs.items():
        try:
            expected, found = program("cpu"), program("npu")
            torch.testing.assert_close(found, expected, rtol=0, atol=WITHIN.get(name, 0))
        except Exception:  # of any kind: it is reported with the program's name, and the other programs run
            wrong.append(f"rank {rank}: {name}: {traceback.format_exc()}")
    dist.barrier()
    dist.destroy_process_group()
    print("\n".join([*lacks, *(wrong or [f"rank {rank}: {len(programs)} programs are equal"])]), flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
