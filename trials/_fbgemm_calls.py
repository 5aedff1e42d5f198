"""Calls of fbgemm_ascend's operators for Atlas A2."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import torch

from trials._wheel_calls import OperatorCall, Tensor, TriedOperator


def _offsets(lengths: Sequence[int], dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=dtype)


def _cumsum() -> Iterable[OperatorCall]:
    for dtype in (torch.int32, torch.int64):
        for count in (1, 7, 1000):
            x = torch.randint(0, 100, (count,), dtype=dtype)
            yield OperatorCall([x], [torch.cat([x.new_zeros(1), x.cumsum(0).to(dtype)])])


def _offsets_range() -> Iterable[OperatorCall]:
    for lengths in ([3, 0, 5, 2], [1], [40, 1, 0, 0, 300, 7]):
        offsets = _offsets(lengths, torch.int32)
        expected = torch.cat([torch.arange(n, dtype=torch.int32) for n in lengths])
        yield OperatorCall([offsets[:-1].contiguous()], [expected], {"rangeSize": sum(lengths)})


def _segment_sum() -> Iterable[OperatorCall]:
    for dtype in (torch.float32, torch.float16):
        for batch, bounds in ((2, [0, 2, 5, 6]), (1, [0, 33, 100])):
            values = torch.randint(-8, 8, (bounds[-1] * batch,)).to(dtype)
            parts = [values[a * batch : b * batch].float().sum() for a, b in itertools.pairwise(bounds)]
            for index in (torch.int32, torch.int64):
                given = [torch.tensor(bounds, dtype=index), values]
                yield OperatorCall(given, [torch.stack(parts).to(dtype)], {"batchSize": batch})


def _dense_to_jagged() -> Iterable[OperatorCall]:
    lengths = [2, 0, 4, 1]
    for dtype in (torch.float32, torch.float16, torch.int64):
        dense = torch.randint(-50, 50, (len(lengths), 4, 5)).to(dtype)
        expected = torch.cat([dense[i, :n] for i, n in enumerate(lengths)])
        for index in (torch.int64, torch.int32):
            yield OperatorCall([dense, _offsets(lengths, index)], [expected], {"jagged_dim0": sum(lengths)})


def _padded(values: Tensor, lengths: Sequence[int], most: int, padding: float) -> Tensor:
    out = values.new_full((len(lengths), most, *values.shape[1:]), padding)
    for row, part in enumerate(torch.split(values, list(lengths))):
        out[row, : min(most, len(part))] = part[:most]
    return out


def _jagged_to_padded_dense() -> Iterable[OperatorCall]:
    lengths = [2, 0, 4, 1]
    for dtype in (torch.float32, torch.float16, torch.int64):
        values = torch.randint(-50, 50, (sum(lengths), 6)).to(dtype)
        attrs = {"max_length": 3, "padding_value_fp32": -1.0, "padding_value_int64": -1}
        for index in (torch.int64, torch.int32):
            yield OperatorCall([values, _offsets(lengths, index)], [_padded(values, lengths, 3, -1)], attrs)


def _jagged_to_padded_dense_v2() -> Iterable[OperatorCall]:
    lengths = [2, 0, 4, 1]
    for dtype in (torch.float32, torch.float16):
        values = torch.randint(-50, 50, (sum(lengths), 6)).to(dtype)
        attrs = {"maxLength": [3], "paddingValue": 0.5}
        out = values.new_full((len(lengths), 3, 6), 0.5)
        yield OperatorCall([values, [_offsets(lengths)]], [_padded(values, lengths, 3, 0.5)], attrs, [out])


def _permute_pooled() -> Iterable[OperatorCall]:
    widths, order = [4, 8, 3], [2, 0, 1]
    for dtype in (torch.float32, torch.float16):
        pooled = torch.randn(5, sum(widths)).to(dtype)
        expected = torch.cat([torch.split(pooled, widths, 1)[i] for i in order], 1)
        permuted = _offsets([widths[i] for i in order])
        yield OperatorCall([pooled, _offsets(widths), torch.tensor(order), permuted], [expected])


def _permute2d() -> Iterable[OperatorCall]:
    for index in (torch.int64, torch.int32):
        lengths = torch.tensor([[1, 2, 0], [3, 1, 1], [0, 2, 2]], dtype=index)
        order = [2, 0, 1]
        values = torch.arange(int(lengths.sum()), dtype=torch.float32) + 1
        weights = torch.randn(values.shape)
        parts = lengths.sum(1).tolist()
        totals = _offsets(parts)

        def moved(x: Tensor, parts: Sequence[int] = parts, order: Sequence[int] = order) -> Tensor:
            return torch.cat([torch.split(x, list(parts))[i] for i in order])

        yield OperatorCall(
            [torch.tensor(order, dtype=index), lengths, values, weights, totals, None, None],
            [lengths[order], moved(values), moved(weights)],
            {"permuted_sum": len(values), "enableWeights": True},
        )


def _tables() -> tuple[Tensor, list[int], list[int], Tensor, Tensor]:
    """Return two embedding tables in one tensor, their rows, rows of a table in another, indices, and offsets of bags."""
    weights = torch.randint(-20, 20, (9, 8)).float()
    indices = torch.tensor([0, 3, 4, 4, 1, 2, 0])
    return weights, [5, 4], [0, 5], indices, torch.tensor([0, 2, 4, 5, 7])


def _looked_up(weights: Tensor, firsts: Sequence[int], indices: Tensor, bags: Tensor) -> Tensor:
    batch = (len(bags) - 1) // len(firsts)
    table = torch.bucketize(torch.arange(len(indices)), bags[batch::batch], right=True)
    return weights[indices + torch.tensor(firsts)[table]]


def _embedding() -> Iterable[OperatorCall]:
    weights, rows, firsts, indices, bags = _tables()
    expected = _looked_up(weights, firsts, indices, bags)
    for index in (torch.int64, torch.int32):
        numbers = ([8 * n for n in firsts], [0, 8, 16], [0, rows[0], sum(rows)])
        given = [torch.tensor(one, dtype=index) for one in numbers]
        yield OperatorCall(
            [weights, *given, indices.to(index), bags.to(index), None, None, None, None],
            [expected],
            {"total_D": 16, "max_D": 8, "total_hash_size_bits": 4, "pooling_mode": 2},
        )


def _embedding_gradient() -> Iterable[OperatorCall]:
    weights, rows, firsts, indices, bags = _tables()
    gradient = torch.randint(-9, 9, (len(indices), 8)).float()
    places = _looked_up(torch.arange(9.0)[:, None], firsts, indices, bags)[:, 0].long()
    expected = torch.zeros_like(weights).index_add_(0, places, gradient)
    for index in (torch.int64, torch.int32):
        numbers = ([8 * n for n in firsts], [0, 8, 16], [0, rows[0], sum(rows)])
        given = [torch.tensor(one, dtype=index) for one in numbers]
        yield OperatorCall(
            [weights, gradient, *given, indices.to(index), bags.to(index), None, None, None, None],
            [expected],
            {"totalD": 16, "maxD": 8, "totalHashSizeBits": 4, "poolingMode": 2, "featureRequiresGrad": True,
             "outputDtypeOptional": "float32", "maxB": 0, "maxBFeatureRank": 0, "vbeOutputSize": 0},
            [torch.zeros_like(weights)],
        )  # fmt: skip


def _pooled(weights: Tensor, firsts: Sequence[int], indices: Tensor, bags: Tensor, mean: bool) -> Tensor:
    looked_up = _looked_up(weights, firsts, indices, bags)
    parts = [looked_up[a:b] for a, b in itertools.pairwise(bags.tolist())]
    rows = torch.stack([part.mean(0) if mean else part.sum(0) for part in parts])
    return torch.cat(torch.split(rows, len(parts) // len(firsts)), 1)


def _split_embedding() -> Iterable[OperatorCall]:
    weights, _, firsts, indices, bags = _tables()
    nothing, zeros = torch.zeros(1), torch.zeros(len(indices), dtype=torch.int32)
    per_table = torch.tensor([0, *(int(bags[2 * (n + 1)]) for n in range(len(firsts)))])
    for mode in (0, 1):
        yield OperatorCall(
            [weights.flatten(), nothing, nothing, torch.zeros(2, dtype=torch.int32), torch.tensor([8 * n for n in firsts]),
             torch.tensor([0, 8, 16], dtype=torch.int32), indices, bags, zeros, None, per_table, None],
            [_pooled(weights, firsts, indices, bags, mode == 1)],
            {"totalD": 16, "maxD": 8, "poolMode": mode, "outputDtype": 0, "isExperimental": 0},
            [torch.zeros(2, 16)],
            tolerance=1e-6,
        )  # fmt: skip


def _adagrad() -> Iterable[OperatorCall]:
    weights, rows, firsts, indices, bags = _tables()
    gradient, momentum = torch.randint(-9, 9, (2, 16)).float(), torch.rand(9, 8)
    flat = weights.flatten().clone().requires_grad_()
    (_pooled(flat.view(9, 8), firsts, indices, bags, False) * gradient).sum().backward()
    assert flat.grad is not None
    total, rate, eps = flat.grad.view(9, 8), 0.1, 1e-8
    stepped = weights - rate * total / ((momentum + total * total).sqrt() + eps)
    nothing, zeros = torch.zeros(1), torch.zeros(len(indices), dtype=torch.int32)
    places, starts = torch.zeros(2, dtype=torch.int32), torch.tensor([8 * n for n in firsts])
    yield OperatorCall(
        [gradient, weights.flatten(), nothing, nothing, places, starts, torch.tensor([0, 8, 16], dtype=torch.int32),
         torch.tensor([0, rows[0], sum(rows)]), indices, bags, zeros, momentum.flatten(), nothing, places, starts,
         None, None, None, None, None, None, None, None, None],
        [total.flatten(), (momentum + total * total).flatten(), None, stepped.flatten()],
        {"maxD": 8, "totalHashSizeBits": 4, "poolMode": 0, "bTBlockSize": 0, "maxSegmentLengthPerWarp": 32,
         "stochasticRounding": 0, "infoBNumBits": 0, "infoBMaskInt64": 0, "useUniqCacheLocations": 0,
         "useHomogeneousPlacements": 0, "optimType": 1, "eps": eps, "learningRate": rate, "beta1": 0.9, "beta2": 0.999,
         "iter": 1, "useOptimize": True},
        [torch.zeros(72), momentum.flatten().clone(), torch.zeros(72), weights.flatten().clone()],
        tolerance=1e-6,
    )  # fmt: skip


#: Operators by op type.
OPERATORS: Mapping[str, TriedOperator] = {
    "AsynchronousCompleteCumsum": TriedOperator(_cumsum),
    "OffsetsRange": TriedOperator(_offsets_range),
    "SegmentSumCsr": TriedOperator(_segment_sum, "csrSeg[s], values[n] -> y[s - 1]: values", tells_dtypes=False),
    "DenseToJagged": TriedOperator(_dense_to_jagged),
    "JaggedToPaddedDense": TriedOperator(_jagged_to_padded_dense),
    "JaggedToPaddedDenseV2": TriedOperator(_jagged_to_padded_dense_v2, writes=True),
    "PermutePooledEmbs": TriedOperator(_permute_pooled),
    "Permute2dSparseData": TriedOperator(_permute2d),
    "DenseEmbeddingCodegenLookupFunction": TriedOperator(
        _embedding, "dev_weights[n, d], indices[k] -> out[k, d]: float32"
    ),
    "DenseEmbeddingCodegenLookupFunctionGrad": TriedOperator(_embedding_gradient, writes=True),
    "SplitEmbeddingCodegenForwardUnweighted": TriedOperator(_split_embedding, writes=True),
    "BackwardCodegenAdagradUnweightedExact": TriedOperator(_adagrad, writes=True),
}
