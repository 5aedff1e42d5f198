# ruff: noqa: E501, PLR0917, RUF100 - kernels and build files are quoted as they are written
"""Kernels that break a rule: an ACL error with kernel, block, rule and source line, and the process lives on."""

from __future__ import annotations

import ctypes
import platform
import re

import numpy as np
import pytest

from ..conftest import Build, Toolkit, launch

QUEUE = "TQue<TPosition::VECIN, 2> q; pipe.InitBuffer(q, 2, 256);"
BROKEN = {
    "a mode of threads": (
        "TBuf<> b; pipe.InitBuffer(b, 512); Cast(b.Get<half>(), b.GetWithOffset<float>(64, 256), RoundMode::CAST_ZERO, 64);",
        r"Cast: CAST_EVEN and CAST_ZERO are modes of Simt::Cast; write CAST_RINT or CAST_TRUNC",
    ),
    "a message": (
        'ASSERT_MSG(GetBlockIdx() > 7, "%d of %s", 7, "blocks");',
        r"assertion failed: GetBlockIdx\(\) > 7: 7 of blocks",
    ),
    # destructors
    "a rule in a destructor": (
        QUEUE + "struct Last { decltype(q)& of; ~Last() { of.template DeQue<float>(); } }; { Last last{q}; }",
        r"DeQue: queue VECIN is empty",
    ),
    "another rule in a destructor": (
        QUEUE + "struct Last { decltype(q)& of; ~Last() { of.template DeQue<float>(); } }; Last last{q}; Trap();",
        r"block [01] of 2: Trap",
    ),
    "an exception in a destructor": (
        QUEUE + "struct Last { ~Last() { [] { throw 7; }(); } }; { Last last; }",
        r"throws a value that is not a std::exception",
    ),
    # events
    "an event of a number too large": (
        "SetFlag<HardEvent::MTE2_V>(8);",
        r"SetFlag: the number of the event is 8; it must be 0 to 7",
    ),
    "an event without a number": (
        "WaitFlag<HardEvent::MTE2_V>(INVALID_TEVENTID);",
        r"WaitFlag: the number of the event is -1; it must be 0 to 7",
    ),
    "numbers of events that are never released": (
        "for (int i = 0; i < 9; ++i) pipe.AllocEventID<HardEvent::MTE2_V>();",
        r"AllocEventID: all 8 numbers of the event are in use",
    ),
    "a wait for a flag of another number": (
        "SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(1);",
        r"WaitFlag<HardEvent::MTE2_V>\(1\): nothing set the flag \(on the device this waits for ever\)",
    ),
    "a second wait for one flag": (
        "for (int i = 0; i < 300; ++i) SetFlag<HardEvent::S_V>(7); PipeBarrier<PIPE_ALL>();"
        "SetFlag<HardEvent::V_S>(7); WaitFlag<HardEvent::V_S>(7); WaitFlag<HardEvent::V_S>(7);",
        r"WaitFlag<HardEvent::V_S>\(7\): nothing set the flag",
    ),
    # queues
    "never dequeued": (QUEUE + "auto a = q.AllocTensor<float>(); q.EnQue(a);", r"unbalanced .*: EnQue without DeQue"),
    "empty queue": (QUEUE + "q.DeQue<float>();", r"DeQue: queue VECIN is empty"),
    "all in use": (
        QUEUE + "for (int i = 0; i < 3; ++i) q.AllocTensor<float>();",
        r"AllocTensor: all 2 buffers of queue VECIN are in use",
    ),
    "depth": (
        (
            "TQue<TPosition::VECOUT, 1> q; pipe.InitBuffer(q, 2, 256); auto a = q.AllocTensor<float>(); "
            "auto b = q.AllocTensor<float>();"
            "q.EnQue(a); q.EnQue(b);"
        ),
        r"EnQue: queue VECOUT has depth 1 and holds 1 tensors",
    ),
    "twice": (
        QUEUE + "auto a = q.AllocTensor<float>(); q.EnQue(a); q.EnQue(a);",
        r"EnQue: the tensor is in queue VECIN already",
    ),
    "freed in queue": (
        QUEUE + "auto a = q.AllocTensor<float>(); q.EnQue(a); q.FreeTensor(a);",
        r"FreeTensor: the tensor is still in queue",
    ),
    "freed twice": (
        QUEUE + "auto a = q.AllocTensor<float>(); auto b = a; q.FreeTensor(a); q.FreeTensor(b);",
        r"FreeTensor: the tensor was given back",
    ),
    "used after another took it": (
        QUEUE + "auto a = q.AllocTensor<float>(); auto b = a; q.FreeTensor(a); q.AllocTensor<float>(); "
        "q.AllocTensor<float>(); Adds(b, b, 1.0f, 8);",
        r"Adds: .* was given back with FreeTensor, and its memory may be another tensor's since",
    ),
    "foreign tensor": (
        QUEUE + "TQue<TPosition::VECIN, 2> p; pipe.InitBuffer(p, 1, 64); auto a = p.AllocTensor<float>(); q.EnQue(a);",
        r"EnQue: the tensor does not come from this queue VECIN",
    ),
    "no buffers": (
        "TQue<TPosition::VECIN, 2> q; q.AllocTensor<float>();",
        r"AllocTensor: the queue VECIN has no buffers; call TPipe::InitBuffer",
    ),
    "no memory": (
        "TBuf<> b; b.Get<float>(); auto a = b.Get<float>(64)[32]; a.SetValue(0, 1.0f);",
        r"SetValue: the tensor is an empty LocalTensor; .* TBuf::Get of a buffer that TPipe::InitBuffer gave memory to",
    ),
    # memory
    "unified buffer": (
        "TBuf<> b, c; pipe.InitBuffer(b, 196608); pipe.InitBuffer(c, 32); auto a = c.Get<float>(); "
        "if (c.GetBufLen() == 32) a.SetValue(0, 1.0f);",
        r"SetValue: .* is an empty LocalTensor; InitBuffer: 32 bytes more overflow the unified buffer: 196608 of",
    ),
    "a view of what lies beyond the unified buffer": (
        "TBuf<> b, c; pipe.InitBuffer(b, 196576); pipe.InitBuffer(c, 64);"
        "Adds(c.Get<float>(8), b.Get<float>(), 1.0f, 8);",
        r"Adds: dst is an empty LocalTensor; InitBuffer: 64 bytes more overflow the unified buffer: 196576 of 196608",
    ),
    "a queue after what lies beyond the unified buffer": (
        "TBuf<> b, c; pipe.InitBuffer(b, 196576); pipe.InitBuffer(c, 64); " + QUEUE,
        r"InitBuffer: 256 bytes more overflow the unified buffer: 196640 of 196608",
    ),
    "unified buffer queue": (
        "TQue<TPosition::VECIN, 2> q; pipe.InitBuffer(q, 2, 98336);",
        r"InitBuffer: 98336 bytes more overflow the unified buffer: 98336 of 196608",
    ),
    "L0A": ("TQue<TPosition::A2, 1> q; pipe.InitBuffer(q, 1, 65537);", r"overflow the L0A buffer"),
    "many buffers": (
        "TBuf<> b[65]; for (auto& one : b) pipe.InitBuffer(one, 32);",
        r"InitBuffer: more than 64 buffers in one TPipe",
    ),
    "numbers of more than a block at an unaligned address": (
        "TBuf<> b; pipe.InitBuffer(b, 256); ArithProgression(b.Get<int32_t>()[6], 1, 2, 9);",
        r"ArithProgression: dst is unaligned",
    ),
    "no bytes": ("TBuf<> b; pipe.InitBuffer(b, 0);", r"InitBuffer: 0 bytes for a TBuf"),
    "bounds": (
        "TBuf<> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); Adds(a, a, 1.0f, 65);",
        r"Adds: .* needs 260 bytes, but its buffer of VECCALC has 256",
    ),
    "bounds of a view": (
        "TBuf<> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); Adds(a[32], a, 1.0f, 64);",
        r"Adds: dst needs 256 bytes, .* has 128",
    ),
    "index": (
        "TBuf<> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); a.SetValue(64, 1.0f);",
        r"SetValue: the tensor needs 260 bytes",
    ),
    "offset": (
        "TBuf<> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); auto c = a[65];",
        r"LocalTensor\[65\]: the offset is beyond its buffer",
    ),
    "repeats": (
        "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); Adds(a, a, 1.0f, (uint64_t)64, 5, {1, 1, 8, 8});",
        r"Adds: (dst|src) needs 1280 bytes, .* has 1024",
    ),
    "empty tensor": ("LocalTensor<float> a; Adds(a, a, 1.0f, 8);", r"Adds: dst is an empty LocalTensor"),
    "get with offset": (
        "TBuf<> b; pipe.InitBuffer(b, 256); b.GetWithOffset<float>(64, 32);",
        r"GetWithOffset: 64 elements of 4 bytes from byte 32; the buffer has 256",
    ),
    "address": (
        "LocalTensor<float> a(TPosition::VECIN, 196608, 2);",
        r"LocalTensor: it begins at byte 196608 of the unified buffer, which has 196608",
    ),
    "address of the end": (
        "LocalTensor<float> a(TPosition::VECIN, 196600, 4); a.SetValue(1, 1); a.SetValue(2, 1);",
        r"SetValue: the tensor needs 12 bytes, but its buffer of VECIN has 8 from there",
    ),
    "address of a whole": (
        "LocalTensor<float> a(TPosition::VECIN, 196576, 16); Duplicate(a, 1.0f, 16);",
        r"Duplicate: dst needs 64 bytes, but its buffer of VECIN has 32 from there",
    ),
    "allocator": (
        "LocalMemAllocator<Hardware::UB> ub; auto a = ub.Alloc<float>(64); Adds(a, a, 1.0f, 65);",
        r"Adds: .* needs 260 bytes, but its buffer of VECCALC has 256",
    ),
    "TopK of too many": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); TopKInfo info; info.inner = 32; info.n = 30;"
            "TopK(a[64], a.ReinterpretCast<int32_t>()[128], a, LocalTensor<int32_t>(), LocalTensor<bool>(), 31, 0, "
            "info);"
        ),
        r"TopK: outter 1, inner 32, n 30, k 31; k is 1 to n",
    ),
    "TopK that marks rows in the small mode": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); TopKInfo info; info.inner = 32; info.n = 30;"
            "TopK<float, false, true, false, TopKMode::TOPK_NSMALL>(a[64], a.ReinterpretCast<int32_t>()[128], a, "
            "LocalTensor<int32_t>(), b.Get<bool>(), 3, 0, info);"
        ),
        r"TopK: isHasfinish is false with TopKMode::TOPK_NSMALL",
    ),
    "mask shorter than its rows": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); SelectWithBytesMaskShapeInfo info{1, 64, 32};"
            "SelectWithBytesMask(a, a, 1.0f, b.Get<uint8_t>(), b.Get<uint8_t>(), info);"
        ),
        r"SelectWithBytesMask: rows of 64 elements and of 32 in the mask",
    ),
    "rows without padding": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); const uint32_t shape[] = {2, 4};"
            "ReduceSum<float, Pattern::Reduce::AR>(a, a, shape, false);"
        ),
        r"ReduceSum: srcInnerPad is false; rows begin at multiples of 32 bytes",
    ),
    "position": (
        "TBuf<TPosition::A1> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); Adds(a, a, 1.0f, 8);",
        r"Adds: .* lies in A1; vector instructions",
    ),
    # alignment
    "unaligned count": (
        "TBuf<> b; pipe.InitBuffer(b, 256); DataCopy(b.Get<float>(), gm, 15);",
        r"DataCopy: unaligned copy: 15 elements of 4 bytes are 60 bytes, no multiple of 32; .*DataCopyPad",
    ),
    "unaligned address": (
        "TBuf<> b; pipe.InitBuffer(b, 256); DataCopy(b.Get<float>()[1], gm, 8);",
        r"DataCopy: dst starts at an address that is not a multiple of 32",
    ),
    "unaligned source": (
        "TBuf<> b; pipe.InitBuffer(b, 256); DataCopy(gm, b.Get<float>()[4], 8);",
        r"DataCopy: src starts at an address that is not a multiple of 32",
    ),
    "unaligned operand": (
        "TBuf<> b; pipe.InitBuffer(b, 256); auto a = b.Get<float>(); Adds(a, a[3], 1.0f, 8);",
        r"Adds: src is unaligned",
    ),
    "compare count": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); "
            "Compare(b.Get<uint8_t>(), a, a, CMPMODE::EQ, 60);"
        ),
        r"Compare: count covers 240 bytes; .* multiple of 256",
    ),
    "gather offset": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 256); auto i = b.Get<uint32_t>(); Duplicate(i, 2u, 8); "
            "Gather(b.Get<float>(), b.Get<float>(), i, 0, 8);"
        ),
        r"Gather: offset 2 is not a multiple",
    ),
    "gather bounds": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 256); auto i = b.Get<uint32_t>(); Duplicate(i, 256u, 8); "
            "Gather(b.Get<float>()[32], b.Get<float>(), i, 0, 8);"
        ),
        r"Gather: src needs 260 bytes",
    ),
    "temporary space": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 4096); Tanh(b.Get<half>(), b.GetWithOffset<half>(64, 1024), "
            "b.GetWithOffset<uint8_t>(512, 2048), 64);"
        ),
        r"Tanh: sharedTmpBuffer has 512 bytes; it takes 1024 or more \(GetTanhMaxMinTmpSize\)",
    ),
    "no room for temporary space": (
        "TBuf<> b; pipe.InitBuffer(b, 196096); Tanh(b.Get<half>(), b.GetWithOffset<half>(64, 1024), 64);",
        r"Tanh: without sharedTmpBuffer it takes 1024 bytes of the unified buffer or more "
        r"\(GetTanhMaxMinTmpSize\), and InitBuffer left 512",
    ),
    "temporary space of Sort": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 4096); auto i = b.GetWithOffset<uint32_t>(64, 2048); "
            "auto t = b.GetWithOffset<float>(64, 3840); Sort<float, true>(b.Get<float>(), "
            "b.GetWithOffset<float>(64, 1024), i, t, 2);"
        ),
        r"Sort: tmp needs 512 bytes",
    ),
    # global memory
    "global copy": (
        "TBuf<> b; pipe.InitBuffer(b, 4096); DataCopy(b.Get<float>(), gm[56], 16);",
        r"DataCopy: out of bounds: bytes 224 to 288 of src, whose global buffer ends at byte 256",
    ),
    "global write": (
        "TBuf<> b; pipe.InitBuffer(b, 4096); DataCopyPad(gm[60], b.Get<float>(), DataCopyExtParams{1, 20, 0, 0, 0});",
        r"DataCopyPad: out of bounds: bytes 240 to 260 of dst",
    ),
    "global value": ("gm.SetValue(64, 1.0f);", r"SetValue: out of bounds: bytes 256 to 260"),
    "global far": ("gm.GetValue(1ull << 40);", r"GetValue: out of bounds"),
    "null": (
        "GlobalTensor<float> none; none.SetGlobalBuffer(nullptr, 8); none.GetValue(0);",
        r"GetValue: the tensor is a GlobalTensor without memory",
    ),
    # parameters
    "sum of repeats": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); ReduceSum(a, a, a, 8); "
            "WholeReduceSum(a, a, 64, 2, 1, 1, 8); GetAccVal<float>();"
        ),
        r"GetAccVal: no sum can be read, for a sum of repeats ran after it; call ReduceSum of a count",
    ),
    "sum by repeats": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); ReduceSum(a, a, a, 64, 2, 8); "
            "GetReduceRepeatSumSpr<float>();"
        ),
        r"GetReduceRepeatSumSpr: no sum can be read, for the last ReduceSum had a mask and repeats",
    ),
    "no sum": ("GetAccVal();", r"GetAccVal: no sum can be read, for no reduction ran"),
    "extreme with gaps": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 4096); auto a = b.Get<float>(); WholeReduceMax(a, a, 64, 2, 1, 1, 16); "
            "float v, i; GetReduceMaxMinCount(v, i);"
        ),
        r"GetReduceMaxMinCount: no extreme can be read, for the source of the last reduction has gaps",
    ),
    "extreme of a counted mask": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 4096); auto a = b.Get<float>(); SetMaskCount(); "
            "WholeReduceMin(a, a, 128, 1, 1, 1, 8); float v, i; GetReduceMaxMinCount(v, i);"
        ),
        r"GetReduceMaxMinCount: no extreme can be read, for the last reduction ran in counter mode",
    ),
    "extreme alone": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); WholeReduceMax(a, a, 64, 2, 1, 1, 8); "
            "float v; "
            "GetReduceRepeatMaxMinSpr(v);"
        ),
        (
            r"GetReduceRepeatMaxMinSpr: this SoC gives a value with its index alone; "
            r"write GetReduceRepeatMaxMinSpr\(value, index\)"
        ),
    ),
    "place of a pair": (
        "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); WholeReduceMax(a[1], a[64], 64, 2, 1, 1, 8);",
        r"WholeReduceMax: dst is unaligned: it starts at an address that is not a multiple of 8 bytes",
    ),
    "block count": (
        "TBuf<> b; pipe.InitBuffer(b, 1024); DataCopy(b.Get<float>(), gm, DataCopyParams{4096, 1, 0, 0});",
        r"DataCopy: blockCount 4096; valid: 1 to 4095",
    ),
    "pattern": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); uint64_t n; "
            "GatherMask(a, a, 9, false, 0, {1, 1, 8, 8}, n);"
        ),
        r"GatherMask: pattern 9; valid: 1 to 7",
    ),
    "padding": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); DataCopyPad(b.Get<float>(), gm, DataCopyExtParams{1, 4, 0, 0, 0}, "
            "DataCopyPadExtParams<float>{true, 9, 0, 0.0f});"
        ),
        r"DataCopyPad: padding of 9 elements",
    ),
    "valid bits": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<float>(); MrgSort4Info i; "
            "MrgSort(a, MrgSortSrcList<float>(a, a, a, a), i);"
        ),
        r"MrgSort: validBit 0; valid: 3, 7, 15",
    ),
    "cube position": (
        "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<half>(); Mmad(b.Get<float>(), a, a, MmadParams());",
        r"Mmad: dst lies in VECCALC; it must lie in the L0C buffer",
    ),
    "cube tensor without memory": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 1024); auto a = b.Get<half>(); LocalTensor<float> c; "
            "Mmad(c, a, a, MmadParams());"
        ),
        r"Mmad: dst is an empty LocalTensor",
    ),
    "saturated floats": (
        "AscendCUtils::SetOverflow(1); AscendCUtils::SetOverflow(0);",
        r"AscendCUtils::SetOverflow: 0 asks for floats that saturate.*write SetOverflow\(1\)",
    ),
    "beyond by an offset": (
        "LocalTensor<float> a; a.InitBuffer(192 * 1024 - 32, 64); Adds(a, a, 1.0f, 16);",
        r"Adds: .* needs 64 bytes, but its buffer of VECCALC has 32",
    ),
    "beyond a memory by an offset": (
        (
            "LocalTensor<half> a; a.InitBuffer(65536, 64); a.address_.logicPos = static_cast<uint8_t>(TPosition::A2); "
            "a.SetValue(0, (half)1);"
        ),
        r"LocalTensor: it begins at byte 65536 of the L0A buffer, which has 65536",
    ),
    "trap": ("Trap();", r"Trap"),
    "assertion behind a value": (
        'int tiles = 3 ASSERT(tiles != 0 && "no tiles"); if (tiles == 3) ASSERT(tiles == 2); else ASSERT(false);',
        r"assertion failed: tiles == 2",
    ),
    "assertion without a semicolon": (
        "int tiles = 0; ASSERT(tiles == 0)\n    ASSERT(tiles > 0)\n    tiles = 1;",
        r"assertion failed: tiles > 0",
    ),
    "assertion": (
        'int tiles = 0; ASSERT(tiles > 0 && \\"no tiles\\");'.replace("\\\\", ""),
        r"assertion failed: tiles > 0",
    ),
    "assertion with a message": (
        'int tiles = 3; ascendc_assert(tiles == 4, "%d tiles", tiles);',
        r"assertion failed: tiles == 4: 3 tiles",
    ),
    "tiling": (
        "struct Tiling { int a; }; GET_TILING_DATA_WITH_STRUCT(Tiling, data, nullptr); (void)data;",
        r"GET_TILING_DATA: the tiling address is null; write the data \(SaveToBuffer\) and their size \(SetDataSize\)",
    ),
    "tiling by its address": (
        "struct Tiling { int a; }; GET_TILING_DATA_PTR_WITH_STRUCT(Tiling, data, nullptr); (void)data;",
        r"GET_TILING_DATA: the tiling address is null",
    ),
    "flag": ("CrossCoreSetFlag<0, PIPE_MTE3>(16);", r"CrossCoreSetFlag: flag 16; valid: 0 to 15"),
    "wait for ever, by an event": ("WaitEvent(3);", r"CrossCoreWaitFlag waits for ever"),
    "wait for ever": (
        "CrossCoreWaitFlag(3);",
        r"CrossCoreWaitFlag waits for ever: every other block has ended or waits too",
    ),
    # beyond the headers
    "null pointer": (
        "TBuf<> b; pipe.InitBuffer(b, 32); *(volatile __gm__ int*)nullptr = 1;",
        r"accesses memory through a null or bad pointer",
    ),
    "overflow": (
        (
            "TBuf<> b; pipe.InitBuffer(b, 32); volatile int least = -2147483647 - 1, one = -1; "
            "gm.SetValue(0, least / one);"
        ),
        r"overflows in a division",
    ),
}


