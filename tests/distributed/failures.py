"""Started by test_distributed.py: ranks that die, hang or disagree, each a program of three ranks that must end with
a word about it."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist


def killed() -> None:
    """Rank 1 is killed between two collectives; the others hear of it at the next."""
    x = torch.ones(1000, device="npu")
    dist.all_reduce(x)
    torch.npu.synchronize()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x)
    torch.npu.synchronize()


def killed_far_away() -> None:
    """Rank 2 is killed while rank 0 waits for rank 1, which waits for rank 2."""
    x = torch.ones(10, device="npu")
    dist.all_reduce(x)
    torch.npu.synchronize()
    rank = dist.get_rank()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if rank == 1:
        dist.all_reduce(x)
        torch.npu.synchronize()
    dist.broadcast(x, 1)
    torch.npu.synchronize()


def late() -> None:
    """The last rank does not come: HCCL_EXEC_TIMEOUT ends the others' wait."""
    x = torch.ones(10, device="npu")
    dist.all_reduce(x)
    torch.npu.synchronize()
    if dist.get_rank() == dist.get_world_size() - 1:
        time.sleep(8)
        os._exit(0)
    dist.all_reduce(x)
    torch.npu.synchronize()


def refused() -> None:
    """What the device does not do is refused, and what follows works: all ranks on one device, products of some
    dtypes."""
    rank = dist.get_rank()
    torch.npu.set_device(0)
    with pytest.raises(RuntimeError, match="ranks 0 and 1 use one device, npu:0"):
        dist.all_reduce(torch.ones(10, device="npu"))
    torch.npu.set_device(rank)
    for dtype in (torch.bfloat16, torch.int16):
        with pytest.raises(RuntimeError, match=f"prod of {str(dtype).removeprefix('torch.')}"):
            dist.all_reduce(torch.ones(10, device="npu", dtype=dtype), dist.ReduceOp.PRODUCT)
    x = torch.ones(10, device="npu")
    dist.all_reduce(x)
    assert x.sum().item() == 10 * dist.get_world_size()


def disagreeing() -> None:
    """Rank 1 calls something else, which TORCH_DISTRIBUTED_DEBUG=DETAIL finds at all ranks; all first agree once."""
    x, other = torch.ones(2, 5, device="npu"), dist.get_rank() % 2 == 1
    dist.all_reduce(x)
    differs = os.environ["DIFFERS"]
    if differs == "order" and other:
        dist.broadcast(x, 0)
        dist.all_reduce(x)
    elif differs == "order":
        dist.all_reduce(x)
        dist.broadcast(x, 0)
    else:
        ones = {"elements": torch.ones(2, 6), "shape": torch.ones(5, 2), "dtype": torch.ones(2, 5, dtype=torch.float16)}
        dist.all_reduce(ones[differs].npu() if other else x)
    torch.npu.synchronize()


def meeting() -> None:
    """All ranks meet, and reduce."""
    x = torch.full((10,), float(dist.get_rank()), device="npu")
    dist.all_reduce(x)
    ranks = dist.get_world_size()
    assert x.tolist() == [ranks * (ranks - 1) / 2] * 10
    print(f"rank {dist.get_rank()} met", flush=True)


def run(program: str) -> None:
    """Run the program of that name as one rank; the error that it ends with is printed."""
    rank = dist.get_rank()
    torch.npu.set_device(rank)
    try:
        globals()[program]()
    except RuntimeError as error:
        print(f"rank {rank}: {error}", flush=True)
        os._exit(3)
    dist.destroy_process_group()


def begin() -> None:
    """Meet under the name that the variables give; what PyTorch says of it is the error that is printed."""
    try:
        dist.init_process_group("hccl", timeout=timedelta(seconds=int(os.environ.get("MEETING_SECONDS", "600"))))
    except RuntimeError as error:
        print(f"rank {os.environ['RANK']}: {error}", flush=True)
        os._exit(3)


def spawned(rank: int, ranks: int, store: str, program: str) -> None:
    dist.init_process_group("hccl", init_method=f"file://{store}", rank=rank, world_size=ranks)
    run(program)


if __name__ == "__main__":
    if sys.argv[1] == "spawn":  # spawn PROGRAM RANKS STORE
        torch.multiprocessing.spawn(spawned, (int(sys.argv[3]), sys.argv[4], sys.argv[2]), int(sys.argv[3]))
    else:
        begin()
        run(sys.argv[1])
