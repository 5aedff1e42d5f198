# ruff: noqa: E501, PLR0917, RUF100 - kernels are quoted as they are written
"""Threads of dav-3510 (`__simt_vf__`), against NumPy: their places, barriers, warps, atomic operations, conversions."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

ARCHITECTURE = "--npu-arch=dav-3510"
random = np.random.default_rng(7)
COUNT = 96
"""Threads of a block here: three warps."""
LANES = np.arange(COUNT) % 32
_F, _H = np.finfo(np.float32), np.finfo(np.float16)
_HALF = np.sqrt(0.5)
#: Numbers with names of their own, in the order of the case that has them.
NUMBERS = np.array(
    [
        *(np.inf, -np.inf, _F.max, _F.max, _F.smallest_subnormal, -np.inf, 0, 1),
        *(np.pi, np.pi / 2, np.pi / 4, np.pi * 3 / 4, 2 / np.pi, np.sqrt(2 / np.pi)),
        *(_HALF, np.float32(_HALF) + np.float32(1), _HALF - np.float32(_HALF).astype(float), np.sqrt(2), 1 / 3),
        *(np.log2(np.e), np.log2(10), np.log10(2), np.log10(np.e), np.log(2), np.log(10), np.log(np.pi)),
        *(2.0**-126, 2.0**126, 2.0**23, 2.0**24, 2.0**31, 2.0**32, 105615, 3, 7),
        *(_H.max, _H.smallest_subnormal, np.inf, 1, 0, -np.inf),
        *(np.array([0x7F7F0000, 0x00010000], np.uint32).view(np.float32)),
        *(np.inf, 1, 0, -np.inf, -(2.0**31), 2.0**31, 1),
    ],
    np.float32,
)


@pytest.fixture(autouse=True)
def _stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")


def _source(bodies: dict[str, str], threads: str = f"dim3({COUNT})") -> str:
    """A kernel that calls one of several functions of threads, with x and z in global memory and u in the unified
    buffer.

    In a body `i` is the number of the thread.
    """
    functions = "".join(
        f"__simt_vf__ __aicore__ LAUNCH_BOUND(1024) inline void f{index}(__gm__ float* x, __gm__ float* z, "
        f"__ubuf__ float* u) {{\n"
        f"    const int i = threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.x * blockDim.y; (void)i; "
        f"(void)x; (void)u;\n"
        f"    {body}\n}}\n"
        for index, body in enumerate(bodies.values())
    )
    calls = "".join(
        f"        case {index}: asc_vf_call<f{index}>({threads}, (__gm__ float*)x, (__gm__ float*)z, u); break;\n"
        for index in range(len(bodies))
    )
    return f"""
#include "kernel_operator.h"
#include "simt_api/asc_simt.h"
#include "simt_api/asc_fp16.h"
#include "simt_api/asc_bf16.h"
#include "simt_api/device_atomic_functions.h"
#include "simt_api/device_warp_functions.h"
using namespace AscendC;
__simt_callee__ inline int lane() {{ return laneid(); }}
{functions}
extern "C" __global__ __aicore__ void threads(GM_ADDR x, GM_ADDR z, uint32_t which) {{
    TPipe pipe; TBuf<> buffer; pipe.InitBuffer(buffer, 4096);
    LocalTensor<float> local = buffer.Get<float>();
    Duplicate(local, 0.0f, 1024);
    __ubuf__ float* u = (__ubuf__ float*)local.GetPhyAddr();
    switch (which) {{
{calls}        default: Trap();
    }}
}}
"""


def _by_lane(f: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The same for each warp."""
    return lambda x: np.concatenate([f(one) for one in x.reshape(-1, 32)])


