"""Attention of inference: prompts, single tokens, and both in one operator, with key-value caches in pages.

Every sequence of a batch is computed alone, so that ragged lengths, pages and lists of caches are the same thing: keys and
values of one sequence as [heads, length, head dimension].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.ops.registry import host_kernel

T = torch.Tensor

_UNBOUNDED = 2147483647
#: The query's layout in a layout's name, and the output's.
_LAYOUTS = {
    **{name: (name, name) for name in ("BSH", "BSND", "BNSD", "TND", "NTD", "NSD")},
    **{f"{q}_{out}": (q, out) for q, out in (("BNSD", "BSND"), ("BSH", "BNSD"), ("BSND", "BNSD"), ("NTD", "TND"))},
    **{f"{q}_{out}": (q, out) for q, out in (("BSH", "NBSD"), ("BSND", "NBSD"), ("BNSD", "NBSD"), ("TND", "NTD"))},
}
#: Numbers that a page has beside each other in the layout of matrix units.
_FRACTAL = 16


@dataclass(frozen=True, slots=True)
class Sparsity:
    """Which keys a query attends to."""

    mask: T | None
    mode: int
    before: int
    after: int

    def __post_init__(self) -> None:
        if self.mode not in (0, 1, 2, 3, 4):
            raise ValueError(f"sparse_mode {self.mode} is not supported; 0, 1, 2, 3 and 4 are")
        if self.mode and self.mask is None:
            raise ValueError(f"sparse_mode {self.mode} needs atten_mask")
        if self.mode == 4 and self.before + self.after < 0:
            raise ValueError(f"pre_tokens {self.before} and next_tokens {self.after}: the band is empty")

    def masked(self, batch: int, queries: int, keys: int) -> T | None:
        """What a sequence's queries do not attend to, as [queries, keys]; None where they attend to all."""
        if self.mask is None:
            return None
        if self.mode in (2, 3, 4):
            check_triangle(self.mask, self.mode)
        if self.mode in (0, 1):
            masked = self._given(batch, queries, keys)
            if self.mode == 0 and queries > 1:
                masked = masked | _outside(queries, keys, 0, self.before, self.after, masked.device)
            return masked
        if queries == 1 and keys and self.mode != 4:
            return None if self.mode == 3 else _outside(1, keys, 0, _UNBOUNDED, 0, self.mask.device)
        shift = keys - queries if self.mode in (3, 4) else 0
        before, after = (self.before, self.after) if self.mode == 4 else (_UNBOUNDED, 0)
        return _outside(queries, keys, shift, before, after, self.mask.device)

    def _given(self, batch: int, queries: int, keys: int) -> T:
        assert self.mask is not None
        mask = self.mask
        if mask.dim() == 2 and queries == 1 and mask.size(0) != 1:  # [batch, keys]
            mask = mask[batch % mask.size(0)].unsqueeze(0)
        while mask.dim() > 2:
            mask = mask[batch if mask.size(0) > 1 else 0]
        if mask.size(0) < queries or mask.size(1) < keys:
            raise ValueError(
                f"atten_mask of shape {tuple(self.mask.shape)} is smaller than {queries} queries and {keys} keys"
            )
        return mask[:queries, :keys].bool()


def check_triangle(mask: T, mode: int, rows: int = 2048) -> None:
    """Refuse a mask that has not the size of those that stand for masks of any size.

    Raises:
        ValueError: it has not.
    """
    if mask.shape[-2:] != (rows, 2048) or mask.numel() != rows * 2048:
        raise ValueError(f"atten_mask of shape {tuple(mask.shape)}: sparse_mode {mode} needs ({rows}, 2048)")


def _outside(queries: int, keys: int, shift: int, before: int, after: int, device: torch.device) -> T:
    distance = torch.arange(keys, device=device) - torch.arange(queries, device=device).unsqueeze(1) - shift
    return (distance > after) | (distance < -before)


