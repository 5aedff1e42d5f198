"""Lists of tensors, as dynamic inputs reach a kernel."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void sizes(GM_ADDR list, GM_ADDR out, uint32_t asked) {
    AscendC::ListTensorDesc tensors(list);
    auto* found = (__gm__ int64_t*)out;
    *found++ = tensors.GetSize();
    for (uint32_t i = 0; i < asked; ++i) {
        uint64_t sizes[8];
        AscendC::TensorDesc<int32_t> one;
        one.SetShapeAddr(sizes);
        tensors.GetDesc(one, i);
        *found++ = one.GetIndex();
        *found++ = one.GetDim();
        for (uint32_t axis = 0; axis < one.GetDim(); ++axis) *found++ = one.GetShape(axis);
        *found++ = one.GetDataPtr() == tensors.GetDataPtr<int32_t>(i);
        *found++ = one.GetDataObj().GetValue(0);
    }
}
extern "C" __global__ __aicore__ void no_shape(GM_ADDR list) {
    AscendC::TensorDesc<int32_t> one;
    AscendC::ListTensorDesc(list).GetDesc(one, 0);
    one.GetShape(0);
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


def packed(*tensors: np.ndarray) -> np.ndarray:
    words = [0]
    for index, tensor in enumerate(tensors):
        words += [index << 32 | tensor.ndim, *tensor.shape]
    words[0] = len(words) * 8
    return np.array([*words, *(t.ctypes.data for t in tensors)], np.uint64)


def test_every_tensor_with_its_shape(library: ctypes.CDLL, tools: Toolkit) -> None:
    tensors = [np.full((2, 3), 7, np.int32), np.full((), 8, np.int32), np.full((4,), 9, np.int32)]
    out = np.zeros(32, np.int64)
    assert launch(library, "sizes", 1, packed(*tensors), out, 3) == 0, tools.message()
    assert out[:16].tolist() == [3, 0, 2, 2, 3, 1, 7, 1, 0, 1, 8, 2, 1, 4, 1, 9]


@pytest.mark.parametrize("count", [0, 1])
def test_beyond_the_list(library: ctypes.CDLL, tools: Toolkit, count: int) -> None:
    tools.seam.seam_clear()
    tensors = [np.zeros(1, np.int32)] * count
    launch(library, "sizes", 1, packed(*tensors), np.zeros(32, np.int64), count + 1)
    assert f"ListTensorDesc: tensor {count} of {count}" in tools.message()


def test_a_shape_without_room_for_it(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    launch(library, "no_shape", 1, packed(np.zeros(1, np.int32)))
    assert "dimension 0 of a tensor of rank 1; SetShapeAddr was not called" in tools.message()