def _own(lanes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The value of other lanes, or the own one where there is none."""
    return np.where(lanes >= 0, x[lanes], x)


def _all(reduction: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.full(32, reduction(x), np.float32)


def _half(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float16).astype(np.float32)


L = np.arange(32)
#: The code of a thread, and what the threads together leave in z of x, 96 floats of small integers and halves.
CASES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "threadIdx": ("z[i] = threadIdx.x;", lambda x: np.arange(96)),
    "block": ("z[i] = blockIdx.x + 10 * gridDim.x + 100 * blockDim.x + warpSize;", lambda x: np.full(96, 9642)),
    "older names": (
        (
            "z[i] = Simt::GetThreadIdx<0>() + Simt::GetThreadNum<0>() + Simt::GetThreadNum<1>() + Simt::GetBlockIdx() "
            "+ "
            "Simt::GetBlockNum();"
        ),
        lambda x: np.arange(96) + 98,
    ),
    "asc_syncthreads": ("u[i] = x[i]; asc_syncthreads(); z[i] = u[95 - i];", lambda x: x[::-1]),
    "ThreadBarrier": ("u[i] = x[i]; Simt::ThreadBarrier(); z[i] = u[(i + 1) % 96];", lambda x: np.roll(x, -1)),
    "barriers in a loop": (
        (
            "u[i] = x[i]; for (int n = 48; n >= 3; n /= 2) { asc_syncthreads(); if (i < n) u[i] += u[i + n]; "
            "} asc_syncthreads(); z[i] = u[0] + u[1] + u[2];"
        ),
        lambda x: np.full(96, x.sum()),
    ),
    "asc_threadfence": ("u[i] = x[i]; asc_threadfence(); asc_threadfence_block(); z[i] = u[i];", lambda x: x),
    "laneid": ("z[i] = lane();", lambda x: LANES),
    "lanemask": (
        (
            "z[i] = __popc(uint32_t(lanemask_lt())) + 100 * __popc(uint32_t(lanemask_le())) + (lanemask_eq() == 1 << laneid()) + "
            "__popc(uint32_t(lanemask_gt())) / 64.f + 100 * __popc(uint32_t(lanemask_ge()));"
        ),
        lambda x: LANES + 100 * (LANES + 1) + 1 + (31 - LANES) / 64 + 100 * (32 - LANES),
    ),
    "asc_shfl": ("z[i] = asc_shfl(x[i], 21, 16);", _by_lane(lambda x: x[L // 16 * 16 + 5])),
    "asc_shfl own": ("z[i] = asc_shfl(x[i], 31 - laneid());", _by_lane(lambda x: x[::-1])),
    "asc_shfl_up": ("z[i] = asc_shfl_up(x[i], 3u, 8);", _by_lane(lambda x: _own(np.where(L % 8 >= 3, L - 3, -1), x))),
    "asc_shfl_down": (
        "z[i] = asc_shfl_down(x[i], 5u, 16);",
        _by_lane(lambda x: _own(np.where(L % 16 < 11, L + 5, -1), x)),
    ),
    "asc_shfl_xor": (
        "z[i] = asc_shfl_xor(x[i], 9, 8);",
        _by_lane(lambda x: _own(np.where((L ^ 9) < L // 8 * 8 + 8, L ^ 9, -1), x)),
    ),
    "asc_shfl half": (
        "z[i] = __half2float(asc_shfl_down(__float2half(x[i]), 1u));",
        _by_lane(lambda x: np.append(x[1:], x[31])),
    ),
    "asc_shfl int64": (
        "z[i] = asc_shfl_up((int64_t)(x[i] * 2), 1u) / 2.f;",
        _by_lane(lambda x: np.append(x[0], x[:31])),
    ),
    "asc_reduce_add": ("z[i] = asc_reduce_add(x[i]);", _by_lane(_all(np.sum))),
    "asc_reduce_max": ("z[i] = asc_reduce_max((int32_t)(2 * x[i]));", _by_lane(_all(lambda x: (2 * x).max()))),
    "asc_reduce_min": ("z[i] = asc_reduce_min(x[i]);", _by_lane(_all(np.min))),
    "active lanes alone": (
        (
            "z[i] = 7; if (laneid() % 3 == 1) z[i] = asc_reduce_add(x[i]) + 1000 * __popc(asc_activemask()); "
            "asc_syncthreads();"
        ),
        _by_lane(lambda x: np.where(L % 3 == 1, x[1::3].sum() + 11000, 7)),
    ),
    "lanes that have ended": (
        "z[i] = 7; if (laneid() >= 20) return; z[i] = asc_reduce_add(1.0f);",
        _by_lane(lambda x: np.where(L < 20, 20, 7)),
    ),
    "asc_ballot": (
        "z[i] = __popc(asc_ballot(x[i] > 0) & uint32_t(lanemask_lt()));",
        _by_lane(lambda x: np.cumsum(x > 0) - (x > 0)),
    ),
    "asc_any asc_all": (
        "z[i] = asc_any(x[i] > 6) + 2 * asc_all(x[i] < 9);",
        _by_lane(lambda x: np.full(32, (x > 6).any() + 2 * (x < 9).all())),
    ),
    "asc_atomic_add": (
        (
            "asc_atomic_add(u + i % 5, x[i]); asc_atomic_add((__ubuf__ int32_t*)u + 8, 2); asc_syncthreads(); "
            "if (i < 5) z[i] = u[i]; else z[i] = ((__ubuf__ int32_t*)u)[8];"
        ),
        lambda x: np.concatenate(([x[n::5].sum() for n in range(5)], np.full(91, 192))),
    ),
    "asc_atomic_add half": (
        (
            "asc_atomic_add((__ubuf__ half*)u + 1, half(1)); asc_atomic_add((__ubuf__ half2*)u + 1, half2{half(1), "
            "half(2)}); asc_syncthreads(); z[i] = ((__ubuf__ half*)u)[i % 4];"
        ),
        lambda x: np.resize([0, 96, 96, 192], 96),
    ),
    "asc_atomic_sub": (
        "asc_atomic_sub((__ubuf__ int32_t*)u, i); asc_syncthreads(); z[i] = ((__ubuf__ int32_t*)u)[0];",
        lambda x: np.full(96, -4560),
    ),
    "asc_atomic_max": (
        "asc_atomic_max(u, x[i]); asc_atomic_min(u + 1, x[i]); asc_syncthreads(); z[i] = u[i % 2];",
        lambda x: np.resize([max(x.max(), 0), min(x.min(), 0)], 96),
    ),
    "asc_atomic bits": (
        (
            "auto* b = (__ubuf__ uint32_t*)u; asc_atomic_or(b, 1u << i % 7); asc_atomic_xor(b + 1, 1u << i % 5); "
            "asc_atomic_and(b + 2, 0u); asc_syncthreads(); z[i] = b[i % 3];"
        ),
        lambda x: np.resize([127, 0b11110, 0], 96),
    ),
    "asc_atomic_inc": (
        (
            "auto* b = (__ubuf__ uint32_t*)u; asc_atomic_inc(b, 9u); asc_atomic_dec(b + 1, 9u); asc_syncthreads(); "
            "z[i] = b[i % 2];"
        ),
        lambda x: np.resize([6, 4], 96),
    ),
    "asc_atomic_exch": ("asc_atomic_exch(u + i, x[i]); z[i] = asc_atomic_exch(u + i, 0.0f);", lambda x: x),
    "the older names of atomic operations": (
        (
            "using namespace AscendC; auto* n = (__ubuf__ uint32_t*)u; Simt::AtomicAdd(n, 3u); Simt::AtomicSub(n, 1u); "
            "Simt::AtomicMax(n + 1, uint32_t(i)); Simt::AtomicMin(n + 2, 5u); Simt::AtomicExch(n + 3, 9u); "
            "Simt::AtomicInc(n + 4, 1000u); Simt::AtomicDec(n + 5, 95u); Simt::AtomicOr(n + 6, 1u << i % 4); "
            "Simt::AtomicXor(n + 7, 1u << i % 4); Simt::AtomicAnd(n + 8, 7u); Simt::AtomicCas(n + 9, 0u, 96u); "
            "asc_syncthreads(); z[i] = n[i % 10];"
        ),
        lambda x: np.resize([192, 95, 0, 9, 96, 0, 15, 0, 0, 96], 96),
    ),
    "numbers of their own": (
        (
            "const float all[] = {ASCRT_INF_F, -ASCRT_INF_F, ASCRT_MAX_NORMAL_F, ASCRT_NORM_HUGE_F, ASCRT_MIN_DENORM_F, "
            "1 / ASCRT_NEG_ZERO_F, ASCRT_ZERO_F, ASCRT_ONE_F, ASCRT_PI_F, ASCRT_PIO2_F, ASCRT_PIO4_F, ASCRT_3PIO4_F, "
            "ASCRT_2_OVER_PI_F, ASCRT_SQRT_2_OVER_PI_F, ASCRT_SQRT_HALF_F, ASCRT_SQRT_HALF_HI_F + 1, "
            "ASCRT_SQRT_HALF_LO_F, ASCRT_SQRT_TWO_F, ASCRT_THIRD_F, ASCRT_L2E_F, ASCRT_L2T_F, ASCRT_LG2_F, ASCRT_LGE_F, "
            "ASCRT_LN2_F, ASCRT_LNT_F, ASCRT_LNPI_F, ASCRT_TWO_TO_M126_F, ASCRT_TWO_TO_126_F, ASCRT_TWO_TO_23_F, "
            "ASCRT_TWO_TO_24_F, ASCRT_TWO_TO_31_F, ASCRT_TWO_TO_32_F, ASCRT_TRIG_PLOSS_F, ASCRT_REMQUO_BITS_F, "
            "ASCRT_REMQUO_MASK_F, ASCRT_MAX_NORMAL_FP16, ASCRT_MIN_DENORM_FP16, ASCRT_INF_FP16, ASCRT_ONE_FP16, "
            "ASCRT_ZERO_FP16, 1 / float(ASCRT_NEG_ZERO_FP16), ASCRT_MAX_NORMAL_BF16, ASCRT_MIN_DENORM_BF16, "
            "ASCRT_INF_BF16, ASCRT_ONE_BF16, ASCRT_ZERO_BF16, 1 / float(ASCRT_NEG_ZERO_BF16), int(ASCRT_MIN_VAL_S), "
            "float(ASCRT_MAX_VAL_S), float(isnan(ASCRT_NAN_F) && isnan(float(ASCRT_NAN_FP16)) && "
            "isnan(float(ASCRT_NAN_BF16)))}; z[i] = i < 50 ? all[i] : 0;"
        ),
        lambda x: np.concatenate((NUMBERS, np.zeros(46, np.float32))),
    ),
    "a lock": (
        (
            "auto* lock = (__ubuf__ uint32_t*)u; while (asc_atomic_cas(lock, 0u, 1u) != 0u) {} u[1] = u[1] + x[i]; "
            "asc_atomic_exch(lock, 0u); asc_syncthreads(); z[i] = u[1];"
        ),
        lambda x: np.full(96, x.sum()),
    ),
    "returned": (
        "z[i] = asc_atomic_add((__ubuf__ int32_t*)u + i, 3) + asc_atomic_add((__ubuf__ int32_t*)u + i, 4);",
        lambda x: np.full(96, 3),
    ),
    "asc_ldcg": (
        (
            "asc_dcci_single(x); asc_dcci_entire(x); asc_nop(); asc_stcg(z + i, asc_ldcg(x + i)); "
            "asc_stwt(z + i, asc_ldca(z + i) + 1);"
        ),
        lambda x: x + 1,
    ),
    "UintDiv": (
        (
            "uint32_t m, s; uint64_t n, t; GetUintDivMagicAndShift(m, s, uint32_t(i + 1)); "
            "GetUintDivMagicAndShift(n, t, uint64_t(i + 1));"
            "z[i] = Simt::UintDiv(uint32_t(1000003), m, s) - 1000003 / (i + 1) + Simt::UintDiv(uint64_t(1) << 40, n, "
            "t) - (uint64_t(1) << 40) / (i + 1);"
        ),
        lambda x: np.zeros(96),
    ),
    "half": (
        "half h = __float2half_rz(x[i] / 3); z[i] = __half2float(__hadd(h, __float2half(1.0f)));",
        lambda x: _half(_toward_zero(x / np.float32(3)) + 1),
    ),
    "bfloat16": (
        (
            "z[i] = __bfloat162float(__float2bfloat16(x[i] * 3)) + __bfloat162float(__hmax(bfloat16_t(x[i]), "
            "bfloat16_t(0.0f)));"
        ),
        lambda x: 3 * x + np.maximum(x, 0),
    ),
    "saturating": (
        "z[i] = __half2float(__float2half_rn_sat(x[i] * 1e6f)) + __float2int_rn(x[i] * 1e12f) / 65536.f;",
        lambda x: (
            np.sign(x) * 65504
            + np.clip(x.astype(np.float64) * 1e12, -(2**31), 2**31 - 1).astype(np.int32) / np.float32(65536)
        ),
    ),
    "roundings": (
        (
            "z[i] = __float2int_rn(x[i]) + 100 * __float2int_rd(x[i]) + 10000 * (__float2int_ru(x[i]) + "
            "__float2int_rz(x[i]) + __float2int_rna(x[i]));"
        ),
        lambda x: (
            np.rint(x)
            + 100 * np.floor(x)
            + 10000 * (np.ceil(x) + np.trunc(x) + np.copysign(np.floor(np.abs(x) + 0.5), x))
        ),
    ),
    "integers": (
        (
            "z[i] = int(__umulhi(0x80000000u, i)) + __mulhi(-0x40000000, 4 * i) + __ffs(i) + __clz(i) + "
            "int(__umul64hi(uint64_t(1) << 63, 2u * i));"
        ),
        lambda x: (
            np.arange(96) // 2 - np.arange(96) + [(n & -n).bit_length() + 32 - n.bit_length() + n for n in range(96)]
        ),
    ),
    "int2float": (
        "z[i] = __int2float_rd(16777217 + 2 * i) - 16777216.f + 4 * (__int2float_ru(16777217 + 2 * i) - 16777216.f);",
        lambda x: 2 * np.arange(96) + 4 * (2 * np.arange(96) + 2),
    ),
    "bits": ("z[i] = __int_as_float(__float_as_int(x[i])) + __uint_as_float(__float_as_uint(x[i]));", lambda x: 2 * x),
    "float2": (
        "auto* p = (__ubuf__ float2*)u; p[i] = float2{x[i], 1}; z[i] = p[i].x + p[i].y + u[2 * i];",
        lambda x: 2 * x + 1,
    ),
    "rsqrtf": ("z[i] = rsqrtf(4.0f) + sinpif(x[i]) * 0 + cospif(2 * x[i]);", lambda x: 0.5 + np.cos(np.pi * 2 * x)),
}


def _toward_zero(x: np.ndarray) -> np.ndarray:
    """As half, rounded toward zero."""
    near = x.astype(np.float16)
    return np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float16(0)), near).astype(np.float32)


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(_source({name: code for name, (code, _) in CASES.items()}), ARCHITECTURE, "-O0")


@pytest.mark.parametrize("order", ["", "reversed"])
@pytest.mark.parametrize("index", range(len(CASES)), ids=list(CASES))
def test_case(library: ctypes.CDLL, tools: Toolkit, monkeypatch: pytest.MonkeyPatch, index: int, order: str) -> None:
    """Whatever the order of threads."""
    monkeypatch.setenv("ASCEND_GRAPH_KERNEL_THREADS", order)
    x, z = (random.integers(-16, 16, COUNT) / 2).astype(np.float32), np.zeros(COUNT, np.float32)
    assert launch(library, "threads", 1, x, z, index) == 0, tools.message()
    expected = np.asarray(list(CASES.values())[index][1](x), np.float64)
    np.testing.assert_allclose(z, expected, rtol=1e-6)


#: The code of a thread, and what the error says.
BROKEN = {
    "not all at a barrier": (
        "if (i < 40) asc_syncthreads();",
        r"asc_syncthreads waits for ever: thread 0 waits, and 56 of 96 threads have ended without it",
    ),
    "other barriers": (
        "if (i < 40) { asc_syncthreads(); }\n else asc_syncthreads();",
        r"the threads of a block wait at different calls: thread 0 in .*:\d+, thread 40 in .*:\d+",
    ),
    "other calls of a warp": (
        "if (i % 2) z[i] = asc_shfl(1.0f, 1);\n else z[i] = asc_shfl(2.0f, 2);",
        r"asc_shfl: the lanes of a warp wait at different calls",
    ),
    "width": ("z[i] = asc_shfl(1.0f, 1, 12);", r"asc_shfl: width 12; valid: 1, 2, 4, 8, 16, 32"),
    "unaligned": (
        "asc_atomic_add((__ubuf__ int32_t*)((__ubuf__ char*)u + 2), 1);",
        r"asc_atomic_add: the address .* is not a multiple of 4",
    ),
    "8 bytes": (
        "asc_atomic_add((__ubuf__ int64_t*)u, int64_t(1));",
        r"asc_atomic_add: elements of 8 bytes in the unified buffer; they must be in global memory",
    ),
    "cached": ("z[i] = asc_ldcg(u);", r"asc_ldcg: the address is in the unified buffer"),
    "divisor": (
        "uint32_t m, s; GetUintDivMagicAndShift(m, s, 0u);",
        r"GetUintDivMagicAndShift: divisor 0; valid: 1 to 2147483647",
    ),
    "a null address": ("if (i == 95) *(volatile float*)nullptr = 1;", r"accesses memory through a null or bad pointer"),
    "a stack": (
        "volatile char deep[1 << 20]; for (int n = 1 << 20; n-- > 0;) deep[n] = 1; z[i] = deep[i];",
        r"stack|bad pointer",
    ),
}


@pytest.fixture(scope="module")
def broken(build: Build) -> ctypes.CDLL:
    return build(_source({name: code for name, (code, _) in BROKEN.items()}), ARCHITECTURE, "-O0")


@pytest.mark.parametrize("index", range(len(BROKEN)), ids=list(BROKEN))
def test_broken_rule(broken: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    x, z = np.zeros(COUNT, np.float32), np.zeros(COUNT, np.float32)
    status, expected = launch(broken, "threads", 1, x, z, index), list(BROKEN.values())[index][1]
    assert status == (507014 if "waits for ever" in expected else 507015)
    assert re.search(expected, tools.message()), tools.message()


def test_calls_of_threads(build: Build, tools: Toolkit) -> None:
    """By either name, in three dimensions and as many blocks as are launched, of private functions; not too many, not outside."""
    library = build(
        """
#include "kernel_operator.h"
#include "simt_api/common_functions.h"
using namespace AscendC;
class Filler {
  public:
    void operator()(__gm__ int32_t* to) { asc_vf_call<one<int32_t>>(dim3(24), to, 3000); }
  private:
    template <typename T>
    __simt_vf__ __launch_bounds__(24) static inline void one(__gm__ T* z, T value) {
        z[blockIdx.x * 24 + threadIdx.x] = value + 432;
    }
};
template <typename T>
__simt_vf__ __launch_bounds__(24) inline void fill(__gm__ T* z, T value) {
    z[blockIdx.x * 24 + threadIdx.x + 2 * (threadIdx.y + 3 * threadIdx.z)] =
        value + 100 * blockDim.z + 10 * blockDim.y + blockDim.x;
}
extern "C" __global__ __vector__ void filled(GM_ADDR z, uint32_t which) {
    __gm__ int32_t* to = (__gm__ int32_t*)z;
    const dim3 size(2, 3, 4);
    if (which == 0) asc_vf_call<fill<int32_t>>(size, to, 1000);
    if (which == 1) Simt::VF_CALL<fill<int32_t>>(Simt::Dim3{2, 3, 4}, to, 2000);
    if (which == 2) asc_vf_call<fill<int32_t>>(dim3(1025, 2), to, 1);
    if (which == 3) asc_vf_call<fill<int32_t>>(dim3(0), to, 1);
    if (which == 4) asc_syncthreads();
    if (which == 5) Filler()(to);
}
""",
        ARCHITECTURE,
    )
    for which, base in ((0, 1000), (1, 2000), (5, 3000)):
        z = np.zeros(72, np.int32)
        assert launch(library, "filled", 3, z, which) == 0, tools.message()
        assert z.tolist() == [base + 432] * 72
    for which, message in (
        (2, "asc_vf_call: 1025 * 2 * 1 threads; valid: 1 to 2048"),
        (3, "asc_vf_call: 0 * 1 * 1 threads; valid: 1 to 2048"),
        (4, "asc_syncthreads outside of threads; call it in a function that is __simt_vf__"),
    ):
        assert launch(library, "filled", 1, np.zeros(24, np.int32), which) == 507015
        assert message in tools.message()


def test_of_another_architecture(tools: Toolkit, tmp_path) -> None:
    (tmp_path / "k.asc").write_text('#include "simt_api/asc_simt.h"\n')
    result = tools.bisheng("-x", "asc", "--npu-arch=dav-2201", "-c", tmp_path / "k.asc", "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert "simt_api: threads are of dav-3510; compile with --npu-arch=dav-3510" in result.stderr


def test_arrays_that_threads_share(tools: Toolkit, tmp_path) -> None:
    source = tmp_path / "k.asc"
    source.write_text(
        """
#include "simt_api/asc_simt.h"
__simt_vf__ __launch_bounds__(32) inline void f(__gm__ float* x) {
    __ubuf__ float shared[32];
    shared[threadIdx.x] = x[threadIdx.x];
}
"""
    )
    result = tools.bisheng("-x", "asc", "--npu-arch=dav-3510", "-c", source, "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert f"{source}:4: a __ubuf__ array in a function of threads" in result.stderr
