"""Rank process of ``benchmarks/mc2.py``, started by torchrun: operators of one package against matmuls and collectives.

torch_npu calls the operators. Each rank prints one line of JSON: the largest error by case, or the raised exception, and the
package's kernels that it loaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
import torch_npu
from torch import Tensor

EXPERTS = 4
SIZES = ((128, 256, 128), (64, 512, 256))


def rows(m: int, k: int, rank: int, dtype: torch.dtype) -> Tensor:
    """Return a rank's input, the same on every rank: a reference needs no collective."""
    generator = torch.Generator().manual_seed(100 * rank + m + k)
    return (torch.rand(m, k, generator=generator) * 2 - 1).to(dtype) / 8


def error(found: Tensor, expected: Tensor) -> float:
    return float((found.cpu().double() - expected.double()).abs().max())


def summed(x: list[Tensor], w: list[Tensor]) -> Tensor:
    """Return the sum of all ranks' matmuls."""
    return torch.stack([a.double() @ b.double() for a, b in zip(x, w, strict=True)]).sum(0)


class Rank:
    """Process with its communicator and the error of each operator there."""

    def __init__(self) -> None:
        dist.init_process_group("hccl")
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        torch.npu.set_device(self.rank)
        world = dist.distributed_c10d._get_default_group()._get_backend(torch.device("npu"))
        self.group: str = world.get_hccl_comm_name(self.rank)

    def inputs(self, m: int, k: int, n: int, dtype: torch.dtype) -> tuple[list[Tensor], list[Tensor]]:
        return ([rows(m, k, rank, dtype) for rank in range(self.ranks)],
                [rows(k, n, 7 + rank, dtype) for rank in range(self.ranks)])  # fmt: skip

    def all_gather_matmul(self, dtype: torch.dtype, m: int, k: int, n: int) -> float:
        x, w = self.inputs(m, k, n, dtype)
        given = x[self.rank].npu(), w[0].npu()
        product, gathered = torch_npu.npu_all_gather_base_mm(*given, self.group, self.ranks)
        if not torch.equal(gathered.cpu(), torch.cat(x)):
            raise ValueError("what it gathers differs")
        return error(product, torch.cat(x).double() @ w[0].double())

    def matmul_reduce_scatter(self, dtype: torch.dtype, m: int, k: int, n: int) -> float:
        x, w = self.inputs(m, k, n, dtype)
        found = torch_npu.npu_mm_reduce_scatter_base(
            x[self.rank].npu(), w[self.rank].npu(), self.group, self.ranks, reduce_op="sum"
        )
        return error(found, summed(x, w).chunk(self.ranks)[self.rank])

    def matmul_all_reduce(self, dtype: torch.dtype, m: int, k: int, n: int) -> float:
        x, w = self.inputs(m, k, n, dtype)
        found = torch_npu.npu_mm_all_reduce_base(x[self.rank].npu(), w[self.rank].npu(), self.group, reduce_op="sum")
        return error(found, summed(x, w))

    def experts(self, dtype: torch.dtype, m: int, k: int, n: int) -> float:
        """Send tokens to their experts and back; each expert doubles its tokens, and the weights scale the results."""
        tokens, width = m // 8, 16 * k
        x = [rows(tokens, width, rank, dtype) for rank in range(self.ranks)]
        ids = [(torch.arange(tokens).view(-1, 1) * 3 + torch.tensor([0, 1]) + r) % EXPERTS for r in range(self.ranks)]
        scales = ids[self.rank].float() / 8 + 0.25
        local = EXPERTS // self.ranks
        place = {
            "group_ep": self.group,
            "ep_world_size": self.ranks,
            "ep_rank_id": self.rank,
            "moe_expert_num": EXPERTS,
        }
        mine = ids[self.rank].int().npu()
        arrived, _, indices, _, counts, tp_counts, _ = torch_npu.npu_moe_distribute_dispatch_v2(
            x[self.rank].npu(), mine, **place
        )
        expected = torch.cat(
            [x[r][(ids[r] == e).any(1)] for e in range(self.rank * local, (self.rank + 1) * local) for r in range(self.ranks)]
        )  # fmt: skip
        if not torch.equal(arrived[: len(expected)].cpu(), expected):
            raise ValueError("what arrives differs")
        back = torch_npu.npu_moe_distribute_combine_v2(
            arrived * 2, mine, indices, counts, scales.npu(), tp_send_counts=tp_counts, **place
        )
        return error(back, 2 * x[self.rank].double() * scales.double().sum(1, keepdim=True))


OPERATORS: dict[str, Callable[[Rank, torch.dtype, int, int, int], float]] = {
    "AllGatherMatmul": Rank.all_gather_matmul,
    "MatmulReduceScatter": Rank.matmul_reduce_scatter,
    "MatmulAllReduce": Rank.matmul_all_reduce,
    "MoeDistributeDispatchV2": Rank.experts,
}


def cases(op_types: list[str], rank: Rank) -> Iterator[tuple[str, float | str]]:
    for op_type in op_types:
        for dtype in (torch.float16, torch.bfloat16):
            for sizes in SIZES:
                name = f"{op_type} {str(dtype).removeprefix('torch.')} {sizes}"
                try:
                    yield name, OPERATORS[op_type](rank, dtype, *sizes)
                except (RuntimeError, ValueError) as raised:
                    yield name, str(raised).strip().splitlines()[0][:300]


def main() -> None:
    package, *op_types = sys.argv[1:]
    rank = Rank()
    found = dict(cases(op_types, rank))
    maps = Path("/proc/self/maps").read_text().split()
    loaded = sorted({Path(one).name for one in maps if one.startswith(f"{package}/op_impl")})
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps({"rank": rank.rank, "cases": found, "kernels": loaded}), flush=True)


if __name__ == "__main__":
    main()
