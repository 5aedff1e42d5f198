"""The space that reductions of a tensor need on Atlas A2, as the documents size it, and what is left in it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

COUNT = 8320
#: Calls, and the bytes of space that the documents' formulas give.
CALLS = {
    "largest by a count": ("ReduceMax(dst, src, space, 8320)", 264 * 4),
    "largest by a count, with its index": ("ReduceMax(dst, src, space, 8320, true)", 288 * 4),
    "smallest by a count": ("ReduceMin(dst, src, space, 8320)", 264 * 4),
    "largest by repeats": ("ReduceMax(dst, src, space, 64, 8, 8)", 64),
    "largest by repeats, with its index": ("ReduceMax(dst, src, space, 64, 130, 8, true)", 288 * 4),
    "smallest by repeats, with its index": ("ReduceMin(dst, src, space, 64, 130, 8, true)", 288 * 4),
    "sum by repeats": ("ReduceSum(dst, src, space, 64, 130, 8)", 136 * 4),
}
ANY_SPACE = {
    "sum by a count": "ReduceSum(dst, src, space, 8320)",
    "largest of one repeat": "ReduceMax(dst, src, space, 64)",
    "largest of less than two repeats": "ReduceMax(dst, src, space, 100)",
}
KERNEL = """
extern "C" __global__ __aicore__ void %s(GM_ADDR from, GM_ADDR to) {
    TPipe pipe; TBuf<> source, result, other; pipe.InitBuffer(source, 33280); pipe.InitBuffer(result, 64);
    pipe.InitBuffer(other, %d);
    auto src = source.Get<float>(); auto dst = result.Get<float>(); auto space = other.Get<float>();
    Duplicate(src, 2.0f, 8320); Duplicate(space, 7.0f, 8); src.SetValue(70, 9.0f); src.SetValue(80, -9.0f);
    %s;
    GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float*)to, 2);
    z.SetValue(0, dst.GetValue(0)); z.SetValue(1, space.GetValue(0));
}
"""


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    kernels = []
    for i, (call, bytes_) in enumerate(CALLS.values()):
        kernels += [KERNEL % (f"enough{i}", bytes_, call), KERNEL % (f"less{i}", bytes_ - 32, call)]
    kernels += [KERNEL % (f"any{i}", 32, call) for i, call in enumerate(ANY_SPACE.values())]
    return build('#include "kernel_operator.h"\nusing namespace AscendC;\n' + "".join(kernels))


@pytest.mark.parametrize("index", range(len(CALLS)), ids=list(CALLS))
def test_the_space_of_the_documents_is_enough(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    z = np.zeros(2, np.float32)
    assert launch(library, f"enough{index}", 1, np.zeros(2, np.float32), z) == 0, tools.message()
    call = list(CALLS.values())[index][0]
    total = 2 * COUNT - 4
    assert z[0] == (total if "Sum" in call else 9 if "Max" in call else -9)
    assert z[1] != 7  # what was there is lost, as on a device


@pytest.mark.parametrize("index", range(len(CALLS)), ids=list(CALLS))
def test_a_block_less_is_refused(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    assert launch(library, f"less{index}", 1, np.zeros(2, np.float32), np.zeros(2, np.float32)) == 507015
    assert "sharedTmpBuffer needs" in tools.message()


@pytest.mark.parametrize("index", range(len(ANY_SPACE)), ids=list(ANY_SPACE))
def test_where_any_space_will_do_it_is_not_used(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    z = np.zeros(2, np.float32)
    assert launch(library, f"any{index}", 1, np.zeros(2, np.float32), z) == 0, tools.message()
    assert z[1] == 7
