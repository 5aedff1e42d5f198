"""Everyday operators for the search for relations: kernels as authors write them, and the calls that they accept.

Each has a schema, a kernel that refuses invalid calls, and a function that draws from all valid calls. Every second one is
held out: the search is developed with the others. ``everyday_later.py`` has more, unknown to the search when written.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True)
class Everyday:
    """Everyday operator."""

    schema: str
    kernel: Callable[..., Any]
    #: Function that draws a random call that the kernel accepts.
    call: Callable[[random.Random], Sequence[Any]]
    #: Held-out set, unused while the search was developed: ``aside``; ``third`` or ``fourth``, written later; or empty.
    kept: str

    @property
    def name(self) -> str:
        return self.schema.partition("(")[0]


OPERATORS: list[Everyday] = []

Drawn = Callable[[random.Random], Sequence[Any]]


def operator(schema: str, call: Drawn, kept: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add an operator to the list."""

    def add(kernel: Callable[..., Any]) -> Callable[..., Any]:
        OPERATORS.append(Everyday(schema, kernel, call, ("", "aside")[len(OPERATORS) % 2] if kept is None else kept))
        return kernel

    return add


def f(*shape: int) -> torch.Tensor:
    """Return a tensor of floats."""
    return torch.rand(shape)


def i(*shape: int, below: int = 2) -> torch.Tensor:
    """Return a tensor of indices."""
    return torch.randint(0, below, shape)


def n(r: random.Random, low: int = 2, high: int = 11) -> int:
    """Draw a size."""
    return r.randint(low, high)


def s(r: random.Random, low: int = 0, high: int = 3) -> list[int]:
    """Draw some sizes."""
    return [n(r, 1, 6) for _ in range(r.randint(low, high))]


def need(condition: bool, what: str = "invalid") -> None:
    """Raise ValueError unless the condition holds, as TORCH_CHECK does."""
    if not condition:
        raise ValueError(what)


@operator("rotate_half(Tensor x) -> Tensor", lambda r: (f(*s(r), 2 * n(r)),))
def _(x):
    need(x.dim() >= 1 and x.shape[-1] % 2 == 0, "the last dimension must be even")
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


@operator("glu_halves(Tensor x) -> Tensor", lambda r: (f(*s(r), 2 * n(r)),))
def _(x):
    need(x.dim() >= 1 and x.shape[-1] % 2 == 0)
    a, b = x.chunk(2, -1)
    return a * b.sigmoid()


@operator(
    "depth_to_space(Tensor x, int block) -> Tensor",
    lambda r: (lambda k: (f(n(r), n(r) * k * k, n(r), n(r)), k))(r.choice((1, 2, 3))),
)
def _(x, block):
    need(x.dim() == 4 and block >= 1 and x.shape[1] % (block * block) == 0)
    return F.pixel_shuffle(x, block).clone()


@operator(
    "space_to_depth(Tensor x, int block) -> Tensor",
    lambda r: (lambda k: (f(n(r), n(r), n(r) * k, n(r) * k), k))(r.choice((1, 2, 3))),
)
def _(x, block):
    need(x.dim() == 4 and block >= 1 and x.shape[2] % block == 0 and x.shape[3] % block == 0)
    return F.pixel_unshuffle(x, block).clone()


@operator(
    "group_norm_stats(Tensor x, Tensor gamma, Tensor beta, int groups, float eps=1e-5) -> (Tensor, Tensor, Tensor)",
    lambda r: (lambda g, k: (f(n(r), g * k, *s(r)), f(g * k), f(g * k), g))(n(r, 1, 4), n(r, 1, 4)),
)
def _(x, gamma, beta, groups, eps=1e-5):
    need(x.dim() >= 2 and groups >= 1 and x.shape[1] % groups == 0 and gamma.shape == beta.shape == (x.shape[1],))
    flat = x.reshape(x.shape[0], groups, -1)
    return F.group_norm(x, groups, gamma, beta, eps) if x.numel() else x.clone(), flat.mean(-1), flat.var(-1)


@operator(
    "rms_norm_any(Tensor x, Tensor gamma, float eps=1e-6) -> (Tensor, Tensor)",
    lambda r: (lambda t: (f(*s(r), *t), f(*t)))(s(r, 1, 2)),
)
def _(x, gamma, eps=1e-6):
    need(1 <= gamma.dim() <= x.dim() and x.shape[x.dim() - gamma.dim() :] == gamma.shape)
    dims = list(range(x.dim() - gamma.dim(), x.dim()))
    rstd = (x.float() ** 2).mean(dims, keepdim=True).add(eps).rsqrt()
    return (x * rstd * gamma).to(x.dtype), rstd


