"""Manifold-constrained hyper-connections: residual streams mixed by a doubly stochastic matrix, and gradients."""

from __future__ import annotations

import torch

from ascend_graph.host.kernels.registry import host_kernel

T = torch.Tensor


@host_kernel("MhcPre", ignores=("inner_precise",))
def mhc_pre(
    x: T, phi: T, alpha: T, bias: T, gamma: T | None = None, *, norm_eps: float = 1e-6, hc_eps: float = 1e-6
) -> tuple[T, T, T, T, T, T]:
    """Mix ``n`` streams, (…, n, d), into a layer's input, and compute the output and mixing weights.

    The output weights are those of the layer's result in each stream; the mixing weights are those of the streams in
    one another. With only two factors in ``alpha`` there are no mixing weights, and their output is one zero.
    """
    streams = x.size(-2)
    parts = (streams, streams, streams * streams)[: alpha.numel()]
    if phi.shape != (sum(parts), streams * x.size(-1)):
        raise ValueError(
            f"phi of shape {tuple(phi.shape)}: with {alpha.numel()} factors in alpha valid is {(sum(parts), streams * x.size(-1))}"
        )
    wide = x.float().flatten(-2)
    inv_rms = torch.rsqrt(wide.square().mean(-1) + norm_eps)
    h_mix = (wide if gamma is None else wide * gamma.flatten()) @ phi.t()
    mixed = (h_mix * inv_rms.unsqueeze(-1)).split(parts, -1)
    h_pre, h_post, *h_res = (a * m + b for a, m, b in zip(alpha, mixed, bias.split(parts), strict=True))
    h_pre, h_post = torch.sigmoid(h_pre) + hc_eps, 2 * torch.sigmoid(h_post)
    h_in = torch.einsum("...n,...nd->...d", h_pre, x.float()).to(x.dtype)
    residual = h_res[0].unflatten(-1, (streams, streams)) if h_res else x.new_zeros(1, dtype=torch.float32)
    return h_in, h_post, residual, inv_rms, h_mix, h_pre


@host_kernel("MhcPreBackward", ignores=("inner_precise",))
def mhc_pre_backward(
    x: T,
    phi: T,
    alpha: T,
    grad_h_in: T,
    grad_h_post: T,
    grad_h_res: T,
    inv_rms: T,
    h_mix: T,
    h_pre: T,
    h_post: T,
    gamma: T | None = None,
    grad_x_post: T | None = None,
    *,
    hc_eps: float = 1e-6,
) -> tuple[T, T, T, T, T | None]:
    """Return the gradients of ``x``, ``phi``, ``alpha``, the bias and, if given, ``gamma``."""
    streams, wide = x.size(-2), x.float()
    grad_pre = torch.einsum("...d,...nd->...n", grad_h_in.float(), wide)
    gate = h_pre - hc_eps
    grads = torch.cat(
        [grad_pre * gate * (1 - gate), grad_h_post * h_post * (1 - h_post / 2), grad_h_res.flatten(h_mix.dim() - 1)], -1
    )
    parts = (streams, streams, grads.size(-1) - 2 * streams)
    rows = tuple(range(grads.dim() - 1))
    scaled = h_mix * inv_rms.unsqueeze(-1)
    grad_alpha = torch.stack([part.sum() for part in (grads * scaled).split(parts, -1)])
    grad_tmp = grads * alpha.repeat_interleave(torch.tensor(parts, device=alpha.device), output_size=sum(parts))
    grad_mix = grad_tmp * inv_rms.unsqueeze(-1)
    grad_inv = (grad_tmp * h_mix).sum(-1, keepdim=True)
    flat = wide.flatten(-2)
    weights = flat.new_ones(flat.size(-1)) if gamma is None else gamma.flatten()
    grad_rs = grad_mix @ phi
    grad_flat = grad_rs * weights - grad_inv * inv_rms.unsqueeze(-1) ** 3 / flat.size(-1) * flat
    grad_x = grad_flat.view(wide.shape) + h_pre.unsqueeze(-1) * grad_h_in.float().unsqueeze(-2)
    if grad_x_post is not None:
        grad_x = grad_x + grad_x_post.float()
    grad_phi = torch.einsum("...k,...d->kd", grad_mix, flat * weights)
    grad_gamma = None if gamma is None else (flat * grad_rs).sum(rows).view(gamma.shape)
    return grad_x.to(x.dtype), grad_phi, grad_alpha, grads.sum(rows), grad_gamma


@host_kernel("MhcSinkhorn")
def mhc_sinkhorn(x: T, *, eps: float = 1e-6, num_iters: int = 20) -> T:
    """Normalize a matrix's rows and columns alternately to a sum of 1."""
    y = torch.softmax(x.float(), -1) + eps
    y = y / (y.sum(-2, keepdim=True) + eps)
    for _ in range(num_iters - 1):
        y = y / (y.sum(-1, keepdim=True) + eps)
        y = y / (y.sum(-2, keepdim=True) + eps)
    return y


@host_kernel("MhcPost")
def mhc_post(x: T, h_res: T, h_out: T, h_post: T) -> T:
    """Mix the streams, and add a layer's weighted result to each."""
    mixed = torch.einsum("...ij,...id->...jd", h_res.float(), x.float())
    return (mixed + h_post.float().unsqueeze(-1) * h_out.float().unsqueeze(-2)).to(x.dtype)


@host_kernel("MhcPostBackward")
def mhc_post_backward(grad_y: T, x: T, h_res: T, h_out: T, h_post: T) -> tuple[T, T, T, T]:
    """Return the gradients of the streams, the mixing matrix, the layer's result and its weights."""
    grad = grad_y.float()
    grad_x = torch.einsum("...ij,...jd->...id", h_res.float(), grad)
    grad_h_res = torch.einsum("...id,...jd->...ij", x.float(), grad)
    grad_h_out = (grad * h_post.float().unsqueeze(-1)).sum(-2)
    grad_h_post = (grad * h_out.float().unsqueeze(-2)).sum(-1)
    return grad_x.to(x.dtype), grad_h_res, grad_h_out.to(h_out.dtype), grad_h_post