def _source() -> str:
    kernels = "".join(
        f'extern "C" __global__ __aicore__ void broken{index}(GM_ADDR x) {{\n'
        f"    GlobalTensor<float> gm; gm.SetGlobalBuffer((__gm__ float*)x, 64); TPipe pipe;\n"
        f"{body.replace(chr(92) + chr(34), chr(34))}\n}}\n"
        for index, (body, _) in enumerate(BROKEN.values())
    )
    return (
        '#include "kernel_operator.h"\nusing namespace AscendC;\n'
        + kernels
        + """
extern "C" __global__ __aicore__ void good(GM_ADDR x) {
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)x, 64);
    gm.SetValue(GetBlockIdx(), GetBlockIdx() + 1);
}
extern "C" __global__ __aicore__ void divides(GM_ADDR x, int32_t uses) {
    GlobalTensor<int32_t> gm;
    gm.SetGlobalBuffer((__gm__ int32_t*)x, 64);
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, 32);
    gm.SetValue(0, 1);
    volatile int32_t zero = 0;
    volatile uint64_t wide_zero = 0;
    volatile uint8_t byte = 7, byte_zero = 0;
    const int32_t quotient = 7 / zero, remainder = 7 % zero;
    const uint64_t wide = 7 / wide_zero;
    const uint8_t narrow = byte / byte_zero, narrow_remainder = byte % byte_zero;
    gm.SetValue(1, 2);
    if (uses == 1) gm.SetValue(2,
        quotient == remainder && static_cast<uint32_t>(wide) == static_cast<uint32_t>(quotient) &&
        narrow == narrow_remainder && narrow == static_cast<uint8_t>(quotient));
    if (uses == 2) gm.SetValue(static_cast<uint32_t>(quotient), 3);
}
extern "C" __global__ __aicore__ void needs_less(GM_ADDR x) {
    TPipe pipe;
    TBuf<> used, unused;
    pipe.InitBuffer(used, 196576);
    pipe.InitBuffer(unused, 64);
    auto kept = unused.Get<float>();
    (void)kept;
    ((__gm__ float*)x)[0] = used.GetBufLen() + unused.GetBufLen();
}
extern "C" __global__ __aicore__ void goes_on(GM_ADDR x) {
    TPipe pipe;
    TBuf<> buffer, next;
    pipe.InitBuffer(buffer, 32);
    pipe.InitBuffer(next, 64);
    auto a = buffer.Get<float>(), b = next.Get<float>();
    Duplicate(b, 0.0f, 16);
    Duplicate(a, 3.0f, 16);
    for (int i = 0; i < 16; ++i) ((__gm__ float*)x)[i] = b.GetValue(i);
}
extern "C" __global__ __aicore__ void lingers(GM_ADDR x) {
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)x, 64);
    TPipe pipe;
    TQue<TPosition::VECIN, 1> q;
    pipe.InitBuffer(q, 1, 256);
    auto a = q.AllocTensor<float>();
    Duplicate(a, 5.0f, 64);
    auto b = a;
    q.FreeTensor(a);
    DataCopy(gm, b, 64);
}
extern "C" __global__ __aicore__ void keeps(GM_ADDR x, int32_t dequeues) {
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)x, 64);
    TPipe pipe;
    TQue<TPosition::VECOUT, 1> q;
    pipe.InitBuffer(q, 1, 256);
    auto a = q.AllocTensor<float>();
    Duplicate(a, 5.0f, 64);
    if (dequeues) {
        q.EnQue(a);
        a = q.DeQue<float>();
    }
    PipeBarrier<PIPE_ALL>();
    DataCopy(gm, a, 64);
}
extern "C" __global__ __aicore__ void unscaled(GM_ADDR x, int32_t sets) {
    GlobalTensor<half> gm;
    gm.SetGlobalBuffer((__gm__ half*)x, 64);
    TPipe pipe;
    TBuf<TPosition::VECCALC> integers, halves;
    pipe.InitBuffer(integers, 256);
    pipe.InitBuffer(halves, 128);
    auto a = integers.Get<int32_t>();
    auto b = halves.Get<half>();
    Duplicate(a, 5, 64);
    if (sets) SetDeqScale((half)2.0f);
    Cast(b, a, RoundMode::CAST_NONE, 64);
    PipeBarrier<PIPE_ALL>();
    DataCopy(gm, b, 64);
}
extern "C" __global__ __aicore__ void third(GM_ADDR x) {
    if (GetBlockIdx() == 2) Trap();
    SyncAll();  // the others would wait for ever
}
extern "C" __global__ __aicore__ void unsized(GM_ADDR x) {
    GlobalTensor<float> gm;
    gm.SetGlobalBuffer((__gm__ float*)x);
    gm.SetValue(64, 1.0f);
}
"""
    )