@operator(
    "layer_norm_last(Tensor x, Tensor? weight=None, Tensor? bias=None) -> Tensor",
    lambda r: (lambda k: (f(*s(r), k), r.choice((None, f(k))), r.choice((None, f(k)))))(n(r)),
)
def _(x, weight=None, bias=None):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


@operator("lookup(Tensor table, Tensor ids) -> Tensor", lambda r: (f(n(r), n(r)), i(*s(r))))
def _(table, ids):
    need(table.dim() == 2 and ids.dtype in (torch.int32, torch.int64))
    return table[ids.long()]


@operator(
    "index_add_rows(Tensor x, Tensor index, Tensor src) -> Tensor",
    lambda r: (lambda t, k: (f(n(r), *t), i(k), f(k, *t)))(s(r), n(r)),
)
def _(x, index, src):
    need(index.dim() == 1 and x.dim() >= 1 and src.dim() == x.dim() and index.dtype == torch.int64)
    need(src.shape[0] == index.shape[0] and src.shape[1:] == x.shape[1:])
    return x.index_add(0, index, src)


@operator(
    "frames(Tensor signal, int size, int step) -> Tensor",
    lambda r: (lambda k: (f(*s(r), k + n(r, 0, 7)), k, n(r, 1, 4)))(n(r, 1, 5)),
)
def _(signal, size, step):
    need(signal.dim() >= 1 and step > 0 and 0 < size <= signal.shape[-1])
    return signal.unfold(-1, size, step).contiguous()


@operator("pad_to_multiple(Tensor x, int multiple) -> Tensor", lambda r: (f(*s(r), n(r)), n(r, 1, 6)))
def _(x, multiple):
    need(x.dim() >= 1 and multiple >= 1)
    return F.pad(x, (0, -x.shape[-1] % multiple)).clone()


