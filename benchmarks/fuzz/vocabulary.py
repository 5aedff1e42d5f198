"""Lines that a random program may have: texts with placeholders for values and parameters, by their effect on memory.

The letters before a text are the kinds of its values: ``f`` floating, ``i`` integer, ``n`` either, ``b`` bool, ``a`` any. A
second value may be ``~`` broadcastable with the first, ``<`` broadcastable to the first, ``=`` of its shape and dtype, ``m`` a
matrix that it may be multiplied with. ``{dim}`` and the other names in braces are drawn by :data:`PARAMETERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Protocol


class Shaped(Protocol):
    """Value as seen by drawing: its sizes in every call."""

    @property
    def rank(self) -> int: ...

    def least(self, dim: int) -> int: ...


def _dim(random: Random, value: Shaped) -> str:
    return str(random.randrange(-value.rank, value.rank))


def _permutation(random: Random, value: Shaped) -> str:
    return str(random.sample(range(value.rank), value.rank))


def _dims(random: Random, value: Shaped) -> str:
    return str(sorted(random.sample(range(value.rank), random.randint(1, value.rank))))


def _slice(random: Random, value: Shaped) -> str:
    """Return an index of the leading dimensions that leaves something in every call."""
    parts = []
    for dim in range(random.randint(1, value.rank)):
        least = value.least(dim)
        start = random.randrange(max(1, least))
        parts.append(
            random.choice(
                [
                    ":",
                    f"{start}:",
                    f":{least - start}",
                    f"::{random.randint(1, 2)}",
                    str(start),
                    f"-{least - start}",
                    "1:" if least > 1 else ":",
                ]
            )
        )
    if random.random() < 0.2:
        parts.insert(random.randrange(len(parts) + 1), "None")
    if random.random() < 0.2 and value.rank == len(parts):
        parts.insert(0, "...")
    return ", ".join(parts)


#: Parameters of lines by name; each is drawn for the line's first value.
PARAMETERS: dict[str, Callable[[Random, Shaped], str]] = {
    "dim": _dim,
    "other": _dim,
    "new": lambda r, v: str(r.randrange(-v.rank - 1, v.rank + 1)),
    "dims": _dims,
    "permutation": _permutation,
    "slice": _slice,
    "keep": lambda r, v: str(r.random() < 0.5),
    "integer": lambda r, v: str(r.choice([-2, -1, 1, 2, 3])),
    "count": lambda r, v: str(r.randint(1, 3)),
    "number": lambda r, v: str(r.choice([-1.5, -0.5, 0.5, 1.0, 2.0, 2, -1, 3])),
    "float": lambda r, v: str(r.choice([-1.5, -0.5, 0.5, 1.25, 2.0])),
    "positive": lambda r, v: str(r.choice([0.5, 1.0, 2.0])),
    "dtype": lambda r, v: (
        "torch." + r.choice(["float32", "float32", "float16", "bfloat16", "int32", "int64", "int8", "bool", "float64"])
    ),
    "floating": lambda r, v: "torch." + r.choice(["float32", "float16", "bfloat16"]),
    "approximate": lambda r, v: repr(r.choice(["none", "tanh"])),
    "rounding": lambda r, v: repr(r.choice(["floor", "trunc"])),
    "reduction": lambda r, v: repr(r.choice(["sum", "amax", "amin"])),
    "size": lambda r, v: r.choice(["{0}.shape[0]", "{0}.shape[-1]", "{0}.numel()", "n"]),
}

Line = tuple[str, str]

#: New values with their own memory. ``max_pool1d`` gets a computed one: PyTorch's of the CPU reads a negated tensor without its bit.
PURE: list[Line] = [
    *(("f", f"torch.{name}({{0}})") for name in (
        "sin", "cos", "tanh", "sigmoid", "relu", "erf", "floor", "ceil", "round", "trunc", "sign", "square", "isnan", "isfinite", "frac",
        "expm1", "exp", "atan", "signbit")),
    *(("n", f"torch.{name}({{0}})") for name in ("neg", "abs", "positive", "zeros_like", "ones_like", "clone")),
    *(("f", f"F.{name}({{0}})") for name in ("silu", "softplus", "hardswish", "elu", "mish", "leaky_relu", "logsigmoid", "selu")),
    ("f", "F.gelu({0}, approximate={approximate})"), ("f", "torch.sqrt({0}.abs())"), ("f", "torch.rsqrt({0}.abs() + 1)"),
    ("f", "torch.log1p({0}.abs())"), ("f", "torch.log({0}.abs() + 0.5)"), ("f", "torch.reciprocal({0}.abs() + 0.5)"),
    ("n", "torch.clamp({0}, -1, 2)"), ("n", "torch.clamp({0}, min={number})"), ("n", "torch.clamp_max({0}, 1)"),
    ("f", "F.hardtanh({0}, -0.5, 1.5)"), ("f", "torch.nan_to_num({0}, 0.0, 1.0, -1.0)"), ("n", "torch.pow({0}, 2)"),
    ("f", "torch.pow({0}.abs(), 1.5)"), ("i", "torch.bitwise_not({0})"), ("b", "torch.logical_not({0})"), ("b", "~{0}"),
    ("n", "{0} + {number}"), ("n", "{number} - {0}"), ("n", "{0} * {number}"), ("f", "{0} / {number}"), ("i", "{0} // 2"),
    ("n", "torch.rsub({0}, {number})"), ("n", "torch.remainder({0}, {count})"), ("i", "{0} << 1"), ("i", "{0} & 3"),
    ("n", "{0} * {size}"), ("n", "{0} + n"), ("f", "{0} / {size}"), ("n", "{0} > {number}"), ("n", "{0} == {integer}"), ("a", "{0} != 0"),
    ("a", "{0}.to({dtype})"), ("f", "{0}.to({floating})"), ("a", "{0}.clone()"), ("a", "{0}.float()"), ("b", "{0}.int()"),
    # Two values and more.
    *(("n~", f"torch.{name}({{0}}, {{1}})") for name in ("add", "sub", "mul", "maximum", "minimum", "eq", "lt", "ge", "ne", "gt", "le", "fmax")),
    ("n~", "torch.add({0}, {1}, alpha={integer})"), ("n~", "torch.sub({0}, {1}, alpha={integer})"), ("f~", "torch.div({0}, {1}.abs() + 0.5)"),
    ("n~", "torch.div({0}, {1}.abs() + 1, rounding_mode={rounding})"), ("f~", "torch.atan2({0}, {1}.abs() + 1)"), ("i~", "{0} // ({1}.abs() + 1)"),
    ("n~", "torch.fmod({0}, {1}.abs() + 1)"), ("n~", "torch.floor_divide({0}, {1}.abs() + 1)"),
    ("b~", "torch.logical_and({0}, {1} != 0)"), ("b~", "torch.logical_or({0}, {1} != 0)"), ("b~", "torch.logical_xor({0}, {1} != 0)"),
    ("b~", "torch.where({0}, {1}, {number})"), ("b~~", "torch.where({0}, {1}, {2})"), ("n~~", "torch.where({0} > 0, {1}, {2})"),
    ("f~~", "torch.addcmul({0}, {1}, {2}, value={float})"), ("f~~", "torch.addcdiv({0}, {1}, {2}.abs() + 1)"),
    ("f=", "torch.lerp({0}, {1}, {positive})"), ("n~", "{0}.masked_fill({1} > 0, {integer})"), ("i=", "torch.bitwise_and({0}, {1})"),
    ("i=", "torch.bitwise_xor({0}, {1})"), ("f=", "F.mse_loss({0}, {1})"), ("f=", "F.smooth_l1_loss({0}, {1}, reduction='none')"),
    ("f=", "torch.dist({0}, {1})"), ("f=", "F.cosine_similarity({0}, {1}, {dim})"),
    # Reductions.
    *(("n", f"torch.{name}({{0}}, {{dim}}, keepdim={{keep}})") for name in ("sum", "amax", "amin", "argmax", "argmin", "all", "any", "prod")),
    *(("f", f"torch.{name}({{0}}, {{dim}}, keepdim={{keep}})") for name in ("mean", "var", "std", "logsumexp")),
    ("n", "torch.sum({0})"), ("f", "torch.mean({0})"), ("n", "torch.amax({0}, {dims})"), ("n", "torch.sum({0}, {dims}, {keep})"), ("n", "{0}.max()"),
    ("f", "torch.sum({0}, {dim}, dtype={floating})"), ("n", "torch.cumsum({0}, {dim})"), ("f", "torch.softmax({0}, {dim})"), ("f", "torch.log_softmax({0}, {dim})"),
    ("f", "torch.norm({0}, 2, {dim})"), ("f", "F.normalize({0}, dim={dim})"), ("f", "F.layer_norm({0}, {0}.shape[-1:])"), ("a", "torch.count_nonzero({0}, {dim})"),
    ("f", "F.rms_norm({0}, {0}.shape[-1:])"), ("f", "torch.var({0}, {dim}, correction=0)"), ("n", "torch.cummax({0}, {dim})[0]"),
    # Products.
    ("fm", "torch.matmul({0}, {1})"), ("f", "torch.matmul({0}, {0}.transpose(-1, -2))"), ("f", "torch.einsum('...i,...i->...', {0}, {0})"),
    ("f", "F.linear({0}, {0}.reshape(-1, {0}.shape[-1]))"), ("f", "torch.outer({0}.flatten()[:3], {0}.flatten()[:2])"),
    # Moving elements.
    ("a", "torch.flip({0}, {dims})"), ("a", "torch.roll({0}, {count}, {dim})"), ("a=", "torch.cat([{0}, {1}], {dim})"), ("a", "torch.cat([{0}, {0}, {0}], {dim})"),
    ("a=", "torch.stack([{0}, {1}], {new})"), ("a", "{0}.repeat(*[2] * {0}.dim())"), ("a", "torch.tile({0}, (2,))"), ("a", "torch.repeat_interleave({0}, 2, {dim})"),
    ("a", "{0}.contiguous()"), ("n", "F.pad({0}, (1, 2), value=1)"), ("a", "torch.tril({0})"), ("a", "torch.triu({0}, 1)"), ("a", "torch.diag_embed({0})"),
    ("n", "torch.sort({0}, {dim})[0]"), ("n", "torch.topk({0}, 1, {dim})[0]"), ("f", "F.pad({0}, (-1, 1))"),
    ("n", "torch.gather({0}, {dim}, torch.zeros_like({0}, dtype=torch.int64))"),
    ("n", "torch.index_select({0}, {dim}, torch.arange({0}.shape[{dim}], device={0}.device).flip(0))"),
    ("n", "{0}[torch.arange({0}.shape[0], device={0}.device) // 2]"), ("n", "torch.take_along_dim({0}, torch.argsort({0}, {dim}), {dim})"),
    ("ni", "F.embedding({1}.long().abs() % {0}.shape[0], {0}.reshape({0}.shape[0], -1))"), ("n=", "torch.scatter_add({0}, 0, torch.zeros_like({0}, dtype=torch.int64), {1})"),
    ("n=", "torch.scatter({0}, {dim}, torch.zeros_like({0}, dtype=torch.int64)[:1], 1)"), ("n=", "torch.index_add({0}, 0, torch.zeros({1}.shape[0], dtype=torch.int64, device={0}.device), {1})"),
    ("n", "torch.index_put({0}, (torch.arange({0}.shape[0], device={0}.device),), {0}.sum(0))"), ("n", "torch.full_like({0}, {number})"),
    ("n", "torch.select_scatter({0}, {0}.sum({dim}).to({0}.dtype), {dim}, 0)"), ("n", "{0}.new_zeros({0}.shape[0])"), ("n", "{0}.new_full(({0}.shape[-1], 2), {integer})"),
    ("n", "torch.arange({0}.shape[0], device={0}.device)"), ("n", "torch.full(({0}.shape[0],), {number}, device={0}.device)"), ("n", "torch.ones({0}.shape, device={0}.device)"),
    ("f", "torch.nn.functional.one_hot({0}.long().abs() % 4, 4)"), ("n", "torch.eye({0}.shape[-1], device={0}.device)"), ("n", "torch.meshgrid({0}.flatten(), {0}.flatten(), indexing='ij')[1]"),
    ("n", "torch.cdist({0}.float(), {0}.float(), p=1.0)"), ("f", "F.avg_pool1d({0}.reshape(1, -1, {0}.shape[-1]), 2)"), ("f", "F.max_pool1d(1 * {0}.reshape(1, -1, {0}.shape[-1]), 2)"),
    ("f", "F.conv1d({0}.reshape(1, -1, {0}.shape[-1]), {0}.reshape(1, -1, {0}.shape[-1])[..., :1])"), ("n", "torch.searchsorted(torch.sort({0}.flatten())[0], {0})"),
    ("n", "torch.isin({0}, {0}.flatten()[:2])"), ("n", "torch.bucketize({0}, {0}.flatten().sort()[0])"), ("n", "torch.diff({0}, dim={dim})"),
    ("f", "F.scaled_dot_product_attention({0}[None, None], {0}[None, None], {0}[None, None])"), ("f", "F.cross_entropy({0}.reshape(-1, {0}.shape[-1]), {0}.reshape(-1, {0}.shape[-1]).argmax(-1))"),
]  # fmt: skip

#: New values that are views.
VIEWS: list[Line] = [
    ("a", "{0}[{slice}]"), ("a", "{0}[{slice}]"), ("a", "{0}[{slice}]"), ("a", "{0}.transpose({dim}, {other})"), ("a", "{0}.permute({permutation})"),
    ("a", "{0}.reshape(-1)"), ("a", "{0}.reshape({0}.shape[0], -1)"), ("a", "{0}.view({0}.shape)"), ("a", "{0}.unsqueeze({new})"), ("a", "{0}.squeeze()"),
    ("a", "{0}.squeeze({dim})"), ("a", "{0}.flatten()"), ("a", "{0}.view(-1, {0}.shape[-1])"), ("a", "{0}.narrow({dim}, 0, 1)"), ("a", "{0}.select({dim}, 0)"),
    ("a", "{0}.expand(2, *{0}.shape)"), ("a", "{0}.movedim({dim}, {other})"), ("a", "{0}.diagonal()"), ("a", "{0}.unfold({dim}, 2, 1)"), ("a", "{0}.mT"),
    ("a", "{0}.detach()"), ("a", "{0}.unflatten({dim}, (-1, 1))"), ("a", "{0}[: {0}.shape[0] // 2 + 1]"), ("a", "{0}[{0}.shape[0] // 2 :]"), ("a", "{0}.swapaxes(0, -1)"),
    ("a", "{0}.view_as({0})"), ("a", "torch.atleast_2d({0})"), ("a", "{0}.split(1, {dim})[-1]"), ("f", "{0}.real"), ("a", "{0}.as_strided({0}.shape[:1], {0}.stride()[:1], 0)"),
]  # fmt: skip

#: Several values from one line.
SEVERAL: list[tuple[str, str, int]] = [
    ("a", "torch.chunk({0}, 2, {dim})", 2), ("a", "torch.unbind({0}, {dim})", 3), ("a", "torch.split({0}, 2, {dim})", 2), ("a", "torch.tensor_split({0}, 3, {dim})", 3),
    ("n", "torch.max({0}, {dim})", 2), ("n", "torch.sort({0}, {dim}, stable=True)", 2), ("f", "torch.var_mean({0}, {dim})", 2), ("n", "torch.aminmax({0})", 2),
    ("n", "torch.frexp({0}.float())", 2), ("n", "torch.topk({0}, 2, {dim})", 2),
]  # fmt: skip

#: Lines that write to their first value.
WRITES: list[Line] = [
    *(("n<", f"{{0}}.{name}_({{1}})") for name in ("add", "sub", "mul", "copy", "copy", "add")),
    ("n<", "{0}.add_({1}, alpha={integer})"), ("n", "{0}.add_({integer})"), ("n", "{0}.mul_({integer})"), ("f", "{0}.div_({positive})"), ("a", "{0}.zero_()"), ("a", "{0}.fill_(1)"),
    *(("f", f"{{0}}.{name}_()") for name in ("relu", "tanh", "sigmoid", "sin", "neg", "abs", "floor", "square", "erf")),
    ("n", "{0}.clamp_(-1, 2)"), ("n", "{0}.neg_()"), ("n<", "{0}.masked_fill_({1} > 0, {integer})"), ("b", "{0}.logical_not_()"), ("i", "{0}.bitwise_and_(3)"),
    ("n", "{0}[{slice}] = {integer}"), ("n", "{0}[{slice}] += 1"), ("n", "{0}[{slice}].mul_(2)"), ("n", "{0}[{slice}].zero_()"), ("n", "{0}[{slice}] = {0}.sum().to({0}.dtype)"),
    ("n", "{0}[0] = {0}[-1]"), ("n", "{0}[0].copy_({0}[-1])"), ("n", "{0}.index_fill_({dim}, torch.zeros(1, dtype=torch.int64, device={0}.device), {integer})"),
    ("n=", "{0}.index_add_(0, torch.zeros({1}.shape[0], dtype=torch.int64, device={0}.device), {1})"),
    ("n=", "{0}.scatter_({dim}, torch.zeros_like({0}, dtype=torch.int64), {integer})"), ("n", "{0}.index_put_((torch.zeros(1, dtype=torch.int64, device={0}.device),), {0}[:1] * 2)"),
    ("n", "{0}[{0} > 0] = {integer}"), ("n", "{0}.tril_()"), ("n=", "torch.add({0}, {1}, out={0})"), ("n=", "{0} += {1}"), ("n", "{0} *= 2"),
    ("n<", "{0}.copy_({1} > 0)"), ("f<", "{0}.lerp_({1}.to({0}.dtype).expand_as({0}), 0.5)"), ("f<", "{0}.addcmul_({1}.to({0}.dtype), {1}.to({0}.dtype))"), ("n=", "{0}.transpose(0, -1).add_({1}.transpose(0, -1))"),
    ("f", "{0}.t_()"), ("a", "{0}.unsqueeze_(0)"), ("a", "{0}.squeeze_()"), ("n", "{0}.cumsum_({dim})"), ("n", "{0}.sub_({integer})"),
    ("n=", "torch._foreach_add_([{0}, {1}], 1)"), ("n=", "torch._foreach_mul_([{0}], [{1}])"),
]  # fmt: skip

#: Lines without a converter in TorchAir's GE graphs, found by trying each line alone; most programs omit them.
NOT_CONVERTED = frozenset([
    'F.cosine_similarity({0}, {1}, {dim})',
    "F.smooth_l1_loss({0}, {1}, reduction='none')",
    'F.softplus({0})',
    'torch.all({0}, {dim}, keepdim={keep})',
    'torch.amax({0}, {dims})',
    'torch.amax({0}, {dim}, keepdim={keep})',
    'torch.amin({0}, {dim}, keepdim={keep})',
    'torch.aminmax({0})',
    'torch.atan2({0}, {1}.abs() + 1)',
    'torch.bitwise_xor({0}, {1})',
    'torch.bucketize({0}, {0}.flatten().sort()[0])',
    'torch.cdist({0}.float(), {0}.float(), p=1.0)',
    'torch.clamp_max({0}, 1)',
    'torch.count_nonzero({0}, {dim})',
    'torch.cummax({0}, {dim})[0]',
    'torch.diag_embed({0})',
    'torch.dist({0}, {1})',
    'torch.eye({0}.shape[-1], device={0}.device)',
    'torch.fmax({0}, {1})',
    'torch.fmod({0}, {1}.abs() + 1)',
    'torch.frac({0})',
    'torch.frexp({0}.float())',
    'torch.index_put({0}, (torch.arange({0}.shape[0], device={0}.device),), {0}.sum(0))',
    'torch.isin({0}, {0}.flatten()[:2])',
    'torch.isnan({0})',
    'torch.logical_xor({0}, {1} != 0)',
    'torch.prod({0}, {dim}, keepdim={keep})',
    'torch.roll({0}, {count}, {dim})',
    'torch.signbit({0})',
    'torch.std({0}, {dim}, keepdim={keep})',
    'torch.trunc({0})',
    'torch.var({0}, {dim}, correction=0)',
    'torch.var({0}, {dim}, keepdim={keep})',
    'torch.var_mean({0}, {dim})',
    '{0} & 3',
    '{0} << 1',
    '{0}.bitwise_and_(3)',
    '{0}.diagonal()',
    '{0}.index_fill_({dim}, torch.zeros(1, dtype=torch.int64, device={0}.device), {integer})',
    '{0}.index_put_((torch.zeros(1, dtype=torch.int64, device={0}.device),), {0}[:1] * 2)',
    '{0}.unfold({dim}, 2, 1)',
])  # fmt: skip
