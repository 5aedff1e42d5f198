"""Everyday operators in two more sets, each written completely before the search was run on it."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F

from benchmarks.data import everyday
from benchmarks.data.everyday import OPERATORS, f, i, n, need, s

#: All sets, these the last.
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


operator = partial(everyday.operator, kept="fourth")


@operator(
    "gather_pages(Tensor pages, Tensor table) -> Tensor",
    lambda r: (f(n(r, 2, 5), n(r, 1, 4), n(r)), i(n(r, 1, 4), n(r, 1, 4))),
)
def _(pages, table):
    need(pages.dim() == 3 and table.dim() == 2 and not table.is_floating_point() and table.dtype != torch.bool)
    return pages[table.long()].flatten(1, 2)


@operator(
    "conv3d_valid(Tensor x, Tensor w) -> Tensor",
    lambda r: (
        lambda c: (f(n(r, 1, 2), c, *(n(r, 3, 5) for _ in range(3))), f(n(r, 1, 3), c, *(n(r, 1, 3) for _ in range(3))))
    )(n(r, 1, 3)),
)
def _(x, w):
    need(x.dim() == 5 and w.dim() == 5 and x.dtype == w.dtype)
    return F.conv3d(x, w)


@operator(
    "pool_last(Tensor x, int kernel, int stride) -> Tensor",
    lambda r: (lambda k: (f(n(r, 1, 4), k + n(r, 0, 8)), k, n(r, 1, 3)))(n(r, 1, 4)),
)
def _(x, kernel, stride):
    need(x.dim() == 2 and kernel >= 1 and stride >= 1 and x.shape[1] >= kernel and x.is_floating_point())
    return F.avg_pool1d(x, kernel, stride)


@operator(
    "mix_heads(Tensor x, Tensor w) -> Tensor",
    lambda r: (lambda h: (f(n(r, 1, 3), n(r), h, n(r)), f(h, n(r, 1, 5))))(n(r, 1, 5)),
)
def _(x, w):
    need(x.dim() == 4 and w.dim() == 2 and x.dtype == w.dtype)
    return torch.einsum("bshd,hg->bsgd", x, w)


@operator(
    "state_step(Tensor state, Tensor k, Tensor v, Tensor decay) -> Tensor",
    lambda r: (lambda b, h, p, q: (f(b, h, p, q), f(b, h, p), f(b, h, q), f(b, h)))(n(r, 1, 3), n(r, 1, 4), n(r), n(r)),
)
def _(state, k, v, decay):
    need(state.dim() == 4 and k.shape == state.shape[:3] and v.shape == (*state.shape[:2], state.shape[3]))
    need(decay.shape == state.shape[:2] and state.dtype == k.dtype == v.dtype == decay.dtype)
    return state * decay[..., None, None] + k[..., None] * v[..., None, :]


@operator("sort_pairs(Tensor keys, Tensor values) -> (Tensor, Tensor)", lambda r: (lambda z: (f(*z), f(*z)))(s(r, 1)))
def _(keys, values):
    need(keys.dim() >= 1 and keys.shape == values.shape)
    ordered, order = keys.sort(dim=-1, stable=True)
    return ordered, values.gather(-1, order)


@operator(
    "masked_softmax(Tensor x, Tensor mask) -> Tensor",
    lambda r: (lambda b, m, k: (f(b, n(r, 1, 4), m, k), i(b, 1, m, k).bool()))(n(r, 1, 3), n(r), n(r)),
)
def _(x, mask):
    need(x.dim() == 4 and x.is_floating_point() and mask.dtype == torch.bool)
    need(mask.shape == (x.shape[0], 1, x.shape[2], x.shape[3]))
    return x.masked_fill(mask, -1e4).softmax(-1)


@operator("norm_gradients(Tensor dy, Tensor x) -> (Tensor, Tensor)", lambda r: (lambda z: (f(*z), f(*z)))(s(r, 1)))
def _(dy, x):
    need(dy.dim() >= 1 and dy.shape == x.shape and dy.dtype == x.dtype and dy.is_floating_point())
    return (dy * x).flatten(0, -2).sum(0) if dy.dim() > 1 else dy * x, dy.flatten(0, -2).sum(
        0
    ) if dy.dim() > 1 else dy.clone()


@operator("swap_last(Tensor x) -> Tensor", lambda r: (f(*s(r, 0, 2), n(r), n(r)),))
def _(x):
    need(x.dim() >= 2)
    return x.transpose(-1, -2).contiguous()


@operator(
    "roll_along(Tensor x, int shift, int dim=-1) -> Tensor",
    lambda r: (lambda z: (f(*z), r.randint(-3, 3), r.randint(-len(z), len(z) - 1)))(s(r, 1)),
)
def _(x, shift, dim):
    need(x.dim() >= 1 and -x.dim() <= dim < x.dim())
    return x.roll(shift, dim)


@operator("causal_mask(Tensor scores) -> Tensor", lambda r: (f(*s(r, 0, 2), n(r), n(r)),))
def _(scores):
    need(scores.dim() >= 2)
    return torch.ones(scores.shape[-2], scores.shape[-1], dtype=torch.bool).triu(1)


@operator(
    "block_maxima(Tensor x, int rows, int cols) -> Tensor",
    lambda r: (lambda a, b: (f(a * n(r, 1, 4), b * n(r, 1, 4)), a, b))(n(r, 1, 4), n(r, 1, 4)),
)
def _(x, rows, cols):
    need(x.dim() == 2 and rows >= 1 and cols >= 1 and x.shape[0] % rows == 0 and x.shape[1] % cols == 0)
    return x.unflatten(0, (-1, rows)).unflatten(2, (-1, cols)).amax((1, 3))


@operator("positions(Tensor starts, int length) -> Tensor", lambda r: (i(n(r)), n(r, 1, 6)))
def _(starts, length):
    need(starts.dim() == 1 and length >= 1 and starts.dtype in (torch.int64, torch.int32))
    return starts[:, None] + torch.arange(length, dtype=starts.dtype)


@operator("unit_rows(Tensor x) -> (Tensor, Tensor)", lambda r: (f(*s(r, 1)),))
def _(x):
    need(x.dim() >= 1 and x.is_floating_point())
    size = x.norm(dim=-1, keepdim=True)
    return x / size, size


@operator("three_gates(Tensor x) -> (Tensor, Tensor, Tensor)", lambda r: (f(*s(r, 0, 2), 3 * n(r, 1)),))
def _(x):
    need(x.dim() >= 1 and x.shape[-1] % 3 == 0)
    return tuple(t.contiguous() for t in x.chunk(3, -1))


@operator(
    "gru_cell(Tensor x, Tensor h, Tensor w, Tensor u) -> Tensor",
    lambda r: (lambda b, k, m: (f(b, k), f(b, m), f(3 * m, k), f(3 * m, m)))(n(r), n(r), n(r)),
)
def _(x, h, w, u):
    need(x.dim() == h.dim() == w.dim() == u.dim() == 2 and x.dtype == h.dtype == w.dtype == u.dtype)
    need(w.shape[0] == u.shape[0] == 3 * h.shape[1] and u.shape[1] == h.shape[1])
    return torch.gru_cell(x, h, w, u)


@operator(
    "prefix_sums(Tensor x, int dim=-1, bool exclusive=False) -> Tensor",
    lambda r: (lambda z: (f(*z), r.randint(-len(z), len(z) - 1), r.random() < 0.5))(s(r, 1)),
)
def _(x, dim, exclusive):
    need(x.dim() >= 1 and -x.dim() <= dim < x.dim() and x.is_floating_point())
    y = x.cumsum(dim)
    return y - x if exclusive else y


@operator("suppressed_scores(Tensor boxes, Tensor scores) -> Tensor", lambda r: (lambda k: (f(k, 4), f(k, n(r))))(n(r)))
def _(boxes, scores):
    need(boxes.dim() == 2 and boxes.shape[1] == 4 and scores.dim() == 2 and scores.shape[0] == boxes.shape[0])
    return (scores * (boxes.sum(1, keepdim=True) > 0).to(scores.dtype)).t().contiguous()


@operator(
    "point_sample(Tensor features, Tensor points) -> Tensor",
    lambda r: (lambda b: (f(b, n(r), n(r), n(r)), f(b, n(r), 2)))(n(r, 1, 4)),
)
def _(features, points):
    need(features.dim() == 4 and points.dim() == 3 and points.shape[2] == 2 and points.shape[0] == features.shape[0])
    need(features.dtype == points.dtype)
    return F.grid_sample(features, points[:, :, None] * 2 - 1, align_corners=False).squeeze(-1)


@operator(
    "group_quantize(Tensor x, int group) -> (Tensor, Tensor)",
    lambda r: (lambda g: (f(n(r), g * n(r, 1, 5)), g))(n(r, 1, 5)),
)
def _(x, group):
    need(x.dim() == 2 and group >= 1 and x.shape[1] % group == 0 and x.is_floating_point())
    y = x.unflatten(1, (-1, group))
    scale = y.abs().amax(-1).float() / 127
    return (y / scale[..., None]).round().clamp(-128, 127).to(torch.int8).flatten(1), scale


@operator("toeplitz(Tensor row, Tensor column) -> Tensor", lambda r: (f(n(r)), f(n(r))))
def _(row, column):
    need(row.dim() == 1 and column.dim() == 1 and row.dtype == column.dtype and row.numel() > 0)
    values = torch.cat((column.flip(0), row[1:]))
    return values.unfold(0, row.numel(), 1).flip(0).contiguous()[: column.numel()]


@operator("take_every(Tensor x, int step=2) -> Tensor", lambda r: (f(*s(r, 1)), n(r, 1, 4)))
def _(x, step):
    need(x.dim() >= 1 and step >= 1)
    return x[..., ::step].contiguous()


@operator("cross3(Tensor a, Tensor b) -> Tensor", lambda r: (lambda z: (f(*z, 3), f(*z, 3)))(s(r, 0, 2)))
def _(a, b):
    need(a.dim() >= 1 and a.shape == b.shape and a.shape[-1] == 3 and a.dtype == b.dtype)
    return torch.linalg.cross(a, b)


@operator(
    "scaled_product(Tensor x, Tensor w, Tensor x_scale, Tensor w_scale) -> Tensor",
    lambda r: (lambda m, k, q: (i(m, k, below=9).to(torch.int8), i(q, k, below=9).to(torch.int8), f(m), f(q)))(
        n(r), n(r), n(r)
    ),
)
def _(x, w, x_scale, w_scale):
    need(x.dim() == 2 and w.dim() == 2 and x.dtype == w.dtype == torch.int8 and x.shape[1] == w.shape[1])
    need(x_scale.shape == x.shape[:1] and w_scale.shape == w.shape[:1] and x_scale.is_floating_point())
    return (x.float() @ w.float().t() * x_scale.float()[:, None] * w_scale.float()).to(torch.bfloat16)


@operator(
    "lane_merge(Tensor[] lanes) -> Tensor",
    lambda r: (lambda z, k: ([f(*z) for _ in range(k)],))(s(r, 1, 2), r.randint(1, 4)),
)
def _(lanes):
    need(
        len(lanes) >= 1 and all(t.dim() >= 1 and t.shape == lanes[0].shape and t.dtype == lanes[0].dtype for t in lanes)
    )
    return torch.stack(lanes, -1).flatten(-2)
