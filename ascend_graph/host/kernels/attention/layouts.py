"""Layouts of queries, keys and values for inference: dense, packed sequences, lists and pages.

Every sequence of a batch is computed alone. All layouts are then the same thing: keys and values of one sequence as
[heads, length, head dimension].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ascend_graph.host.kernels.checks import check_shape
from ascend_graph.host.kernels.quantization.antiquantization import Dequantizer

T = torch.Tensor

#: Layouts of the query and of the output, by the name of a layout.
LAYOUTS = {
    **{name: (name, name) for name in ("BSH", "BSND", "BNSD", "TND", "NTD", "NSD")},
    **{f"{q}_{out}": (q, out) for q, out in (("BNSD", "BSND"), ("BSH", "BNSD"), ("BSND", "BNSD"), ("NTD", "TND"))},
    **{f"{q}_{out}": (q, out) for q, out in (("BSH", "NBSD"), ("BSND", "NBSD"), ("BNSD", "NBSD"), ("TND", "NTD"))},
}


@dataclass(frozen=True, slots=True)
class Query:
    """Query in any layout."""

    tensor: T
    layout: str
    heads: int
    lengths: list[int] | None

    def __post_init__(self) -> None:
        dims = 3 if self.layout in ("BSH", "TND", "NTD", "NSD") else 4
        if self.tensor.dim() != dims:
            raise ValueError(
                f"query of shape {tuple(self.tensor.shape)} has {self.tensor.dim()} dimensions; expected {dims}, as "
                f"layout {self.layout} has"
            )
        if self.heads <= 0:
            raise ValueError(f"num_heads {self.heads} must be positive")
        if self.layout != "BSH" and self.tensor.size(self.layout.index("N")) != self.heads:
            raise ValueError(
                f"num_heads {self.heads}: expected N of query {tuple(self.tensor.shape)} in layout {self.layout}"
            )
        if self.layout == "BSH" and self.tensor.size(2) % self.heads:
            raise ValueError(f"H of query {tuple(self.tensor.shape)} must be a multiple of num_heads, {self.heads}")
        if "T" in self.layout and self.lengths is None and not self.tensor.is_meta:
            raise ValueError(f"layout {self.layout} needs actual_seq_lengths")

    def padded(self) -> T:
        """Return the query as [batch, heads, length, dimension]; in layouts with T the batch is one."""
        return as_bnsd(self.tensor, self.layout, self.heads)

    def spans(self, batch: int, length: int) -> list[tuple[int, int, int]]:
        """Return, for each sequence, its row of the padded tensor, its start and its end."""
        if "T" in self.layout:
            ends = self.lengths or []
            starts = [0, *ends[:-1]]
            if any(start > end for start, end in zip(starts, ends, strict=True)) or (ends and ends[-1] > length):
                raise ValueError(f"actual_seq_lengths {ends} must not fall, nor exceed T, {length}")
            return [(0, start, end) for start, end in zip(starts, ends, strict=True)]
        lengths = per_batch(self.lengths, batch, length, "actual_seq_lengths")
        return [(row, 0, used) for row, used in enumerate(lengths)]


def as_bnsd(x: T, layout: str, heads: int) -> T:
    """Return a tensor of any layout as [batch, heads, length, dimension]."""
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
    """Undo ``as_bnsd``: return a tensor in ``layout``."""
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
    """Return a length for each sequence, given one for all or one for each.

    Raises:
        ValueError: there are fewer, or one is larger than the tensor.
    """
    if lengths is None or not lengths:
        return [most] * batch
    found = lengths * batch if len(lengths) == 1 else lengths[:batch]
    if len(found) < batch:
        raise ValueError(f"{name} has {len(lengths)} elements; expected {batch}, one for each sequence of the batch")
    if any(not 0 <= length <= most for length in found):
        raise ValueError(f"{name} {found}: each must be from 0 to {most}")
    return found


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys or values of all sequences."""

    name: str
    tensors: Sequence[T]
    layout: str
    heads: int
    block_table: T | None
    block_size: int

    def check(self, batch: int) -> None:
        """Refuse tensors whose shapes do not fit the layout or the pages.

        Raises:
            ValueError: with the name, the shape and what is expected.
        """
        if not self.tensors:
            raise ValueError(f"{self.name} has no tensor; expected at least one")
        for x in self.tensors:
            shape, expected = tuple(x.shape), self._expected(x, batch)
            check_shape(self.name, x, tuple("_" if size is None else size for size in expected))
            has_width = x.dim() == 3 and (self.block_table is not None or "H" in self.layout)
            if has_width and shape[2] % self.heads:
                raise ValueError(
                    f"{self.name} of shape {shape}: the last dimension must be a multiple of {self.heads}, the number "
                    "of heads"
                )

    def check_dequantizer(self, dequantizer: Dequantizer) -> None:
        """Refuse scales and offsets that do not fit the tensors.

        Raises:
            ValueError: with the name, the shape and what is expected.
        """
        x, in_pages = self.tensors[0], self.block_table is not None
        if self.block_table is not None:
            batch: int | None = self.block_table.size(0)
        elif len(self.tensors) > 1:
            batch = len(self.tensors)
        else:
            batch = x.size(0) if self.layout[0] == "B" else None
        tokens = max(map(self.most, range(len(self.tensors))))
        dequantizer.check(self.name, x, batch, self.heads, tokens, self.width(), in_pages)

    def _expected(self, x: T, batch: int) -> list[int | None]:
        """Return the sizes that a tensor must have; None accepts any size."""
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
        """Return the head dimension."""
        x = self.tensors[0]
        if self.block_table is not None and x.dim() == 5:
            return x.size(2) * x.size(4)
        return (
            x.size(-1) // self.heads
            if x.dim() == 3 and (self.layout == "BSH" or self.block_table is not None)
            else x.size(-1)
        )

    def sequence(self, number: int, start: int, length: int) -> T:
        """Return a sequence as [heads, length, dimension], from ``start`` (not 0 in packed layouts)."""
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
            raise ValueError(f"block_table {used}: expected blocks 0 to {x.size(0) - 1}, which {self.name} has")
        # As views, if possible: of what is copied a sequence may need a small part.
        blocks = x[used[0]].unsqueeze(0) if count == 1 else x.index_select(0, pages[:count])
        if x.dim() == 3:  # [blocks, block size, heads * dimension]
            rows = blocks.flatten(0, 1)[:length]
            return rows.view(length, self.heads, x.size(2) // self.heads).transpose(0, 1)
        if x.dim() == 5:  # [blocks, heads, dimension / 16, block size, 16]
            blocks = blocks.permute(0, 1, 3, 2, 4).flatten(3)
        if count == 1:  # [blocks, heads, block size, dimension]
            return blocks[0, :, :length]
        return blocks.transpose(0, 1).flatten(1, 2)[:, :length]

    def most(self, number: int) -> int:
        """Return the number of tokens that a sequence has room for."""
        if self.block_table is not None:
            return self.block_table.size(1) * self.block_size
        x = self.tensors[number] if len(self.tensors) > 1 else self.tensors[0]
        return as_bnsd(x, self.layout, self.heads).size(2)


class KeySpans:
    """Start and number of a sequence's keys."""

    def __init__(self, query: Query, cache: Cache, lengths: list[int] | None, batch: int) -> None:
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
                raise ValueError(
                    f"block_table has {cache.block_table.size(0)} rows; expected {self.batch}, one for each sequence "
                    "of the batch"
                )
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


def quantized_output(out: T, layout: str, heads: int, scale: T | None, offset: T | None) -> T:
    """Return the output as int8, quantized by one scale or by one for each of its channels."""
    if scale is None:
        return out
    output = LAYOUTS[layout][1]
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
