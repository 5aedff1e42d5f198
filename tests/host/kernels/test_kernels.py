"""Kernels where a shape, a NaN or a narrow dtype could be taken for something else."""

from __future__ import annotations

import pytest
import torch

from ascend_graph.host.kernels import find_host_kernel
from ascend_graph.host.kernels.matmul.matmul import integer_product
from ascend_graph.host.kernels.quantization.four_bits import integers


def call(op_type: str, *inputs: object, **attrs: object) -> torch.Tensor:
    kernel = find_host_kernel(op_type)
    assert kernel is not None
    result = kernel.function(*inputs, **attrs)
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (16,)])
def test_pack_adds_a_dimension(shape: tuple[int, ...]) -> None:
    parts = [torch.full(shape, 1.0), torch.full(shape, 2.0)]
    assert torch.equal(call("Pack", parts), torch.stack(parts))


def test_pack_takes_sizes_of_which_some_have_a_dimension() -> None:
    assert call("Pack", [torch.tensor(2), torch.tensor([3])]).tolist() == [2, 3]


@pytest.mark.parametrize("count", [1, 8, 16, 100, 128, 1000])
def test_dropout_keeps_as_many_as_its_probability_says(count: int) -> None:
    probability = torch.tensor(0.5)
    kept = 0
    for seed in range(40):
        state = (torch.tensor(seed), torch.tensor(0), torch.tensor([0, 0]))
        mask = call("StatelessDropOutGenMask", torch.tensor([count]), probability, *state)
        result = call("DropOutDoMask", torch.ones(count), mask, probability)
        assert set(result.tolist()) <= {0.0, 2.0}
        kept += int((result != 0).sum())
    assert 0.2 * 40 * count < kept < 0.8 * 40 * count


def test_a_boolean_mask_has_one_element_for_each() -> None:
    mask = torch.tensor([True, False])
    for op_type in ("DropOutDoMask", "DropOutDoMaskV3"):
        assert call(op_type, torch.ones(2), mask, torch.tensor(0.5)).tolist() == [2, 0]
    assert call("DropOutDoMaskV3", torch.ones(16), torch.ones(16, dtype=torch.uint8), torch.tensor(1.0)).sum() == 16


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_threshold_keeps_nan(dtype: torch.dtype) -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0, 2.0], dtype=dtype)
    expected = torch.nn.functional.threshold(x, 1.0, 7.0)
    result = call("ThresholdV2", x, torch.tensor(1.0), torch.tensor(7.0))
    assert torch.equal(result.nan_to_num(99), expected.nan_to_num(99))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_product_to_float32_is_not_rounded_to_the_narrow_dtype(dtype: torch.dtype) -> None:
    a, b = torch.randn(4, 64).to(dtype), torch.randn(64, 4).to(dtype)
    bias = torch.randn(4).to(dtype)
    result = call("FusedMatMul", a, b, bias, fused_op_type="16cast32")
    assert result.dtype is torch.float32
    torch.testing.assert_close(result, a.float() @ b.float() + bias.float(), rtol=1e-6, atol=1e-5)
    assert not torch.equal(result, result.to(dtype).float())


def test_the_gradient_of_a_filter_is_not_rounded_to_the_narrow_dtype() -> None:
    x, grad = torch.randn(2, 3, 8, 8).half(), torch.randn(2, 4, 6, 6).half()
    attrs = {"strides": [1, 1, 1, 1], "pads": [0, 0, 0, 0], "data_format": "NCHW"}
    result = call("Conv2DBackpropFilter", x, torch.tensor([4, 3, 3, 3]), grad, **attrs)
    expected = torch.nn.grad.conv2d_weight(x.float(), [4, 3, 3, 3], grad.float())
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def test_a_sum_of_squares_does_not_overflow_on_the_way() -> None:
    assert call("L2Loss", torch.full((4,), 100.0).half()).item() == 20000


def test_a_product_over_no_dimension_is_new_memory() -> None:
    x = torch.tensor(3.0)
    assert call("ReduceProdD", x, axes=[0]).data_ptr() != x.data_ptr()


def test_outputs_of_one_dtype_are_two_tensors() -> None:
    kernel = find_host_kernel("AddRmsNormCast")
    assert kernel is not None
    wide, narrow, *_ = kernel.function(torch.ones(2, 4), torch.ones(2, 4), torch.ones(4))
    assert torch.equal(wide, narrow)
    assert wide.data_ptr() != narrow.data_ptr()


