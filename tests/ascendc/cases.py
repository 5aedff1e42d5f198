# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""Kernels for single API calls: a case is one snippet on local tensors x, y, z, t and its expected z.

A table of cases becomes one kernel source with a case label for each, so that a whole table compiles once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .conftest import launch

CTYPES = {
    "float": np.dtype(np.float32),
    "half": np.dtype(np.float16),
    "int32_t": np.dtype(np.int32),
    "uint32_t": np.dtype(np.uint32),
    "int16_t": np.dtype(np.int16),
    "uint16_t": np.dtype(np.uint16),
    "int8_t": np.dtype(np.int8),
    "uint8_t": np.dtype(np.uint8),
    "int64_t": np.dtype(np.int64),
    "bfloat16_t": np.dtype(np.uint16),  # as bits
}

SPACE = 32 * 1024
"""Bytes of each of the tensors x, y, z and t."""


@dataclass(frozen=True)
class Case:
    """``code`` computes z from x and y; ``expected(x, y, z before)`` is what it must be."""

    name: str
    code: str
    expected: Callable[..., np.ndarray]
    x: np.ndarray
    y: np.ndarray | None = None
    z: np.ndarray | None = None  # before; zeros like x by default
    types: tuple[str, str, str] = ("float", "float", "float")
    rtol: float = 0.0
    atol: float = 0.0
    extra: Sequence[str] = field(default=())

    @property
    def id(self) -> str:
        return f"{self.name}-{self.types[0]}"


PROLOGUE = """
#include "kernel_operator.h"
using namespace AscendC;
template <typename T>
__aicore__ inline void Load(const LocalTensor<T>& local, GM_ADDR address, uint32_t bytes) {
    GlobalTensor<uint8_t> gm;
    gm.SetGlobalBuffer((__gm__ uint8_t*)address, bytes);
    DataCopyExtParams params{1, bytes, 0, 0, 0};
    DataCopyPadExtParams<uint8_t> pad{false, 0, 0, 0};
    if (bytes > 0) DataCopyPad(local.template ReinterpretCast<uint8_t>(), gm, params, pad);
}
template <typename T>
__aicore__ inline void Store(const LocalTensor<T>& local, GM_ADDR address, uint32_t bytes) {
    GlobalTensor<uint8_t> gm;
    gm.SetGlobalBuffer((__gm__ uint8_t*)address, bytes);
    DataCopyExtParams params{1, bytes, 0, 0, 0};
    DataCopyPad(gm, local.template ReinterpretCast<uint8_t>(), params);
}
"""


def source(cases: Sequence[Case]) -> str:
    """The kernel source of a table."""
    functions = []
    labels = []
    for index, case in enumerate(cases):
        x, y, z = case.types
        functions.append(
            f"__aicore__ void case{index}(LocalTensor<{x}> x, LocalTensor<{y}> y, LocalTensor<{z}> z, "
            f"LocalTensor<uint8_t> t,\n"
            f"    uint32_t n) {{\n    (void)y; (void)t; (void)n;\n    {case.code}\n}}\n"
        )
        labels.append(
            f"        case {index}: case{index}(bx.Get<{x}>(), by.Get<{y}>(), bz.Get<{z}>(), bt.Get<uint8_t>(), n); "
            f"break;\n"
        )
    return (
        PROLOGUE
        + "".join(functions)
        + f"""
extern "C" __global__ __aicore__ void cases(GM_ADDR x, GM_ADDR y, GM_ADDR z,
    uint32_t nx, uint32_t ny, uint32_t nz, uint32_t n, uint32_t which) {{
    TPipe pipe;
    TBuf<TPosition::VECCALC> bx, by, bz, bt;
    pipe.InitBuffer(bx, {SPACE});
    pipe.InitBuffer(by, {SPACE});
    pipe.InitBuffer(bz, {SPACE});
    pipe.InitBuffer(bt, {SPACE});
    Load(bx.Get<uint8_t>(), x, nx);
    Load(by.Get<uint8_t>(), y, ny);
    Load(bz.Get<uint8_t>(), z, nz);
    switch (which) {{
{"".join(labels)}        default: Trap();
    }}
    Store(bz.Get<uint8_t>(), z, nz);
}}
"""
    )


def run(library: ctypes.CDLL, index: int, case: Case) -> tuple[int, np.ndarray]:
    """Runs a case: the launch's status and z afterwards."""
    z = (np.zeros_like(case.x, dtype=CTYPES[case.types[2]]) if case.z is None else case.z).copy()
    y = case.x if case.y is None else case.y
    status = launch(library, "cases", 1, case.x, y, z, case.x.nbytes, y.nbytes, z.nbytes, case.x.size, index)
    return status, z


def check(library: ctypes.CDLL, index: int, case: Case, message: Callable[[], str]) -> None:
    """Runs a case and compares."""
    status, z = run(library, index, case)
    assert status == 0, message()
    before = np.zeros_like(z) if case.z is None else case.z
    with np.errstate(all="ignore"):
        expected = case.expected(case.x, case.x if case.y is None else case.y, before)
    assert expected.dtype == z.dtype, (expected.dtype, z.dtype)
    if case.rtol or case.atol:
        np.testing.assert_allclose(z.astype(np.float64), expected.astype(np.float64), rtol=case.rtol, atol=case.atol)
    else:
        np.testing.assert_array_equal(z, expected)
