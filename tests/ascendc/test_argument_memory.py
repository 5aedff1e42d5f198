"""The size that SetGlobalBuffer is given, and the tensor that the kernel got: a device keeps to neither."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from .conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void third(GM_ADDR x, GM_ADDR y, uint32_t count) {
    AscendC::GlobalTensor<int32_t> from, to;
    from.SetGlobalBuffer((__gm__ int32_t*)x + 2, 3);
    to.SetGlobalBuffer((__gm__ int32_t*)y, count);
    for (uint32_t i = 0; i < count; ++i) to.SetValue(i, from.GetValue(i));
}
// What the next launch is told of its arguments.
extern "C" void know(const void* data, size_t bytes) { ascendc_host::set_arguments({{data, bytes}}); }
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    found = build(SOURCE)
    found.know.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return found


def run(library: ctypes.CDLL, count: int, known: int | None) -> np.ndarray | None:
    x, y = np.arange(16, dtype=np.int32), np.full(16, -1, np.int32)
    if known is not None:
        library.know(x.ctypes.data, 4 * known)
    return y if launch(library, "third", 1, x, y, count) == 0 else None


def test_a_tensor_that_is_known_bounds_its_views(library: ctypes.CDLL, tools: Toolkit) -> None:
    y = run(library, 8, known=10)
    assert y is not None, tools.message()
    assert y.tolist() == [*range(2, 10), *[-1] * 8]


@pytest.mark.parametrize(("count", "known", "end"), [(9, 10, 32), (4, None, 12), (4, 2, 12)])
def test_what_lies_behind_is_out_of_bounds(
    library: ctypes.CDLL, tools: Toolkit, count: int, known: int | None, end: int
) -> None:
    """Behind the tensor, and behind the size that is given where the tensor is not known or begins elsewhere."""
    tools.seam.seam_clear()
    run(library, count, known)
    assert (
        f"GetValue: out of bounds: bytes {end} to {end + 4} of the tensor, whose global buffer ends at byte {end}"
        in (tools.message())
    )


def test_the_next_launch_knows_nothing(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    assert run(library, 8, known=10) is not None
    run(library, 8, known=None)
    assert "whose global buffer ends at byte 12" in tools.message()