def attend(q: T, k: T, v: T, scale: float, bias: T | None, masked: T | None, sink: T | None = None) -> tuple[T, T]:
    """Attention of one sequence, [heads, queries, dimension], in float32, and the logarithm of the softmax's sum.

    Queries that attend to nothing have zeros, and infinity for the logarithm.
    """
    heads, queries, _ = q.shape
    # The heads that share keys are rows of one product.
    scores = q.float().reshape(k.size(0), -1, q.size(-1)) @ k.float().transpose(-1, -2) * scale
    scores = scores.reshape(heads, queries, k.size(1))
    if bias is None and masked is None and sink is None and scores.size(-1):  # as in a step that decodes one token
        y = torch.softmax(scores, -1).reshape(v.size(0), -1, v.size(1)) @ v.float()
        return y.reshape(heads, queries, v.size(-1)), scores.logsumexp(-1, keepdim=True)
    if bias is not None:
        scores = scores + bias.float()
    if masked is not None:
        scores = scores.masked_fill(masked, -math.inf)
    if scores.size(-1) == 0:
        return scores.new_zeros(*scores.shape[:-1], v.size(-1)), scores.new_full((*scores.shape[:-1], 1), math.inf)
    top = scores.amax(-1, keepdim=True)
    empty = top == -math.inf
    if sink is not None:
        sink = sink.float().reshape(-1, 1, 1)
        top = torch.maximum(top, sink)
    top = torch.where(top == -math.inf, 0, top)
    weights = torch.exp(scores - top)
    total = weights.sum(-1, keepdim=True)
    if sink is not None:
        total = total + torch.exp(sink - top)
    lse = torch.where(empty, math.inf, top + torch.log(total))
    y = (weights.reshape(v.size(0), -1, v.size(1)) @ v.float()).reshape(heads, queries, v.size(-1))
    return y / torch.where(total == 0, 1, total), lse


@dataclass(frozen=True, slots=True)
class _Query:
    """A query in any layout."""

    tensor: T
    layout: str
    heads: int
    lengths: list[int] | None

    def __post_init__(self) -> None:
        dims = 3 if self.layout in ("BSH", "TND", "NTD", "NSD") else 4
        if self.tensor.dim() != dims:
            raise ValueError(
                f"query of shape {tuple(self.tensor.shape)} has {self.tensor.dim()} dimensions; layout {self.layout} has {dims}"
            )
        if self.heads <= 0:
            raise ValueError(f"num_heads {self.heads} is not positive")
        if self.layout != "BSH" and self.tensor.size(self.layout.index("N")) != self.heads:
            raise ValueError(
                f"num_heads {self.heads} is not the N of query {tuple(self.tensor.shape)} in layout {self.layout}"
            )
        if self.layout == "BSH" and self.tensor.size(2) % self.heads:
            raise ValueError(f"H of query {tuple(self.tensor.shape)} is no multiple of num_heads {self.heads}")
        if "T" in self.layout and self.lengths is None and not self.tensor.is_meta:
            raise ValueError(f"layout {self.layout} needs actual_seq_lengths")

    def padded(self) -> T:
        """As [batch, heads, length, dimension]; of layouts with T the batch is one."""
        return as_bnsd(self.tensor, self.layout, self.heads)

    def spans(self, batch: int, length: int) -> list[tuple[int, int, int]]:
        """Of each sequence the row of the padded tensor, its beginning and its end."""
        if "T" in self.layout:
            ends = self.lengths or []
            starts = [0, *ends[:-1]]
            if any(start > end for start, end in zip(starts, ends, strict=True)) or (ends and ends[-1] > length):
                raise ValueError(f"actual_seq_lengths {ends} must not fall, nor exceed T, {length}")
            return [(0, start, end) for start, end in zip(starts, ends, strict=True)]
        lengths = per_batch(self.lengths, batch, length, "actual_seq_lengths")
        return [(row, 0, used) for row, used in enumerate(lengths)]


def as_bnsd(x: T, layout: str, heads: int) -> T:
    """A tensor of any layout as [batch, heads, length, dimension]."""
    match layout:
        case "BSH":
            return x.reshape(x.size(0), x.size(1), heads, -1).transpose(1, 2)
        case "BSND":
            return x.transpose(1, 2)
        case "BNSD":
            return x
        case "TND":
            return x.transpose(0, 1).unsqueeze(0)
    return x.unsqueeze(0)  # NTD, NSD


def from_bnsd(x: T, layout: str) -> T:
    """The reverse of ``as_bnsd``."""
    match layout:
        case "BSH":
            return x.transpose(1, 2).flatten(2)
        case "BSND":
            return x.transpose(1, 2).contiguous()
        case "BNSD":
            return x
        case "NBSD":
            return x.transpose(0, 1).contiguous()
        case "TND":
            return x[0].transpose(0, 1).contiguous()
    return x[0]


