"""What tensors put off or share: conjugation, negation, zeros without memory, views, memory of results, autograd's
graph."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

Tensor = torch.Tensor


def ramp(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Small whole numbers, of which sums and products are exact in every dtype."""
    values = torch.arange(torch.Size(shape).numel()).remainder(7).sub(3).reshape(shape)
    return torch.complex(values.float(), values.flip(0).float()).to(dtype) if dtype.is_complex else values.to(dtype)


# How an operand comes by its state: views that put off work, or lie in memory in another way.
STATES: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda x: x,
    "conj": lambda x: x.conj(),
    "neg": torch._neg_view,
    "conj_neg": lambda x: torch._neg_view(x.conj()),
    "transposed": lambda x: x.t(),
    "conj_transposed": lambda x: x.mH,
    "row": lambda x: x[1],
    "rows": lambda x: x[1:],
    "columns": lambda x: x[:, ::2],
    "expanded": lambda x: x[:1].expand(4, 4),
    "imaginary": lambda x: x.imag,
    "imaginary_of_conj": lambda x: x.conj().imag,
    "zero": lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype, device=x.device),
    "zero_transposed": lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype, device=x.device).t(),
}
FUNCTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "mul": torch.mul,
    "rsub": torch.rsub,
    "eq": torch.eq,
    "maximum": torch.maximum,
    "mm": torch.mm,
    "cat": lambda a, b: torch.cat([a, b]),
    "where": lambda a, b: torch.where(a == b, a, b),
    "sum": lambda a, b: a.sum(),
    "abs": lambda a, b: a.abs(),
    "clone": lambda a, b: a.clone(),
    "contiguous": lambda a, b: a.contiguous(),
    "to": lambda a, b: a.to(torch.complex128),
    "resolve": lambda a, b: a.resolve_conj().resolve_neg(),
    "index": lambda a, b: a[[1, 0]],
    "stack": lambda a, b: torch.stack([a, b.conj()]),
    "real": lambda a, b: a.real * 2,
    "tril": lambda a, b: a.tril(),
    "flip": lambda a, b: a.flip(0),
    "foreach": lambda a, b: torch._foreach_add([a, a], b)[1],
}
IN_PLACE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b),
    "copy_": lambda a, b: a.copy_(b),
    "neg_": lambda a, b: a.neg_(),
    "zero_": lambda a, b: a.zero_(),
    "fill_": lambda a, b: a.fill_(3),
    "masked_fill_": lambda a, b: a.masked_fill_(b.real >= 0, 2),
    "index_put_": lambda a, b: a.index_put_((torch.tensor([0]),), b[0]),
    "tril_": lambda a, b: a.tril_(),
    "add_out": lambda a, b: torch.add(b, b, out=a),
    "mul_out": lambda a, b: torch.mul(b, 2, out=a),
    "sum_out": lambda a, b: torch.sum(b, 0, out=a),
    "mm_out": lambda a, b: torch.mm(b, b, out=a),
    "copy_from_cpu": lambda a, b: a.copy_(b.to("cpu", copy=True)),
}


def outcome(function: Callable[[], Tensor]) -> Tensor | type[Exception]:
    try:
        return function()
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return type(error)


def assert_same(result: Tensor | type[Exception], expected: Tensor | type[Exception]) -> None:
    if not isinstance(expected, Tensor) or not isinstance(result, Tensor):
        assert result == expected
        return
    assert result.device.type == "npu"
    assert (result.shape, result.stride(), result.dtype) == (expected.shape, expected.stride(), expected.dtype)
    assert (result.is_conj(), result.is_neg()) == (expected.is_conj(), expected.is_neg())
    assert result._is_zerotensor() == expected._is_zerotensor()
    torch.testing.assert_close(result.cpu(), expected, rtol=0, atol=0)


dtypes = st.sampled_from([torch.complex64, torch.float32, torch.int64])
states = st.lists(st.sampled_from(sorted(STATES)), min_size=1, max_size=2)


def operands(dtype: torch.dtype, first: list[str], second: list[str]) -> tuple[tuple[Tensor, Tensor], list[Tensor]]:
    """Two operands on the CPU, their memory, and the same on the device."""

    def make(names: list[str], base: Tensor) -> Tensor:
        for name in names:
            base = STATES[name](base)
        return base

    memory = [ramp((4, 4), dtype), ramp((4, 4), dtype) + 1]
    memory += [m.npu() for m in memory]
    cpu, npu = ((make(first, memory[i]), make(second, memory[i + 1])) for i in (0, 2))
    return (*cpu, *npu), memory


