"""Products of 8-bit floats on dav-3510, which has them; dav-2201 does not."""

from __future__ import annotations

import ctypes
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ..conftest import Build, Toolkit

M, N, K = 256, 16, 32
PAIRS = [
    ("fp8_e4m3fn_t", "fp8_e4m3fn_t"),
    ("fp8_e4m3fn_t", "fp8_e5m2_t"),
    ("fp8_e5m2_t", "fp8_e4m3fn_t"),
    ("hifloat8_t", "hifloat8_t"),
]
SOURCE = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <typename A, typename B>
__aicore__ inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR c, const TCubeTiling& tiling) {
    TPipe pipe;
    GlobalTensor<A> ag;
    GlobalTensor<B> bg;
    GlobalTensor<float> cg;
    ag.SetGlobalBuffer((__gm__ A*)a);
    bg.SetGlobalBuffer((__gm__ B*)b);
    cg.SetGlobalBuffer((__gm__ float*)c);
    Matmul<MatmulType<TPosition::GM, CubeFormat::ND, A>, MatmulType<TPosition::GM, CubeFormat::ND, B>,
        MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;
    mm.Init(&tiling, &pipe);
    mm.SetTensorA(ag);
    mm.SetTensorB(bg);
    mm.IterateAll(cg);
    mm.End();
}
extern "C" void make_tiling(TCubeTiling* tiling) {
    *tiling = {};
    tiling->usedCoreNum = 1;
    tiling->M = tiling->singleCoreM = 256;
    tiling->N = tiling->singleCoreN = 16;
    tiling->Ka = tiling->Kb = tiling->singleCoreK = 32;
    tiling->baseM = tiling->baseN = 16;
    tiling->baseK = 32;
}
"""
KERNEL = """
extern "C" __global__ __cube__ void f{i}(GM_ADDR a, GM_ADDR b, GM_ADDR c, TCubeTiling tiling) {{
    multiply<{a}, {b}>(a, b, c, tiling);
}}
"""
#: Of fp8 types: bits of the mantissa, bias of the exponent.
FLOATS = {"fp8_e4m3fn_t": (3, 7), "fp8_e5m2_t": (2, 15)}


def _float8(code: int, name: str) -> float:
    """Return the value of a code of fp8 as the OCP's specification has it."""
    bits, bias = FLOATS[name]
    exponent, mantissa = divmod(code & 0x7F, 1 << bits)
    if name == "fp8_e4m3fn_t" and code & 0x7F == 0x7F:
        return math.nan
    if name == "fp8_e5m2_t" and exponent == 31:
        return math.nan if mantissa else math.copysign(math.inf, 128 - code)
    whole = mantissa / (1 << bits) + (exponent > 0)
    return math.copysign(whole * 2.0 ** (max(exponent, 1) - bias), 127.5 - code)


def _hifloat8(code: int) -> float:
    """Return the value of a code, by the table of prefixes in the format's paper (arXiv 2409.16626)."""
    if code in (0, 0x80):
        return math.nan if code else 0.0
    sign, bits = (-1.0 if code & 0x80 else 1.0), f"{code & 0x7F:07b}"
    if bits == "1101111":
        return sign * math.inf
    for prefix, width in {"11": 4, "10": 3, "01": 2, "001": 1, "0001": 0}.items():
        if bits.startswith(prefix):
            field, fraction = bits[len(prefix) : len(prefix) + width], bits[len(prefix) + width :]
            magnitude = int("1" + field[1:], 2) if width else 0
            exponent = -magnitude if field[:1] == "1" else magnitude
            return sign * (1 + int(fraction, 2) / 2 ** len(fraction)) * 2.0**exponent
    return sign * 2.0 ** (int(bits, 2) - 23)


def _values(codes: np.ndarray, name: str) -> np.ndarray:
    value = _hifloat8 if name == "hifloat8_t" else partial(_float8, name=name)
    return np.array([value(code) for code in range(256)], np.float32)[codes]


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    kernels = (KERNEL.format(i=i, a=a, b=b) for i, (a, b) in enumerate(PAIRS))
    return build(SOURCE + "".join(kernels), "--npu-arch=dav-3510", "-O0")


@pytest.mark.parametrize("pair", PAIRS)
def test_products(library: ctypes.CDLL, tools: Toolkit, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str]) -> None:
    """Of every code with one, and of finite numbers of every size, summed as float32."""
    monkeypatch.setenv("ASCEND_GRAPH_HOST_SOC", "Ascend950PR_9589")
    tiling = (ctypes.c_int32 * 50)()
    library.make_tiling(tiling)

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        c = np.zeros((M, N), np.float32)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)]
        kernel = getattr(library, f"aclrtlaunch_f{PAIRS.index(pair)}")
        assert kernel(1, None, *pointers, tiling) == 0, tools.message()
        return c

    codes = np.arange(256, dtype=np.uint8)
    one = int(np.flatnonzero(_values(codes, pair[1]) == 1)[0])
    a, b = np.zeros((M, K), np.uint8), np.zeros((K, N), np.uint8)
    a[:, 0], b[0] = codes, one
    expected = np.broadcast_to(_values(codes, pair[0])[:, None], (M, N))
    np.testing.assert_array_equal(multiply(a, b), expected)

    draw = np.random.default_rng(8)
    finite = [codes[np.isfinite(_values(codes, name))] for name in pair]
    a, b = draw.choice(finite[0], (M, K)), draw.choice(finite[1], (K, N))
    wide = [_values(codes, name).astype(np.float64) for codes, name in zip((a, b), pair, strict=True)]
    size = np.abs(wide[0]) @ np.abs(wide[1])  # sums may cancel: what is rounded is of their size
    np.testing.assert_array_less(np.abs(multiply(a, b) - wide[0] @ wide[1]), 1e-6 * size + 1e-30)


def test_results_of_integers_are_refused(tools: Toolkit, tmp_path: Path) -> None:
    source = tmp_path / "k.asc"
    kernel = KERNEL.format(i="", a="fp8_e5m2_t", b="fp8_e5m2_t")
    source.write_text(SOURCE.replace("CubeFormat::ND, float>>", "CubeFormat::ND, int32_t>>") + kernel)
    result = tools.bisheng("-x", "asc", "--npu-arch=dav-3510", "-c", source, "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert "Matmul: of 8-bit floats C and the bias are of float, half or bfloat16_t" in result.stderr


@pytest.mark.parametrize(
    ("a", "b", "architecture", "message"),
    [
        ("fp8_e5m2_t", "fp8_e5m2_t", "dav-2201", "dav-2201 does not multiply 8-bit floats"),
        ("hifloat8_t", "fp8_e5m2_t", "dav-3510", "hifloat8_t is multiplied with hifloat8_t"),
        ("fp8_e5m2_t", "half", "dav-3510", "an 8-bit float is multiplied with an 8-bit float"),
    ],
)
def test_pairs_that_the_cube_core_lacks(
    tools: Toolkit, tmp_path: Path, a: str, b: str, architecture: str, message: str
) -> None:
    source = tmp_path / "k.asc"
    source.write_text(SOURCE + KERNEL.format(i="", a=a, b=b))
    result = tools.bisheng("-x", "asc", f"--npu-arch={architecture}", "-c", source, "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert message in result.stderr
