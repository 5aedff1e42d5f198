# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""A convolution as a product of patches, whichever way LoadData learns of the feature map."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

CHANNELS, HEIGHT, WIDTH, FILTERS = 16, 5, 6, 16
SOURCE = """
#include "kernel_operator.h"
using namespace AscendC;
constexpr uint32_t channels = 16, high = 5, wide = 6, m = high * wide, padded = 32, n = 16, k = channels * 9;
static constexpr IsResetLoad3dConfig registers = {false, false};
// how: 0 the parameters say the feature map, 1 and 4 registers do (4 with packed sizes), 2 they should and do not,
// 3 wrongly, 5 with a border of 8 bytes, 6 with a boundary behind which the map goes on at the start of L1,
// 7 with a repetition of nothing, 8 to 10 with what is not valid.
extern "C" __global__ __cube__ void convolve(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t how, uint32_t right) {
    LocalMemAllocator<Hardware::L1> l1;
    LocalMemAllocator<Hardware::L0A> l0a;
    LocalMemAllocator<Hardware::L0B> l0b;
    LocalMemAllocator<Hardware::L0C> l0c;
    auto start = l1.Alloc<TPosition::A1, half>(256);
    auto map = l1.Alloc<TPosition::A1, half>(channels * m);
    auto filters = l1.Alloc<TPosition::B1, half>(n * k);
    auto left = l0a.Alloc<half>(padded * k);
    auto weights = l0b.Alloc<half>(n * k);
    auto sums = l0c.Alloc<float>(padded * n);
    GlobalTensor<half> a, b;
    GlobalTensor<float> c;
    a.SetGlobalBuffer((__gm__ half*)x, channels * m);  // [h, w, c0]
    b.SetGlobalBuffer((__gm__ half*)y, n * k);         // [k, n]
    c.SetGlobalBuffer((__gm__ float*)z, m * n);
    if (how == 6) {
        DataCopy(map, a, 256);
        DataCopy(start, a[256], channels * m - 256);
        SetLoadDataBoundary(1024);
    } else {
        DataCopy(map, a, channels * m);
    }
    if (how == 8) SetLoadDataBoundary(100);
    if (how == 9) SetLoadDataRepeat({0, 2, 0});
    if (how == 10) SetLoadDataBoundary(1024);
    DataCopy(filters, b, Nd2NzParams(1, k, n, 0, n, k, 1, 0));
    const uint8_t none[4] = {}, around[4] = {1, 1, 1, 1};
    if (how == 10) LoadData(left, filters,
        LoadData3DParamsV2<half>(none, 16, 1, n, n, 16, 0, 0, 1, 1, 1, 1, 1, 1, false, false, (half)0));
    if (how == 0 || how == 6 || how == 7) {
        LoadData(left, map, LoadData3DParamsV2<half>(around, high, wide, channels, k, padded, 0, 0, 1, 1, 3, 3, 1, 1,
            false, false, (half)2, false, false, right));
    } else {
        LoadData3DParamsV2<half> patches(none, 0, 0, channels, k, padded, 0, 0, 1, 1, 3, 3, 1, 1, false, false, (half)0,
            false, false, right);
        if (how == 1 || how == 4) {
            if (right) SetFmatrix(high, wide, around, FmatrixMode::FMATRIX_RIGHT);
            else if (how == 1) SetFmatrix(high, wide, around, FmatrixMode::FMATRIX_LEFT);
            else Load3DSetFMatrixCal(high, wide, around);
            SetLoadDataPaddingValue(uint64_t{0});
            SetLoadDataPaddingValue((half)2);
        }
        if (how == 5) SetLoadDataPaddingValue(uint64_t{3});
        if (how == 3) SetFmatrix(0, wide, around, FmatrixMode::FMATRIX_LEFT);
        const LoadData3DParamsV2Pro packed(channels, false, false, false, false, right, uint64_t(padded) << 16 | k,
            0x010103030101);
        if (how == 4) LoadData(left, map, packed);
        else LoadData<half, registers>(left, map, patches);
    }
    SetLoadDataBoundary(0);
    if (how == 7) {
        LoadDataRepeatParam nothing;
        nothing.repeatTime = 0;
        SetLoadDataRepeat(nothing);
        LoadData(left, filters, LoadData3DParamsV2<half>(none, 16, 1, n, n, 16, 0, 0, 1, 1, 1, 1, 1, 1, false, false,
            (half)0));
        SetLoadDataRepeat({0, 1, 0});
    }
    LoadData(weights, filters, LoadData3DParamsV2<half>(none, k, 1, n, n, k, 0, 0, 1, 1, 1, 1, 1, 1, true, false,
        (half)0, false, false, !right));
    Mmad(sums, left, weights, MmadParams(padded, n, k, 0, false, true));
    Fixpipe(c, sums, FixpipeParamsV220(n, m, padded, n, false));
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


def _arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    x = random.integers(-3, 4, (HEIGHT, WIDTH, CHANNELS)).astype(np.float16)
    y = random.integers(-2, 3, (3, 3, CHANNELS, FILTERS)).astype(np.float16)
    return x, y, np.zeros((HEIGHT, WIDTH, FILTERS), np.float32)


@pytest.mark.parametrize("right", [0, 1], ids=["left", "right"])
@pytest.mark.parametrize(
    "how", [0, 1, 4, 6, 7], ids=["parameters", "registers", "registers and packed sizes", "boundary", "repeats"]
)
def test_convolution(library: ctypes.CDLL, tools: Toolkit, how: int, right: int) -> None:
    """3 x 3 with a border of twos: integers, so that every order of additions gives the same."""
    x, y, z = _arrays()
    assert launch(library, "convolve", 1, x, y, z, how, right) == 0, tools.message()
    padded = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)), constant_values=2)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))  # [h, w, c, 3, 3]
    np.testing.assert_array_equal(z, np.einsum("hwcij,ijcf->hwf", windows, y.astype(np.float64)))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (2, "LoadData: the feature map has no size; set l1H and l1W, or SetFmatrix"),
        (3, "SetFmatrix: a feature map of 0 x 6; each can be 1 to 32767"),
        (5, "SetLoadDataPaddingValue: a value of 8 bytes that is not 0; elements have 4 at most"),
        (8, "SetLoadDataBoundary: 100 bytes; valid: 0 (none) and 1024 or more"),
        (9, "SetLoadDataRepeat: repeatTime 2, repeatMode 0"),
        (10, "LoadData: src begins at byte 1472 of the L1 buffer, which has 524288; SetLoadDataBoundary set 1024"),
    ],
)
def test_refusals(library: ctypes.CDLL, tools: Toolkit, how: int, said: str) -> None:
    x, y, z = _arrays()
    assert launch(library, "convolve", 1, x, y, z, how, 0) != 0
    assert said in tools.message()