@pytest.fixture(scope="module")
def library(build: Build) -> ctypes.CDLL:
    return build(_source())


@pytest.mark.parametrize("index", range(len(BROKEN)), ids=list(BROKEN))
def test_broken_rule(library: ctypes.CDLL, tools: Toolkit, index: int) -> None:
    x = np.zeros(64, np.float32)
    status = launch(library, f"broken{index}", 2, x)
    message = tools.message()
    pattern = list(BROKEN.values())[index][1]
    assert re.search(pattern, message), message
    assert re.match(rf"kernel broken{index}, block [01] of 2", message), message
    assert status == (507014 if re.search("waits for ever[:)]", message) else 507015)
    assert re.search(r"\[.*kernel\.asc:\d+\]$", message), "the message names the source line"

    x[:] = 0
    assert launch(library, "good", 4, x) == 0, "a launch after a failed one"
    assert x[:4].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["bounds", "index", "offset", "repeats", "gather bounds", "allocator"])
def test_overruns_go_on_where_they_are_allowed(
    library: ctypes.CDLL, tools: Toolkit, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    kernel = f"broken{list(BROKEN).index(name)}"
    tools.seam.ascendcHostAllowOverruns(1)
    status = launch(library, kernel, 1, np.zeros(64, np.float32))
    tools.seam.ascendcHostAllowOverruns(-1)
    assert status == 0, tools.message()
    said = capfd.readouterr().err
    used = rf"kernel {kernel}: \w+: .* goes on beyond its buffer of VEC.*kernel\.asc:\d+\]"
    assert name == "offset" or re.search(used, said), said  # it names a place alone
    assert launch(library, kernel, 1, np.zeros(64, np.float32)) == 507015
    assert "--overruns" in tools.message()


def test_an_overrun_ends_at_the_end_of_memory(library: ctypes.CDLL, tools: Toolkit) -> None:
    (number,) = [n for n, (_, rule) in enumerate(BROKEN.values()) if "its buffer of VECIN has 32" in rule]
    tools.seam.ascendcHostAllowOverruns(1)
    status = launch(library, f"broken{number}", 1, np.zeros(64, np.float32))
    tools.seam.ascendcHostAllowOverruns(-1)
    assert status == 507015
    assert "--overruns" not in tools.message()


def test_an_overrun_is_in_the_next_buffer(library: ctypes.CDLL, tools: Toolkit) -> None:
    x = np.zeros(64, np.float32)
    tools.seam.ascendcHostAllowOverruns(1)
    status = launch(library, "goes_on", 1, x)
    tools.seam.ascendcHostAllowOverruns(-1)
    assert status == 0, tools.message()
    assert x[:9].tolist() == [3.0] * 8 + [0.0]


def test_line_is_right(library: ctypes.CDLL, tools: Toolkit) -> None:
    """The line is the call's own."""
    index = list(BROKEN).index("unaligned count")
    line = next(number for number, text in enumerate(_source().splitlines(), 1) if "gm, 15)" in text)
    launch(library, f"broken{index}", 1, np.zeros(64, np.float32))
    assert tools.message().endswith(f"kernel.asc:{line}]")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors do not stop at a division by zero")
def test_a_division_by_zero_gives_a_number_that_nobody_knows(
    library: ctypes.CDLL, tools: Toolkit, capfd: pytest.CaptureFixture[str]
) -> None:
    """A core goes on, and so does the kernel; what uses the quotient shows it. Said once."""
    x = np.zeros(64, np.int32)
    assert [launch(library, "divides", 1, x, 0) for _ in range(2)] == [0, 0], tools.message()
    assert x[:3].tolist() == [1, 2, 0]
    said = capfd.readouterr().err
    assert said.count("kernel divides divides an integer by zero, after the API call in ") == 1, said
    assert re.search(r"kernel\.asc:\d+; a core does not stop there", said), said

    assert launch(library, "divides", 1, x, 1) == 0, tools.message()
    assert x[2] == 1, "quotient and remainder of every width are the same bits"

    assert launch(library, "divides", 1, x, 2) == 507015
    assert re.search(r"out of bounds.*; kernel divides divides an integer by zero", tools.message()), tools.message()
    assert launch(library, "good", 1, x.view(np.float32)) == 0, "a launch after a failed one"
    assert tools.message() == ""


def test_memory_stays_until_it_is_given_out_again(
    library: ctypes.CDLL, tools: Toolkit, capfd: pytest.CaptureFixture[str]
) -> None:
    """FreeTensor ends no tensor on a device, and published kernels read on: a warning says what may come."""
    x = np.zeros(64, np.float32)
    assert launch(library, "lingers", 1, x) == 0, tools.message()
    assert (x == 5).all()
    assert "kernel lingers: DataCopy uses src after FreeTensor; the next AllocTensor" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("dequeues", "missing"), [(0, "AllocTensor without EnQue or FreeTensor"), (1, "DeQue without FreeTensor")]
)
def test_a_buffer_that_is_not_given_back(
    library: ctypes.CDLL, tools: Toolkit, capfd: pytest.CaptureFixture[str], dequeues: int, missing: str
) -> None:
    """No flag is left for the next kernel: a device ends it, and a published kernel keeps its tensor of zeros so."""
    x = np.zeros(64, np.float32)
    assert launch(library, "keeps", 1, x, dequeues) == 0, tools.message()
    assert (x == 5).all()
    said = f"kernel keeps: queue VECOUT is unbalanced at the end of the kernel: {missing}; a device ends"
    assert said in capfd.readouterr().err


