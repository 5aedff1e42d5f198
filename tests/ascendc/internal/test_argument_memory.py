"""The size that SetGlobalBuffer is given, and the tensor that the kernel got: a device keeps to neither."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
extern "C" __global__ __aicore__ void third(GM_ADDR x, GM_ADDR y, uint32_t count) {
    AscendC::GlobalTensor<int32_t> from, to;
    from.SetGlobalBuffer((__gm__ int32_t*)x + 2, 3);
    to.SetGlobalBuffer((__gm__ int32_t*)y, count);
    for (uint32_t i = 0; i < count; ++i) to.SetValue(i, from.GetValue(i));
}
extern "C" __global__ __aicore__ void blocks(GM_ADDR x, GM_ADDR y, uint32_t count) {
    AscendC::TPipe pipe;
    AscendC::TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    const auto local = buffer.Get<int32_t>();
    AscendC::GlobalTensor<int32_t> from, to;
    from.SetGlobalBuffer((__gm__ int32_t*)x, 11);
    to.SetGlobalBuffer((__gm__ int32_t*)y, 16);
    AscendC::DataCopy(local, from, count);
    AscendC::DataCopy(to, local, 16);
}
extern "C" __global__ __aicore__ void written(GM_ADDR x, GM_ADDR y, uint32_t count) {
    AscendC::TPipe pipe;
    AscendC::TBuf<> buffer;
    pipe.InitBuffer(buffer, 256);
    const auto local = buffer.Get<int32_t>();
    AscendC::Duplicate(local, 7, 64);
    AscendC::GlobalTensor<int32_t> to;
    to.SetGlobalBuffer((__gm__ int32_t*)x, 3);
    AscendC::DataCopy(to, local, count);
}
extern "C" __global__ __aicore__ void whole(GM_ADDR x, GM_ADDR y, uint32_t written) {
    AscendC::TPipe pipe;
    AscendC::TBuf<> buffer;
    pipe.InitBuffer(buffer, 64);
    const auto local = buffer.Get<int32_t>();
    AscendC::GlobalTensor<int32_t> from, to;
    from.SetGlobalBuffer((__gm__ int32_t*)x);
    to.SetGlobalBuffer((__gm__ int32_t*)(written != 0 ? x : y));
    AscendC::DataCopy(local, from, 16);
    AscendC::DataCopy(to, local, 16);
}
extern "C" __global__ __aicore__ void before(GM_ADDR from) {
    AscendC::GlobalTensor<int32_t> x;
    x.SetGlobalBuffer((__gm__ int32_t*)from, 16);
    AscendC::TPipe pipe;
    AscendC::TBuf<> buffer;
    pipe.InitBuffer(buffer, 32);
    AscendC::DataCopy(buffer.Get<int32_t>(), x[-8], 8);
}
extern "C" __global__ __aicore__ void multiplies(GM_ADDR workspace) {
    using Half = matmul::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, half>;
    AscendC::TPipe pipe;
    matmul::Matmul<Half, Half, Half> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm);
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


def test_what_lies_in_front_is_out_of_bounds(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    assert launch(library, "before", 1, np.zeros(16, np.int32)) == 507015
    assert "DataCopy: out of bounds: bytes -32 to 0 of src" in tools.message()


def test_the_next_launch_knows_nothing(library: ctypes.CDLL, tools: Toolkit) -> None:
    tools.seam.seam_clear()
    assert run(library, 8, known=10) is not None
    run(library, 8, known=None)
    assert "whose global buffer ends at byte 12" in tools.message()


def test_a_block_that_begins_in_a_tensor_is_read_to_its_end(library: ctypes.CDLL, tools: Toolkit) -> None:
    """As the documents show for sizes that are not whole blocks; what comes after the tensor is anything."""
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    library.know(x.ctypes.data, 4 * 11)
    assert launch(library, "blocks", 1, x, y, 16) == 0, tools.message()
    assert y[:11].tolist() == [*range(11)]
    assert set(y[11:].view(np.uint32).tolist()) == {0xA5A5A5A5}


@pytest.mark.parametrize(("written", "status"), [(0, 0), (1, 507015)])
def test_a_tile_that_is_copied_whole_is_read_on_in_the_allocation_and_not_written(
    library: ctypes.CDLL, tools: Toolkit, written: int, status: int
) -> None:
    """What is read there is another tensor's, which harms nobody."""
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    library.know(x.ctypes.data, 4 * 8)
    assert launch(library, "whole", 1, x, y, written) == status, tools.message()
    assert y.tolist() == (x.tolist() if status == 0 else [0] * 16)
    if status != 0:
        assert "DataCopy: out of bounds: bytes 0 to 64 of dst" in tools.message()


@pytest.mark.parametrize(("known", "count"), [(8, 16), (7, 16)])
def test_a_block_after_the_tensor_is_not_read(library: ctypes.CDLL, tools: Toolkit, known: int, count: int) -> None:
    tools.seam.seam_clear()
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    tools.seam.seam_allocation(ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(4 * known))
    try:
        assert launch(library, "blocks", 1, x, y, count) == 507015
        assert f"DataCopy: out of bounds: bytes 0 to {4 * count} of src" in tools.message()
    finally:
        tools.seam.seam_allocation(None, ctypes.c_size_t(0))


@pytest.mark.parametrize(
    ("allocated", "count", "status"), [(64, 8, 0), (28, 8, 507015), (64, 16, 507015), (None, 8, 507015)]
)
def test_a_block_is_written_to_its_end_where_there_is_memory(
    library: ctypes.CDLL,
    tools: Toolkit,
    capfd: pytest.CaptureFixture[str],
    allocated: int | None,
    count: int,
    status: int,
) -> None:
    """A device writes it, and what lies there is lost: a warning says so."""
    x = np.zeros(16, np.int32)
    tools.seam.seam_allocation(ctypes.c_void_p(x.ctypes.data) if allocated else None, ctypes.c_size_t(allocated or 0))
    try:
        assert launch(library, "written", 1, x, x, count) == status, tools.message()
    finally:
        tools.seam.seam_allocation(None, ctypes.c_size_t(0))
    assert x.tolist() == ([7] * 8 + [0] * 8 if status == 0 else [0] * 16)
    said = capfd.readouterr().err
    assert ("DataCopy writes 20 bytes after the end of dst, in whole blocks of 32 bytes" in said) == (status == 0)


@pytest.mark.parametrize(("asked", "status"), [(16 << 20, 0), (4096, 507015), (0, 507015)])
def test_matmul_needs_the_part_of_the_workspace_that_is_the_systems(
    library: ctypes.CDLL, tools: Toolkit, asked: int, status: int
) -> None:
    workspace = np.zeros(1024, np.int32)
    library.know(workspace.ctypes.data, asked)
    assert launch(library, "multiplies", 1, workspace) == status, tools.message()
    if status != 0:
        assert "REGIST_MATMUL_OBJ: the system's part of the workspace is missing" in tools.message()
        assert f"asked for a workspace of {asked} bytes" in tools.message()