def per_batch(lengths: list[int] | None, batch: int, most: int, name: str) -> list[int]:
    """A length for each sequence: one for all, or as many as there are.

    Raises:
        ValueError: there are fewer, or one is larger than the tensor.
    """
    if lengths is None or not lengths:
        return [most] * batch
    found = lengths * batch if len(lengths) == 1 else lengths[:batch]
    if len(found) < batch:
        raise ValueError(f"{name} has {len(lengths)} numbers; the batch is {batch}")
    if any(not 0 <= length <= most for length in found):
        raise ValueError(f"{name} {found}: each must be from 0 to {most}")
    return found


@dataclass(frozen=True, slots=True)
class _Cache:
    """Keys or values of all sequences."""

    name: str
    tensors: Sequence[T]
    layout: str
    heads: int
    block_table: T | None
    block_size: int

    def check(self, batch: int) -> None:
        """Refuse tensors whose shapes are not those of the layout, or of pages.

        Raises:
            ValueError: with the name, the shape and what is expected.
        """
        if not self.tensors:
            raise ValueError(f"{self.name} has no tensor")
        for x in self.tensors:
            shape, expected = tuple(x.shape), self._expected(x, batch)
            if len(expected) != len(shape) or any(e not in (None, n) for e, n in zip(expected, shape, strict=True)):
                shown = ", ".join("_" if size is None else str(size) for size in expected)
                raise ValueError(f"{self.name} of shape {shape} is not [{shown}]")
            has_width = x.dim() == 3 and (self.block_table is not None or "H" in self.layout)
            if has_width and shape[2] % self.heads:
                raise ValueError(f"{self.name} of shape {shape}: {shape[2]} is no multiple of {self.heads} heads")

    def _expected(self, x: T, batch: int) -> list[int | None]:
        """The sizes that a tensor must have; None is any."""
        if self.block_table is not None:
            pages: dict[int, list[int | None]] = {
                3: [None, self.block_size, None],
                4: [None, self.heads, self.block_size, None],
                5: [None, self.heads, None, self.block_size, None],
            }
            return pages.get(x.dim(), pages[4])
        sizes = {"B": batch if len(self.tensors) == 1 else 1, "N": self.heads}
        return [sizes.get(axis) for axis in self.layout]

    def width(self) -> int:
        """The dimension of a head."""
        x = self.tensors[0]
        if self.block_table is not None and x.dim() == 5:
            return x.size(2) * x.size(4)
        return (
            x.size(-1) // self.heads
            if x.dim() == 3 and (self.layout == "BSH" or self.block_table is not None)
            else x.size(-1)
        )

    def sequence(self, number: int, start: int, length: int) -> T:
        """A sequence as [heads, length, dimension], from ``start``, which is not 0 where sequences follow each other."""
        if self.block_table is not None:
            return self._from_pages(self.block_table[number], length)
        if len(self.tensors) > 1:
            return as_bnsd(self.tensors[number], self.layout, self.heads)[0, :, :length]
        x = as_bnsd(self.tensors[0], self.layout, self.heads)
        return x[0 if "T" in self.layout else number, :, start : start + length]

    def _from_pages(self, pages: T, length: int) -> T:
        x = self.tensors[0]
        count = -(-length // self.block_size) if self.block_size else 0
        if count > pages.numel():
            raise ValueError(
                f"block_table has {pages.numel()} blocks of {self.block_size} for a sequence; {length} tokens need {count}"
            )
        used = pages[:count].tolist()
        if not all(0 <= page < x.size(0) for page in used):
            raise ValueError(f"block_table {used}: {self.name} has blocks 0 to {x.size(0) - 1}")
        blocks = x[used[0]].unsqueeze(0) if count == 1 else x.index_select(0, pages[:count])
        if x.dim() == 5:  # [blocks, heads, dimension / 16, block size, 16]
            blocks = blocks.permute(1, 0, 3, 2, 4).flatten(3)
        elif x.dim() == 4:  # [blocks, heads, block size, dimension]
            blocks = blocks.transpose(0, 1)
        else:  # [blocks, block size, heads * dimension]
            blocks = blocks.unflatten(2, (self.heads, -1)).permute(2, 0, 1, 3)
        return blocks.flatten(1, 2)[:, :length]

    def most(self, number: int) -> int:
        """How many tokens of a sequence there are room for."""
        if self.block_table is not None:
            return self.block_table.size(1) * self.block_size
        x = self.tensors[number] if len(self.tensors) > 1 else self.tensors[0]
        return as_bnsd(x, self.layout, self.heads).size(2)


def _numbers(x: T | None) -> list[int] | None:
    return None if x is None or x.is_meta or x.numel() == 0 else [int(n) for n in x.reshape(-1).tolist()]


@dataclass(frozen=True, slots=True)
class _Dequantiser:
    """Scales and offsets of quantised keys or values, of a mode's shape."""

    scale: T | None
    offset: T | None
    mode: int

    def __call__(self, x: T, batch: int) -> T:
        if self.scale is None:
            return x.float()
        offset = 0 if self.offset is None else self._laid_out(self.offset, x, batch)
        return (x.float() + offset) * self._laid_out(self.scale, x, batch)

    def _laid_out(self, values: T, x: T, batch: int) -> T:
        heads, length, width = x.shape
        values = values.float()
        if self.mode == 0:  # by channel, or one for all
            return values if values.numel() == 1 else values.reshape(heads, 1, width)
        if self.mode == 1:  # by token
            return values.reshape(-1, values.size(-1))[batch, :length].reshape(1, length, 1)
        if self.mode == 2:  # by head
            return values.reshape(heads, 1, 1)
        if self.mode == 3:  # by token and head
            return values.reshape(-1, heads, values.size(-1))[batch, :, :length].unsqueeze(-1)
        raise ValueError(
            f"antiquant mode {self.mode} is not supported; 0 (channel), 1 (token), 2 (head) and 3 (token and head) are"
        )


def _attention(
    query: T,
    key: Sequence[T],
    value: Sequence[T],
    *,
    pse_shift: T | None,
    sparsity: Sparsity,
    lengths: T | None,
    kv_lengths: T | None,
    block_table: T | None,
    block_size: int,
    heads: int,
    kv_heads: int,
    layout: str,
    scale: float,
    ropes: tuple[T, T] | None = None,
    dequantisers: tuple[_Dequantiser, _Dequantiser] = (_Dequantiser(None, None, 0), _Dequantiser(None, None, 0)),
    sink: T | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[T, T]:
    """Attention in the layout of the output, and the logarithm of the softmax's sum, [batch, heads, queries, 1] or [T, heads, 1]."""
    if layout not in _LAYOUTS:
        raise ValueError(f"input_layout {layout!r} is not one of {', '.join(_LAYOUTS)}")
    q_layout, out_layout = _LAYOUTS[layout]
    kv_heads = kv_heads or heads
    if heads % kv_heads:
        raise ValueError(f"num_key_value_heads {kv_heads} does not divide num_heads {heads}")
    source = _Query(query, q_layout, heads, _numbers(lengths))
    if block_table is not None and block_size <= 0:
        raise ValueError(f"block_size {block_size} is not positive; block_table needs it")
    keys, values = (
        _Cache(name, tensors, q_layout, kv_heads, block_table, block_size)
        for name, tensors in (("key", key), ("value", value))
    )
    padded = source.padded()
    batch, _, length, width = padded.shape
    _check_caches(keys, values, batch, width)
    _check_companions(query, key[0], block_table, ropes, sink, heads)
    out = padded.new_zeros(batch, heads, length, values.width(), dtype=dtype or query.dtype)
    lse = padded.new_full((batch, heads, length, 1), math.inf, dtype=torch.float32)
    if not query.is_meta:
        kv_spans = _kv_spans(source, keys, _numbers(kv_lengths), batch)
        rotated = None if ropes is None else as_bnsd(ropes[0], q_layout, heads)
        rope_cache = (
            None if ropes is None else _Cache("key_rope", [ropes[1]], q_layout, kv_heads, block_table, block_size)
        )
        for number, (row, start, end) in enumerate(source.spans(batch, length)):
            kv_start, kv_length = kv_spans(number)
            q = padded[row, :, start:end]
            k = dequantisers[0](keys.sequence(number, kv_start, kv_length), number)
            v = dequantisers[1](values.sequence(number, kv_start, kv_length), number)
            if rotated is not None and rope_cache is not None:
                q = torch.cat([q, rotated[row, :, start:end]], -1)
                k = torch.cat([k, rope_cache.sequence(number, kv_start, kv_length).float()], -1)
            bias = None if pse_shift is None else _bias(pse_shift, number, end - start, kv_length)
            masked = sparsity.masked(number, end - start, kv_length)
            y, logarithm = attend(q, k, v, scale, bias, masked, sink)
            out[row, :, start:end] = y.to(out.dtype)
            lse[row, :, start:end] = logarithm
    return from_bnsd(out, out_layout), from_bnsd(lse, "TND") if "T" in q_layout else lse


def _check_caches(keys: _Cache, values: _Cache, batch: int, width: int) -> None:
    """Refuse keys and values that do not fit each other, or the queries."""
    keys.check(batch)
    values.check(batch)
    if keys.width() != width:
        raise ValueError(
            f"key of shape {tuple(keys.tensors[0].shape)} has heads of {keys.width()}; the query's have {width}"
        )
    shapes = [[tuple(x.shape) for x in cache.tensors] for cache in (keys, values)]
    if [shape[:-1] for shape in shapes[0]] != [shape[:-1] for shape in shapes[1]] and keys.tensors[0].dim() != 5:
        raise ValueError(f"key {shapes[0]} and value {shapes[1]} differ in more than the last dimension")


def _check_companions(
    query: T, key: T, block_table: T | None, ropes: tuple[T, T] | None, sink: T | None, heads: int
) -> None:
    """Refuse what belongs to queries and keys and has another shape."""
    if block_table is not None and block_table.dim() != 2:
        raise ValueError(f"block_table of shape {tuple(block_table.shape)} is not [batch, blocks of a sequence]")
    for name, x, rope in (("query", query, ropes and ropes[0]), ("key", key, ropes and ropes[1])):
        if rope is not None and rope.shape[:-1] != x.shape[:-1] and x.dim() != 5:
            raise ValueError(
                f"{name}_rope of shape {tuple(rope.shape)} and {name} of shape {tuple(x.shape)} differ in more than the last dimension"
            )
    if sink is not None and sink.shape != (heads,):
        raise ValueError(f"learnable_sink of shape {tuple(sink.shape)} is not [{heads}], a number for each head")


def _bias(pse_shift: T, number: int, queries: int, keys: int) -> T:
    bias = pse_shift[number if pse_shift.size(0) > 1 else 0]
    if bias.size(-2) < queries or bias.size(-1) < keys:
        raise ValueError(
            f"pse_shift of shape {tuple(pse_shift.shape)} is smaller than {queries} queries and {keys} keys"
        )
    return bias[:, :queries, :keys]


class _kv_spans:  # noqa: N801
    """Where a sequence's keys begin and how many there are."""

    def __init__(self, query: _Query, cache: _Cache, lengths: list[int] | None, batch: int) -> None:
        self.cache = cache
        self.batch = len(query.lengths or []) if "T" in query.layout else batch
        self.follow = "T" in query.layout and cache.block_table is None
        if self.follow:
            if lengths is None or len(lengths) < self.batch:
                raise ValueError(
                    f"layout {query.layout} needs actual_seq_lengths_kv with a number for each of {self.batch} sequences"
                )
            ends, total = lengths[: self.batch], cache.most(0)
            if any(a > b for a, b in zip([0, *ends], ends, strict=False)) or ends[-1] > total:
                raise ValueError(f"actual_seq_lengths_kv {ends} must not fall, nor exceed T, {total}")
            self.ends = ends
        else:
            if cache.block_table is not None and lengths is None:
                raise ValueError("block_table needs actual_seq_lengths_kv")
            if cache.block_table is not None and cache.block_table.size(0) < self.batch:
                raise ValueError(f"block_table has {cache.block_table.size(0)} rows; the batch is {self.batch}")
            if len(cache.tensors) not in (1, self.batch):
                raise ValueError(
                    f"{cache.name} has {len(cache.tensors)} tensors; 1 or the batch, {self.batch}, are supported"
                )
            most = max(cache.most(n) for n in range(len(cache.tensors)))
            given = per_batch(lengths, self.batch, most, "actual_seq_lengths_kv")
            self.lengths = [min(used, cache.most(n)) for n, used in enumerate(given)]

    def __call__(self, number: int) -> tuple[int, int]:
        if not self.follow:
            return 0, self.lengths[number]
        start = self.ends[number - 1] if number else 0
        return start, self.ends[number] - start


def _reject(**inputs: T | None) -> None:
    present = [name for name, value in inputs.items() if value is not None]
    if present:
        raise ValueError(f"{', '.join(present)}: not supported on the host")


def _quantised(out: T, layout: str, heads: int, scale: T | None, offset: T | None) -> T:
    """The output as int8, by one scale, or by one for each of its channels."""
    if scale is None:
        return out
    output = _LAYOUTS[layout][1]
    width = out.size(-1) // (heads if output == "BSH" else 1)

    def along(values: T) -> T:
        if values.numel() == 1:
            return values.float().reshape(())
        by_channel = values.float().reshape(heads, width)
        match output:
            case "BSH":
                return by_channel.flatten()
            case "BNSD":
                return by_channel.unsqueeze(1)
            case "NBSD":
                return by_channel[:, None, None]
            case "NTD" | "NSD":
                return by_channel[:, None]
        return by_channel

    scaled = out.float() * along(scale)
    if offset is not None:
        scaled = scaled + along(offset)
    return torch.round(scaled).clamp(-128, 127).to(torch.int8)


@host_kernel("PromptFlashAttention", ignores=("inner_precise",))
def prompt_flash_attention(
    query: T,
    key: T,
    value: T,
    pse_shift: T | None = None,
    atten_mask: T | None = None,
    actual_seq_lengths: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    deq_scale1: T | None = None,
    quant_scale1: T | None = None,
    deq_scale2: T | None = None,
    quant_scale2: T | None = None,
    quant_offset2: T | None = None,
    *,
    num_heads: int,
    scale_value: float = 1.0,
    pre_tokens: int = 214748647,
    next_tokens: int = 0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
) -> T:
    _reject(deq_scale1=deq_scale1, quant_scale1=quant_scale1, deq_scale2=deq_scale2)
    y, _ = _attention(
        query,
        [key],
        [value],
        pse_shift=pse_shift,
        sparsity=Sparsity(atten_mask, sparse_mode, pre_tokens, next_tokens),
        lengths=actual_seq_lengths,
        kv_lengths=actual_seq_lengths_kv,
        block_table=None,
        block_size=0,
        heads=num_heads,
        kv_heads=num_key_value_heads,
        layout=input_layout,
        scale=scale_value,
    )
    return _quantised(y, input_layout, num_heads, quant_scale2, quant_offset2)


@host_kernel("IncreFlashAttention", dynamic=("key", "value"), ignores=("inner_precise",))
def incre_flash_attention(
    query: T,
    key: list[T],
    value: list[T],
    pse_shift: T | None = None,
    atten_mask: T | None = None,
    actual_seq_lengths: T | None = None,
    dequant_scale1: T | None = None,
    quant_scale1: T | None = None,
    dequant_scale2: T | None = None,
    quant_scale2: T | None = None,
    quant_offset2: T | None = None,
    antiquant_scale: T | None = None,
    antiquant_offset: T | None = None,
    block_table: T | None = None,
    kv_padding_size: T | None = None,
    *,
    num_heads: int,
    scale_value: float = 1.0,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    block_size: int = 0,
) -> T:
    _reject(dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2)
    _reject(kv_padding_size=kv_padding_size)
    y, _ = _attention(
        query,
        key,
        value,
        pse_shift=pse_shift,
        sparsity=Sparsity(atten_mask, 0, _UNBOUNDED, _UNBOUNDED),
        lengths=None,
        kv_lengths=actual_seq_lengths,
        block_table=block_table,
        block_size=block_size,
        heads=num_heads,
        kv_heads=num_key_value_heads,
        layout=input_layout,
        scale=scale_value,
        dequantisers=_joint_dequantisers(antiquant_scale, antiquant_offset, 0),
    )
    return _quantised(y, input_layout, num_heads, quant_scale2, quant_offset2)


def _joint_dequantisers(scale: T | None, offset: T | None, mode: int) -> tuple[_Dequantiser, _Dequantiser]:
    """Those of parameters that have the keys' numbers first, then the values'."""

    def part(x: T | None, number: int) -> T | None:
        return None if x is None else x[number]

    keys, values = (_Dequantiser(part(scale, n), part(offset, n), mode) for n in (0, 1))
    return keys, values


def _has_one_token(query: T, layout: str) -> bool:
    """Whether every sequence has one query, as in a step that decodes: their lengths have no effect then, whatever they are."""
    q_layout, _ = _LAYOUTS.get(layout, ("", ""))
    place = q_layout.find("S")
    return 0 <= place < query.dim() and query.size(place) == 1


@host_kernel("FusedInferAttentionScore", dynamic=("key", "value"), ignores=("inner_precise",))
def fused_infer_attention_score(
    query: T,
    key: list[T],
    value: list[T],
    pse_shift: T | None = None,
    atten_mask: T | None = None,
    actual_seq_lengths: T | None = None,
    actual_seq_lengths_kv: T | None = None,
    dequant_scale1: T | None = None,
    quant_scale1: T | None = None,
    dequant_scale2: T | None = None,
    quant_scale2: T | None = None,
    quant_offset2: T | None = None,
    antiquant_scale: T | None = None,
    antiquant_offset: T | None = None,
    block_table: T | None = None,
    query_padding_size: T | None = None,
    kv_padding_size: T | None = None,
    key_antiquant_scale: T | None = None,
    key_antiquant_offset: T | None = None,
    value_antiquant_scale: T | None = None,
    value_antiquant_offset: T | None = None,
    key_shared_prefix: T | None = None,
    value_shared_prefix: T | None = None,
    actual_shared_prefix_len: T | None = None,
    query_rope: T | None = None,
    key_rope: T | None = None,
    key_rope_antiquant_scale: T | None = None,
    dequant_scale_query: T | None = None,
    learnable_sink: T | None = None,
    q_start_idx: T | None = None,
    kv_start_idx: T | None = None,
    *,
    num_heads: int,
    scale: float = 1.0,
    pre_tokens: int = _UNBOUNDED,
    next_tokens: int = _UNBOUNDED,
    input_layout: str = "BSH",
    num_key_value_heads: int = 0,
    sparse_mode: int = 0,
    block_size: int = 0,
    antiquant_mode: int = 0,
    softmax_lse_flag: bool = False,
    key_antiquant_mode: int = 0,
    value_antiquant_mode: int = 0,
    query_quant_mode: int = 0,
    pse_type: int = 0,
    out_dtype: int | None = None,
) -> tuple[T, T]:
    _reject(dequant_scale1=dequant_scale1, quant_scale1=quant_scale1, dequant_scale2=dequant_scale2)
    _reject(query_padding_size=query_padding_size, kv_padding_size=kv_padding_size)
    _reject(key_shared_prefix=key_shared_prefix, value_shared_prefix=value_shared_prefix)
    _reject(key_rope_antiquant_scale=key_rope_antiquant_scale, dequant_scale_query=dequant_scale_query)
    if query.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise ValueError(f"query of {query.dtype} is not supported; float16 and bfloat16 are")
    if (query_rope is None) != (key_rope is None):
        raise ValueError("query_rope and key_rope are given together or not at all")
    if pse_type or query_quant_mode:
        raise ValueError(f"pse_type {pse_type}, query_quant_mode {query_quant_mode}: not supported on the host; 0 is")
    if key_antiquant_scale is not None:
        dequantisers = (
            _Dequantiser(key_antiquant_scale, key_antiquant_offset, key_antiquant_mode),
            _Dequantiser(value_antiquant_scale, value_antiquant_offset, value_antiquant_mode),
        )
    else:
        dequantisers = _joint_dequantisers(antiquant_scale, antiquant_offset, antiquant_mode)
    y, lse = _attention(
        query,
        key,
        value,
        pse_shift=pse_shift,
        sparsity=Sparsity(atten_mask, sparse_mode, pre_tokens, next_tokens),
        lengths=None if _has_one_token(query, input_layout) and query_rope is None else actual_seq_lengths,
        kv_lengths=actual_seq_lengths_kv,
        block_table=block_table,
        block_size=block_size,
        heads=num_heads,
        kv_heads=num_key_value_heads,
        layout=input_layout,
        scale=scale,
        ropes=None if query_rope is None or key_rope is None else (query_rope, key_rope),
        dequantisers=dequantisers,
        sink=learnable_sink,
        dtype=torch_dtype(out_dtype) if out_dtype and quant_scale2 is None else None,
    )
    y = _quantised(y, input_layout, num_heads, quant_scale2, quant_offset2)
    return y, lse if softmax_lse_flag else lse.new_empty(0)
