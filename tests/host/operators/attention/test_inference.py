"""torch_npu.npu_fused_infer_attention_score (both generations), npu_prompt_flash_attention,
npu_incre_flash_attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_npu
from attention_reference import EVERYTHING, attention, pages, to_layout
from operator_modes import check

T = torch.Tensor
HALF = torch.float16


def made(batch: int, heads: int, length: int, width: int = 16, dtype: torch.dtype = HALF) -> T:
    return torch.randn(batch, heads, length, width).to(dtype)


def by_batch(
    q: T,
    k: T,
    v: T,
    scale: float,
    lengths: list[int] | None = None,
    kv_lengths: list[int] | None = None,
    **options: Any,
) -> tuple[T, T]:
    """All sequences: the result in the query's dtype and the logarithms; beyond a length they are not determined
    (zeros)."""
    out = torch.zeros(*q.shape[:3], v.size(-1))
    lse = torch.full((*q.shape[:3], 1), torch.inf)
    for b in range(q.size(0)):
        s, t = (lengths or [q.size(2)] * q.size(0))[b], (kv_lengths or [k.size(2)] * k.size(0))[b]
        given = {
            name: value[b] if name in ("mask", "bias") and value is not None else value
            for name, value in options.items()
        }
        out[b, :, :s], lse[b, :, :s] = attention(q[b, :, :s], k[b, :, :t], v[b, :, :t], scale, **given)
    return out.to(q.dtype), lse


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD", "BNSD_BSND"])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_layouts_and_shared_heads(dtype: torch.dtype, layout: str, kv_heads: int) -> None:
    q, k, v = made(2, 4, 5, dtype=dtype), made(2, kv_heads, 7, dtype=dtype), made(2, kv_heads, 7, dtype=dtype)
    out, _ = by_batch(q, k, v, 0.25)
    source, target = (layout.split("_") * 2)[:2]
    modes = "eager captured ge npugraph_ex" if (layout, kv_heads, dtype) == ("BSND", 2, HALF) else "eager captured"
    check(
        lambda q, k, v: torch_npu.npu_fused_infer_attention_score(
            q, k, v, num_heads=4, num_key_value_heads=kv_heads, scale=0.25, input_layout=layout
        )[0],
        [to_layout(x, source) for x in (q, k, v)],
        to_layout(out, target),
        modes,
    )


@pytest.mark.parametrize(
    ("mode", "queries", "keys"),
    [*((mode, *shape) for mode in range(5) for shape in ((5, 5), (3, 6), (6, 3))), (0, 1, 4), (1, 1, 4), (3, 1, 4)],
)
def test_sparse_modes(mode: int, queries: int, keys: int) -> None:
    q, k, v = made(2, 2, queries), made(2, 2, keys), made(2, 2, keys)
    before, after = (2, 1) if mode in (0, 4) else (EVERYTHING, EVERYTHING)
    if mode in (0, 1):
        mask = torch.rand(2, 1, queries, keys) > 0.6
        shown = mask[:, 0]
    else:
        mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
        shown = mask.expand(2, -1, -1)
    out, lse = by_batch(q, k, v, 0.3, mode=mode, mask=shown, before=before, after=after)
    check(
        lambda q, k, v, mask: torch_npu.npu_fused_infer_attention_score(
            q,
            k,
            v,
            atten_mask=mask,
            num_heads=2,
            scale=0.3,
            input_layout="BNSD",
            sparse_mode=mode,
            pre_tokens=before,
            next_tokens=after,
            softmax_lse_flag=True,
        ),
        [q, k, v, mask],
        (out, lse),
        "eager captured" if queries > 1 or mode < 2 else "eager",
    )


@pytest.mark.parametrize(("mode", "before", "after"), [(2, 9, 9), (4, 2, 0), (4, 9, -1), (4, 9, 0), (3, 0, 0)])
def test_modes_that_would_hide_keys_from_one_query_are_refused(mode: int, before: int, after: int) -> None:
    """aclnnFusedInferAttentionScoreV4: "Q_S is 1 and no rope: sparseMode has no effect", while the mode's mask says
    otherwise."""
    q, k, v = made(2, 2, 1), made(2, 2, 4), made(2, 2, 4)

    def run(q: T, k: T, v: T) -> T:
        mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1).npu()
        y = torch_npu.npu_fused_infer_attention_score(
            q,
            k,
            v,
            atten_mask=mask,
            num_heads=2,
            scale=0.3,
            input_layout="BNSD",
            sparse_mode=mode,
            pre_tokens=before,
            next_tokens=after,
        )[0]
        torch.npu.synchronize()
        return y

    if (before, after) in ((9, 0), (0, 0)):  # nothing is hidden
        check(run, [q, k, v], by_batch(q, k, v, 0.3)[0], "eager")
        return
    with pytest.raises(RuntimeError, match=f"sparse_mode {mode} would hide keys from the only query"):
        run(q.npu(), k.npu(), v.npu())


def test_ragged_lengths() -> None:
    q, k, v = made(3, 2, 4), made(3, 2, 6), made(3, 2, 6)
    lengths, kv_lengths = [4, 2, 1], [6, 3, 5]
    out, _ = by_batch(q, k, v, 0.5, lengths, kv_lengths)

    def run(q: T, k: T, v: T) -> T:
        y = torch_npu.npu_fused_infer_attention_score(
            q,
            k,
            v,
            num_heads=2,
            scale=0.5,
            input_layout="BNSD",
            actual_seq_lengths=lengths,
            actual_seq_lengths_kv=kv_lengths,
        )[0]
        return torch.cat([y[b, :, :n] for b, n in enumerate(lengths)], 1)  # what is beyond is not determined

    check(run, [q, k, v], torch.cat([out[b, :, :n] for b, n in enumerate(lengths)], 1))


@pytest.mark.parametrize("layout", ["BNSD", "BSH"])
def test_lengths_of_one_query_have_no_effect(layout: str) -> None:
    q, k, v = made(2, 2, 1), made(2, 2, 6), made(2, 2, 6)
    out, _ = by_batch(q, k, v, 0.5)
    options = {"num_heads": 2, "scale": 0.5, "input_layout": layout, "actual_seq_lengths": [100, 0]}
    check(
        lambda q, k, v: torch_npu.npu_fused_infer_attention_score(q, k, v, **options)[0],
        [to_layout(x, layout) for x in (q, k, v)],
        to_layout(out, layout),
        "eager captured",
    )


def test_logarithms_that_nobody_asks_for_may_have_any_dtype() -> None:
    q, y, lse = (
        made(1, 2, 3).npu(),
        torch.empty(1, 2, 3, 16, dtype=HALF, device="npu"),
        torch.ones(1, dtype=HALF, device="npu"),
    )
    torch_npu.npu_fused_infer_attention_score.out(q, q, q, num_heads=2, scale=0.5, input_layout="BNSD", out=[y, lse])
    expected, _ = by_batch(q.cpu(), q.cpu(), q.cpu(), 0.5)
    torch.testing.assert_close(y.cpu(), expected)
    assert lse.tolist() == [1]


@pytest.mark.parametrize("mode", [0, 3])
def test_sequences_that_follow_each_other(mode: int) -> None:
    """Layout TND: lengths are sums of those before."""
    lengths, kv_lengths = [3, 1, 4], [5, 2, 4]
    q, k, v = torch.randn(8, 4, 16).to(HALF), torch.randn(11, 2, 16).to(HALF), torch.randn(11, 2, 16).to(HALF)
    mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1) if mode else None
    parts = [
        attention(a.transpose(0, 1), b.transpose(0, 1), c.transpose(0, 1), 0.25, mode=mode, mask=mask)
        for a, b, c in zip(q.split(lengths), k.split(kv_lengths), v.split(kv_lengths), strict=True)
    ]
    ends = torch.tensor(lengths).cumsum(0).tolist(), torch.tensor(kv_lengths).cumsum(0).tolist()
    check(
        lambda q, k, v, *mask: torch_npu.npu_fused_infer_attention_score(
            q,
            k,
            v,
            atten_mask=mask[0] if mask else None,
            num_heads=4,
            num_key_value_heads=2,
            scale=0.25,
            input_layout="TND",
            sparse_mode=mode,
            actual_seq_lengths=ends[0],
            actual_seq_lengths_kv=ends[1],
            softmax_lse_flag=True,
        ),
        [q, k, v, *([] if mask is None else [mask])],
        tuple(
            torch.cat([part[n].transpose(0, 1) for part in parts]).to(dtype)
            for n, dtype in ((0, HALF), (1, torch.float32))
        ),
        "eager captured",
    )


@pytest.mark.parametrize("kind", ["BSH", "BNSD", "NZ"])
@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("generation", [1, 2])
def test_pages(kind: str, queries: int, generation: int) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = made(3, 4, queries, 32), made(3, 2, 20, 32), made(3, 2, 20, 32)
    kv_lengths = [20, 7, 9]
    out, _ = by_batch(q, k, v, 0.2, kv_lengths=kv_lengths)
    (keys, table), values = pages(k, 8, kind, generator), pages(v, 8, kind, generator.manual_seed(0))[0]

    def first(q: T, k: T, v: T, table: T) -> T:
        return torch_npu.npu_fused_infer_attention_score(
            q,
            k,
            v,
            num_heads=4,
            num_key_value_heads=2,
            scale=0.2,
            input_layout="BNSD",
            block_table=table,
            block_size=8,
            actual_seq_lengths_kv=kv_lengths,
        )[0]

    def second(q: T, k: T, v: T, table: T) -> T:
        return torch_npu.npu_fused_infer_attention_score_v2(
            q,
            k,
            v,
            num_query_heads=4,
            num_key_value_heads=2,
            softmax_scale=0.2,
            input_layout="BNSD",
            block_table=table,
            block_size=8,
            actual_seq_kvlen=kv_lengths,
        )[0]

    modes = "eager captured ge npugraph_ex" if kind == "BSH" and queries == 1 else "eager captured"
    check(first if generation == 1 else second, [q, keys, values, table], out, modes)


def test_rope_beside_the_query_is_a_longer_query() -> None:
    q, k, v, q_rope, k_rope = (
        made(2, 4, 1, 512),
        made(2, 1, 6, 512),
        made(2, 1, 6, 512),
        made(2, 4, 1, 64),
        made(2, 1, 6, 64),
    )
    out, _ = by_batch(torch.cat([q, q_rope], -1), torch.cat([k, k_rope], -1), v, 0.04)
    check(
        lambda q, k, v, a, b: torch_npu.npu_fused_infer_attention_score(
            q, k, v, query_rope=a, key_rope=b, num_heads=4, num_key_value_heads=1, scale=0.04, input_layout="BNSD"
        )[0],
        [q, k, v, q_rope, k_rope],
        out,
        "eager captured",
    )


def test_a_learnable_sink_takes_a_share() -> None:
    q, k, v = (
        made(2, 4, 3, dtype=torch.bfloat16),
        made(2, 2, 6, dtype=torch.bfloat16),
        made(2, 2, 6, dtype=torch.bfloat16),
    )
    sink = torch.randn(4).bfloat16()
    out, _ = by_batch(q, k, v, 0.25, sink=sink)
    check(
        lambda q, k, v, sink: torch_npu.npu_fused_infer_attention_score_v2(
            q,
            k,
            v,
            learnable_sink=sink,
            num_query_heads=4,
            num_key_value_heads=2,
            softmax_scale=0.25,
            input_layout="BNSD",
        )[0],
        [q, k, v, sink],
        out,
        "eager captured",
    )


def test_a_bias_of_positions() -> None:
    q, k, v, bias = made(2, 2, 3), made(2, 2, 5), made(2, 2, 5), torch.randn(2, 2, 3, 5).to(HALF)
    out, _ = by_batch(q, k, v, 0.25, bias=bias)
    check(
        lambda q, k, v, bias: torch_npu.npu_fused_infer_attention_score(
            q, k, v, pse_shift=bias, num_heads=2, scale=0.25, input_layout="BNSD"
        )[0],
        [q, k, v, bias],
        out,
        "eager captured",
    )


@pytest.mark.parametrize("mode", [0, 1])
def test_quantized_caches(mode: int) -> None:
    """Scales by channel (0) or by token (1), with offsets."""
    q = made(2, 4, 1)
    shape = (2, 16) if mode == 0 else (2, 6)
    k, v = (torch.randint(-100, 100, (2, 2, 6, 16), dtype=torch.int8) for _ in range(2))
    scales = [torch.rand(shape).mul(0.02).to(HALF if mode == 0 else torch.float32) for _ in range(2)]
    offsets = [torch.randn(shape).to(scales[0].dtype) for _ in range(2)]

    def dequantized(x: T, scale: T, offset: T) -> T:
        shape = (1, 2, 1, 16) if mode == 0 else (2, 1, 6, 1)
        return (x.float() + offset.float().reshape(shape)) * scale.float().reshape(shape)

    out, _ = by_batch(q, dequantized(k, scales[0], offsets[0]), dequantized(v, scales[1], offsets[1]), 0.25)
    check(
        lambda q, k, v, ks, vs, ko, vo: torch_npu.npu_fused_infer_attention_score(
            q,
            k,
            v,
            key_antiquant_scale=ks,
            value_antiquant_scale=vs,
            key_antiquant_offset=ko,
            value_antiquant_offset=vo,
            key_antiquant_mode=mode,
            value_antiquant_mode=mode,
            num_heads=4,
            num_key_value_heads=2,
            scale=0.25,
            input_layout="BNSD",
        )[0],
        [q, k, v, *scales, *offsets],
        out,
        "eager captured",
    )


def test_quantized_results() -> None:
    q, k, v = made(2, 2, 3), made(2, 2, 5), made(2, 2, 5)
    out = torch.zeros(q.shape)
    for b in range(2):
        out[b] = attention(q[b], k[b], v[b], 0.25)[0]
    scale = torch.tensor([40.0])
    check(
        lambda q, k, v, s: torch_npu.npu_fused_infer_attention_score(
            q, k, v, quant_scale2=s, num_heads=2, scale=0.25, input_layout="BNSD"
        )[0],
        [q, k, v, scale],
        torch.round(out * 40).clamp(-128, 127).to(torch.int8),
        "eager captured",
    )


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD"])
def test_prompt_flash_attention(layout: str) -> None:
    q, k, v = made(2, 4, 5), made(2, 2, 5), made(2, 2, 5)
    mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    out, _ = by_batch(q, k, v, 0.25, mode=2, mask=mask.expand(2, -1, -1))
    check(
        lambda q, k, v, m: torch_npu.npu_prompt_flash_attention(
            q,
            k,
            v,
            atten_mask=m,
            num_heads=4,
            num_key_value_heads=2,
            scale_value=0.25,
            input_layout=layout,
            sparse_mode=2,
        ),
        [*(to_layout(x, layout) for x in (q, k, v)), mask],
        to_layout(out, layout),
        "eager captured ge npugraph_ex" if layout == "BSH" else "eager captured",
    )


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD"])
def test_incre_flash_attention(layout: str) -> None:
    q, k, v = made(2, 4, 1), made(2, 2, 9), made(2, 2, 9)
    out, _ = by_batch(q, k, v, 0.25, kv_lengths=[9, 4])
    check(
        lambda q, k, v: torch_npu.npu_incre_flash_attention(
            q,
            k,
            v,
            num_heads=4,
            num_key_value_heads=2,
            scale_value=0.25,
            input_layout=layout,
            actual_seq_lengths=[9, 4],
        ),
        [to_layout(x, layout) for x in (q, k, v)],
        to_layout(out, layout),
        "eager captured ge npugraph_ex" if layout == "BSH" else "eager captured",
    )


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"num_heads": 3}, "num_heads 3: expected N of query"),
        ({"num_key_value_heads": 3}, "num_key_value_heads 3: expected a divisor of num_heads, 4"),
        ({"sparse_mode": 3}, "sparse_mode 3 needs atten_mask"),
        ({"sparse_mode": 6}, "sparse_mode 6 is not supported"),
        ({"actual_seq_lengths_kv": [6, 7]}, "actual_seq_lengths_kv .* each must be from 0 to 6"),
    ],
)
def test_what_is_documented_as_invalid_is_refused(change: dict[str, Any], text: str) -> None:
    q, k, v = (made(2, 4, 3).npu(), made(2, 4, 6).npu(), made(2, 4, 6).npu())
    with pytest.raises(RuntimeError, match=text):
        torch_npu.npu_fused_infer_attention_score(q, k, v, **{"num_heads": 4, "input_layout": "BNSD", **change})


@pytest.mark.parametrize("block", [-1, 4, 1 << 20])
def test_a_block_out_of_range_is_refused(block: int) -> None:
    q, cache = made(1, 2, 1).npu(), torch.zeros(4, 8, 32, dtype=HALF).npu()
    table = torch.tensor([[0, block]], dtype=torch.int32).npu()
    with pytest.raises(RuntimeError, match="block_table .*: expected blocks 0 to 3"):
        torch_npu.npu_fused_infer_attention_score(
            q,
            cache,
            cache,
            num_heads=2,
            input_layout="BNSD",
            block_table=table,
            block_size=8,
            actual_seq_lengths_kv=[12],
        )


def test_lengths_of_a_captured_call_are_updated() -> None:
    """As serving code does: the task is recorded in a group, and gets the lengths of the next step before each
    replay."""
    q, k, v = made(2, 4, 1), made(2, 2, 9), made(2, 2, 9)
    qn, kn, vn = q.npu(), k.npu(), v.npu()
    out, lse = torch.empty_like(qn), torch.empty(1, device="npu")
    options: dict[str, Any] = {"num_heads": 4, "num_key_value_heads": 2, "scale": 0.25, "input_layout": "BNSD"}
    workspace = torch_npu._npu_fused_infer_attention_score_get_max_workspace(
        qn, kn, vn, actual_seq_lengths_kv=[1, 1], **options
    )
    graph, stream, event = torch.npu.NPUGraph(), torch.npu.Stream(), torch.npu.ExternalEvent()

    def call(lengths: list[int]) -> None:
        torch_npu.npu_fused_infer_attention_score.out(
            qn, kn, vn, actual_seq_lengths_kv=lengths, **options, workspace=workspace, out=[out, lse]
        )

    with torch.npu.graph(graph):
        current = torch.npu.current_stream()
        event.wait(current)
        event.reset(current)
        torch.npu.graph_task_group_begin(current)
        call([1, 1])
        group = torch.npu.graph_task_group_end(current)
    for lengths in ([9, 4], [3, 7]):
        with torch.npu.stream(stream):
            torch.npu.graph_task_update_begin(stream, group)
            call(lengths)
            torch.npu.graph_task_update_end(stream)
            event.record(stream)
        graph.replay()
        torch.npu.synchronize()
        expected, _ = by_batch(q, k, v, 0.25, kv_lengths=lengths)
        torch.testing.assert_close(out.cpu(), expected, rtol=2e-3, atol=2e-3)