@operator(
    "mean_pool1d(Tensor x, int kernel, int stride, int padding=0) -> Tensor",
    lambda r: (lambda k: (f(n(r), n(r), k + n(r)), k, n(r, 1, 3), r.randint(0, k // 2)))(n(r, 1, 4)),
)
def _(x, kernel, stride, padding=0):
    need(x.dim() == 3)
    return F.avg_pool1d(x, kernel, stride, padding)


@operator(
    "conv1d_same_group(Tensor x, Tensor w, Tensor? bias=None, int stride=1, int padding=0) -> Tensor",
    lambda r: (lambda c, o, k: (f(n(r), c, k + n(r)), f(o, c, k), r.choice((None, f(o))), n(r, 1, 3), n(r, 0, 2)))(
        n(r), n(r), n(r, 1, 4)
    ),
)
def _(x, w, bias=None, stride=1, padding=0):
    need(x.dim() == 3 and w.dim() == 3)
    return F.conv1d(x, w, bias, stride, padding)


@operator(
    "mm_flags(Tensor a, Tensor b, bool trans_a=False, bool trans_b=False) -> Tensor",
    lambda r: (lambda m, k, q, ta, tb: (f(k, m) if ta else f(m, k), f(q, k) if tb else f(k, q), ta, tb))(
        n(r), n(r), n(r), r.random() < 0.5, r.random() < 0.5
    ),
)
def _(a, b, trans_a=False, trans_b=False):
    need(a.dim() == 2 and b.dim() == 2)
    return (a.t() if trans_a else a) @ (b.t() if trans_b else b)


@operator(
    "bmm_nt(Tensor a, Tensor b, float scale=1.0) -> Tensor",
    lambda r: (lambda t, k: (f(*t, n(r), k), f(*t, n(r), k)))(s(r), n(r)),
)
def _(a, b, scale=1.0):
    need(a.dim() >= 2 and a.dim() == b.dim() and a.shape[:-2] == b.shape[:-2])
    return (a @ b.transpose(-1, -2) * scale).to(a.dtype)


@operator(
    "dense(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor",
    lambda r: (lambda k, o: (f(*s(r), k), f(o, k), r.choice((None, f(o)))))(n(r), n(r)),
)
def _(x, weight, bias=None):
    need(x.dim() >= 1 and weight.dim() == 2)
    return F.linear(x, weight, bias)


@operator(
    "concat(Tensor[] xs, int dim=0) -> Tensor",
    lambda r: (lambda a, b, d: ([f(*a, n(r), *b) for _ in range(n(r, 1, 3))], r.choice((d, d - 1 - len(b) - len(a)))))(
        a := s(r, 0, 2), s(r, 0, 2), len(a)
    ),
)
def _(xs, dim=0):
    need(all(x.dim() == xs[0].dim() for x in xs))
    return torch.cat(xs, dim)


@operator(
    "stacked(Tensor[] xs, int axis=0) -> Tensor",
    lambda r: (lambda t: ([f(*t) for _ in range(n(r, 1, 3))], r.randint(-len(t) - 1, len(t))))(s(r)),
)
def _(xs, axis=0):
    return torch.stack(xs, axis)


@operator(
    "split_every(Tensor x, int size, int dim=0) -> Tensor[]",
    lambda r: (lambda t: (f(*t), n(r, 1, 5), r.randrange(-len(t), len(t))))(s(r, 1, 3)),
)
def _(x, size, dim=0):
    need(size > 0)
    return [part.clone() for part in torch.split(x, size, dim)]


@operator(
    "repeat_each(Tensor x, int times, int dim=-1) -> Tensor",
    lambda r: (lambda t: (f(*t), n(r, 1, 4), r.randrange(-len(t), len(t))))(s(r, 1, 3)),
)
def _(x, times, dim=-1):
    need(times >= 1 and x.dim() >= 1)
    return x.repeat_interleave(times, dim)


@operator(
    "resize_by(Tensor x, float scale) -> Tensor", lambda r: (f(n(r), n(r), n(r), n(r)), r.choice((0.5, 1.5, 2.0, 2.5)))
)
def _(x, scale):
    need(x.dim() == 4 and scale > 0)
    return F.interpolate(x, size=[math.floor(x.shape[2] * scale), math.floor(x.shape[3] * scale)])


@operator("upsample(Tensor x, int factor) -> Tensor", lambda r: (f(n(r), n(r), n(r), n(r)), n(r, 1, 4)))
def _(x, factor):
    need(x.dim() == 4 and factor > 0)
    return F.interpolate(x, scale_factor=factor).clone()


@operator("resize_to(Tensor x, int[] size) -> Tensor", lambda r: (f(n(r), n(r), n(r), n(r)), [n(r), n(r)]))
def _(x, size):
    need(x.dim() == 4 and len(size) == 2)
    return F.interpolate(x, size=size).clone()


@operator(
    "sum_over(Tensor x, int[] dims, bool keepdim=False) -> Tensor",
    lambda r: (lambda t: (f(*t), r.sample(range(-len(t), 0), r.randint(1, len(t))), r.random() < 0.5))(s(r, 1, 4)),
)
def _(x, dims, keepdim=False):
    need(len(dims) > 0)
    return x.sum(dims, keepdim)


@operator(
    "mean_and_var(Tensor x, int dim=-1, bool keepdim=False) -> (Tensor, Tensor)",
    lambda r: (lambda t: (f(*t), r.randrange(-len(t), len(t)), r.random() < 0.5))(s(r, 1, 4)),
)
def _(x, dim=-1, keepdim=False):
    need(x.dim() >= 1 and x.is_floating_point())
    return x.mean(dim, keepdim), x.var(dim, keepdim=keepdim)


@operator("best(Tensor x, int k) -> (Tensor, Tensor)", lambda r: (lambda k: (f(*s(r), k + n(r, 0, 4)), k))(n(r, 1, 5)))
def _(x, k):
    need(x.dim() >= 1)
    values, index = torch.topk(x, k, -1)
    return values, index


@operator("one_hot_of(Tensor ids, int depth) -> Tensor", lambda r: (i(*s(r)), n(r)))
def _(ids, depth):
    need(ids.dtype in (torch.int32, torch.int64) and depth >= 2)
    return F.one_hot(ids.long(), depth).float()


@operator("histogram_of(Tensor x, int bins) -> Tensor", lambda r: (f(*s(r)), n(r)))
def _(x, bins):
    need(bins > 0)
    return torch.histc(x.float(), bins, 0.0, 1.0)


@operator(
    "segment_sum_rows(Tensor x, Tensor segments, int count) -> Tensor",
    lambda r: (lambda k: (f(k, *s(r)), i(k), n(r)))(n(r)),
)
def _(x, segments, count):
    need(segments.dim() == 1 and x.dim() >= 1 and segments.shape[0] == x.shape[0] and segments.dtype == torch.int64)
    need(count >= 2)
    return x.new_zeros((count, *x.shape[1:])).index_add(0, segments, x)


@operator(
    "attend(Tensor q, Tensor k, Tensor v, Tensor? mask=None, float scale=1.0) -> Tensor",
    lambda r: (
        lambda b, h, l, t, d: (f(b, h, l, d), f(b, h, t, d), f(b, h, t, n(r)), r.choice((None, f(l, t), f(b, 1, l, t))))
    )(n(r), n(r), n(r), n(r), n(r)),
)
def _(q, k, v, mask=None, scale=1.0):
    need(q.dim() == k.dim() == v.dim() == 4)
    need(q.shape[:2] == k.shape[:2] == v.shape[:2] and k.shape[2] == v.shape[2] and q.shape[3] == k.shape[3])
    score = q @ k.transpose(-1, -2) * scale
    if mask is not None:
        need(mask.dim() <= 4 and torch.broadcast_shapes(mask.shape, score.shape) == score.shape)
        score = score + mask
    return (score.softmax(-1) @ v).to(q.dtype)


@operator(
    "grouped_attend(Tensor q, Tensor k, Tensor v) -> Tensor",
    lambda r: (lambda b, g, h, t, d: (f(b, n(r), g * h, d), f(b, t, h, d), f(b, t, h, d)))(
        n(r, 1, 4), n(r, 1, 3), n(r, 1, 3), n(r), n(r)
    ),
)
def _(q, k, v):
    need(q.dim() == k.dim() == 4 and k.shape == v.shape and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3])
    need(q.shape[2] % k.shape[2] == 0, "heads must be a multiple of the heads of keys")
    times = q.shape[2] // k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(times, 2), v.repeat_interleave(times, 2)))
    return (q @ k.transpose(-1, -2)).softmax(-1).to(v.dtype).matmul(v).transpose(1, 2).contiguous()


@operator(
    "rope_tables(Tensor x, Tensor cos, Tensor sin) -> Tensor",
    lambda r: (lambda l, d: (f(n(r), l, n(r), 2 * d), f(l, d), f(l, d)))(n(r), n(r)),
)
def _(x, cos, sin):
    need(x.dim() == 4 and cos.shape == sin.shape == (x.shape[1], x.shape[3] // 2) and x.shape[3] % 2 == 0)
    a, b = x.chunk(2, -1)
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


@operator(
    "append_cache(Tensor cache, Tensor new) -> Tensor",
    lambda r: (lambda b, h, d: (f(b, h, n(r), d), f(b, h, n(r), d)))(n(r), n(r), n(r)),
)
def _(cache, new):
    need(cache.dim() == new.dim() == 4)
    return torch.cat((cache, new), 2)


@operator(
    "gated(Tensor x, int dim=-1) -> Tensor",
    lambda r: (lambda a, b: (f(*a, 2 * n(r, 1, 4), *b), r.choice((len(a), -1 - len(b)))))(s(r, 0, 2), s(r, 0, 2)),
)
def _(x, dim=-1):
    need(x.shape[dim] % 2 == 0)
    a, b = x.chunk(2, dim)
    return F.silu(a) * b


@operator("quantize_channels(Tensor x, Tensor scale) -> Tensor", lambda r: (lambda k: (f(*s(r), k), f(k) + 0.1))(n(r)))
def _(x, scale):
    need(x.dim() >= 1 and scale.shape == x.shape[-1:] and x.is_floating_point())
    return (x / scale).round().clamp(-128, 127).to(torch.int8)


@operator(
    "dequantize_blocks(Tensor x, Tensor scale, int block) -> Tensor",
    lambda r: (lambda m, k, b: (i(m, k), f(-(-m // b), -(-k // b)), b))(n(r), n(r), n(r, 1, 4)),
)
def _(x, scale, block):
    need(x.dim() == 2 and block > 0 and scale.shape == (-(-x.shape[0] // block), -(-x.shape[1] // block)))
    wide = scale.repeat_interleave(block, 0).repeat_interleave(block, 1)[: x.shape[0], : x.shape[1]]
    return (x * wide).to(scale.dtype)


@operator(
    "distances(Tensor a, Tensor b) -> Tensor",
    lambda r: (lambda t, d: (f(*t, n(r), d), f(*t, n(r), d)))(s(r, 0, 1), n(r)),
)
def _(a, b):
    need(2 <= a.dim() <= 3 and a.dim() == b.dim() and a.shape[:-2] == b.shape[:-2] and a.is_floating_point())
    return torch.cdist(a, b)


@operator("kronecker(Tensor a, Tensor b) -> Tensor", lambda r: (f(n(r), n(r)), f(n(r), n(r))))
def _(a, b):
    need(a.dim() == b.dim() == 2)
    return torch.kron(a, b)


@operator("box_overlap(Tensor a, Tensor b) -> Tensor", lambda r: (f(n(r), 4), f(n(r), 4)))
def _(a, b):
    need(a.dim() == b.dim() == 2 and a.shape[1] == b.shape[1] == 4)
    return (a[:, None] - b[None]).abs().sum(-1)


@operator("pack_lower(Tensor x) -> Tensor", lambda r: (lambda k: (f(*s(r), k, k),))(n(r)))
def _(x):
    need(x.dim() >= 2 and x.shape[-1] == x.shape[-2])
    at = torch.tril_indices(x.shape[-1], x.shape[-1])
    return x[..., at[0], at[1]]


@operator(
    "columns(Tensor x, int[] kernel, int[] stride) -> Tensor",
    lambda r: (lambda p, q: (f(n(r), n(r), p + n(r), q + n(r)), [p, q], [n(r, 1, 3), n(r, 1, 3)]))(
        n(r, 1, 3), n(r, 1, 3)
    ),
)
def _(x, kernel, stride):
    need(x.dim() == 4 and len(kernel) == len(stride) == 2)
    return F.unfold(x, kernel, stride=stride)


@operator(
    "windows(Tensor x, int size) -> Tensor",
    lambda r: (lambda k: (f(n(r), k * n(r, 1, 4), k * n(r, 1, 4), n(r)), k))(n(r, 1, 4)),
)
def _(x, size):
    need(x.dim() == 4 and size > 0 and x.shape[1] % size == 0 and x.shape[2] % size == 0)
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(-1, size, size, c).clone()


@operator(
    "patches(Tensor image, Tensor weight) -> Tensor",
    lambda r: (lambda c, p: (f(n(r), c, p * n(r, 1, 4), p * n(r, 1, 4)), f(n(r), c, p, p)))(n(r), n(r, 1, 4)),
)
def _(image, weight):
    need(image.dim() == 4 and weight.dim() == 4 and weight.shape[2] == weight.shape[3])
    p = weight.shape[2]
    need(image.shape[2] % p == 0 and image.shape[3] % p == 0)
    return F.conv2d(image, weight, stride=p).flatten(2).transpose(1, 2).contiguous()


@operator(
    "heads_of(Tensor x, int heads) -> Tensor", lambda r: (lambda h: (f(n(r), n(r), h * n(r, 1, 4)), h))(n(r, 1, 4))
)
def _(x, heads):
    need(x.dim() == 3 and heads > 0 and x.shape[-1] % heads == 0)
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2).contiguous()


@operator("merge_heads(Tensor x) -> Tensor", lambda r: (f(n(r), n(r), n(r), n(r)),))
def _(x):
    need(x.dim() == 4)
    return x.transpose(1, 2).flatten(2).clone()


@operator(
    "dispatch_tokens(Tensor x, Tensor experts) -> (Tensor, Tensor)",
    lambda r: (lambda k: (f(k, n(r)), i(k, n(r, 1, 4))))(n(r)),
)
def _(x, experts):
    need(x.dim() == experts.dim() == 2 and x.shape[0] == experts.shape[0])
    need(experts.dtype in (torch.int32, torch.int64))
    order = experts.flatten().argsort(stable=True)
    return x[order // max(experts.shape[1], 1)], order.int()


@operator(
    "fill_where(Tensor x, Tensor mask, float value) -> Tensor",
    lambda r: (lambda t: (f(*t), i(*[r.choice((k, 1)) for k in t[r.randint(0, len(t)) :]]).bool(), 0.5))(s(r, 1, 4)),
)
def _(x, mask, value):
    need(mask.dtype == torch.bool)
    need(torch.broadcast_shapes(x.shape, mask.shape) == x.shape, "the mask must broadcast to x")
    return x.masked_fill(mask, value)


@operator(
    "bag(Tensor table, Tensor ids, Tensor offsets) -> Tensor",
    lambda r: (f(n(r), n(r)), i(n(r)), torch.zeros(n(r), dtype=torch.int64)),
)
def _(table, ids, offsets):
    need(table.dim() == 2 and ids.dim() == offsets.dim() == 1 and ids.dtype == offsets.dtype == torch.int64)
    return table.new_zeros(offsets.shape[0], table.shape[1])


@operator("token_loss(Tensor logits, Tensor target) -> Tensor", lambda r: (lambda k: (f(k, n(r)), i(k)))(n(r)))
def _(logits, target):
    need(logits.dim() == 2 and target.dim() == 1 and target.dtype == torch.int64)
    return F.cross_entropy(logits.float(), target, reduction="none")


@operator("pick_last(Tensor x, Tensor index) -> Tensor", lambda r: (lambda t: (f(*t, n(r)), i(*t, n(r))))(s(r)))
def _(x, index):
    need(x.dim() == index.dim() >= 1 and x.shape[:-1] == index.shape[:-1] and index.dtype == torch.int64)
    return x.gather(-1, index)


@operator(
    "bilinear_form(Tensor x, Tensor y, Tensor w) -> Tensor",
    lambda r: (lambda t, a, b: (f(*t, a), f(*t, b), f(n(r), a, b)))(s(r), n(r), n(r)),
)
def _(x, y, w):
    need(w.dim() == 3)
    return F.bilinear(x, y, w)


@operator("unpack_nibbles(Tensor packed) -> Tensor", lambda r: (i(*s(r), n(r)).to(torch.uint8),))
def _(packed):
    need(packed.dim() >= 1 and packed.dtype == torch.uint8)
    return torch.stack((packed & 15, packed >> 4), -1).flatten(-2)


@operator(
    "head_scale(Tensor x, Tensor scale) -> Tensor",
    lambda r: (lambda h: (f(n(r), h, n(r), n(r)), f(h)))(n(r)),
)
def _(x, scale):
    need(x.dim() == 4 and scale.shape == (x.shape[1],))
    return x * scale[:, None, None]


@operator(
    "pad_ends(Tensor x, int left, int right, float value=0.0) -> Tensor",
    lambda r: (f(*s(r), n(r)), n(r, 0, 4), n(r, 0, 4)),
)
def _(x, left, right, value=0.0):
    need(x.dim() >= 1 and left >= 0 and right >= 0)
    return F.pad(x, (left, right), value=value).clone()


@operator(
    "flatten_from(Tensor x, int start) -> Tensor",
    lambda r: (lambda t: (f(*t), r.randrange(0, len(t))))(s(r, 1, 4)),
)
def _(x, start):
    need(0 <= start < x.dim())
    return x.flatten(start).clone()


@operator("add_bias_gelu(Tensor x, Tensor bias) -> Tensor", lambda r: (lambda k: (f(*s(r), k), f(k)))(n(r)))
def _(x, bias):
    need(x.dim() >= 1 and bias.shape == x.shape[-1:])
    return F.gelu(x + bias)


# Written in one go, before the search had seen any of them.


@operator("pack_nibbles(Tensor x) -> Tensor", lambda r: (i(*s(r), 2 * n(r, 1)).to(torch.uint8),))
def _(x):
    need(x.dim() >= 1 and x.shape[-1] % 2 == 0)
    return x[..., ::2] | (x[..., 1::2] << 4)


@operator(
    "absmax_blocks(Tensor x, int block) -> (Tensor, Tensor)",
    lambda r: (lambda b: (f(*s(r), b * n(r, 1, 5)), b))(n(r, 1, 5)),
)
def _(x, block):
    need(block > 0 and x.dim() >= 1 and x.shape[-1] % block == 0)
    y = x.unflatten(-1, (-1, block))
    m = y.abs().amax(-1)
    return (y / m.unsqueeze(-1)).flatten(-2), m


@operator("repeat_kv(Tensor kv, int times) -> Tensor", lambda r: (f(n(r, 1, 4), n(r, 1, 4), n(r), n(r)), n(r, 1, 4)))
def _(kv, times):
    need(kv.dim() == 4 and times >= 1)
    return kv.repeat_interleave(times, 1)


@operator("interleave2(Tensor a, Tensor b) -> Tensor", lambda r: (lambda z: (f(*z), f(*z)))(s(r, 1)))
def _(a, b):
    need(a.dim() >= 1 and a.shape == b.shape and a.dtype == b.dtype)
    return torch.stack((a, b), -1).flatten(-2)


@operator(
    "ragged_to_dense(Tensor values, Tensor offsets, int width) -> Tensor",
    lambda r: (lambda c: (f(2 * c + r.randint(0, 5), n(r)), torch.arange(c + 1) * 2, n(r, 1, 6)))(n(r, 1, 5)),
)
def _(values, offsets, width):
    need(
        values.dim() == 2
        and offsets.dim() == 1
        and offsets.numel() >= 1
        and width >= 0
        and not offsets.is_floating_point()
    )
    return values.new_zeros(offsets.numel() - 1, width, values.shape[1])


@operator(
    "conv_layout(Tensor x, Tensor w, bool channels_last=False) -> Tensor",
    lambda r: (
        lambda cl, c: (
            f(n(r, 1, 3), n(r, 3, 8), c) if cl else f(n(r, 1, 3), c, n(r, 3, 8)),
            f(n(r, 1, 5), c, n(r, 1, 3)),
            cl,
        )
    )(r.random() < 0.5, n(r)),
)
def _(x, w, channels_last):
    need(x.dim() == 3 and w.dim() == 3)
    y = F.conv1d(x.transpose(1, 2) if channels_last else x, w)
    return y.transpose(1, 2).contiguous() if channels_last else y


@operator(
    "causal_windows(Tensor x, int size, int stride=1) -> Tensor",
    lambda r: (lambda z: (f(*s(r, 0, 2), z + n(r, 0, 6)), z, n(r, 1, 3)))(n(r, 1, 5)),
)
def _(x, size, stride):
    need(x.dim() >= 1 and 1 <= size <= x.shape[-1] and stride >= 1)
    return x.unfold(-1, size, stride).contiguous()


@operator("align_rows(Tensor x, int align=16) -> Tensor", lambda r: (f(n(r, 1, 40), n(r)), r.choice([4, 8, 16, 32])))
def _(x, align):
    need(x.dim() == 2 and align >= 1)
    return F.pad(x, (0, 0, 0, -x.shape[0] % align))


@operator("pair_products(Tensor x) -> Tensor", lambda r: (f(n(r, 1, 5), n(r, 2, 7), n(r)),))
def _(x):
    need(x.dim() == 3 and x.shape[1] >= 2)
    a, b = torch.triu_indices(x.shape[1], x.shape[1], 1)
    return (x[:, a] * x[:, b]).sum(-1)


@operator(
    "grouped_linear(Tensor x, Tensor w) -> Tensor",
    lambda r: (lambda g, k: (f(*s(r, 1, 2), g * k), f(g, k, n(r))))(n(r, 1, 4), n(r, 1, 5)),
)
def _(x, w):
    need(x.dtype == w.dtype and w.dim() == 3 and x.dim() >= 1 and x.shape[-1] == w.shape[0] * w.shape[1])
    y = x.unflatten(-1, (w.shape[0], w.shape[1]))
    return torch.einsum("...gk,gkn->...gn", y, w).flatten(-2)


@operator(
    "int4_matmul(Tensor x, Tensor packed, Tensor scale) -> Tensor",
    lambda r: (lambda k, m: (f(n(r), 2 * k), i(k, m).to(torch.uint8), f(m)))(n(r), n(r)),
)
def _(x, packed, scale):
    need(
        x.dim() == 2
        and packed.dim() == 2
        and packed.dtype == torch.uint8
        and x.shape[1] == 2 * packed.shape[0]
        and scale.shape == (packed.shape[1],)
    )
    w = torch.stack((packed & 15, packed >> 4), 1).flatten(0, 1).to(x.dtype)
    return x @ w * scale


@operator("reduce_layout(Tensor x, int mode) -> Tensor", lambda r: (f(n(r), n(r)), r.randint(0, 2)))
def _(x, mode):
    need(x.dim() == 2 and mode in (0, 1, 2))
    return x.sum(0) if mode == 0 else x.sum(1) if mode == 1 else x.sum()


@operator(
    "spec_hop(Tensor wave, Tensor window, int hop) -> Tensor",
    lambda r: (lambda w: (f(n(r, 1, 3), w + n(r, 0, 12)), f(w), n(r, 1, 4)))(n(r, 2, 6)),
)
def _(wave, window, hop):
    need(wave.dim() == 2 and window.dim() == 1 and hop >= 1 and wave.shape[1] >= window.shape[0] >= 1)
    return torch.fft.rfft(wave.unfold(1, window.shape[0], hop) * window).abs()


@operator(
    "scatter_slots(Tensor cache, Tensor new, Tensor slots) -> Tensor",
    lambda r: (lambda t, h, d: (f(n(r, 4, 9), h, d), f(t, h, d), i(t, below=4)))(n(r, 1, 5), n(r, 1, 4), n(r)),
)
def _(cache, new, slots):
    need(
        cache.dim() == 3
        and new.dim() == 3
        and slots.dim() == 1
        and not slots.is_floating_point()
        and new.shape[0] == slots.shape[0]
        and new.shape[1:] == cache.shape[1:]
    )
    out = cache.clone()
    out[slots.long()] = new
    return out


@operator(
    "topk_gate(Tensor logits, int k, bool norm=True) -> (Tensor, Tensor)",
    lambda r: (lambda e: (f(n(r), e), r.randint(1, e), r.random() < 0.5))(n(r)),
)
def _(logits, k, norm):
    need(logits.dim() == 2 and 1 <= k <= logits.shape[1])
    v, ix = logits.softmax(-1).topk(k)
    return (v / v.sum(-1, keepdim=True) if norm else v), ix.to(torch.int32)


@operator(
    "crop_center(Tensor x, int height, int width) -> Tensor",
    lambda r: (lambda h, w: (f(*s(r, 0, 2), h + n(r, 0, 4), w + n(r, 0, 4)), h, w))(n(r, 1, 5), n(r, 1, 5)),
)
def _(x, height, width):
    need(x.dim() >= 2 and 0 < height <= x.shape[-2] and 0 < width <= x.shape[-1])
    t, l = (x.shape[-2] - height) // 2, (x.shape[-1] - width) // 2
    return x[..., t : t + height, l : l + width].clone()


@operator(
    "swap_blocks(Tensor x, int block) -> Tensor",
    lambda r: (lambda b: (f(b * n(r, 1, 4), b * n(r, 1, 4)), b))(n(r, 1, 4)),
)
def _(x, block):
    need(x.dim() == 2 and block >= 1 and x.shape[0] % block == 0 and x.shape[1] % block == 0)
    return x.unflatten(0, (-1, block)).unflatten(2, (-1, block)).transpose(1, 2).contiguous()


@operator("diff_n(Tensor x, int order=1) -> Tensor", lambda r: (f(*s(r, 0, 2), n(r, 5, 11)), r.randint(0, 3)))
def _(x, order):
    need(x.dim() >= 1 and order >= 0 and x.shape[-1] > order)
    return torch.diff(x, order) if order else x.clone()


@operator(
    "fused_qkv(Tensor x, Tensor w, int heads, int kv_heads) -> (Tensor, Tensor, Tensor)",
    lambda r: (lambda h, k, d, c: (f(n(r, 1, 4), n(r, 1, 4), c), f((h + 2 * k) * d, c), h, k))(
        n(r, 1, 4), n(r, 1, 4), n(r, 1, 4), n(r)
    ),
)
def _(x, w, heads, kv_heads):
    need(
        x.dim() == 3
        and w.dim() == 2
        and heads >= 1
        and kv_heads >= 1
        and x.shape[2] == w.shape[1]
        and w.shape[0] % (heads + 2 * kv_heads) == 0
    )
    y = F.linear(x, w).unflatten(-1, (heads + 2 * kv_heads, -1))
    return tuple(t.contiguous() for t in y.split((heads, kv_heads, kv_heads), 2))


@operator(
    "embed_sum(Tensor table, Tensor ids, Tensor? weights=None) -> Tensor",
    lambda r: (lambda b, l: (f(n(r), n(r)), i(b, l), r.choice([None, f(b, l)])))(n(r, 1, 5), n(r, 1, 5)),
)
def _(table, ids, weights):
    need(
        table.dim() == 2
        and ids.dim() == 2
        and not ids.is_floating_point()
        and (weights is None or weights.shape == ids.shape)
    )
    e = table[ids.long()]
    return (e if weights is None else e * weights.unsqueeze(-1)).sum(1)


@operator(
    "strided_slice_last(Tensor x, int start, int step) -> Tensor",
    lambda r: (lambda z: (f(*s(r, 0, 2), z + n(r, 0, 6)), r.randint(0, z), n(r, 1, 4)))(n(r, 1, 5)),
)
def _(x, start, step):
    need(x.dim() >= 1 and 0 <= start <= x.shape[-1] and step >= 1)
    return x[..., start::step].clone()


@operator(
    "moments(Tensor x, int groups) -> Tensor",
    lambda r: (lambda g: (f(n(r, 1, 4), g * n(r, 1, 4), *s(r, 0, 2)), g))(n(r, 1, 4)),
)
def _(x, groups):
    need(x.dim() >= 2 and groups >= 1 and x.shape[1] % groups == 0)
    y = x.reshape(x.shape[0], groups, -1)
    return torch.stack((y.mean(-1), y.var(-1, unbiased=False)), -1)


@operator(
    "attn_bias(Tensor q, Tensor table, int window) -> Tensor",
    lambda r: (lambda h, w: (f(n(r, 1, 3), h, w * w, n(r)), f((2 * w - 1) ** 2, h), w))(n(r, 1, 4), n(r, 1, 4)),
)
def _(q, table, window):
    need(
        q.dim() == 4
        and table.dim() == 2
        and window >= 1
        and q.shape[2] == window**2
        and table.shape[0] == (2 * window - 1) ** 2
        and table.shape[1] == q.shape[1]
    )
    return q.new_zeros(q.shape[1], q.shape[2], q.shape[2])


@operator(
    "block_dequant_mm(Tensor x, Tensor w, Tensor scale, int block) -> Tensor",
    lambda r: (lambda b, g, m: (f(n(r), b * g), f(m, b * g), f(m, g), b))(n(r, 1, 4), n(r, 1, 4), n(r)),
)
def _(x, w, scale, block):
    need(
        x.dim() == 2
        and w.dim() == 2
        and block >= 1
        and x.shape[1] == w.shape[1]
        and w.shape[1] % block == 0
        and scale.shape == (w.shape[0], w.shape[1] // block)
    )
    return x @ (w * scale.repeat_interleave(block, 1)).t()


@operator(
    "join_ragged(Tensor[] parts, int pad_to=1) -> (Tensor, Tensor)",
    lambda r: (lambda d: ([f(n(r, 1, 5), d) for _ in range(r.randint(1, 4))], r.choice([1, 2, 4, 8])))(n(r)),
)
def _(parts, pad_to):
    need(len(parts) >= 1 and pad_to >= 1 and all(p.dim() == 2 and p.shape[1] == parts[0].shape[1] for p in parts))
    y = torch.cat(parts)
    y = F.pad(y, (0, 0, 0, -y.shape[0] % pad_to))
    return y, torch.tensor([p.shape[0] for p in parts])