@pytest.mark.parametrize("batch_shape", [[], [2], [3, 1]])
def test_eye_repeats_its_matrix(batch_shape: list[int]) -> None:
    found = call("Eye", num_rows=2, num_columns=3, batch_shape=batch_shape)
    assert torch.equal(found, torch.eye(2, 3).expand(*batch_shape, 2, 3))


def test_gather_refuses_what_a_device_reads_from_outside() -> None:
    sizes, x, last = torch.arange(3), torch.arange(3.0), torch.tensor([-1])
    assert call("Gather", sizes, last).tolist() == [2]
    assert call("GatherV2", x, last, torch.tensor(0), negative_index_support=True).tolist() == [2]
    assert call("GatherElements", x, last).tolist() == [2]
    for index, negative in ((-1, False), (3, True), (-4, True)):
        places, found = torch.tensor([index]), f"has {index}; expected"
        with pytest.raises(ValueError, match=found):
            call("Gather", x, places, negative_index_support=negative)
        with pytest.raises(ValueError, match=found):
            call("GatherV2", sizes, places, torch.tensor(0), negative_index_support=negative)
        with pytest.raises(ValueError, match=found):
            call("GatherNd", x, places.view(1, 1), negative_index_support=negative)


def test_the_conjugate_of_a_real_tensor_may_be_the_tensor() -> None:
    kernel = find_host_kernel("Conj")
    assert kernel is not None
    assert kernel.views == {"input"}
    assert call("Conj", torch.tensor([1 + 2j])).tolist() == [1 - 2j]


@pytest.mark.parametrize("shape", [(3, 64), (2, 3, 64), (3, 0), (0, 64)])
def test_products_of_small_integers_are_exact(shape: tuple[int, ...]) -> None:
    """Sums of two products of the least numbers do not fit into 16 bits, in which some CPUs sum up."""
    a = torch.full(shape, -128, dtype=torch.int8)
    b = torch.full((shape[-1], 5), -128, dtype=torch.int8)
    b[:, 1:3] = 127
    for weight in (b, b.t().contiguous().t()):
        assert torch.equal(integer_product(a, weight), a.double() @ b.double())


INT4, INT32, UINT8, INT8 = 29, 3, 4, 2


def test_bits_of_other_widths_have_a_dimension_of_their_own() -> None:
    """As in https://www.tensorflow.org/api_docs/python/tf/bitcast, with which GE's operator is compatible."""
    x = torch.tensor([[0x04030201, 0x08070605], [-1, 0]], dtype=torch.int32)
    narrow = call("Bitcast", x, type=UINT8)
    assert narrow.tolist() == [[[1, 2, 3, 4], [5, 6, 7, 8]], [[255] * 4, [0] * 4]]
    assert torch.equal(call("Bitcast", narrow, type=INT32), x)
    assert call("Bitcast", x, type=UINT8, keep_dim=True).shape == (2, 8)
    assert torch.equal(call("Bitcast", narrow.flatten(-2), type=INT32, keep_dim=True), x)
    with pytest.raises(ValueError, match=r"the last dimension of torch.uint8\[2, 8\] must be 4 for torch.int32"):
        call("Bitcast", narrow.flatten(-2), type=INT32)


def test_numbers_of_four_bits_are_counted_one_by_one() -> None:
    words = torch.tensor([[0x3E2087F1], [0x76543210]], dtype=torch.int32)
    numbers = call("Bitcast", words, type=INT4)
    assert (numbers.dtype, numbers.shape) == (torch.int4, (2, 1, 8))
    assert integers(numbers).tolist() == [[[1, -1, 7, -8, 0, 2, -2, 3]], [[0, 1, 2, 3, 4, 5, 6, 7]]]
    assert torch.equal(call("Bitcast", numbers, type=INT32), words)
    assert call("Bitcast", words, type=INT4, keep_dim=True).shape == (2, 8)
    assert call("Bitcast", words.view(torch.int8), type=INT4).shape == (2, 4, 2)
    moved = call("Reshape", call("Transpose", numbers, torch.tensor([2, 1, 0])), torch.tensor([16]))
    assert integers(moved).tolist() == [1, 0, -1, 1, 7, 2, -8, 3, 0, 4, 2, 5, -2, 6, 3, 7]


def test_kernels_that_do_not_expect_numbers_of_four_bits_refuse_them() -> None:
    numbers = call("Bitcast", torch.zeros(2, dtype=torch.int32), type=INT4)
    for op_type, inputs in {"Add": (numbers, numbers), "Relu": (numbers,), "Neg": (numbers,)}.items():
        with pytest.raises(RuntimeError, match="Int4"):
            call(op_type, *inputs)
