"""Run by torchrun: collectives in GE graphs and in captured graphs give what they give outside of graphs."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch_npu
from lacks import lacking
from torch import Tensor
from torch_npu.dynamo import torchair

RANK = 0
RANKS = 1
NAMES: dict[str, str] = {}
#: The experts of the tokens of :func:`through_experts`, and their weights.
ROUTING: list[Tensor] = []


def backend(mode: str) -> Callable[..., object]:
    config = torchair.CompilerConfig()
    if mode == "aclgraph":
        config.mode = "reduce-overhead"
    return torchair.get_npu_backend(compiler_config=config)


def data(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(RANK)).to(dtype).npu()


def group() -> dist.ProcessGroup:
    return dist.distributed_c10d._get_default_group()


def all_reduce(x: Tensor) -> Tensor:
    return functional.all_reduce(x * 2, "sum", group()) + 1


def all_reduce_max(x: Tensor) -> Tensor:
    return functional.all_reduce(x, "max", group()) - x


def all_gather(x: Tensor) -> Tensor:
    return functional.all_gather_tensor(x + 1, 0, group()) * 3


def reduce_scatter(x: Tensor) -> Tensor:
    return functional.reduce_scatter_tensor(x * x, "sum", 0, group()) + 1


def broadcast(x: Tensor) -> Tensor:
    return functional.broadcast(x * 2, 1, group()) + x


def all_to_all(x: Tensor) -> Tensor:
    return functional.all_to_all_single(x + 1, None, None, group()) * 2


def products(x: Tensor) -> Tensor:
    """TorchAir's products with communication."""
    w = torch.ones(x.size(1), 8, dtype=x.dtype, device=x.device)
    whole, rows = torch_npu.npu_all_gather_base_mm(x, w, NAMES["world"], RANKS)
    parts = torch_npu.npu_mm_reduce_scatter_base(x, w, NAMES["world"], RANKS)
    return torch.cat([torch_npu.npu_mm_all_reduce_base(x, w, NAMES["world"]), whole, parts, rows[:, :8]])


def quantized_products(x: Tensor) -> Tensor:
    """Sums over the ranks of products of int8, with scales for columns and rows, sent as they are and as int8, and
    with an int8 weight."""
    w = ((torch.arange(64 * 8, device=x.device).view(64, 8) * 7) % 23 - 11).to(torch.int8)
    q = (x * 8).round().to(torch.int8)
    columns = (torch.arange(8, device=x.device) + 1).to(x.dtype) / 64
    rows = (torch.arange(x.size(0), device=x.device) + 1).float() / 8
    wide = (
        columns.float() if x.dtype is torch.float16 else columns
    )  # what the document's table has in addition to scales for rows
    reduce, world = torch_npu.npu_mm_all_reduce_base, NAMES["world"]
    sent = columns * 4
    bias = torch.arange(8, device=x.device, dtype=torch.int32)
    return torch.cat(
        [
            reduce(q, w, world, bias=bias, dequant_scale=wide, pertoken_scale=rows, x3=x[:, :8]),
            reduce(
                q,
                w,
                world,
                dequant_scale=wide,
                pertoken_scale=rows,
                comm_quant_scale_1=sent,
                comm_quant_scale_2=sent * 2,
            ),
            reduce(x, w, world, bias=columns, antiquant_scale=columns, antiquant_offset=columns),
            reduce(x, w, world, antiquant_scale=columns.expand(2, 8).contiguous(), antiquant_group_size=32),
        ]
    )


def products_by_vector_cores(x: Tensor) -> Tensor:
    """The second versions of products with communication, as an Atlas A2 takes them."""
    w = torch.ones(x.size(1), 8, dtype=x.dtype, device=x.device)
    whole, rows, _ = torch_npu.npu_all_gather_quant_mm(x, w, NAMES["world"], RANKS, comm_mode="aiv")
    parts, _ = torch_npu.npu_quant_mm_reduce_scatter(x, w, NAMES["world"], RANKS, comm_mode="aiv")
    return torch.cat([whole, parts, rows[:, :8]])


