"""Mask registers from one call to the next, ranges of repeats, shifts and rows, and the reserved 8 KiB, on Atlas A2."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

KERNEL = """
extern "C" __global__ __aicore__ void %s(GM_ADDR, GM_ADDR to) {
    TPipe pipe;
    TBuf<> buffers[4];
    for (auto& buffer : buffers) pipe.InitBuffer(buffer, 40960);
    auto a = buffers[0].Get<float>(), b = buffers[1].Get<float>(), c = buffers[2].Get<float>();
    auto ah = a.ReinterpretCast<half>(), bh = b.ReinterpretCast<half>(), ch = c.ReinterpretCast<half>();
    auto ai = a.ReinterpretCast<int32_t>(), ci = c.ReinterpretCast<int32_t>();
    auto bits = buffers[3].Get<uint8_t>();
    auto words = bits.ReinterpretCast<uint32_t>();
    CreateVecIndex(ai, 0, 1024);
    Cast(a, ai, RoundMode::CAST_RINT, 1024);
    Duplicate(c, -1.0f, 1024);
    Duplicate(words, 0u, 1024);
    BinaryRepeatParams two{1, 1, 1, 8, 8, 8};
    UnaryRepeatParams one{1, 1, 8, 8};
    uint64_t sources[16], targets[16];
    for (int i = 0; i < 16; ++i) {
        sources[i] = reinterpret_cast<uint64_t>(bh[i * 32].GetPhyAddr());
        targets[i] = reinterpret_cast<uint64_t>(ch[i * 32].GetPhyAddr());
    }
    MrgSort4Info lists;
    lists.ifExhaustedSuspension = false;
    lists.validBit = 3;
    lists.repeatTimes = 1;
    for (auto& length : lists.elementLengths) length = 32;
    { %s }
    GlobalTensor<float> z;
    z.SetGlobalBuffer((__gm__ float*)to, 256);
    PipeBarrier<PIPE_ALL>();
    DataCopy(z, c, 256);
}
"""
INDEX = np.arange(256, dtype=np.float32)


def _first(count: int, values: np.ndarray) -> np.ndarray:
    return np.where(count > INDEX, values, np.float32(-1))


#: What a kernel writes to c, and what a device has there.
COMPUTED = {
    "a count takes its own mask along": (
        "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(0, 100); Adds(b, a, 0.0f, 256);"
        "Add<float, false>(c, a, b, MASK_PLACEHOLDER, 1, two);",
        _first(64, 2 * INDEX),
    ),
    "a cast by a count, too": (
        "SetVectorMask<float>(0, 3); Cast(b, ai, RoundMode::CAST_RINT, 256); Duplicate(b, 4.0f, 256);"
        "Adds<float, false>(c, b, 1.0f, MASK_PLACEHOLDER, 1, one);",
        _first(64, np.full(256, 5, np.float32)),
    ),
    "a mask stays in the registers": (
        "uint64_t first = 3; Adds(c, a, 1.0f, first, 1, one);Adds<float, false>(c, a, 7.0f, MASK_PLACEHOLDER, 1, one);",
        _first(3, INDEX + 7),
    ),
    "bits stay in the registers": (
        "uint64_t bits_of[2] = {7, 0}; Adds(c, a, 1.0f, bits_of, 1, one);"
        "Muls<float, false>(c, a, 2.0f, MASK_PLACEHOLDER, 1, one);",
        _first(3, INDEX * 2),
    ),
    "a count without a mask of its own is not read": (
        "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(0, 130); Adds<float, false>(c, a, 3.0f, 1);",
        _first(130, INDEX + 3),
    ),
    "nor is that of a shift": (
        "SetVectorMask<int32_t>(0, 15); CreateVecIndex(ci, 0, 256); SetVectorMask<int32_t>(0, 15);"
        "ShiftLeft<int32_t, false>(ci, ci, 1, 256); SetVectorMask<int32_t>(0, 15); ResetMask();"
        "Cast(c, ci, RoundMode::CAST_RINT, 256);",
        np.where(INDEX < 4, 2 * INDEX, INDEX),
    ),
    "a shift by all bits": (
        "CreateVecIndex(ci, 0, 256); ShiftRight(ci, ci, 32, 64); Cast(c, ci, RoundMode::CAST_RINT, 256);",
        np.where(INDEX < 64, 0, INDEX),
    ),
    "a single repeat of addresses begins a stride later": (
        "Cast(bh, a, RoundMode::CAST_RINT, 1024); TransDataTo5HD<half>(targets, sources, {false, false, 1, 0, 1});"
        "Cast(b, ch, RoundMode::CAST_NONE, 16); Adds(c, b, 0.0f, 16); Duplicate(c[16], -1.0f, 240);",
        _first(16, 16 + 32 * INDEX),
    ),
    "addresses in a tensor": (
        "Cast(bh, a, RoundMode::CAST_RINT, 1024); auto lists_of = bits.ReinterpretCast<uint64_t>();"
        "for (int i = 0; i < 16; ++i) lists_of.SetValue(i, targets[i]), lists_of.SetValue(16 + i, sources[i]);"
        "PipeBarrier<PIPE_ALL>(); TransDataTo5HD<half>(lists_of, lists_of[16], {false, false, 1, 0, 0});"
        "Cast(b, ch, RoundMode::CAST_NONE, 16); Adds(c, b, 0.0f, 16); Duplicate(c[16], -1.0f, 240);",
        _first(16, 32 * INDEX),
    ),
    "the last 8 KiB in a selection": (
        "TBuf<> last; pipe.InitBuffer(last, 28672); auto mine = last.Get<float>()[6144]; Duplicate(mine, 5.0f, 64);"
        "Select(b, bits, a, 9.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64); Adds(c, mine, 0.0f, 64);",
        np.where(INDEX < 32, 9, np.where(INDEX < 64, 5, -1)),
    ),
    "the last 8 KiB in a selection between tensors": (
        "TBuf<> last; pipe.InitBuffer(last, 28672); auto mine = last.Get<int32_t>()[6144];"
        "Select(b, bits, a, a, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64); Cast(c, mine, RoundMode::CAST_RINT, 8);"
        "Duplicate(c[8], -1.0f, 248);",
        _first(8, np.full(256, 3 * 40960, np.float32)),
    ),
    "rows of whole blocks": (
        "SumParams rows{2, 40, 33}; Sum(c, a, rows);",
        np.where(INDEX == 0, 528, np.where(INDEX == 1, 1848, -1)),
    ),
    "half a block for the sums of blocks": (
        "Duplicate(ah, (half)1, 128); BlockReduceSum(bh[8], ah, 1, 128, 1, 1, 8);"
        "Cast(c, bh, RoundMode::CAST_NONE, 16);"
        "Duplicate(c, -1.0f, 8);",
        np.where((INDEX >= 8) & (INDEX < 16), 16, -1),
    ),
}
#: What a device does not have, and what is said.
REFUSED = {
    "repeats of a reduction": (
        "WholeReduceMax(c, a, 64, 256, 1, 1, 0);",
        "WholeReduceMax: repeatTime 256; valid: 0 to 255; call it for 255 repeats at a time",
    ),
    "repeats of sums of blocks": ("BlockReduceSum(c, a, 300, 64, 0, 1, 0);", "repeatTime 300; valid: 0 to 255"),
    "negative repeats": ("PairReduceSum(c, a, -1, 64, 1, 1, 8);", "repeatTime -1; valid: 0 to 255"),
    "repeats of a sort": ("Sort32(c, a, words, 256);", "Sort32: repeatTime 256; valid: 0 to 255"),
    "repeats of a merge": (
        "uint32_t sorted[4]; MrgSortSrcList<float> s(a, a[64], a, a);"
        "MrgSort(c, s, lists.elementLengths, sorted, 3, 256);",
        "MrgSort: repeatTime 256; valid: 0 to 255",
    ),
    "the length of a list": (
        "lists.elementLengths[1] = 4096; MrgSortSrcList<float> s(a, a[64], a, a); MrgSort(c, s, lists);",
        "MrgSort: elementLengths[1] is 4096; valid: 0 to 4095",
    ),
    "a list that begins within an element": (
        "MrgSortSrcList<float> s(a[1], a[64], a, a); MrgSort(c, s, lists);",
        "MrgSort: a source is unaligned: it starts at an address that is not a multiple of 8 bytes",
    ),
    "sums of blocks of halfs": ("BlockReduceSum(ch[4], ah, 1, 128, 1, 1, 8);", "not a multiple of 16 bytes"),
    "sums of blocks of floats": ("BlockReduceMax(c[4], a, 1, 64, 1, 1, 8);", "not a multiple of 32 bytes"),
    "sums of pairs": ("PairReduceSum(ch[8], ah, 1, 128, 1, 1, 8);", "not a multiple of 32 bytes"),
    "a shift by more than all bits": ("ShiftRight(ci, ai, 33, 64);", "ShiftRight: scalarValue 33; valid: 0 to 32"),
    "a negative shift": ("ShiftLeft(ci, ai, -1, 64);", "ShiftLeft: scalarValue -1; valid: 0 to 32"),
    "sums of rows that are no blocks": ("SumParams s{2, 33, 33}; Sum(c, a, s);", "Sum: inner 33 of rows of n = 33"),
    "means of rows that are no blocks": ("MeanParams s{2, 33, 33}; Mean(c, a, s);", "Mean: inner 33 of rows of n = 33"),
    "longer rows than there are": ("SumParams s{2, 8, 9}; Sum(c, a, s);", "Sum: inner 8 of rows of n = 9"),
    "rows that are repeated": (
        "const uint32_t to_shape[] = {5, 33}, from[] = {1, 33}; BroadCast<float, 2, 0>(c, a, to_shape, from);",
        "BroadCast: rows of 33 elements along axis 0",
    ),
    "a copy of parts of elements": (
        "GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float*)to, 256);"
        "DataCopyPad(a, z, DataCopyExtParams{1, 33, 0, 0, 0}, {false, 0, 0, 0});",
        "DataCopyPad: blockLen 33; it counts bytes and must be a multiple of the element's 4",
    ),
    "the same in the other direction": (
        "GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float*)to, 256);"
        "DataCopyPad(z, a, DataCopyExtParams{1, 33, 0, 0, 0});",
        "DataCopyPad: blockLen 33",
    ),
    "a padding of eight bytes": (
        "GlobalTensor<int64_t> z; z.SetGlobalBuffer((__gm__ int64_t*)to, 128);"
        "DataCopyPad(a.ReinterpretCast<int64_t>(), z, DataCopyExtParams{1, 24, 0, 0, 0}, {true, 0, 1, 5});",
        "DataCopyPad: elements of 8 bytes have the paddingValue 0 alone",
    ),
    "blocks without a distance": ("Brcb(c, a, 2, {0, 8});", "Brcb: dstBlkStride 0 is undefined"),
    "rows that begin within a block": (
        "sources[3] += 16; TransDataTo5HD<half>(targets, sources, {false, false, 1, 0, 0});",
        "TransDataTo5HD: srcList starts at an address that is not a multiple of 32 bytes",
    ),
    "images that are no blocks": (
        "TransposeParamsExt image(1, 3, 3, 3, TransposeType::TRANSPOSE_NCHW2NHWC); Transpose(c, a, bits, image);",
        "Transpose: cSize 3, hSize * wSize 9",
    ),
    "images in place": (
        "TransposeParamsExt image(1, 3, 4, 4, TransposeType::TRANSPOSE_NCHW2NHWC); Transpose(a, a, bits, image);",
        "Transpose: dst is src, which the API does not support",
    ),
}


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    kernels = [KERNEL % (f"computed{i}", body) for i, (body, _) in enumerate(COMPUTED.values())]
    kernels += [KERNEL % (f"refused{i}", body) for i, (body, _) in enumerate(REFUSED.values())]
    return build('#include "kernel_operator.h"\nusing namespace AscendC;\n' + "".join(kernels))


@pytest.mark.parametrize("index", range(len(COMPUTED)), ids=list(COMPUTED))
def test_a_call_leaves_what_a_device_has(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    z = np.zeros(256, np.float32)
    assert launch(library, f"computed{index}", 1, np.zeros(1, np.float32), z) == 0, tools.message()
    np.testing.assert_array_equal(z, list(COMPUTED.values())[index][1])


@pytest.mark.parametrize("index", range(len(REFUSED)), ids=list(REFUSED))
def test_what_a_device_does_not_have_is_refused(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    z = np.zeros(256, np.float32)
    assert launch(library, f"refused{index}", 1, np.zeros(1, np.float32), z) == 507015
    assert list(REFUSED.values())[index][1] in tools.message()
