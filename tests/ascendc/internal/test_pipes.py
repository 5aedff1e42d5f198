# ruff: noqa: E501, PLR0917, RUF100 - kernels are quoted as they are written
"""The order of pipes: a kernel that does not wait is right on the host, and is named where the order is checked."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

COUNT = 64
#: Copies x to `a`, waits, doubles it into `b`, waits, and copies that to z. Cases leave one wait out.
IN = "DataCopy(a, x, 64);"
DOUBLE = "Add(b, a, a, 64);"
OUT = "DataCopy(z, b, 64);"
IN_DONE = "SetFlag<HardEvent::MTE2_V>(EVENT_ID0); WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);"
DOUBLED = "SetFlag<HardEvent::V_MTE3>(EVENT_ID0); WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);"
GOOD = IN + IN_DONE + DOUBLE + DOUBLED + OUT

QUEUES = """
TQue<TPosition::VECIN, 1> in; TQue<TPosition::VECOUT, 1> out; pipe.InitBuffer(in, 2, 128); pipe.InitBuffer(out, 2, 128);
for (int i = 0; i < 4; ++i) {
    auto p = in.AllocTensor<float>(); DataCopy(p, x[i * 16], 16); in.EnQue(p);
    auto q = in.DeQue<float>(); auto r = out.AllocTensor<float>(); %s
    out.EnQue(r); in.FreeTensor(q);
    auto s = out.DeQue<float>(); DataCopy(z[i * 16], s, 16); out.FreeTensor(s);
}
"""
RIGHT = {
    "flags": GOOD,
    "barriers": IN + "PipeBarrier<PIPE_ALL>();" + DOUBLE + "pipe_barrier(PIPE_ALL);" + OUT,
    "intrinsics": (
        IN + "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID3); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID3);" + DOUBLE + DOUBLED + OUT
    ),
    "queues": QUEUES % "Add(r, q, q, 16);",
    "numbers of events that the pipe gives": (
        "const auto kept = pipe.AllocEventID<HardEvent::MTE2_V>(); SetFlag<HardEvent::MTE2_V>(kept);" + IN
        + "for (int i = 0; i < 12; ++i) {"
        "const auto other = pipe.AllocEventID<HardEvent::MTE2_V>();"
        "const auto next = pipe.FetchEventID(HardEvent::MTE2_V);"
        "SetFlag<HardEvent::MTE2_V>(other); SetFlag<HardEvent::MTE2_V>(next);"
        "WaitFlag<HardEvent::MTE2_V>(next); WaitFlag<HardEvent::MTE2_V>(other);"
        "pipe.ReleaseEventID<HardEvent::MTE2_V>(other); }"
        "WaitFlag<HardEvent::MTE2_V>(kept); pipe.ReleaseEventID<HardEvent::MTE2_V>(kept);" + DOUBLE + DOUBLED + OUT
    ),
    "one queue through": (
        "TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> through; pipe.InitBuffer(through, 1, 256);"
        "auto p = through.AllocTensor<float>(); DataCopy(p, x, 64); through.EnQue(p);"
        "p = through.DeQue<float>(); DataCopy(z, p, 64); through.FreeTensor(p);"
    ),
    "what the scalar unit waited for": (
        IN + "SetFlag<HardEvent::MTE2_S>(0); WaitFlag<HardEvent::MTE2_S>(0);" + DOUBLE + DOUBLED + OUT
    ),
    "by way of another pipe": (
        IN + IN_DONE + DOUBLE + DOUBLED + OUT
        + "SetFlag<HardEvent::MTE3_MTE2>(0); WaitFlag<HardEvent::MTE3_MTE2>(0); DataCopy(a, x, 64);"
    ),
    "rows that another pipe leaves out": (
        "Duplicate(b[8], 0.0f, uint64_t(8), 2, 1, 2);"
        "DataCopy(b, x, DataCopyParams(2, 1, 0, 1));"
    ),
    "a block of a result of which an element is written": IN + IN_DONE + "Add(b, a, a, 57);" + DOUBLED + OUT,
    "lanes that nothing wrote, and that are not copied": (
        "DataCopy(a, x, 32);" + IN_DONE + "Add(b, a, a, 64);" + DOUBLED + "DataCopy(z, b, 32);"
    ),
    "copies to the same place, one after the other": GOOD + "PipeBarrier<PIPE_MTE3>(); DataCopy(z, b, 64);",
    "sums of copies": (
        IN + IN_DONE + DOUBLE + DOUBLED
        + "SetAtomicAdd<float>(); DataCopy(z, b, 32); DataCopy(z, b, 32); SetAtomicNone();"
    ),
    "a flag of all blocks": (
        GOOD + "CrossCoreSetFlag<0, PIPE_MTE3>(0); CrossCoreWaitFlag(0); DataCopy(a[128], z, 64);"
    ),
    "a flag for later": (
        "SetFlag<HardEvent::V_MTE2>(1);"
        "for (int i = 0; i < 2; ++i) { WaitFlag<HardEvent::V_MTE2>(1);"
        + IN + IN_DONE + DOUBLE + "SetFlag<HardEvent::V_MTE2>(1); }"
        "WaitFlag<HardEvent::V_MTE2>(1);" + DOUBLED + OUT
    ),
    "written and read back through global memory": (
        GOOD + "SetFlag<HardEvent::MTE3_MTE2>(0); WaitFlag<HardEvent::MTE3_MTE2>(0);"
        + "DataCopy(a, z, 64);" + IN_DONE + "Adds(b, a, 0.0f, 64);"
    ),
}  # fmt: skip
HAZARDS = {
    "a copy is not there yet": (
        IN + DOUBLE,
        r"Add reads a source on pipe V and does not wait for pipe MTE2, on which DataCopy \[.*kernel.asc:\d+\] writes "
        r"the same bytes of the unified buffer. Write SetFlag<HardEvent::MTE2_V>\(id\) after that and "
        r"WaitFlag<HardEvent::MTE2_V>\(id\) before this",
    ),
    "a result is not there yet": (
        IN + IN_DONE + DOUBLE + OUT,
        r"DataCopy reads src on pipe MTE3 and does not wait for pipe V, on which Add",
    ),
    "a source is still read": (
        IN + IN_DONE + DOUBLE + IN,
        r"DataCopy writes dst on pipe MTE2 and does not wait for pipe V, on which Add \[.*\] reads the same bytes",
    ),
    "a flag between other pipes": (
        IN + "SetFlag<HardEvent::MTE2_MTE3>(0); WaitFlag<HardEvent::MTE2_MTE3>(0);" + DOUBLE,
        "Add reads a source on pipe V",
    ),
    "a barrier of one pipe": (IN + "PipeBarrier<PIPE_MTE2>();" + DOUBLE, "Add reads a source on pipe V"),
    "a flag that was set too early": (
        "SetFlag<HardEvent::MTE2_V>(0);" + IN + "WaitFlag<HardEvent::MTE2_V>(0);" + DOUBLE,
        "Add reads a source on pipe V",
    ),
    "a buffer that is filled before the queue gave it": (
        QUEUES % "DataCopy(r, x, 16);",
        r"DataCopy reads src on pipe MTE3|DataCopy writes dst on pipe MTE2 and does not wait for pipe MTE3",
    ),
    "global memory that is read back": (
        GOOD + "DataCopy(a[128], z, 64);",
        r"DataCopy reads src on pipe MTE2 and does not wait for pipe MTE3, on which DataCopy \[.*\] writes "
        r"the same bytes of global memory",
    ),
    "a flag of all blocks that another pipe sets": (
        GOOD + "CrossCoreSetFlag<0, PIPE_MTE2>(0); CrossCoreWaitFlag(0); DataCopy(a[128], z, 64);",
        r"DataCopy reads src on pipe MTE2 and does not wait for pipe MTE3",
    ),
    "what nothing wrote": (
        IN + IN_DONE + "Add(b, a, a[64], 64);",
        r"Add reads a source, bytes 256 to 512 of the unified buffer, which nothing wrote",
    ),
    "a result that nothing wrote": (
        IN + "PipeBarrier<PIPE_ALL>();" + OUT,
        r"DataCopy reads src, bytes \d+ to \d+ of the .*which nothing wrote",
    ),
    "a part of a result that nothing wrote": (
        IN + IN_DONE + "Add(b, a, a, 40);" + DOUBLED + OUT,
        r"DataCopy reads src, bytes 4256 to 4288 of the .*which nothing wrote",
    ),
    "a mask that nothing wrote": (
        IN + IN_DONE + "Select(b, b[64].ReinterpretCast<uint8_t>(), a, a, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);",
        r"Select reads selMask, bytes \d+ to \d+ of the unified buffer, which nothing wrote",
    ),
    "copies to the same place": (
        GOOD + "DataCopy(z, b, 64);",
        r"DataCopy writes dst on pipe MTE3 and does not wait for DataCopy \[.*\], which writes the same bytes of "
        r"global memory on the same pipe: copies may pass one another. Write PipeBarrier<PIPE_MTE3>\(\) between the two",
    ),
    "copies from two places to one": (
        IN + IN,
        r"DataCopy writes dst on pipe MTE2 and does not wait for DataCopy .* PipeBarrier<PIPE_MTE2>",
    ),
}  # fmt: skip
FILL = "Duplicate(b, 1.0f, 64); PipeBarrier<PIPE_ALL>(); const int64_t block = GetBlockIdx();"
SHARED = r"DataCopy writes to global memory, 16 bytes of which block [01] writes, too, by DataCopy \[.*\], and neither"
READS = r"DataCopy reads global memory that block [01] writes by DataCopy \[.*\], and neither waits"
FLAGGED = "DataCopy(z[block * 32], b, 32); %s CrossCoreWaitFlag(1); DataCopy(a, z[32 - block * 32], 32);"
#: What two blocks use.
BLOCKS = {
    "what the other wrote before a flag": (FLAGGED % "CrossCoreSetFlag<0, PIPE_MTE3>(1);", ""),
    "what the other wrote before a flag of a pipe that did not wait": (
        FLAGGED % "CrossCoreSetFlag<0, PIPE_V>(1);",
        r"DataCopy reads global memory that kernel blocks\d+, block [01] of 2 wrote by DataCopy \[.*\], and the flags "
        r"that it set for other blocks did not wait for pipe MTE3, which writes it. Name that pipe in "
        r"CrossCoreSetFlag<mode, PIPE_MTE3>",
    ),
    "what the other wrote before a flag of a pipe that waited": (
        FLAGGED % "PipeBarrier<PIPE_ALL>(); CrossCoreSetFlag<0, PIPE_V>(1);",
        "",
    ),
    "what the other wrote before a second flag of its pipe": (
        FLAGGED % "CrossCoreSetFlag<0, PIPE_V>(2); CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(2);",
        "",
    ),
    "their own halves": ("DataCopy(z[block * 32], b, 32);", ""),
    "a whole block into the other's half": ("DataCopy(z[block * 28], b, 32);", SHARED),
    "rows of one another": ("DataCopy(z[block * 8], b, DataCopyParams(4, 1, 0, 1));", ""),
    "the same sum": ("SetAtomicAdd<float>(); DataCopy(z, b, 32); SetAtomicNone();", ""),
    "the same before and after all wait": (
        "if (block == 0) DataCopy(z, b, 32); SyncAll<true>(); if (block == 1) DataCopy(z, b, 32);",
        "",
    ),
    "the same after all wait": ("SyncAll<true>(); DataCopy(z[block * 28], b, 32);", SHARED),
    "what the other wrote": ("DataCopy(z[block * 32], b, 32); DataCopy(a, z[32 - block * 32], 32);", READS),
    "what the other wrote before all wait": (
        "DataCopy(z[block * 32], b, 32); SyncAll<true>(); DataCopy(a, z[32 - block * 32], 32);",
        "",
    ),
    "what the other writes after all wait": (
        "DataCopy(a, z[32 - block * 32], 32); SyncAll<true>(); DataCopy(z[block * 32], b, 32);",
        "",
    ),
    "what it wrote itself": (
        "DataCopy(z[block * 32], b, 32); PipeBarrier<PIPE_ALL>(); DataCopy(a, z[block * 32], 32);",
        "",
    ),
    "what both read": ("DataCopy(a, x, 64); DataCopy(z[block * 32], b, 32);", ""),
    "an element that the other writes": (
        "if (block == 0) z.SetValue(0, 1.0f);"
        "if (block == 1 && z.GetValue(0) > 9.0f) DataCopy(z[32], b, 8);",
        r"GetValue reads global memory that block 0 writes by SetValue",
    ),
    "one after the other": (
        "TBuf<> other; pipe.InitBuffer(other, 256); GlobalTensor<int32_t> g; auto u = other.Get<int32_t>();"
        "WaitPreBlock(g, u); DataCopy(z, b, 32); NotifyNextBlock(g, u);",
        "",
    ),
}  # fmt: skip
#: What the compiler adds waits for, unless --cce-auto-sync=off.
BY_HAND = {
    "an element of a result": (
        IN + IN_DONE + DOUBLE + "z.SetValue(0, b.GetValue(3));",
        r"GetValue reads the tensor on pipe S and does not wait for pipe V, on which Add",
    ),
    "an element that is set": (
        IN + "PipeBarrier<PIPE_ALL>(); a.SetValue(1, 3.0f);" + DOUBLE,
        r"Add reads a source on pipe V and does not wait for pipe S, on which SetValue",
    ),
    "a queue orders its own pipes alone": (
        QUEUES % "Adds(r, q, q.GetValue(0), 16);",
        r"GetValue reads the tensor on pipe S and does not wait for pipe MTE2, on which DataCopy",
    ),
}  # fmt: skip
CLEAN = "DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(%s);"
COPY_IN = "DataCopy(a, z[16], 16); PipeBarrier<PIPE_ALL>();"
#: What the scalar unit's data cache and copies use, in one block.
CACHE = {
    "copied where SetValue wrote": (
        "z.SetValue(17, 1.0f);" + COPY_IN,
        r"DataCopy reads global memory, of which SetValue \[.*\] left bytes in the data cache",
    ),
    "copied after a clean": ("z.SetValue(17, 1.0f);" + CLEAN % "z[17]" + COPY_IN, ""),
    "copied after a clean of all": (
        "z.SetValue(17, 1.0f);" + CLEAN.replace("SINGLE_CACHE_LINE", "ENTIRE_DATA_CACHE") % "z" + COPY_IN,
        "",
    ),
    "copied after a clean of another line": (
        "z.SetValue(17, 1.0f);" + CLEAN % "z" + COPY_IN,
        r"DataCopy reads global memory, of which SetValue",
    ),
    "copied from other bytes of the line": ("z.SetValue(17, 1.0f); DataCopy(a, z[24], 8);", ""),
    "copied over a changed line": (
        "z.SetValue(17, 1.0f); DataCopy(z[24], b, 8);",
        r"DataCopy writes global memory, of which SetValue \[.*\] left a line in the data cache",
    ),
    "copied to another line": ("z.SetValue(17, 1.0f); DataCopy(z[32], b, 8);", ""),
    "read again after a copy": (
        "if (z.GetValue(20) < 9.0f) { DataCopy(z[16], b, 8); PipeBarrier<PIPE_ALL>(); } z.SetValue(0, z.GetValue(17));",
        r"GetValue reads global memory that DataCopy \[.*\] wrote after the scalar unit had its line of 64 bytes",
    ),
    "read again after a copy and a clean": (
        "if (z.GetValue(20) < 9.0f) { DataCopy(z[16], b, 8); PipeBarrier<PIPE_ALL>(); }"
        + CLEAN % "z[16]" + "z.SetValue(0, z.GetValue(17));",
        "",
    ),
    "read again what was not copied": (
        "if (z.GetValue(20) < 9.0f) { DataCopy(z[16], b, 8); PipeBarrier<PIPE_ALL>(); } z.SetValue(0, z.GetValue(25));",
        "",
    ),
    "first read after a copy": ("DataCopy(z[16], b, 8); PipeBarrier<PIPE_ALL>(); z.SetValue(0, z.GetValue(17));", ""),
    "changed next to a copy": (
        "if (z.GetValue(20) < 9.0f) { DataCopy(z[16], b, 8); PipeBarrier<PIPE_ALL>(); } z.SetValue(24, 1.0f);",
        r"SetValue changes a line of 64 bytes of global memory that the data cache had before DataCopy",
    ),
}  # fmt: skip
#: What the data caches of two blocks hold.
CACHES = {
    "lines of their own": ("z.SetValue(block * 16, 1.0f);", ""),
    "elements of one line": (
        "z.SetValue(block, 1.0f);",
        r"SetValue changes a line of 64 bytes of global memory to which block [01] writes, too, by SetValue",
    ),
    "elements of one line, cleaned": ("z.SetValue(block, 1.0f);" + CLEAN % "z", r"SetValue changes a line of 64 bytes"),
    "one line, in turn": (
        "if (block == 0) { z.SetValue(0, 1.0f);" + CLEAN % "z" + "} SyncAll<true>();"
        "if (block == 1) z.SetValue(1, 1.0f);",
        "",
    ),
    "one line, in turn and not cleaned": (
        "if (block == 0) z.SetValue(0, 1.0f); SyncAll<true>(); if (block == 1) z.SetValue(1, 1.0f);",
        r"block 0 of 2: SetValue changes a line .* block 1 writes, too, by SetValue",
    ),
    "a copy into the other's line": (
        "if (block == 0) z.SetValue(0, 1.0f); else DataCopy(z[8], b, 8);",
        r"block 0 of 2: SetValue changes a line .* block 1 writes, too, by DataCopy",
    ),
    "what the other set before all wait": (
        "if (block == 0) z.SetValue(0, 1.0f); SyncAll<true>(); if (block == 1) DataCopy(a, z, 16);",
        r"DataCopy reads global memory that block 0 left in the data cache of its scalar unit by SetValue",
    ),
    "what the other set and cleaned before all wait": (
        "if (block == 0) { z.SetValue(0, 1.0f);" + CLEAN % "z" + "} SyncAll<true>();"
        "if (block == 1) DataCopy(a, z, 16);",
        "",
    ),
    "what was read before the other wrote": (
        "float was = 0; if (block == 1) was = z.GetValue(9); if (block == 0) DataCopy(z, b, 8); SyncAll<true>();"
        "if (block == 1) z.SetValue(32, was + z.GetValue(1));",
        r"GetValue reads global memory that block 0 wrote by DataCopy \[.*\] after the scalar unit had its line",
    ),
    "what was read before the other wrote, and cleaned": (
        "float was = 0; if (block == 1) was = z.GetValue(9); if (block == 0) DataCopy(z, b, 8); SyncAll<true>();"
        "if (block == 1) {" + CLEAN % "z" + "z.SetValue(32, was + z.GetValue(1)); }",
        "",
    ),
}  # fmt: skip
ENTRY = """
extern "C" __global__ __aicore__ void %s(GM_ADDR from, GM_ADDR to) {
    TPipe pipe; TBuf<> space; pipe.InitBuffer(space, 8192);
    auto a = space.Get<float>(); auto b = space.GetWithOffset<float>(256, 4096);
    GlobalTensor<float> x, z; x.SetGlobalBuffer((__gm__ float*)from, 64); z.SetGlobalBuffer((__gm__ float*)to, 64);
    %s
}
"""


def _source() -> str:
    kernels = [ENTRY % (f"right{i}", code) for i, code in enumerate(RIGHT.values())]
    kernels += [ENTRY % (f"hazard{i}", code) for i, (code, _) in enumerate(HAZARDS.values())]
    kernels += [ENTRY % (f"by_hand{i}", code) for i, (code, _) in enumerate(BY_HAND.values())]
    kernels += [ENTRY % (f"blocks{i}", FILL + code) for i, (code, _) in enumerate(BLOCKS.values())]
    kernels += [ENTRY % (f"cache{i}", FILL + code) for i, (code, _) in enumerate(CACHE.values())]
    kernels += [ENTRY % (f"caches{i}", FILL + code) for i, (code, _) in enumerate(CACHES.values())]
    kernels.append(ENTRY % ("set_twice", IN + IN_DONE.replace("; ", "; " + IN_DONE, 1) + DOUBLE + DOUBLED + OUT))
    kernels.append(ENTRY % ("unpaired", GOOD + "SetFlag<HardEvent::MTE3_V>(5);"))
    return '#include "kernel_operator.h"\nusing namespace AscendC;\n' + "".join(kernels)


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(_source())


@pytest.fixture(scope="module")
def by_hand(build: Build) -> ctypes.CDLL:
    return build(_source(), "--cce-auto-sync=off")


@pytest.fixture
def checked(tools: Toolkit) -> Iterator[None]:
    """The order is checked, as ASCEND_GRAPH_KERNEL_PIPES=1 has it from the start of a process."""
    assert not ctypes.c_bool.in_dll(tools.seam, "_ZN12ascendc_host17pipes_are_checkedE").value
    tools.seam.ascendcHostCheckPipes(2)
    yield
    tools.seam.ascendcHostCheckPipes(0)


@pytest.fixture
def x() -> np.ndarray:
    return np.arange(1, COUNT + 1, dtype=np.float32)


@pytest.mark.parametrize("index", range(len(RIGHT)), ids=list(RIGHT))
@pytest.mark.usefixtures("checked")
def test_a_kernel_that_waits_passes(library: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int) -> None:
    z = np.zeros_like(x)
    assert launch(library, f"right{index}", 1, x, z) == 0, tools.message()
    if list(RIGHT)[index] in {"flags", "barriers", "intrinsics", "queues", "numbers of events that the pipe gives"}:
        assert (z == 2 * x).all()


@pytest.mark.parametrize("index", range(len(HAZARDS)), ids=list(HAZARDS))
def test_a_kernel_that_does_not_wait(
    library: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int, request: pytest.FixtureRequest
) -> None:
    """Without the check it runs in program order."""
    assert launch(library, f"hazard{index}", 1, x, np.zeros_like(x)) == 0, tools.message()
    request.getfixturevalue("checked")
    code = launch(library, f"hazard{index}", 1, x, np.zeros_like(x))
    message = tools.message()
    assert re.search(list(HAZARDS.values())[index][1], message), message
    assert code == 507015
    assert re.search(r"\[.*kernel\.asc:\d+\]$", message), message


@pytest.mark.parametrize("index", range(len(BY_HAND)), ids=list(BY_HAND))
@pytest.mark.usefixtures("checked")
def test_the_scalar_unit_waits_by_itself(
    library: ctypes.CDLL, by_hand: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int
) -> None:
    """Where the compiler may add waits; with --cce-auto-sync=off the kernel has to."""
    assert launch(library, f"by_hand{index}", 1, x, np.zeros_like(x)) == 0, tools.message()
    assert launch(by_hand, f"by_hand{index}", 1, x, np.zeros_like(x)) == 507015
    assert re.search(list(BY_HAND.values())[index][1], tools.message()), tools.message()


@pytest.mark.parametrize("index", range(len(RIGHT)), ids=list(RIGHT))
@pytest.mark.usefixtures("checked")
def test_a_kernel_that_waits_passes_without_the_compilers_help(
    by_hand: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int
) -> None:
    assert launch(by_hand, f"right{index}", 1, x, np.zeros_like(x)) == 0, tools.message()


@pytest.mark.parametrize("index", range(len(BLOCKS)), ids=list(BLOCKS))
@pytest.mark.usefixtures("checked")
def test_blocks_that_write(library: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int) -> None:
    code, expected = launch(library, f"blocks{index}", 2, x, np.zeros_like(x)), list(BLOCKS.values())[index][1]
    assert (code == 507015) == bool(expected), tools.message()
    assert re.search(expected, tools.message()), tools.message()


def _in_whole_lines(count: int) -> np.ndarray:
    """Return zeros that begin a line of 64 bytes, as device memory does."""
    space = np.zeros(count + 16, np.float32)
    begin = -space.ctypes.data % 64 // 4
    return space[begin : begin + count]


@pytest.mark.parametrize("index", range(len(CACHE)), ids=list(CACHE))
@pytest.mark.usefixtures("checked")
def test_the_data_cache_of_the_scalar_unit(library: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int) -> None:
    code, expected = launch(library, f"cache{index}", 1, x, _in_whole_lines(COUNT)), list(CACHE.values())[index][1]
    assert (code == 507015) == bool(expected), tools.message()
    assert re.search(expected, tools.message()), tools.message()


@pytest.mark.parametrize("index", range(len(CACHES)), ids=list(CACHES))
@pytest.mark.usefixtures("checked")
def test_the_data_caches_of_two_blocks(library: ctypes.CDLL, tools: Toolkit, x: np.ndarray, index: int) -> None:
    code, expected = launch(library, f"caches{index}", 2, x, _in_whole_lines(COUNT)), list(CACHES.values())[index][1]
    assert (code == 507015) == bool(expected), tools.message()
    assert re.search(expected, tools.message()), tools.message()


@pytest.mark.usefixtures("checked")
def test_a_flag_that_is_set_twice(library: ctypes.CDLL, x: np.ndarray, capfd: pytest.CaptureFixture[str]) -> None:
    """Published kernels do it and are right, though the documents do not say so."""
    assert launch(library, "set_twice", 1, x, np.zeros_like(x)) == 0
    assert re.search(
        r"kernel set_twice: SetFlag<HardEvent::MTE2_V>\(0\) \[.*\]: the flag is set since \[.*kernel.asc:\d+\]",
        capfd.readouterr().err,
    )


@pytest.mark.usefixtures("checked")
def test_a_flag_that_stays_set(library: ctypes.CDLL, x: np.ndarray, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(library, "unpaired", 1, x, np.zeros_like(x)) == 0
    assert re.search(
        r"kernel unpaired: SetFlag<HardEvent::MTE3_V>\(5\) without WaitFlag \[.*kernel.asc:\d+\]",
        capfd.readouterr().err,
    )
