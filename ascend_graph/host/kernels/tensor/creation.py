"""Operators that create tensors: filled, counted, triangular, random."""

from __future__ import annotations

import torch

from ascend_graph.host.dtypes import torch_dtype
from ascend_graph.host.kernels.checks import check_choice
from ascend_graph.host.kernels.registry import host_kernel
from ascend_graph.host.kernels.tensor.elementwise import scalar
from ascend_graph.host.kernels.tensor.shape import ints

T = torch.Tensor


@host_kernel("Fill", values=("dims",))
def fill(dims: T, value: T) -> T:
    return value.new_empty(ints(dims)).copy_(scalar(value))


@host_kernel("FillV2D")
def fill_v2d(*, value: float, dims: list[int]) -> T:
    return torch.full(dims, value)


@host_kernel("ZerosLike", shapes_only=True)
def zeros_like(x: T) -> T:
    return torch.zeros(x.shape, dtype=x.dtype)


@host_kernel("OnesLike", shapes_only=True)
def ones_like(x: T) -> T:
    return torch.ones(x.shape, dtype=x.dtype)


@host_kernel("Empty", values=("shape",), ignores=("init",))
def empty(shape: T, *, dtype: int = 3) -> T:
    # GE says nothing of the contents; TorchAir's select_backward needs zeros.
    return torch.zeros(ints(shape), dtype=torch_dtype(dtype))


@host_kernel("Range", values=("start", "limit", "delta"))
def range_(start: T, limit: T, delta: T) -> T:
    dtype = torch.promote_types(torch.promote_types(start.dtype, limit.dtype), delta.dtype)
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=dtype)


@host_kernel("LinSpace", values=("start", "stop", "num"))
def lin_space(start: T, stop: T, num: T) -> T:
    dtype = start.dtype if start.dtype.is_floating_point else torch.float32
    return torch.linspace(start.item(), stop.item(), int(num), dtype=dtype)


@host_kernel("Eye")
def eye(*, num_rows: int, num_columns: int = 0, batch_shape: list[int] = [], dtype: int = 0) -> T:
    one = torch.eye(num_rows, num_columns or num_rows, dtype=torch_dtype(dtype))
    return one.expand(*batch_shape, *one.shape).contiguous()


@host_kernel("Tril")
def tril(x: T, *, diagonal: int = 0) -> T:
    return torch.tril(x, diagonal)


@host_kernel("Triu")
def triu(x: T, *, diagonal: int = 0) -> T:
    return torch.triu(x, diagonal)


@host_kernel("OneHot", values=("depth",))
def one_hot(x: T, depth: T, on_value: T, off_value: T, *, axis: int = -1) -> T:
    classes = torch.arange(int(depth), device=x.device)
    dim = axis % (x.dim() + 1)
    chosen = x.unsqueeze(dim) == classes.reshape(-1, *[1] * (x.dim() - dim))
    return torch.where(chosen, scalar(on_value), scalar(off_value))


# Random numbers. A device derives them from seed and offset with Philox; here they are PyTorch's for the CPU, seeded
# with both: the same graph with the same generator state gives the same numbers, but not those of a device.


def _generator(*state: T) -> torch.Generator:
    seed = 0
    for part in state:
        for value in ints(part):
            seed = (seed * 6364136223846793005 + value + 1442695040888963407) & ((1 << 63) - 1)
    return torch.Generator().manual_seed(seed)


@host_kernel("StatelessRandomUniformV2", values=("shape",))
def stateless_random_uniform(shape: T, key: T, counter: T, alg: T, *, dtype: int = 0) -> T:
    return torch.rand(ints(shape), dtype=torch_dtype(dtype), generator=_generator(key, counter))


@host_kernel("StatelessRandomNormalV2", values=("shape",))
def stateless_random_normal(shape: T, key: T, counter: T, alg: T, *, dtype: int = 0) -> T:
    return torch.randn(ints(shape), dtype=torch_dtype(dtype), generator=_generator(key, counter))


@host_kernel("StatelessBernoulli", values=("shape",))
def stateless_bernoulli(shape: T, prob: T, seed: T, offset: T, *, dtype: int = 0) -> T:
    uniform = torch.rand(ints(shape), generator=_generator(seed, offset))
    return (uniform < prob).to(torch_dtype(dtype))