def test_a_buffer_without_memory_that_nothing_uses(
    library: ctypes.CDLL, tools: Toolkit, capfd: pytest.CaptureFixture[str]
) -> None:
    """InitBuffer counts addresses on a device: published kernels make buffers for all dtypes, of which one uses few."""
    x = np.zeros(64, np.float32)
    assert launch(library, "needs_less", 1, x) == 0, tools.message()
    assert x[0] == 196640
    said = capfd.readouterr().err
    assert "kernel needs_less: InitBuffer: 64 bytes more overflow the unified buffer: 196576 of 196608" in said


def test_a_scale_that_no_kernel_set_is_named(
    library: ctypes.CDLL, tools: Toolkit, capfd: pytest.CaptureFixture[str]
) -> None:
    """A device multiplies by what the last kernel left in the register."""
    x = np.zeros(64, np.float16)
    assert launch(library, "unscaled", 1, x, 1) == 0, tools.message()
    assert (x == 10).all()
    assert capfd.readouterr().err == ""
    assert launch(library, "unscaled", 1, x, 0) == 0, tools.message()
    assert (x == 5).all(), "a launch after one that set it"
    said = capfd.readouterr().err
    assert "kernel unscaled: Cast of int32_t to half multiplies by the scale of SetDeqScale(half), which " in said