def check_products_by_vector_cores(dtype: torch.dtype) -> None:
    """They are those of the first versions; of int8 they are the documents' formulas, in float64, of what all ranks
    have."""
    x = data(RANKS * 2, 256, dtype=dtype)
    torch.testing.assert_close(products_by_vector_cores(x), products(x)[len(x) :], rtol=0, atol=0)
    world = NAMES["world"]
    w = ((torch.arange(256 * 8).view(256, 8) * 7) % 23 - 11).to(torch.int8)
    q = (x * 8).round().to(torch.int8)
    by_column = (torch.arange(8) + 1).view(1, 8).float() / 64
    by_row = (torch.arange(len(x)) + RANK + 1).view(-1, 1).float() / 8
    everywhere = [torch.empty_like(q) for _ in range(RANKS)]
    dist.all_gather(everywhere, q)
    wholes = [t.cpu().double() @ w.double() * by_column for t in everywhere]
    scales = [(torch.arange(len(x)) + rank + 1).view(-1, 1).double() / 8 for rank in range(RANKS)]
    gathered = torch.cat([t * s for t, s in zip(wholes, scales, strict=True)])
    summed = sum((t * s).to(dtype).double() for t, s in zip(wholes, scales, strict=True))
    without = sum(t.to(dtype).double() for t in wholes)
    right = {"x1_scale": by_row.npu(), "x2_scale": by_column.npu(), "output_dtype": dtype, "comm_mode": "aiv"}
    found, rows = torch_npu.npu_all_gather_base_mm(q, w.npu(), world, RANKS, **right)
    close(found, gathered, dtype)
    assert torch.equal(rows, torch.cat(everywhere))
    close(torch_npu.npu_mm_reduce_scatter_base(q, w.npu(), world, RANKS, **right), summed.chunk(RANKS)[RANK], dtype)
    alone = right | {"x1_scale": None}
    close(torch_npu.npu_mm_reduce_scatter_base(q, w.npu(), world, RANKS, **alone), without.chunk(RANKS)[RANK], dtype)
    packed = torch_npu.npu_trans_quant_param(by_column.view(-1).npu()).view(1, 8)
    if dtype is torch.float16:
        close(
            torch_npu.npu_mm_reduce_scatter_base(q, w.npu(), world, RANKS, **alone | {"x2_scale": packed}),
            without.chunk(RANKS)[RANK],
            dtype,
        )
    for wrong, message in (
        ({"x2_scale": None, "x1_scale": None}, "a matmul of int8 needs x2_scale"),
        ({"x1_scale": by_row[:-1].npu()}, r"x1_scale is of shape \(3, 1\); it must be \(4, 1\)"),
        ({"bias": torch.zeros(8).npu()}, "bias: not supported by this device"),
        ({"comm_mode": "ccu"}, "expected 'aiv'"),
    ):
        for function in (torch_npu.npu_mm_reduce_scatter_base, torch_npu.npu_all_gather_base_mm):
            with pytest.raises(RuntimeError, match=message):
                function(q, w.npu(), world, RANKS, **right | wrong)


def close(found: Tensor, right: Tensor, dtype: torch.dtype) -> None:
    assert found.dtype is dtype
    tolerance = 2e-2 if dtype is torch.bfloat16 else 3e-3
    torch.testing.assert_close(
        found.cpu().double(), right, rtol=tolerance, atol=tolerance * max(float(right.abs().max()), 1.0)
    )


def check_quantized_products(dtype: torch.dtype) -> None:
    """The documents' formulas, in float64, of what all ranks have."""
    x = data(RANKS * 2, 64, dtype=dtype)
    everywhere = [torch.empty_like(x) for _ in range(RANKS)]
    dist.all_gather(everywhere, x)
    w = ((torch.arange(64 * 8).view(64, 8) * 7) % 23 - 11).double()
    columns, rows = (torch.arange(8) + 1).double() / 64, (torch.arange(len(x)) + 1).double().view(-1, 1) / 8
    wholes = [t.cpu().double() for t in everywhere]
    integers = [(t.cpu() * 8).round().double() @ w for t in everywhere]
    added = sum((i + torch.arange(8)) * columns * rows + t[:, :8] for i, t in zip(integers, wholes, strict=True))
    sent = sum((i * columns * rows).to(dtype).double().div(columns * 4).round().clamp(-128, 127) for i in integers)
    as_int8 = (sent / 2).round().clamp(-128, 127) * columns * 8
    shifted = sum(t @ ((w + columns) * columns) + columns for t in wholes)
    by_group = sum(t @ (w * columns) for t in wholes)
    int8 = torch.zeros(4, 64, dtype=torch.int8).npu()
    with pytest.raises(RuntimeError, match="dequantScale is FLOAT; expected INT64, UINT64, BF16"):
        torch_npu.npu_mm_all_reduce_base(int8, int8.t(), NAMES["world"], dequant_scale=torch.ones(4).npu()).cpu()
    found = quantized_products(x).cpu().double().chunk(4)
    tolerance = 2e-2 if dtype is torch.bfloat16 else 3e-3
    for name, one, right in zip(
        ("added", "as int8", "shifted", "by group"), found, (added, as_int8, shifted, by_group), strict=True
    ):
        scale = max(float(right.abs().max()), 1.0)
        torch.testing.assert_close(
            one, right, rtol=tolerance, atol=tolerance * scale, msg=lambda m, n=name: f"{n}: {m}"
        )


