"""Triton kernels of these tests, as an author writes them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, z, n, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    mask = places < n
    tl.store(z + places, tl.load(x + places, mask) + tl.load(y + places, mask), mask)


@triton.jit
def unmasked_tail(x, z, n, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(z + places, tl.load(x + places), places < n)


@triton.jit
def row_softmax(x, y, stride, columns, block: tl.constexpr):
    row = tl.program_id(0)
    places = tl.arange(0, block)
    values = tl.load(x + row * stride + places, places < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * stride + places, powers / tl.sum(powers, 0), places < columns)


@triton.jit
def layer_norm(x, weight, bias, y, columns, eps, block: tl.constexpr):
    row = tl.program_id(0)
    mean = tl.zeros((block,), tl.float32)
    for begin in range(0, columns, block):
        places = begin + tl.arange(0, block)
        mean += tl.load(x + row * columns + places, places < columns, other=0.0).to(tl.float32)
    average = tl.sum(mean, 0) / columns
    variance = tl.zeros((block,), tl.float32)
    for begin in range(0, columns, block):
        places = begin + tl.arange(0, block)
        values = tl.load(x + row * columns + places, places < columns, other=0.0).to(tl.float32)
        centered = tl.where(places < columns, values - average, 0.0)
        variance += centered * centered
    scale = 1 / tl.sqrt(tl.sum(variance, 0) / columns + eps)
    for begin in range(0, columns, block):
        places = begin + tl.arange(0, block)
        mask = places < columns
        values = tl.load(x + row * columns + places, mask, other=0.0).to(tl.float32)
        normal = (values - average) * scale * tl.load(weight + places, mask) + tl.load(bias + places, mask)
        tl.store(y + row * columns + places, normal, mask)


@triton.jit
def matmul(a, b, c, m, n, k, rows: tl.constexpr, cols: tl.constexpr, inner: tl.constexpr):
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    col = tl.program_id(1) * cols + tl.arange(0, cols)
    total = tl.zeros((rows, cols), tl.float32)
    for begin in range(0, k, inner):
        at = begin + tl.arange(0, inner)
        left = tl.load(a + row[:, None] * k + at[None, :], (row[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + col[None, :], (at[:, None] < k) & (col[None, :] < n), other=0.0)
        total += tl.dot(left, right)
    tl.store(c + row[:, None] * n + col[None, :], total, (row[:, None] < m) & (col[None, :] < n))


@triton.jit
def causal_attention(q, k, v, out, length, scale, block: tl.constexpr, width: tl.constexpr):
    """Flash attention: programs have loops of different lengths."""
    begin = tl.program_id(0) * block
    head = tl.program_id(1).to(tl.int64) * length * width
    queries = tl.make_block_ptr(q + head, (length, width), (width, 1), (begin, 0), (block, width), (1, 0))
    keys = tl.make_block_ptr(k + head, (width, length), (1, width), (0, 0), (width, block), (0, 1))
    values = tl.make_block_ptr(v + head, (length, width), (width, 1), (0, 0), (block, width), (1, 0))
    row = begin + tl.arange(0, block)
    most = tl.full((block,), -float("inf"), tl.float32)
    total = tl.zeros((block,), tl.float32)
    result = tl.zeros((block, width), tl.float32)
    query = tl.load(queries, boundary_check=(0,), padding_option="zero")
    for at in range(0, begin + block, block):
        key = tl.load(keys, boundary_check=(1,), padding_option="zero")
        col = at + tl.arange(0, block)
        scores = tl.dot(query, key) * scale
        scores = tl.where((row[:, None] >= col[None, :]) & (col[None, :] < length), scores, -float("inf"))
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        kept = tl.exp(most - larger)
        total = total * kept + tl.sum(weights, 1)
        value = tl.load(values, boundary_check=(0,), padding_option="zero")
        result = result * kept[:, None] + tl.dot(weights.to(value.dtype), value)
        most = larger
        keys = tl.advance(keys, (0, block))
        values = tl.advance(values, (block, 0))
    written = tl.make_block_ptr(out + head, (length, width), (width, 1), (begin, 0), (block, width), (1, 0))
    tl.store(written, (result / total[:, None]).to(query.dtype), boundary_check=(0,))


@triton.jit
def delta_rule(q, k, v, beta, out, length, chunk: tl.constexpr, width: tl.constexpr):
    """Chunked delta rule: in each chunk a triangular system, between chunks a state of width by width."""
    head = tl.program_id(0) * length
    at, wide = tl.arange(0, chunk), tl.arange(0, width)
    state = tl.zeros((width, width), tl.float32)
    for begin in range(0, length, chunk):
        row = head + begin + at
        mask = (begin + at) < length
        places = row[:, None] * width + wide[None, :]
        query = tl.load(q + places, mask[:, None], other=0.0)
        key = tl.load(k + places, mask[:, None], other=0.0)
        value = tl.load(v + places, mask[:, None], other=0.0)
        rate = tl.load(beta + row, mask, other=0.0)
        below = at[:, None] > at[None, :]
        mixed = tl.where(below, rate[:, None] * tl.dot(key, tl.trans(key)), 0.0)
        new = rate[:, None] * (value - tl.dot(key, state))
        for i in range(1, chunk):  # forward substitution, row after row
            one = tl.sum(tl.where((at == i)[:, None], mixed, 0.0), 0)
            new = tl.where((at == i)[:, None], new - tl.sum(one[:, None] * new, 0)[None, :], new)
        scores = tl.where(at[:, None] >= at[None, :], tl.dot(query, tl.trans(key)), 0.0)
        tl.store(out + places, tl.dot(query, state) + tl.dot(scores, new), mask[:, None])
        state += tl.dot(tl.trans(key), new)


@triton.jit
def largest_and_where(x, values, places, columns: tl.constexpr):
    row = tl.program_id(0)
    data = tl.load(x + row * columns + tl.arange(0, columns))
    value, place = tl.max(data, 0, return_indices=True)
    tl.store(values + row, value)
    tl.store(places + row, place)


@triton.jit
def collatz(x, steps, n):
    """Each program has a loop of its own length, and some return early."""
    program = tl.program_id(0)
    if program >= n:
        return
    value = tl.load(x + program)
    count = 0
    while value > 1:
        if value % 2 == 0:  # noqa: SIM108 - a branch on the device
            value = value // 2
        else:
            value = 3 * value + 1
        count += 1
    tl.store(steps + program, count)


@triton.jit
def count_up(counter, tickets):
    tl.store(tickets + tl.program_id(0), tl.atomic_add(counter, 1))


@triton.jit
def exchange(arrived, x, out):
    """Each program waits for all others, and takes what the one at the other end of the grid wrote."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    tl.store(out + program, tl.load(x + program) * 2)
    tl.atomic_add(arrived, 1)
    while tl.atomic_add(arrived, 0) < programs:
        pass
    tl.store(x + program, tl.load(out + programs - 1 - program))


@triton.jit
def count_followers(counts):
    """Each program waits for the next one with plain volatile loads."""
    program = tl.program_id(0)
    followers = 0
    if program + 1 < tl.num_programs(0):
        while followers == 0:
            followers = tl.load(counts + program + 1, volatile=True)
    tl.store(counts + program, followers + 1)


@triton.jit
def copy_rows(addresses, out, width: tl.constexpr):
    """Copy each row from an address that a table in memory holds."""
    row, columns = tl.program_id(0), tl.arange(0, width)
    source = tl.load(addresses + row).to(tl.pointer_type(tl.float32))
    tl.store(out + row * width + columns, tl.load(source + columns))


@triton.jit
def all_write(out):
    tl.store(out, tl.program_id(0))


@triton.jit
def endless(x):
    value = tl.load(x)
    while value < 10:
        value = tl.load(x)
    tl.store(x, value)


@triton.jit
def endless_spin(x):
    while tl.atomic_add(x, 0.0) < 10:
        pass


@triton.jit
def assembly(x):
    value = tl.load(x + tl.arange(0, 16))
    value = tl.inline_asm_elementwise("ADD $0, $1, $1", "=r,r", [value], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + tl.arange(0, 16), value)