def test_one_block_fails(library: ctypes.CDLL, tools: Toolkit) -> None:
    """The blocks that wait for the one that failed end with it, and its message is the one reported."""
    assert launch(library, "third", 8, np.zeros(64, np.float32)) == 507015
    assert tools.message().startswith("kernel third, block 2 of 8: Trap")


def test_allocation_bounds(library: ctypes.CDLL, tools: Toolkit) -> None:
    """Without a size in SetGlobalBuffer, the allocation is the bound, where the runtime knows it."""
    x = np.zeros(128, np.float32)
    tools.seam.seam_allocation(ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(256))
    try:
        assert launch(library, "unsized", 1, x) == 507015
        assert "out of bounds: bytes 256 to 260 of the tensor, whose allocation ends at byte 256" in tools.message()
        assert not x.any()
    finally:
        tools.seam.seam_allocation(None, ctypes.c_size_t(0))
    assert launch(library, "unsized", 1, x) == 0
    assert x[64] == 1


def test_an_assertion_knows_the_names_of_the_api(build: Build, tools: Toolkit) -> None:
    """A device compiles nothing of it, so that kernels which name AscendC elsewhere leave it out there."""
    library = build("""
#include "kernel_operator.h"
template <int most>
class Kernel {
  public:
    __aicore__ inline void Init() { ASSERT(GetBlockNum() <= most && limit_ != 0); }
  private:
    int limit_ = 1;
};
extern "C" __global__ __aicore__ void asserts() {
    Kernel<2> kernel;
    kernel.Init();
}
""")
    assert launch(library, "asserts", 2) == 0, tools.message()
    assert launch(library, "asserts", 3) == 507015
    assert "assertion failed: GetBlockNum() <= most && limit_ != 0" in tools.message()


