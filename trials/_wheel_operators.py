"""Calls of operators of public wheels, each with its reference in plain PyTorch."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

Tensor = torch.Tensor


@dataclass(frozen=True)
class OperatorCall:
    """One call: inputs in the prototype's order, attrs by name, and what each output has to be."""

    inputs: Sequence[Any]
    expected: Sequence[Tensor | None]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    #: What the outputs hold before: a kernel that adds to them, or writes a part, leaves that to its caller.
    outputs: Sequence[Tensor] = ()
    #: Largest relative error; 0 for equal.
    tolerance: float = 0.0


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


def _mul_add() -> Iterable[OperatorCall]:
    for dtype in (torch.float16, torch.bfloat16):
        for batch, rows, width in ((2, 16, 512), (1, 33, 96)):
            a, b = (torch.randn(batch, rows, width).to(dtype) for _ in range(2))
            c = torch.randn(batch, 1, width).to(dtype)
            yield OperatorCall([a, b, c], [(a.float() + b.float() * c.float()).to(dtype)])


def _laser_preprocess() -> Iterable[OperatorCall]:
    for dtype in (torch.float16, torch.bfloat16):
        given = [torch.randn(1, 300, 2, 128).to(dtype) for _ in range(3)]
        expected = []
        for one in given:
            padded = torch.zeros(1, 2, 512, 128, dtype=torch.float16)
            padded[:, :, :300] = one.transpose(1, 2).half()
            expected.append(padded)
        yield OperatorCall(given, expected, {"align_len": 256})


def _sparse_estimate() -> Iterable[OperatorCall]:
    """Yield a call that keeps all of the four by four blocks; rows of the mask have room for 32."""
    query, key = (torch.randn(1, 2, 512, 128).half() for _ in range(2))
    mask = torch.zeros(1, 2, 4, 32, dtype=torch.int8)
    mask[..., :4] = 1
    attrs = {"lengths": [512], "lengths_kv": [512], "layout": "BNSD", "stride": 8, "size": 128, "heads": 2, "kv_heads": 2,
             "scale": 128**-0.5 / 8, "threshold": 1.0, "causal": False, "sink": True, "recent": True, "row_sparse": 1.0}  # fmt: skip
    counts = torch.full((1, 2, 4), 4, dtype=torch.int32)
    outputs = [torch.zeros_like(mask), torch.zeros_like(counts)]
    yield OperatorCall([query, key], [mask, counts], attrs, outputs)


@dataclass(frozen=True)
class TriedOperator:
    """Calls of an operator, and what its registration needs to be told."""

    calls: Callable[[], Iterable[OperatorCall]]
    #: Shape relation where the package does not tell dtypes.
    relation: str | None = None
    #: True if the caller passes the outputs in. A GE graph gives the kernel fresh memory instead.
    writes: bool = False
    #: False if the package has no InferDataType function and kernels for several dtypes of an output.
    tells_dtypes: bool = True


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
    "MulAdd": TriedOperator(_mul_add),
    "LaPreprocess": TriedOperator(_laser_preprocess),
    "SparseBlockEstimate": TriedOperator(_sparse_estimate, writes=True),
}

_TYPES = {"int64_t": "int", "double": "float", "float": "float", "bool": "bool", "char": "str"}


def registered(op_type: str) -> Callable[..., Any]:
    """Register an operator and return the function that calls it."""
    import ascend_graph

    tried = OPERATORS[op_type]
    if tried.writes:
        one = ascend_graph.register_aclnn(f"aclnn{op_type}", schema=_written_schema(op_type))
    else:
        one = ascend_graph.register_op(op_type, shape=tried.relation)
    function: Callable[..., Any] = one.overload
    return function


def _written_schema(op_type: str) -> str:
    """Return a schema with the function's outputs as arguments that it writes."""
    from ascend_graph.aclnn.catalog import process_catalog
    from ascend_graph.prototypes import find_prototype

    parameters = process_catalog.find(f"aclnn{op_type}").parameters
    outputs = {one.name for one in parameters[-len(find_prototype(op_type).outputs) :]}
    texts, marks = [], iter("abcdefgh")
    for one in parameters:
        optional = "?" if one.name.endswith("Optional") and one.name not in outputs else ""
        if one.name in outputs:
            texts.append(f"Tensor({next(marks)}!) {one.name}")
        elif "Tensor" in str(one.type):
            texts.append(f"Tensor[] {one.name}" if "List" in str(one.type) else f"Tensor{optional} {one.name}")
        elif "IntArray" in str(one.type):
            texts.append(f"int[] {one.name}")
        else:
            texts.append(f"{next(_TYPES[word] for word in _TYPES if word in str(one.type))} {one.name}")
    return f"{op_type.lower()}({', '.join(texts)}) -> ()"


def problems(op_type: str, mode: str) -> list[str]:
    """Call an operator in one mode and return how its results differ from the references.

    Raises:
        Exception: Whatever the registration or a call raises.
    """
    torch.manual_seed(0)
    function, found = registered(op_type), []
    for call in OPERATORS[op_type].calls():
        results = _results(function, call, mode)
        for number, (got, expected) in enumerate(zip(results, call.expected, strict=True)):
            if expected is not None and (text := differs(got.cpu(), expected, call.tolerance)):
                found.append(f"output {number}: {text}")
    return found


def _results(function: Callable[..., Any], call: OperatorCall, mode: str) -> Sequence[Tensor]:
    inputs = [_on_npu(one) for one in call.inputs]
    written = [one.npu() for one in call.outputs]

    def run(*tensors: Any) -> Any:
        if not written:
            return function(*tensors, **call.attrs)
        return function(*tensors[: len(inputs)], *call.attrs.values(), *tensors[len(inputs) :])

    got = _compiled(run, mode)(*inputs, *written)
    return written or (got if isinstance(got, (tuple, list)) else [got])


def _on_npu(value: Any) -> Any:
    return [one.npu() for one in value] if isinstance(value, list) else None if value is None else value.npu()


def _compiled(function: Callable[..., Any], mode: str) -> Callable[..., Any]:
    if mode == "eager":
        return function
    import torchair

    torch._dynamo.reset()
    backend = "npugraph_ex" if mode == "npugraph_ex" else torchair.get_npu_backend()
    compiled: Callable[..., Any] = torch.compile(function, backend=backend, dynamic=False, fullgraph=True)
    return compiled


def differs(got: Tensor, expected: Tensor, tolerance: float) -> str:
    """Return how a result differs from its reference; "" if it does not."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)}; expected {expected.dtype}{list(expected.shape)}"
    if tolerance == 0 and torch.equal(got, expected):
        return ""
    error = (got.double() - expected.double()).abs().max().item() if got.numel() else 0.0
    scale = expected.double().abs().max().item() if got.numel() else 0.0
    return "" if not math.isnan(error) and error <= tolerance * max(scale, 1.0) else f"error {error:g} of {scale:g}"


def main() -> None:
    """Try an operator in the modes that it has, and print a line of JSON for each."""
    op_type = sys.argv[1]
    # GE's graphs first: torchair cannot register what they need after npugraph_ex's.
    for mode in ("eager", "ge", "npugraph_ex"):
        if mode == "ge" and (OPERATORS[op_type].writes or not OPERATORS[op_type].tells_dtypes):
            continue
        try:
            print(json.dumps({"mode": mode, "problems": problems(op_type, mode)}), flush=True)
        except Exception as error:
            print(json.dumps({"mode": mode, "refused": f"{type(error).__name__}: {error}"[:1500]}), flush=True)


if __name__ == "__main__":
    import torch_npu  # noqa: F401

    main()
