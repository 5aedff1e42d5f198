# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Transpose by a tiling: between fractals and rows, with heads split, merged and moved, against NumPy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
#include "tiling/tiling_api.h"
using namespace AscendC;
template <typename T>
__aicore__ void turn(GM_ADDR x, GM_ADDR z, GM_ADDR space, uint32_t size, uint32_t scratch) {
    const auto& tiling = *(__gm__ ConfusionTransposeTiling*)space;
    TPipe pipe;
    TBuf<> from, to, temporary;
    pipe.InitBuffer(from, size * sizeof(T));
    pipe.InitBuffer(to, size * sizeof(T));
    pipe.InitBuffer(temporary, 256);
    GlobalTensor<T> a, b;
    a.SetGlobalBuffer((__gm__ T*)x, size);
    b.SetGlobalBuffer((__gm__ T*)z, size);
    auto in = from.Get<T>(), out = to.Get<T>();
    DataCopy(in, a, size);
    const auto type = static_cast<TransposeType>(tiling.param0);
    ConfusionTransposeTiling mine = tiling;
    if (scratch == 2) Transpose(out, in, TransposeType::TRANSPOSE_TYPE_NONE, mine);
    else if (scratch != 0) Transpose(out, in, temporary.Get<uint8_t>(), type, mine);
    else ConfusionTranspose(out, in, type, mine);
    DataCopy(b, out, size);
}
extern "C" __global__ __aicore__ void turns(GM_ADDR x, GM_ADDR z, GM_ADDR tiling, uint32_t size, uint32_t scratch,
    uint32_t wide) {
    if (wide != 0) turn<int32_t>(x, z, tiling, size, scratch);
    else turn<half>(x, z, tiling, size, scratch);
}
// Whether there is a tiling of that type.
extern "C" int tile(const int64_t* sizes, int rank, int type, void* tiling) {
    const AscendC::TensorShape shape(std::vector<int64_t>(sizes, sizes + rank));
    auto& found = *static_cast<optiling::ConfusionTransposeTiling*>(tiling);
    uint32_t most, least;
    AscendC::GetTransposeMaxMinTmpSize(shape, 2, type, most, least);
    AscendC::GetConfusionTransposeMaxMinTmpSize(shape, 2, type, most, least);
    if (type == 7) AscendC::GetConfusionTransposeOnlyTilingInfo(shape, least, 2, found);
    else AscendC::GetConfusionTransposeTilingInfo(shape, least, 2, type, found);
    optiling::ConfusionTransposeTiling again;
    AscendC::GetTransposeTilingInfo(shape, least, 2, type, again);
    return found.param0 == again.param0 && found.param0 == type;
}
"""


def _fractals(rows: np.ndarray) -> np.ndarray:
    """[…, r, c] as […, c / 16, r / 16, 16, 16]."""
    *outer, r, c = rows.shape
    return rows.reshape(*outer, r // 16, 16, c // 16, 16).transpose(*range(len(outer)), -2, -4, -3, -1)


def _cases() -> list[tuple[int, tuple[int, ...], np.ndarray, np.ndarray]]:
    b, n, s, h = 2, 3, 32, 48
    heads = np.arange(b * n * s * h, dtype=np.int32).reshape(b, n, s, h)
    merged = heads.transpose(0, 2, 1, 3).reshape(b, s, n * h)
    many = np.arange(16 * 16 * 32, dtype=np.int32).reshape(1, 16, 16, 32)
    matrix = np.arange(32 * 48, dtype=np.int32).reshape(32, 48)
    return [
        (1, heads.shape, _fractals(heads), heads.transpose(0, 2, 1, 3)),
        (2, many.shape, _fractals(many), _fractals(many.transpose(0, 2, 1, 3))),
        (3, heads.shape, _fractals(merged), _fractals(heads)),
        (4, heads.shape, _fractals(merged), heads),
        (5, heads.shape, _fractals(heads), merged),
        (6, heads.shape, _fractals(heads), _fractals(merged)),
        (7, matrix.shape, matrix, matrix.T),
    ]


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(SOURCE)


def _tiling(library: ctypes.CDLL, kind: int, shape: tuple[int, ...]) -> tuple[int, np.ndarray]:
    tiling = np.zeros(256, np.uint8)
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    return library.tile(sizes, len(shape), kind, ctypes.c_void_p(tiling.ctypes.data)), tiling


@pytest.mark.parametrize(("kind", "shape", "source", "expected"), _cases(), ids=[f"type {one[0]}" for one in _cases()])
def test_transpose(
    library: ctypes.CDLL, tools: Toolkit, kind: int, shape: tuple[int, ...], source: np.ndarray, expected: np.ndarray
) -> None:
    is_given, tiling = _tiling(library, kind, shape)
    assert is_given
    for dtype, scratch in ((np.int32, 0), (np.float16, 1)):
        x = np.ascontiguousarray((source % 1024).astype(dtype))
        z = np.zeros(x.size, dtype)
        assert launch(library, "turns", 1, x, z, tiling, x.size, scratch, int(dtype is np.int32)) == 0, tools.message()
        np.testing.assert_array_equal(z, (expected % 1024).astype(dtype).ravel())


def test_refusals(library: ctypes.CDLL, tools: Toolkit) -> None:
    """Shapes whose fractals are not full, and a tiling of another type."""
    assert not _tiling(library, 1, (1, 2, 24, 32))[0]
    assert not _tiling(library, 2, (1, 2, 16, 32))[0]
    assert not _tiling(library, 7, (1, 16, 16))[0]
    _, tiling = _tiling(library, 7, (16, 16))
    x = np.zeros(256, np.float16)
    assert launch(library, "turns", 1, x, x.copy(), tiling, 256, 2, 0) != 0
    assert "Transpose: type 0 with a tiling of type 7; valid: 1 to 7" in tools.message()