def test_functions_of_another_architecture(build: Build) -> None:
    """Atlas A2 has no Scatter, in any of its forms."""
    for arguments in ("0, 64", "0, (uint64_t)64, 1, 8"):
        with pytest.raises(AssertionError, match="Scatter: dav-2201 does not have it"):
            build(f"""
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void refused() {{
    AscendC::LocalTensor<float> x;
    AscendC::LocalTensor<uint32_t> to;
    AscendC::Scatter(x, x, to, {arguments});
}}
""")


def test_bitwise_operations_with_masks(tools: Toolkit, tmp_path) -> None:
    """Atlas A2 has And, Or and Not of 16 bits: with masks, and Not in any form, another type does not compile."""
    for call in ("And(x, x, x, 64, 1, {1, 1, 1, 8, 8, 8})", "Not(x, x, 64)"):
        source = tmp_path / "bits.asc"
        lines = (
            '#include "kernel_operator.h"',
            "__global__ __aicore__ void k() {",
            "    AscendC::LocalTensor<int32_t> x;",
        )
        source.write_text("\n".join([*lines, f"    AscendC::{call};", "}", ""]))
        result = tools.bisheng("-x", "asc", "-c", source, "-o", tmp_path / "k.o")
        assert result.returncode == 1
        assert f"{call.partition('(')[0]} is for int16_t, uint16_t on this SoC" in result.stderr
        result = tools.bisheng("-x", "asc", "--npu-arch=dav-3510", "-c", source, "-o", tmp_path / "k.o")
        assert result.returncode == 0, result.stderr


def test_unknown_api(tools: Toolkit, tmp_path) -> None:
    """An API that does not exist is a compile error that names it and its line."""
    source = tmp_path / "unknown.asc"
    source.write_text('#include "kernel_operator.h"\n__global__ __aicore__ void k() {\n    AscendC::Fft(1);\n}\n')
    result = tools.bisheng("-x", "asc", "-c", source, "-o", tmp_path / "k.o")
    assert result.returncode == 1
    assert "unknown.asc:3:" in result.stderr
    assert "Fft" in result.stderr