@pytest.mark.filterwarnings("ignore")  # an output that is resized, an imaginary part that is dropped
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FUNCTIONS)), dtypes, states, states)
def test_operators_see_the_state_of_their_operands(name: str, dtype: torch.dtype, a: list[str], b: list[str]) -> None:
    try:
        (x, y, on_device_x, on_device_y), _ = operands(dtype, a, b)
    except (RuntimeError, IndexError):
        return  # no such view
    assert_same(outcome(lambda: FUNCTIONS[name](on_device_x, on_device_y)), outcome(lambda: FUNCTIONS[name](x, y)))


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(IN_PLACE)), dtypes, states, states)
def test_operators_write_through_the_state_of_their_operands(
    name: str, dtype: torch.dtype, a: list[str], b: list[str]
) -> None:
    try:
        (x, y, on_device_x, on_device_y), memory = operands(dtype, a, b)
    except (RuntimeError, IndexError):
        return

    def write(target: Tensor, source: Tensor) -> Tensor:
        IN_PLACE[name](target, source)
        return target

    assert_same(outcome(lambda: write(on_device_x, on_device_y)), outcome(lambda: write(x, y)))
    assert_same(memory[2], memory[0])
    assert_same(memory[3], memory[1])


def test_values_printing_and_files_of_conjugated_tensors() -> None:
    x = torch.tensor([[1 + 2j, 3 - 1j]])
    view = x.npu().conj()
    assert view[0, 0].item() == 1 - 2j
    assert "1.-2.j" in str(view)
    file = io.BytesIO()
    torch.save(view, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded.is_conj() or torch.__version__ < (2, 9)  # torch_npu 2.7 and 2.8 write the values
    assert torch.equal(loaded.cpu(), x.conj())
    assert torch.equal(torch.zeros_like(x).copy_(view), x.conj())  # to the CPU
    torch.testing.assert_close(torch.fft.ifft(x.npu()).cpu(), torch.fft.ifft(x))
    torch.testing.assert_close(torch.fft.ihfft(x.real.npu()).cpu(), torch.fft.ihfft(x.real))


def test_zero_tensors_have_no_memory_and_are_not_written() -> None:
    zero = torch._efficientzerotensor((2, 3), device="npu")
    with pytest.raises(RuntimeError, match="invalid python storage"):
        zero.untyped_storage().data_ptr()
    assert zero.cpu().tolist() == [[0.0] * 3] * 2
    assert zero[1, 2].item() == 0
    assert "0., 0., 0." in str(zero)
    with pytest.raises(RuntimeError, match="ZeroTensors are immutable"):
        zero.add_(1)
    x = torch.randn(3, device="npu", requires_grad=True)
    torch.sgn(x).sum().backward()  # its derivative is one
    assert x.grad is not None
    assert x.grad.cpu().tolist() == [0.0] * 3


def test_composites_with_a_cpu_kernel_of_torch_npu_keep_autograd() -> None:
    """torch_npu's CPU kernel of true_divide, of which cov and others are made, has no derivative."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    torch.zeros(1, device="npu")
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")]
    cut_off = [
        n
        for n in names
        if has(n, "CompositeImplicitAutograd") and has(n, "CPU") and not (has(n, "Autograd") or "out" in n)
    ]
    assert cut_off  # the wheel has some, true_divide among them
    assert [n for n in cut_off if not has(n, "AutogradPrivateUse1")] == []
    x = torch.linspace(1, 2, 12, dtype=torch.float64).reshape(3, 4).npu().requires_grad_()
    y = torch.linspace(3, 4, 4, dtype=torch.float64).npu().requires_grad_()
    assert torch.autograd.gradcheck(torch.true_divide, (x, y))
    assert torch.autograd.gradcheck(lambda x, y: (x * 1).true_divide_(y), (x, y))
    assert torch.autograd.gradcheck(torch.cov, (x,))
    assert torch.autograd.gradcheck(lambda x: torch.corrcoef(x.square().sin()), (x,))


def resized_from_part_of_memory(device: str) -> Tensor:
    out = torch.zeros(5, device=device)[3:]
    return torch.add(torch.arange(12.0, device=device).reshape(3, 4).t(), 1, out=out)


def resized_within_memory(device: str) -> Tensor:
    out = torch.zeros(100, device=device)[10:90]
    return torch.add(torch.arange(12.0, device=device).reshape(3, 4).t(), 1, out=out)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("resize", [resized_from_part_of_memory, resized_within_memory])
def test_outputs_are_resized_as_on_the_cpu(resize: Callable[[str], Tensor]) -> None:
    result, expected = resize("npu"), resize("cpu")
    assert_same(result, expected)
    assert result.storage_offset() == expected.storage_offset()
    result.add_(1)
    assert_same(result, expected + 1)


def test_results_that_are_views_of_arguments_share_their_memory() -> None:
    x = torch.arange(6.0).npu()
    parts = torch.unsafe_split(x, 2)
    assert [p.data_ptr() - x.data_ptr() for p in parts] == [0, 8, 16]
    parts[1].fill_(7)
    assert x.cpu().tolist() == [0, 1, 7, 7, 4, 5]


def test_a_lazy_clone_shares_memory_until_one_of_both_is_written() -> None:
    x = torch.arange(4.0, device="npu")
    clone = x._lazy_clone()
    assert torch._C._data_address(clone) == torch._C._data_address(x)
    x.add_(1)
    assert torch.equal(clone.cpu(), torch.arange(4.0))
    second = x._lazy_clone()
    torch.mul(second, 2, out=x)
    assert (second.tolist(), x.tolist()) == ([1, 2, 3, 4], [2, 4, 6, 8])


@pytest.mark.parametrize("inside", [True, False])
def test_a_lazy_clone_is_a_copy_in_captures(inside: bool) -> None:
    x = torch.zeros(4, device="npu")
    clone = x._lazy_clone()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        if inside:
            clone = x._lazy_clone()
        clone.add_(1)
    x.fill_(5)
    graph.replay()
    assert (x.tolist(), clone.tolist()) == ([5] * 4, [6 if inside else 1] * 4)


def test_operators_that_read_leave_the_memory_of_lazy_clones_shared() -> None:
    x = torch.arange(4.0, device="npu")
    clone = x._lazy_clone()
    assert (x + clone).tolist() == [0, 2, 4, 6]
    assert torch._C._data_address(clone) == torch._C._data_address(x)


def test_statistics_of_a_batch_norm_are_written_apart_from_their_lazy_clone() -> None:
    mean, variance = torch.zeros(3, device="npu"), torch.ones(3, device="npu")
    clone = mean._lazy_clone()
    torch.nn.functional.batch_norm(torch.ones(4, 3, device="npu"), mean, variance, training=True)
    assert (clone.tolist(), mean.tolist()) == ([0] * 3, pytest.approx([0.1] * 3))


def test_overlapping_memory_is_refused_where_pytorch_refuses_it() -> None:
    x = torch.arange(6.0).npu()
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:].sub_(x[:-1])
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        x[:1].expand(3).add_(1)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x[:1].add_(x.clone())
    assert x.cpu().tolist() == [0, 1, 2, 3, 4, 5]


def test_tensors_of_other_layouts_are_refused_with_their_name() -> None:
    x = torch.eye(3).npu()
    with pytest.raises(NotImplementedError, match=r"aten::_to_sparse_csr gives a compressed sparse tensor"):
        x.to_sparse_csr()
    with pytest.raises(NotImplementedError, match=r"aten::quantize_per_tensor gives a quantized tensor"):
        torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    with pytest.raises(NotImplementedError, match=r"aten::to_mkldnn gives a mkldnn tensor"):
        x.to_mkldnn()


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32])
def test_sparse_tensors_are_composed_and_coalesced(dtype: torch.dtype) -> None:
    x = torch.tensor([[0, 1, 0], [2, 0, 3]], dtype=dtype)
    sparse = x.npu().to_sparse()
    assert (sparse.device.type, sparse._nnz()) == ("npu", 3)
    assert torch.equal(sparse.to_dense().cpu(), x)
    assert torch.equal((sparse + sparse).to_dense().cpu(), x * 2)
    places, values = torch.tensor([[1, 0, 1, 1], [2, 0, 2, 1]]), torch.arange(8).reshape(4, 2).to(dtype)
    expected = torch.sparse_coo_tensor(places, values, (2, 3, 2)).coalesce()
    result = torch.sparse_coo_tensor(places, values, (2, 3, 2)).npu().coalesce()
    assert torch.equal(result.indices().cpu(), expected.indices())
    assert torch.equal(result.values().cpu(), expected.values())


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sparse_tensors_are_coalesced_in_dtypes_of_the_device() -> None:
    repeated = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.ones(2, dtype=torch.float64), (1,)).npu()
    with pytest.raises(RuntimeError, match=r"dtype of values torch.float64 is not supported; expected torch.float32"):
        repeated.coalesce()


def test_formats_that_torch_npu_refuses() -> None:
    x = torch.randn(2, 3, 4, 5, device="npu", requires_grad=True)
    with pytest.raises(RuntimeError, match="only supported contiguous memory format"):
        x.contiguous(memory_format=torch.channels_last)
    x.transpose(1, 2).contiguous().square().sum().backward()
    assert torch.equal(x.grad.cpu(), 2 * x.detach().cpu())
    lies_so = x.detach().permute(0, 3, 1, 2)
    assert lies_so.contiguous(memory_format=torch.channels_last) is lies_so
