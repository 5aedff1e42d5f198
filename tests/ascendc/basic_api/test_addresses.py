# ruff: noqa: E501, RUF100 - kernels are quoted as they are written
"""Local tensors whose memory and offset a kernel writes itself, as code without a TPipe does."""

from __future__ import annotations

import numpy as np

from ..conftest import Build, Toolkit, launch

SOURCE = """
#include "kernel_operator.h"
#include <type_traits>
using namespace AscendC;
static_assert(std::is_same<__bf16, bfloat16_t>::value, "");
template <typename T>
__aicore__ inline LocalTensor<T> At(TPosition position, uint32_t offset, uint32_t size) {
    LocalTensor<T> tensor;
    tensor.InitBuffer(offset, size);
    tensor.address_.logicPos = static_cast<uint8_t>(position);
    return tensor;
}
extern "C" __global__ __vector__ void by_offsets(GM_ADDR x, GM_ADDR y) {
    PRELOAD(2);
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float*)x, 64);
    out.SetGlobalBuffer((__gm__ float*)y, 131);
    auto first = At<float>(TPosition::VECIN, 0, 64), second = At<float>(TPosition::VECOUT, 256, 64);
    DataCopy(first, in, 64);
    Adds(second, first[32], 1.0f, 32);
    Adds(second[32], first, 2.0f, 32);
    // The same bytes under other offsets and types.
    auto both = At<uint8_t>(TPosition::VECCALC, 0, 512).ReinterpretCast<float>();
    DataCopy(out, both, 128);
    out.SetValue(128, second.GetPosition() == int32_t(TPosition::VECOUT) && second.GetSize() == 64);
    // Another memory, the same offset.
    auto moved = At<float>(TPosition::VECCALC, 256, 64);
    moved.address_.logicPos = static_cast<uint8_t>(TPosition::A1);
    moved.SetValue(0, 7.0f);
    out.SetValue(129, second.GetValue(0) + 100 * At<float>(TPosition::B1, 256, 8).GetValue(0));
    // The offset assigned, and assigned again.
    LocalTensor<float> given;
    given.address_.logicPos = static_cast<uint8_t>(TPosition::VECIN);
    given.address_.bufferAddr = 0;
    given.address_.bufferAddr = 256;
    out.SetValue(130, given.GetValue(0));
}
"""


BUFFERS = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __vector__ void by_handles(GM_ADDR y, bool foreign) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> queue, other;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(other, 1, 64);
    pipe.InitBuffer(queue, 2, 128);
    pipe.InitBuffer(buffer, 256);
    auto first = queue.AllocTensor<float>(), second = queue.AllocTensor<float>();
    second.SetValue(3, 5.0f);
    LocalTensor<float> again;
    again.SetAddr((foreign ? other : queue).GetBufferAddr(second.GetBufferHandle()));
    buffer.Get<float>().SetValue(9, 7.0f);
    TBuffAddr address = buffer.GetBufferAddr(buffer.Get<float>().GetBufferHandle());
    const uint32_t whole = address.dataLen;
    address.bufferAddr += 32;
    address.dataLen = 64;
    LocalTensor<float> part;
    part.SetAddr(address);
    const float all[] = {again.GetValue(3), float(again.GetSize()), part.GetValue(1), float(part.GetSize()), float(whole)};
    for (int i = 0; i < 5; ++i) ((__gm__ float*)y)[i] = all[i];
    queue.FreeTensor(first);
    queue.FreeTensor(second);
}
"""


def test_tensors_at_the_addresses_of_buffers(build: Build, tools: Toolkit) -> None:
    library, y = build(BUFFERS, "-O0"), np.zeros(5, np.float32)
    assert launch(library, "by_handles", 1, y, False) == 0, tools.message()
    assert y.tolist() == [5, 32, 7, 16, 256]
    launch(library, "by_handles", 1, y, True)
    assert "GetBufferAddr: the buffer is not from this queue VECIN" in tools.message()


def test_offsets(build: Build, tools: Toolkit) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(131, np.float32)
    assert launch(build(SOURCE), "by_offsets", 1, x, y) == 0, tools.message()
    np.testing.assert_array_equal(y[:64], x)
    np.testing.assert_array_equal(y[64:128], np.concatenate([x[32:] + 1, x[:32] + 2]))
    assert y[128:].tolist() == [1, 733, 33]
