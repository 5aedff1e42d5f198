# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Numbers that bound types, and atomic operations of scalars in global memory."""

from __future__ import annotations

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

LIMITS = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T>
__aicore__ inline __gm__ T* Bounds(GM_ADDR z) {
    auto* to = (__gm__ T*)z;
    *to++ = NumericLimits<T>::Max();
    *to++ = NumericLimits<T>::Lowest();
    *to++ = NumericLimits<T>::Min();
    return to;
}
template <typename T>
__aicore__ inline void All(GM_ADDR z) {
    auto* to = Bounds<T>(z);
    *to++ = NumericLimits<T>::Infinity();
    *to++ = NumericLimits<T>::NegativeInfinity();
    *to++ = NumericLimits<T>::DeNormMin();
    *to++ = NumericLimits<T>::QuietNaN();
    *to++ = NumericLimits<T>::SignalingNaN();
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    auto local = buffer.Get<T>();
    NumericLimits<T>::NegativeInfinity(local, 16);
    *to++ = local.GetValue(15);
    NumericLimits<T>::Lowest(local, 16);
    *to++ = local.GetValue(15);
}
extern "C" __global__ __vector__ void of_float(GM_ADDR z) { All<float>(z); }
extern "C" __global__ __vector__ void of_half(GM_ADDR z) { All<half>(z); }
extern "C" __global__ __vector__ void of_int8(GM_ADDR z) { Bounds<int8_t>(z); }
extern "C" __global__ __vector__ void of_uint32(GM_ADDR z) { Bounds<uint32_t>(z); }
static_assert(NumericLimits<int32_t>::Lowest() == INT32_MIN && NumericLimits<half>::Max() == half(65504), "");
static_assert(!std::is_same<uint8_t, int2b_t>::value && !IsSameType<uint8_t, uint1b_t>::value, "");
static_assert(TrueType::value && !FalseType::Type::value, "");
static_assert(std::is_same<IsSameType<int, int>::Type, TrueType>::value, "");
"""


def test_limits(build: Build, tools: Toolkit) -> None:
    library = build(LIMITS, "-O0")
    for kernel, kind in (("of_float", np.float32), ("of_half", np.float16)):
        z, info = np.zeros(10, kind), np.finfo(kind)
        assert launch(library, kernel, 1, z) == 0, tools.message()
        bounds = [info.max, info.min, info.tiny, np.inf, -np.inf, info.smallest_subnormal]
        np.testing.assert_array_equal(z, np.array([*bounds, np.nan, np.nan, -np.inf, info.min], kind))
    for kernel, whole in (("of_int8", np.int8), ("of_uint32", np.uint32)):
        y, range_ = np.zeros(3, whole), np.iinfo(whole)
        assert launch(library, kernel, 1, y) == 0, tools.message()
        assert y.tolist() == [range_.max, range_.min, range_.min]


def test_types_without_limits_do_not_compile(build: Build) -> None:
    code = LIMITS + "bfloat16_t none() { return NumericLimits<bfloat16_t>::Max(); }"
    with pytest.raises(AssertionError, match="NumericLimits: bfloat16_t is for dav-3510"):
        build(code, "-O0")


ATOMICS = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __vector__ void changes(GM_ADDR z, GM_ADDR f, GM_ADDR x) {
    auto* whole = (__gm__ uint32_t*)z;
    const uint32_t mine = 1 + GetBlockIdx();
    OOMCheckAddrRange(whole, 32);
    AtomicAdd(whole, mine);
    AtomicMax(whole + 1, mine);
    AtomicMin(whole + 2, mine);
    AtomicAdd((__gm__ float*)f, 0.5f);
    // Each block takes what the one before it left.
    while (AtomicCas(whole + 3, mine - 1, mine) != mine - 1) {}
    ((__gm__ uint32_t*)x)[mine - 1] = AtomicExch(whole + 4, mine);
    AtomicAdd<int64_t>((__gm__ int64_t*)(whole + 6), -1);
}
extern "C" __global__ __vector__ void unaligned(GM_ADDR z) { AtomicAdd((__gm__ uint32_t*)(z + 2), 1); }
"""


def test_atomic_operations(build: Build, tools: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
    library = build(ATOMICS, "--npu-arch=dav-3510", "-O0")
    z, f, x = np.array([0, 0, 99, 0, 0, 0, 0, 0], np.uint32), np.zeros(1, np.float32), np.zeros(6, np.uint32)
    assert launch(library, "changes", 6, z, f, x) == 0, tools.message()
    assert z[:4].tolist() == [21, 6, 1, 6]
    assert z[6:].view(np.int64)[0] == -6
    assert f[0] == 3
    # What was exchanged: each number once, in some order, and the last one stays.
    assert sorted([*x, z[4]]) == list(range(7))
    launch(library, "unaligned", 1, z)
    assert "is not a multiple of 4" in tools.message()


ABSOLUTE = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __vector__ void absolute(GM_ADDR x, GM_ADDR z) {
    auto* from = (__gm__ float*)x;
    auto* to = (__gm__ float*)z;
    *to++ = abs(*from);
    *to++ = abs(half(*from));
    *to++ = abs(bfloat16_t(*from));
    *to++ = abs((int64_t)-5000000000) == 5000000000;
    *to++ = abs((int32_t)-3);
    *to++ = abs(*from) < PI;
}
"""


def test_absolute_values_of_scalars_keep_what_lies_after_the_point(build: Build, tools: Toolkit) -> None:
    x, z = np.array([-0.75], np.float32), np.zeros(6, np.float32)
    assert launch(build(ABSOLUTE, "-O0"), "absolute", 1, x, z) == 0, tools.message()
    assert z.tolist() == [0.75, 0.75, 0.75, 1, 3, 1]