def check_products(dtype: torch.dtype) -> None:
    """Products with communication are products, and communication."""
    x = data(RANKS * 2, 256, dtype=dtype)
    w = torch.ones(256, 8, dtype=dtype).npu()
    rows = torch.empty(RANKS * x.size(0), 256, dtype=dtype, device="npu")
    dist.all_gather_into_tensor(rows, x)
    reduced = (x.float() @ w.float()).to(dtype)
    dist.all_reduce(reduced)
    mine = reduced.chunk(RANKS)[RANK]
    torch.testing.assert_close(
        products(x), torch.cat([reduced, (rows.float() @ w.float()).to(dtype), mine, rows[:, :8]]), rtol=0, atol=0
    )


EXPERTS = 4


def routing(tokens: int) -> tuple[Tensor, Tensor]:
    """Two experts for each token, and their weights."""
    ids = (torch.arange(tokens).view(-1, 1) * 3 + torch.tensor([0, 1]) + RANK) % EXPERTS
    return ids.int().npu(), (ids.float() / 8 + 0.25).npu()


def through_experts(x: Tensor) -> Tensor:
    """Tokens to their experts on all ranks, and back."""
    ids, scales = ROUTING
    place = (NAMES["world"], RANKS, RANK, EXPERTS)
    rows, _, indices, _, counts, tp_counts, _ = torch_npu.npu_moe_distribute_dispatch(x, ids, *place)
    return torch_npu.npu_moe_distribute_combine(
        rows * 2, ids, indices, counts, scales, *place, tp_send_counts=tp_counts
    )


def check_experts(dtype: torch.dtype) -> None:
    """Rows lie by expert, then by rank; each expert adds its number."""
    x = data(6, 32, dtype=dtype)
    ids, scales = routing(6)
    place, local = (NAMES["world"], RANKS, RANK, EXPERTS), EXPERTS // RANKS
    rows, _, indices, numbers, counts, tp_counts, _ = torch_npu.npu_moe_distribute_dispatch(x, ids, *place)
    everywhere = [torch.empty_like(x) for _ in range(RANKS)], [torch.empty_like(ids) for _ in range(RANKS)]
    dist.all_gather(everywhere[0], x)
    dist.all_gather(everywhere[1], ids)
    expected, wanted = [], []
    for expert in range(RANK * local, (RANK + 1) * local):
        of_ranks = [t[(i == expert).any(1)] for t, i in zip(*everywhere, strict=True)]
        expected += of_ranks
        wanted += [len(part) for part in of_ranks]
    together = torch.cat(expected)
    torch.testing.assert_close(rows[: len(together)], together, rtol=0, atol=0)
    assert counts.tolist() == torch.tensor(wanted).cumsum(0).tolist()
    assert numbers.tolist() == torch.tensor(wanted).view(local, RANKS).sum(1).tolist()
    check_quantized_experts(x, ids, together, numbers, counts)
    factors = torch.arange(RANK * local, (RANK + 1) * local).repeat_interleave(numbers.cpu()).to(dtype).npu() + 1
    rows[: len(together)] *= factors.view(-1, 1)
    again = torch_npu.npu_moe_distribute_dispatch_v2(x, ids, *place)
    torch.testing.assert_close(again[0][: len(together)], together, rtol=0, atol=0)
    second = torch_npu.npu_moe_distribute_combine_v2(again[0], ids, again[2], again[4], scales, *place)
    torch.testing.assert_close(second, (x.float() * scales.sum(1, keepdim=True)).to(dtype))
    found = torch_npu.npu_moe_distribute_combine(rows, ids, indices, counts, scales, *place, tp_send_counts=tp_counts)
    parts = x.unsqueeze(1) * (ids.to(dtype) + 1).unsqueeze(-1)
    torch.testing.assert_close(found, (parts.float() * scales.unsqueeze(-1)).sum(1).to(dtype))


