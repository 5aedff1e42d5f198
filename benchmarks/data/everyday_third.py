"""A third set of everyday operators, written in one go before the search had seen any of them."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from benchmarks.data import everyday
from benchmarks.data.everyday import OPERATORS, f, i, n, need, s

#: All sets, this one the last.
__all__ = ["OPERATORS"]

operator = partial(everyday.operator, kept="third")


@operator(
    "rope_both(Tensor q, Tensor k, Tensor cos, Tensor sin) -> (Tensor, Tensor)",
    lambda r: (lambda b, t, d: (f(b, t, n(r), d), f(b, t, n(r), d), f(t, d), f(t, d)))(
        n(r, 1, 4), n(r), 2 * n(r, 1, 5)
    ),
)
def _(q, k, cos, sin):
    need(q.dim() == 4 and k.dim() == 4 and cos.dim() == 2 and cos.shape == sin.shape)
    need(q.shape[:2] == k.shape[:2] and q.shape[3] == k.shape[3] and q.shape[3] % 2 == 0)
    need(cos.shape == (q.shape[1], q.shape[3]))

    def turned(x):
        a, b = x.chunk(2, -1)
        return x * cos[None, :, None] + torch.cat((-b, a), -1) * sin[None, :, None]

    return turned(q), turned(k)


@operator("swiglu_limited(Tensor x, float limit=7.0) -> Tensor", lambda r: (f(*s(r), 2 * n(r)), 7.0))
def _(x, limit):
    need(x.dim() >= 1 and x.shape[-1] % 2 == 0)
    a, b = x.chunk(2, -1)
    return F.silu(a.clamp(max=limit)) * b.clamp(-limit, limit)


@operator(
    "add_norm(Tensor x, Tensor residual, Tensor gamma, float eps=1e-6) -> (Tensor, Tensor)",
    lambda r: (lambda z, k: (f(*z, k), f(*z, k), f(k), 1e-6))(s(r), n(r)),
)
def _(x, residual, gamma, eps):
    need(x.shape == residual.shape and x.dtype == residual.dtype and x.dim() >= 1 and gamma.shape == x.shape[-1:])
    y = x + residual
    return y * torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + eps).to(y.dtype) * gamma.to(y.dtype), y


@operator(
    "dequant_rows(Tensor x, Tensor scale, Tensor? zero=None) -> Tensor",
    lambda r: (lambda m: (i(m, n(r), below=100).to(torch.int8), f(m), r.choice([None, f(m)])))(n(r)),
)
def _(x, scale, zero):
    need(x.dim() == 2 and x.dtype == torch.int8 and scale.shape == x.shape[:1] and scale.is_floating_point())
    need(zero is None or (zero.shape == scale.shape and zero.dtype == scale.dtype))
    y = x.to(scale.dtype)
    return (y if zero is None else y - zero[:, None]) * scale[:, None]


@operator("quant_rows(Tensor x) -> (Tensor, Tensor)", lambda r: (f(*s(r), n(r)),))
def _(x):
    need(x.dim() >= 1 and x.is_floating_point())
    scale = x.abs().amax(-1).float() / 127
    return (x / scale.unsqueeze(-1)).round().clamp(-128, 127).to(torch.int8), scale


@operator(
    "patchify(Tensor x, int patch) -> Tensor",
    lambda r: (lambda p: (f(n(r, 1, 3), n(r, 1, 4), p * n(r, 1, 4), p * n(r, 1, 4)), p))(n(r, 1, 4)),
)
def _(x, patch):
    need(x.dim() == 4 and patch >= 1 and x.shape[2] % patch == 0 and x.shape[3] % patch == 0)
    return F.unfold(x, patch, stride=patch).transpose(1, 2).contiguous()


@operator(
    "unpatchify(Tensor x, int patch, int height, int width) -> Tensor",
    lambda r: (lambda p, a, b, c: (f(n(r, 1, 3), a * b, c * p * p), p, a * p, b * p))(
        n(r, 1, 3), n(r, 1, 4), n(r, 1, 4), n(r, 1, 4)
    ),
)
def _(x, patch, height, width):
    need(x.dim() == 3 and patch >= 1 and height >= 1 and width >= 1 and height % patch == 0 and width % patch == 0)
    need(x.shape[1] == (height // patch) * (width // patch) and x.shape[2] % (patch * patch) == 0)
    return F.fold(x.transpose(1, 2), (height, width), patch, stride=patch)


@operator(
    "chunk_means(Tensor x, int chunk) -> Tensor", lambda r: (lambda c: (f(*s(r, 0, 2), c * n(r, 1, 5)), c))(n(r, 1, 5))
)
def _(x, chunk):
    need(x.dim() >= 1 and chunk >= 1 and x.shape[-1] % chunk == 0 and x.is_floating_point())
    return x.unflatten(-1, (-1, chunk)).mean(-1)


@operator("stack_frames(Tensor x, int count) -> Tensor", lambda r: (lambda c: (f(c + n(r, 0, 6), n(r)), c))(n(r, 1, 5)))
def _(x, count):
    need(x.dim() == 2 and 1 <= count <= x.shape[0])
    return x.unfold(0, count, 1).flatten(1).contiguous()


@operator(
    "window_partition(Tensor x, int window) -> Tensor",
    lambda r: (lambda w: (f(n(r, 1, 3), w * n(r, 1, 4), w * n(r, 1, 4), n(r)), w))(n(r, 1, 4)),
)
def _(x, window):
    need(x.dim() == 4 and window >= 1 and x.shape[1] % window == 0 and x.shape[2] % window == 0)
    y = x.unflatten(1, (-1, window)).unflatten(3, (-1, window))
    return y.permute(0, 1, 3, 2, 4, 5).flatten(0, 2).contiguous()


@operator(
    "channel_shuffle(Tensor x, int groups) -> Tensor",
    lambda r: (lambda g: (f(n(r, 1, 3), g * n(r, 1, 4), *s(r, 1, 2)), g))(n(r, 1, 4)),
)
def _(x, groups):
    need(x.dim() >= 3 and groups >= 1 and x.shape[1] % groups == 0)
    return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2).contiguous()


@operator(
    "smooth_loss(Tensor logits, Tensor target, float smooth=0.1) -> (Tensor, Tensor)",
    lambda r: (lambda k: (f(k, n(r)), i(k), 0.1))(n(r)),
)
def _(logits, target, smooth):
    need(logits.dim() == 2 and target.shape == logits.shape[:1] and target.dtype == torch.int64)
    return F.cross_entropy(logits, target, label_smoothing=smooth), logits.softmax(-1)


@operator(
    "roi_crop(Tensor features, Tensor rois, int height, int width) -> Tensor",
    lambda r: (f(n(r), n(r), n(r), n(r)), f(n(r), 5), n(r), n(r)),
)
def _(features, rois, height, width):
    need(features.dim() == 4 and rois.dim() == 2 and rois.shape[1] == 5 and height > 0 and width > 0)
    need(features.dtype == rois.dtype)
    return features.new_zeros(rois.shape[0], features.shape[1], height, width)


@operator(
    "combine_experts(Tensor rows, Tensor weights) -> Tensor",
    lambda r: (lambda t, k: (f(t * k, n(r)), f(t, k)))(n(r), n(r, 1, 4)),
)
def _(rows, weights):
    need(rows.dim() == 2 and weights.dim() == 2 and rows.shape[0] == weights.numel() and rows.dtype == weights.dtype)
    return (rows.view(*weights.shape, -1) * weights[..., None]).sum(1)


@operator(
    "permute_tokens(Tensor x, Tensor ids) -> (Tensor, Tensor)",
    lambda r: (lambda t: (f(t, n(r)), i(t, n(r, 1, 4))))(n(r)),
)
def _(x, ids):
    need(x.dim() == 2 and ids.dim() == 2 and ids.shape[0] == x.shape[0] and not ids.is_floating_point())
    order = ids.flatten().argsort(stable=True)
    return x[order // ids.shape[1]], order.to(torch.int32)


@operator(
    "expert_linear(Tensor x, Tensor w, Tensor? bias=None) -> Tensor",
    lambda r: (lambda e, d, m: (f(e, n(r), d), f(e, d, m), r.choice([None, f(e, m)])))(n(r, 1, 4), n(r), n(r)),
)
def _(x, w, bias):
    need(x.dim() == 3 and w.dim() == 3 and x.dtype == w.dtype)
    need(bias is None or (bias.shape == (w.shape[0], w.shape[2]) and bias.dtype == x.dtype))
    y = torch.bmm(x, w)
    return y if bias is None else y + bias[:, None]


@operator(
    "alibi_scores(Tensor q, Tensor k, Tensor slopes) -> Tensor",
    lambda r: (lambda b, h, d: (f(b, h, n(r), d), f(b, h, n(r), d), f(h)))(n(r, 1, 3), n(r, 1, 4), n(r)),
)
def _(q, k, slopes):
    need(q.dim() == 4 and k.dim() == 4 and q.shape[:2] == k.shape[:2] and q.shape[3] == k.shape[3])
    need(q.dtype == k.dtype and slopes.shape == q.shape[1:2])
    return q @ k.transpose(2, 3) + (slopes.view(-1, 1, 1) * torch.arange(k.shape[2])).to(q.dtype)


@operator(
    "pool_lengths(Tensor x, Tensor lengths) -> Tensor",
    lambda r: (lambda b: (f(b, n(r), n(r)), i(b, below=3)))(n(r)),
)
def _(x, lengths):
    need(x.dim() == 3 and lengths.shape == x.shape[:1] and not lengths.is_floating_point())
    mask = torch.arange(x.shape[1]) < lengths[:, None]
    return (x * mask[..., None]).sum(1)


@operator(
    "pick_rows(Tensor x, Tensor ids) -> Tensor",
    lambda r: (lambda b: (f(b, n(r), n(r)), i(b, n(r))))(n(r, 1, 4)),
)
def _(x, ids):
    need(x.dim() == 3 and ids.dim() == 2 and ids.shape[0] == x.shape[0] and ids.dtype == torch.int64)
    return x.gather(1, ids[..., None].expand(-1, -1, x.shape[2]))


@operator("half_spectrum(Tensor x) -> Tensor", lambda r: (f(*s(r, 0, 2), n(r)),))
def _(x):
    need(x.dim() >= 1 and x.shape[-1] >= 1 and x.dtype == torch.float32)
    return torch.fft.rfft(x).abs()


@operator(
    "low_rank(Tensor x, Tensor a, Tensor b, float scale=1.0) -> Tensor",
    lambda r: (lambda k, q: (f(*s(r, 0, 2), k), f(q, k), f(n(r), q), 2.0))(n(r), n(r, 1, 4)),
)
def _(x, a, b, scale):
    need(x.dim() >= 1 and a.dim() == 2 and b.dim() == 2 and x.dtype == a.dtype == b.dtype)
    return F.linear(F.linear(x, a), b) * scale


@operator("deinterleave(Tensor x) -> (Tensor, Tensor)", lambda r: (f(*s(r), 2 * n(r, 1)),))
def _(x):
    need(x.dim() >= 1 and x.shape[-1] % 2 == 0)
    return x[..., ::2].contiguous(), x[..., 1::2].contiguous()


@operator(
    "grow_signal(Tensor x, Tensor w, int stride=1) -> Tensor",
    lambda r: (lambda c: (f(n(r, 1, 3), c, n(r)), f(c, n(r, 1, 4), n(r, 1, 4)), n(r, 1, 3)))(n(r, 1, 4)),
)
def _(x, w, stride):
    need(x.dim() == 3 and w.dim() == 3 and stride >= 1 and x.dtype == w.dtype)
    return F.conv_transpose1d(x, w, stride=stride)


@operator(
    "head_norm(Tensor x, Tensor gamma, int heads) -> Tensor",
    lambda r: (lambda h, d: (f(*s(r, 0, 2), h * d), f(d), h))(n(r, 1, 4), n(r)),
)
def _(x, gamma, heads):
    need(x.dim() >= 1 and gamma.dim() == 1 and heads >= 1 and x.shape[-1] == heads * gamma.shape[0])
    y = x.unflatten(-1, (heads, -1))
    return (y * torch.rsqrt(y.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(y.dtype) * gamma.to(y.dtype)).flatten(-2)


@operator(
    "write_pages(Tensor pages, Tensor rows, Tensor slots) -> Tensor",
    lambda r: (lambda p, z, d, t: (f(p, z, d), f(t, d), i(t, below=p * z)))(n(r, 1, 4), n(r, 1, 4), n(r), n(r, 1, 5)),
)
def _(pages, rows, slots):
    need(pages.dim() == 3 and rows.dim() == 2 and slots.dim() == 1 and slots.dtype == torch.int64)
    need(rows.shape[0] == slots.shape[0] and rows.shape[1] == pages.shape[2] and rows.dtype == pages.dtype)
    out = pages.clone()
    out.view(-1, pages.shape[2])[slots] = rows
    return out
