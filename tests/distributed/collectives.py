"""Run by torchrun: every collective on npu tensors (hccl) gives what it gives on CPU tensors (gloo)."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

RANK = 0
RANKS = 1

MOVED = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
)
REDUCED = (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64)
#: What gloo does not know, as what it does.
REFERENCE = {torch.int16: torch.int32}
OPS = (ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MAX, ReduceOp.MIN)

Case = Callable[[str], object]


def data(device: str, dtype: torch.dtype, *sizes: int, seed: int = 0) -> torch.Tensor:
    """What this rank contributes: the same values on both devices."""
    generator = torch.Generator().manual_seed(1000 * seed + RANK)
    if dtype.is_floating_point:
        made = torch.randn(sizes, generator=generator).to(dtype)
    else:
        made = torch.randint(0, 2 if dtype is torch.bool else 7, sizes, generator=generator).to(dtype)
    return made.to(device)


def all_reduce(dtype: torch.dtype, op: ReduceOp, size: int, group: dist.ProcessGroup | None) -> Case:
    def run(device: str) -> object:
        t = data(device, dtype, size)
        dist.all_reduce(t, op, group=group)
        return t

    return run


def reduce(dtype: torch.dtype, op: ReduceOp, size: int, root: int) -> Case:
    def run(device: str) -> object:
        t = data(device, dtype, size)
        dist.reduce(t, root, op)
        return t if root == RANK else None

    return run


def reduce_scatter(dtype: torch.dtype, op: ReduceOp, size: int) -> Case:
    def run(device: str) -> object:
        result = torch.empty(size, dtype=dtype, device=device)
        dist.reduce_scatter_tensor(result, data(device, dtype, size * RANKS), op)
        return result

    return run


def reduce_scatter_list(dtype: torch.dtype) -> Case:
    def run(device: str) -> object:
        result = torch.empty(3, dtype=dtype, device=device)
        parts = [data(device, dtype, 3, seed=i) for i in range(RANKS)]
        if device == "cpu":  # gloo adds up a list in another order than a tensor
            dist.reduce_scatter_tensor(result, torch.cat(parts))
        else:
            dist.reduce_scatter(result, parts)
        return result

    return run


def broadcast(dtype: torch.dtype, size: int, root: int) -> Case:
    def run(device: str) -> object:
        t = data(device, dtype, size)
        dist.broadcast(t, root)
        return t

    return run


def all_gather(dtype: torch.dtype, size: int, group: dist.ProcessGroup | None) -> Case:
    def run(device: str) -> object:
        n = dist.get_world_size(group)
        whole = torch.empty(n * size, dtype=dtype, device=device)
        dist.all_gather_into_tensor(whole, data(device, dtype, size), group=group)
        parts = [torch.empty(size, dtype=dtype, device=device) for _ in range(n)]
        dist.all_gather(parts, data(device, dtype, size, seed=1), group=group)
        return [whole, *parts]

    return run


def gather_and_scatter(dtype: torch.dtype, root: int) -> Case:
    def run(device: str) -> object:
        at_root = root == RANK
        parts = [torch.empty(2, 3, dtype=dtype, device=device) for _ in range(RANKS)] if at_root else None
        dist.gather(data(device, dtype, 2, 3), parts, root)
        result = torch.empty(2, 3, dtype=dtype, device=device)
        dist.scatter(result, [data(device, dtype, 2, 3, seed=i) for i in range(RANKS)] if at_root else None, root)
        return [*(parts or []), result]

    return run


def all_to_all(dtype: torch.dtype) -> Case:
    """Equal parts, and as many for each pair of ranks as its numbers say."""

    def run(device: str) -> object:
        equal = torch.empty(2 * RANKS, dtype=dtype, device=device)
        dist.all_to_all_single(equal, data(device, dtype, 2 * RANKS))
        sent = [(RANK + i) % 3 for i in range(RANKS)]
        received = [(RANK + i) % 3 for i in range(RANKS)]
        uneven = torch.empty(sum(received), 2, dtype=dtype, device=device)
        dist.all_to_all_single(uneven, data(device, dtype, sum(sent), 2, seed=1), received, sent)
        return [equal, uneven]

    return run


def ring(dtype: torch.dtype, size: int) -> Case:
    def run(device: str) -> object:
        after, before = (RANK + 1) % RANKS, (RANK - 1) % RANKS
        first, second = (torch.empty(size, dtype=dtype, device=device) for _ in range(2))
        operations = [
            dist.P2POp(dist.isend, data(device, dtype, size), after),
            dist.P2POp(dist.irecv, first, before),
        ]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        if RANK % 2:
            dist.recv(second, before)
            dist.send(data(device, dtype, size, seed=1), after)
        else:
            dist.send(data(device, dtype, size, seed=1), after)
            dist.recv(second, before)
        return [first, second]

    return run


def coalesced(device: str) -> object:
    tensors = [data(device, torch.float32, size, seed=size) for size in (1, 5, 3)]
    if device == "cpu":  # gloo has no coalescing of all_reduce by this manager
        for t in tensors:
            dist.all_reduce(t)
    else:
        with dist._coalescing_manager(device=torch.device("npu", RANK), async_ops=True) as manager:
            for t in tensors:
                dist.all_reduce(t)
        manager.wait()
    return tensors


def average(device: str) -> object:
    t = data(device, torch.float32, 7)
    if device == "cpu":  # which gloo does not know
        dist.all_reduce(t)
        return t / RANKS
    dist.all_reduce(t, ReduceOp.AVG)
    return t


def objects(device: str) -> object:
    gathered: list[object] = [None] * RANKS
    dist.all_gather_object(gathered, {"rank": RANK, "of": device})
    return [g["rank"] for g in gathered]  # type: ignore[index]


def asynchronous(device: str) -> object:
    """Three collectives under way at once, waited for in another order, among work of the stream."""
    tensors = [data(device, torch.float32, 1000, seed=i) for i in range(3)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    other = data(device, torch.float32, 10) * 2
    for i in (2, 0, 1):
        works[i].wait()
        tensors[i].mul_(i + 1)
    return [*tensors, other]


def side_streams(device: str) -> object:
    """A collective takes what its stream has computed, and another stream what the collective gives."""
    if device == "cpu":
        t = data(device, torch.float32, 100) + 1
        dist.all_reduce(t)
        return t * 2
    stream, other = torch.npu.Stream(), torch.npu.Stream()
    t = data(device, torch.float32, 100)
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        t = t + 1
        dist.all_reduce(t)
        event = stream.record_event()
    with torch.npu.stream(other):
        other.wait_event(event)
        result = t * 2
    torch.npu.current_stream().wait_stream(other)
    return result


def captured(device: str) -> object:
    """A collective in a captured graph runs with every replay."""
    results = []
    x = data(device, torch.float32, 16)
    if device == "cpu":
        for i in range(3):
            y = (x + i) * 2
            dist.all_reduce(y)
            results.append(y + 1)
        return results
    place = torch.zeros_like(x)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = place * 2
        dist.all_reduce(y)
        z = y + 1
    for i in range(3):
        place.copy_(x + i)
        graph.replay()
        results.append(z.clone())
    return results


def of_dtype(name: str, case: Callable[..., Case], dtype: torch.dtype, *arguments: object) -> tuple[str, Case, Case]:
    reference = REFERENCE.get(dtype, dtype)
    return f"{name} {dtype} {arguments}", case(reference, *arguments), case(dtype, *arguments)


def cases() -> Iterator[tuple[str, Case, Case]]:
    """Every collective with every dtype it takes, also of no elements, and in groups of some of the ranks."""
    halves = [dist.new_group([i for i in range(RANKS) if i % 2 == part]) for part in range(2)]
    mine = halves[RANK % 2]
    for dtype, op, size in itertools.product(REDUCED, OPS, (1, 1000)):
        if dtype in (torch.bfloat16, torch.int16) and op == ReduceOp.PRODUCT:
            continue  # the device refuses it
        yield of_dtype("all_reduce", all_reduce, dtype, op, size, None)
        yield of_dtype("reduce_scatter", reduce_scatter, dtype, op, size)
        yield of_dtype("reduce", reduce, dtype, op, size, RANKS - 1)
    for dtype in MOVED:
        yield of_dtype("broadcast", broadcast, dtype, 5, 1)
        yield of_dtype("all_gather", all_gather, dtype, 5, None)
        yield of_dtype("all_gather of half the ranks", all_gather, dtype, 5, mine)
        yield of_dtype("gather and scatter", gather_and_scatter, dtype, 1)
        yield of_dtype("all_to_all", all_to_all, dtype)
        yield of_dtype("ring", ring, dtype, 100_000)
    yield of_dtype("reduce_scatter of a list", reduce_scatter_list, torch.float32)
    yield of_dtype("all_reduce of half the ranks", all_reduce, torch.float32, ReduceOp.SUM, 100, mine)
    yield of_dtype("all_reduce of no elements", all_reduce, torch.float32, ReduceOp.SUM, 0, None)
    for case in (coalesced, average, objects, asynchronous, side_streams, captured):
        yield case.__name__, case, case


def same(a: object, b: object) -> bool:
    """Whether two results are equal to the bit, NaN included."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        a, b = a.cpu(), b.cpu()
        return (
            REFERENCE.get(b.dtype, b.dtype) == a.dtype
            and a.shape == b.shape
            and torch.equal(a.nan_to_num(), b.nan_to_num())
        )
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def main() -> None:
    """Run every case on both devices; a difference names its case and ends the process with 1."""
    global RANK, RANKS
    dist.init_process_group("cpu:gloo,npu:hccl")
    RANK, RANKS = dist.get_rank(), dist.get_world_size()
    torch.npu.set_device(RANK)
    wrong = []
    count = 0
    for name, reference, case in cases():
        expected, found = reference("cpu"), case("npu")
        count += 1
        if not same(expected, found):
            wrong.append(f"rank {RANK}: {name}: cpu {expected}, npu {found}")
    dist.barrier()
    dist.destroy_process_group()
    print("\n".join(wrong) or f"rank {RANK}: {count} cases are equal", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
