"""Tensors that a device keeps in blocks (FRACTAL_NZ and its kin): what memory holds, operators on them in every mode,
and what
does not take them."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterator, Sequence

import pytest
import torch
import torch_npu
import torchair
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_modes import InBlocks, check, listed, to_npu

T = torch.Tensor
I8 = torch.int8
ND, NC1HWC0, FRACTAL_Z, NZ, NDC1HWC0, FRACTAL_Z_3D = 2, 3, 4, 29, 32, 33


@pytest.fixture(autouse=True)
def _formats_are_allowed() -> Iterator[None]:
    torch.npu.config.allow_internal_format = True
    yield
    torch.npu.config.allow_internal_format = False  # as it is before, and cannot be asked for


def memory_of(x: T, count: int) -> T:
    """What the device's memory holds, from the first byte on."""
    kept = (ctypes.c_char * (count * x.element_size())).from_address(x.data_ptr())
    return torch.frombuffer(bytearray(kept), dtype=x.dtype)


def place(format_: int, sizes: Sequence[int], at: Sequence[int], width: int) -> tuple[int, int]:
    """Where a number is kept, and how many are, index by index as CANN's documents define the formats; ``width`` is
    C0."""

    def blocks(size: int, of: int) -> int:
        return -(-size // of)

    def row_major(sizes: Sequence[int], at: Sequence[int]) -> tuple[int, int]:
        position = 0
        for size, index in zip(sizes, at, strict=True):
            position = position * size + index
        return position, math.prod(sizes)

    if format_ == NZ:
        (*outer, m, n), (*before, i, j) = sizes, at
        kept = [*outer, blocks(n, width), blocks(m, 16), 16, width]
        return row_major(kept, [*before, j // width, i // 16, i % 16, j % width])
    (n, c, *points), (k, channel, *point) = sizes, at
    depth, height, breadth = [1, *points] if len(points) == 2 else points
    z, y, x = [0, *point] if len(point) == 2 else point
    if format_ in (NC1HWC0, NDC1HWC0):
        kept = [n, depth, blocks(c, width), height, breadth, width]
        return row_major(kept, [k, z, channel // width, y, x, channel % width])
    kept = [depth, blocks(c, width), height, breadth, blocks(n, 16), 16, width]
    return row_major(kept, [z, channel // width, y, x, k // 16, k % 16, channel % width])


def matrices() -> st.SearchStrategy[tuple[int, tuple[int, ...]]]:
    side = st.integers(1, 40)
    return st.one_of(
        st.tuples(st.just(NZ), st.tuples(side, side)),
        st.tuples(st.just(NZ), st.tuples(st.integers(1, 3), side, side)),
        st.tuples(st.sampled_from([NC1HWC0, FRACTAL_Z]), st.tuples(side, side, st.integers(1, 3), st.integers(1, 3))),
        st.tuples(
            st.sampled_from([NDC1HWC0, FRACTAL_Z_3D]),
            st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 2), st.integers(1, 2), st.integers(1, 3)),
        ),
    )


@settings(max_examples=40)
@given(matrices(), st.sampled_from([torch.float16, torch.bfloat16, torch.float32, I8]))
def test_memory_is_in_blocks_and_comes_back(case: tuple[int, tuple[int, ...]], dtype: torch.dtype) -> None:
    format_, sizes = case
    if dtype is I8 and format_ != NZ:
        dtype = torch.float16
    count = math.prod(sizes)
    x = (torch.arange(count) % 120 + 1).to(dtype).reshape(sizes)
    kept = torch_npu.npu_format_cast(x.npu(), format_)
    assert torch_npu.get_npu_format(kept) == format_
    width = 32 if dtype is I8 else 16
    _, size = place(format_, sizes, [0] * len(sizes), width)
    expected = torch.zeros(size, dtype=dtype)
    for at in itertools.product(*map(range, sizes)):
        expected[place(format_, sizes, at, width)[0]] = x[at]
    assert torch.equal(memory_of(kept, size), expected)
    assert torch.equal(kept.cpu(), x)
    back = torch_npu.npu_format_cast(kept, ND)
    assert torch_npu.get_npu_format(back) in (ND, 0, 30)
    assert torch.equal(memory_of(back, count), x.flatten())


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_operators_of_pytorch_read_and_write_them() -> None:
    w = torch.randn(60, 100).half()
    kept = to_npu(InBlocks(w))
    assert torch.equal(kept.t().cpu(), w.t())
    assert torch.equal(kept[10:20, ::3].cpu(), w[10:20, ::3])
    assert torch.equal((kept + 1).cpu(), w + 1)
    assert torch.equal(torch.cat([kept, kept]).cpu(), torch.cat([w, w]))
    assert torch_npu.get_npu_format(kept + 1) == ND
    assert torch.equal(kept.clone().cpu(), w)
    kept.mul_(2)
    kept[3:5].fill_(7)
    kept.t()[50].zero_()
    wanted = w * 2
    wanted[3:5] = 7
    wanted.t()[50] = 0
    assert torch_npu.get_npu_format(kept) == NZ
    assert torch.equal(kept.cpu(), wanted)
    assert memory_of(kept, 16).tolist() == wanted[0, :16].tolist()
    kept.copy_(w.npu())
    assert torch.equal(kept.cpu(), w)
    part, whole = kept[:3], w.npu()
    with pytest.raises(RuntimeError, match="kept in blocks cannot become"):
        torch.add(whole, 1, out=part)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_a_product_by_every_way(dtype: torch.dtype) -> None:
    x, w = torch.randn(5, 60).to(dtype), torch.randn(60, 100).to(dtype)
    check(
        lambda x, w: x @ w,
        [x, InBlocks(w)],
        (x.double() @ w.double()).to(dtype),
        "eager captured ge ge_dynamic npugraph_ex",
    )


def test_gradients_through_a_weight_in_blocks() -> None:
    x, w = torch.randn(5, 60), torch.randn(60, 100)
    kept = to_npu(InBlocks(w)).requires_grad_()
    (x.npu() @ kept).square().sum().backward()
    plain = w.clone().requires_grad_()
    (x @ plain).square().sum().backward()
    torch.testing.assert_close(kept.grad.cpu(), plain.grad)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_model_whose_weights_torchair_casts(frozen: bool) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 20, 3)
            self.linear = torch.nn.Linear(20, 50)

        def forward(self, x: T) -> T:
            return self.linear(torch.relu(self.conv(x)).mean((2, 3)))

    torch.manual_seed(0)
    net = Net().eval().half()
    x = torch.randn(2, 3, 8, 8).half()
    with torch.no_grad():
        expected = net.float()(x.float()).half()
        model = net.half().npu()
        torchair.use_internal_format_weight(model)
        assert torch_npu.get_npu_format(model.linear.weight) == NZ
        assert torch_npu.get_npu_format(model.conv.weight) == FRACTAL_Z
        torch.testing.assert_close(model(x.npu()).cpu(), expected, rtol=5e-3, atol=5e-3)
        config = torchair.CompilerConfig()
        config.experimental_config.frozen_parameter = frozen
        torch._dynamo.reset()
        compiled = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config), dynamic=False)
        torch.testing.assert_close(compiled(x.npu()).cpu(), expected, rtol=5e-3, atol=5e-3)
        model.linear.weight.data.mul_(2)  # in the same memory
        model.linear.bias.data.mul_(2)
        torch.testing.assert_close(compiled(x.npu()).cpu(), expected * 2, rtol=5e-3, atol=1e-2)


def test_a_graph_does_not_write_to_an_input_in_blocks() -> None:
    def write(w: T) -> T:
        w.add_(1)
        return w * 2

    torch._dynamo.reset()
    compiled = torch.compile(write, backend=torchair.get_npu_backend(), dynamic=False)
    with pytest.raises(Exception, match=r"format FRACTAL_NZ.*; cast it to ACL_FORMAT_ND"):
        compiled(to_npu(InBlocks(torch.randn(16, 16).half())))


@pytest.mark.parametrize("transposed", [False, True])
def test_quant_matmul(transposed: bool) -> None:
    a, b = torch.randint(-100, 100, (5, 72)).to(I8), torch.randint(-100, 100, (72, 40)).to(I8)
    scale, rows = torch.rand(40) * 1e-3, torch.rand(5)
    y = (a.long() @ b.long()) * scale.double() * rows.double()[:, None]
    check(
        lambda a, b, s, r: torch_npu.npu_quant_matmul(
            a, b.t() if transposed else b, s, pertoken_scale=r, output_dtype=torch.bfloat16
        ),
        [a, InBlocks(b.t().contiguous() if transposed else b), scale, rows],
        y.bfloat16(),
        "eager captured" if transposed else "eager captured ge npugraph_ex",
    )


def test_a_sum_of_products() -> None:
    """https://gitcode.com/cann/ops-nn, matmul/quant_matmul_reduce_sum/docs/aclnnQuantMatmulReduceSumWeightNz.md."""
    a, b = torch.randint(-100, 100, (3, 5, 72)).to(I8), torch.randint(-100, 100, (3, 72, 40)).to(I8)
    rows, columns = torch.rand(3, 5), torch.rand(40).bfloat16()
    y = torch.stack([(a[i].long() @ b[i].long()) * rows[i].double()[:, None] * columns.double() for i in range(3)]).sum(
        0
    )

    def product(a: T, b: T, r: T, c: T) -> T:
        return torch_npu.npu_quant_matmul_reduce_sum(a, b, x1_scale=r, x2_scale=c)

    check(
        product, [a, InBlocks(b), rows, columns], y.bfloat16(), "eager captured ge"
    )  # npugraph_ex copies its inputs, in no format
    for changed, text in (
        (rows.half(), "x1Scale is FLOAT16; expected FLOAT"),
        (rows, "x2Scale is FLOAT; expected"),
    ):
        with pytest.raises(RuntimeError, match=text):
            product(*to_npu([a, InBlocks(b), changed, columns if changed is not rows else columns.float()]))


def test_grouped_matmul() -> None:
    x, w = torch.randn(6, 64).half(), torch.randn(3, 64, 128).half()
    y = torch.cat([x[i : i + 2].double() @ w[i // 2].double() for i in (0, 2, 4)])
    check(
        lambda x, w, ends: torch_npu.npu_grouped_matmul(
            [x], [w], group_list=ends, split_item=3, group_type=0, group_list_type=0
        )[0],
        [x, InBlocks(w), torch.tensor([2, 4, 6])],
        y.half(),
        "eager captured ge npugraph_ex",
    )


def test_what_takes_no_blocks_says_so() -> None:
    a, b = torch.ones(3, 32, dtype=I8), torch.ones(2, 32, 32, dtype=I8)
    with pytest.raises(RuntimeError, match=r"V5: x1 has the format FRACTAL_NZ; expected ACL_FORMAT_ND \(2\)"):
        torch_npu.npu_quant_matmul(to_npu(InBlocks(a)), b[0].npu(), torch.ones(32).npu(), output_dtype=torch.float16)
    with pytest.raises(RuntimeError, match="not one of the whole tensor"):
        torch_npu.npu_quant_matmul(a.npu(), to_npu(InBlocks(b))[1], torch.ones(32).npu(), output_dtype=torch.float16)


npu = torch.ops.npu


def numbers(*shape: int) -> T:
    return torch.randint(-9, 9, shape, dtype=I8)


#: An operator, its arguments, and which of these may be in blocks; what it computes is compared with a reference
#: elsewhere.
OPERATORS = {
    "npu_grouped_matmul_swiglu_quant": (
        lambda x, w, g, ws, xs: npu.npu_grouped_matmul_swiglu_quant(x, w, g, ws, xs)[:2],
        lambda: [numbers(7, 32), numbers(2, 32, 64), torch.tensor([3, 7]), torch.rand(2, 64), torch.rand(7)],
        [1],
    ),
    "npu_grouped_matmul_swiglu_quant_v2": (
        lambda x, w, g, ws, xs: npu.npu_grouped_matmul_swiglu_quant_v2(x, [w], [ws], xs, g, group_list_type=1)[:2],
        lambda: [numbers(7, 32), numbers(2, 32, 64), torch.tensor([3, 4]), torch.rand(2, 64), torch.rand(7)],
        [1],
    ),
    "npu_grouped_matmul_finalize_routing": (
        lambda x, w, g, s, p, sh, lo, n: npu.npu_grouped_matmul_finalize_routing(
            x,
            w,
            g,
            scale=s,
            pertoken_scale=p,
            shared_input=sh,
            logit=lo,
            row_index=n,
            dtype=torch.float32,
            shared_input_weight=0.5,
            shared_input_offset=1,
            output_bs=4,
            group_list_type=1,
        ),
        lambda: [
            numbers(7, 16),
            numbers(2, 16, 32),
            torch.tensor([3, 4]),
            torch.rand(2, 32),
            torch.rand(7),
            torch.randn(2, 32).bfloat16(),
            torch.rand(7),
            torch.tensor([0, 2, 1, 3, 3, 0, 1]),
        ],
        [1],
    ),
    "npu_quant_grouped_matmul_dequant": (
        lambda x, w, s, g: npu.npu_quant_grouped_matmul_dequant(x, w, s, g, quant_mode="pertoken"),
        lambda: [torch.randn(5, 16).half(), numbers(2, 32, 16), torch.rand(2, 32), torch.tensor([2, 5])],
        [1],
    ),
    "npu_quant_matmul_gelu": (
        lambda a, b, r, c: npu.npu_quant_matmul_gelu(a, b, r, c, approximate="gelu_erf"),
        lambda: [numbers(6, 32), numbers(32, 16), torch.rand(6), torch.rand(16)],
        [1],
    ),
    "npu_weight_quant_batchmatmul": (
        lambda x, w, s: npu.npu_weight_quant_batchmatmul(x, w, s),
        lambda: [torch.randn(5, 64).half(), numbers(64, 32), torch.rand(32).half()],
        [1],
    ),
    "npu_mla_prolog_v2": (
        lambda *given: npu.npu_mla_prolog_v2(*given)[:2],
        lambda: (
            [
                x.bfloat16()
                for x in (
                    torch.randn(5, 48),
                    torch.randn(48, 24) / 7,
                    torch.randn(24, 48) / 5,
                    torch.randn(2, 16, 32) / 4,
                    torch.randn(48, 40) / 7,
                    torch.rand(24),
                    torch.rand(32),
                    torch.randn(5, 8),
                    torch.randn(5, 8),
                )
            ]
            + [torch.randperm(12)[:5], torch.zeros(3, 4, 1, 32).bfloat16(), torch.zeros(3, 4, 1, 8).bfloat16()]
        ),
        [1, 2, 4],
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_computes_the_same_of_a_weight_in_blocks(name: str) -> None:
    function, make, places_ = OPERATORS[name]
    arguments = make()
    expected = [result.cpu() for result in listed(function(*to_npu(arguments)))]
    given = [InBlocks(x) if n in places_ else x for n, x in enumerate(arguments)]
    check(function, given, expected, "eager captured ge")