def check_quantized_experts(x: Tensor, ids: Tensor, together: Tensor, numbers: Tensor, counts: Tensor) -> None:
    """What arrives is int8 by a scale for each row, after its expert's scales; what is not as documented is refused
    by name."""
    place, local = (NAMES["world"], RANKS, RANK, EXPERTS), EXPERTS // RANKS
    smooth = torch.rand(EXPERTS, x.size(1), generator=torch.Generator().manual_seed(5)) + 0.5
    of_expert = torch.arange(RANK * local, (RANK + 1) * local).repeat_interleave(numbers.cpu())
    for scales, factors in ((None, torch.ones(1)), (smooth.npu(), smooth[of_expert])):
        rows, by_row, _, _, found, _, _ = torch_npu.npu_moe_distribute_dispatch(
            x, ids, *place, scales=scales, quant_mode=2
        )
        assert rows.dtype is torch.int8
        assert found.tolist() == counts.tolist()
        wide = together.cpu().float() * factors
        by_hand = wide.abs().amax(1) / 127
        torch.testing.assert_close(by_row[: len(wide)].cpu(), by_hand)
        torch.testing.assert_close(
            rows[: len(wide)].cpu(), (wide / by_hand.unsqueeze(1)).round().to(torch.int8), atol=1, rtol=0
        )
    same = torch.zeros_like(ids)
    for wrong, message in (
        ((x[:, :8], ids), "multiple of 32"),
        ((x, same), "twice"),
        ((x, ids + EXPERTS), "must be 0 to 3"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch_npu.npu_moe_distribute_dispatch(*wrong, *place)
    with pytest.raises(RuntimeError, match="scales are for quant_mode 2"):
        torch_npu.npu_moe_distribute_dispatch(x, ids, *place, scales=smooth.npu())


FUNCTIONS = (all_reduce, all_reduce_max, all_gather, reduce_scatter, broadcast, all_to_all)


def check(mode: str, function: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    if mode == "eager":
        checks = {
            through_experts: check_experts,
            quantized_products: check_quantized_products,
            products_by_vector_cores: check_products_by_vector_cores,
        }
        checks.get(function, check_products)(dtype)
        return
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend(mode), fullgraph=True, dynamic=False)
    with torch.no_grad():
        for step in range(3):
            x = (
                data(
                    RANKS * 2,
                    {products: 256, products_by_vector_cores: 256, quantized_products: 64, through_experts: 32}.get(
                        function, 8
                    ),
                    dtype=dtype,
                )
                + step
            )
            torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)


def main() -> None:
    """Every function in every mode; a difference names both and ends the process with 1."""
    global RANK, RANKS
    dist.init_process_group("hccl")
    RANK, RANKS = dist.get_rank(), dist.get_world_size()
    torch.npu.set_device(RANK)
    NAMES["world"] = group()._get_backend(torch.device("npu")).get_hccl_comm_name(RANK)
    ROUTING.extend(routing(2 * RANKS))
    wrong, count, lacks = [], 0, set()
    for mode in sys.argv[1:] or ["eager", "ge", "aclgraph"]:
        cases: list[tuple[Callable[[Tensor], Tensor], torch.dtype]] = [
            (products, torch.float16),
            (products, torch.bfloat16),
            (products_by_vector_cores, torch.float16),
            (products_by_vector_cores, torch.bfloat16),
            (quantized_products, torch.float16),
            (quantized_products, torch.bfloat16),
            (through_experts, torch.float16),
            (through_experts, torch.bfloat16),
        ]
        if mode != "eager":
            cases += [(f, dtype) for f in FUNCTIONS for dtype in (torch.float32, torch.float16)]
        for function, dtype in cases:
            count += 1
            try:
                check(mode, function, dtype)
            except Exception as error:  # of any kind: it is reported with its case, and the other cases run
                if lack := lacking(error, torch_npu.__version__):
                    lacks.add(lack)
                    continue
                wrong.append(f"rank {RANK}: {function} {dtype} in {mode}: {traceback.format_exc()}")
    dist.barrier()
    dist.destroy_process_group()
    print("\n".join([*lacks, *(wrong or [f"rank {RANK}: {count} cases are equal"])]), flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