@host_kernel("SimThreadExponential", writes=("x",))
def sim_thread_exponential(x: T, *, count: int, lambda_: float, seed: int, offset: int) -> T:
    """Fill with exponentially distributed numbers, -ln(1 - u) / lambda of uniform u in (0, 1]."""
    check_choice("count", count, x.numel())
    if lambda_ <= 0:
        raise ValueError(f"lambda {lambda_} must be above 0")
    if not x.is_meta:
        rest = torch.rand(x.shape, generator=_generator(torch.tensor([seed, offset])))  # 1 - u
        x.copy_(-torch.log(rest) / lambda_)
    return x


@host_kernel("StatelessRandperm", values=("n",), ignores=("layout",))
def stateless_randperm(n: T, seed: T, offset: T, *, dtype: int = 9) -> T:
    return torch.randperm(int(n), generator=_generator(seed, offset)).to(torch_dtype(dtype))


@host_kernel("MultinomialWithReplacement")
def multinomial(x: T, seed: T, offset: T, *, numsamples: int, replacement: bool = False) -> T:
    return torch.multinomial(x.float(), numsamples, replacement, generator=_generator(seed, offset))


@host_kernel("StatelessDropOutGenMask", "StatelessDropOutGenMaskV2", values=("shape",))
def stateless_drop_out_gen_mask(shape: T, prob: T, seed: T, seed1: T, offset: T | None = None) -> T:
    count = 1
    for n in ints(shape):
        count *= n
    state = (seed, seed1) if offset is None else (seed, seed1, offset)
    kept = torch.rand(-(-count // 128) * 128, generator=_generator(*state)) < prob.item()
    return _packed(kept)


@host_kernel("DropOutGenMaskV3", values=("shape",))
def drop_out_gen_mask_v3(shape: T, prob: T, *, seed: int = 0, seed2: int = 0) -> T:
    """Draw a byte for each element; without seeds PyTorch's generator chooses."""
    generator = _generator(torch.tensor([seed, seed2])) if seed or seed2 else None
    return (torch.rand(ints(shape), generator=generator) < prob.item()).to(torch.uint8)


_BITS = torch.tensor([1 << i for i in range(8)], dtype=torch.uint8)


def _packed(bits: T) -> T:
    """Pack booleans into bytes, the first in the lowest bit; their number is a multiple of 8."""
    return (bits.reshape(-1, 8) * _BITS).sum(1, dtype=torch.uint8)


@host_kernel("DropOutDoMask")
def drop_out_do_mask(x: T, mask: T, keep_prob: T) -> T:
    # Bytes are bits, whatever their number is; TorchAir's mask for no dropout is booleans, one for each element.
    return _dropped_out(x, mask.reshape(x.shape) if mask.dtype is torch.bool else _unpacked(mask, x), keep_prob)


@host_kernel("DropOutDoMaskV3")
def drop_out_do_mask_v3(x: T, mask: T, keep_prob: T) -> T:
    """Apply a dropout mask with a byte or a boolean for each element."""
    if mask.numel() < x.numel():
        raise ValueError(f"a mask of {mask.numel()} elements is too short; expected at least {x.numel()}")
    return _dropped_out(x, mask.reshape(-1)[: x.numel()].reshape(x.shape), keep_prob)


def _dropped_out(x: T, kept: T, keep_prob: T) -> T:
    return torch.where(kept.bool(), x / scalar(keep_prob), 0).to(x.dtype)


def _unpacked(mask: T, x: T) -> T:
    return bits_of(mask, x.numel()).reshape(x.shape)


def bits_of(mask: T, count: int) -> T:
    """Return the first bits of a mask of bytes, each as a byte; the lowest bit is the first.

    Raises:
        ValueError: there are fewer.
    """
    if mask.numel() * 8 < count:
        raise ValueError(f"a mask of {mask.numel()} bytes is too short for {count} elements; expected a bit for each")
    bits = mask.reshape(-1, 1).view(torch.uint8) & _BITS.to(mask.device)
    return bits.reshape(-1)[:count]
