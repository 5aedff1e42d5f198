// The kernel of AddCustom for any number of elements: z = x + y, in tiles, the last one padded.
#pragma once
#include "kernel_operator.h"

struct AddTiling {
    uint32_t total;  // elements
    uint32_t block;  // elements per core
    uint32_t tile;   // elements per tile, a multiple of 32 bytes
};

template <typename T>
class AddKernel {
  public:
    __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, GM_ADDR z, const AddTiling& tiling) {
        const uint32_t first = tiling.block * AscendC::GetBlockIdx();
        if (first >= tiling.total) return;
        const uint32_t count = tiling.total - first < tiling.block ? tiling.total - first : tiling.block;
        xGm.SetGlobalBuffer((__gm__ T*)x + first, count);
        yGm.SetGlobalBuffer((__gm__ T*)y + first, count);
        zGm.SetGlobalBuffer((__gm__ T*)z + first, count);
        pipe.InitBuffer(inX, 2, tiling.tile * sizeof(T));
        pipe.InitBuffer(inY, 2, tiling.tile * sizeof(T));
        pipe.InitBuffer(outZ, 2, tiling.tile * sizeof(T));
        for (uint32_t at = 0; at < count; at += tiling.tile) {
            Add(at, count - at < tiling.tile ? count - at : tiling.tile);
        }
    }

  private:
    __aicore__ inline void Add(uint32_t at, uint32_t count) {
        const AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(T)), 0, 0, 0};
        const AscendC::DataCopyPadExtParams<T> pad{false, 0, 0, 0};
        AscendC::LocalTensor<T> x = inX.AllocTensor<T>();
        AscendC::LocalTensor<T> y = inY.AllocTensor<T>();
        AscendC::DataCopyPad(x, xGm[at], copy, pad);
        AscendC::DataCopyPad(y, yGm[at], copy, pad);
        inX.EnQue(x);
        inY.EnQue(y);
        x = inX.DeQue<T>();
        y = inY.DeQue<T>();
        AscendC::LocalTensor<T> z = outZ.AllocTensor<T>();
        AscendC::Add(z, x, y, count);
        outZ.EnQue(z);
        inX.FreeTensor(x);
        inY.FreeTensor(y);
        z = outZ.DeQue<T>();
        AscendC::DataCopyPad(zGm[at], z, copy);
        outZ.FreeTensor(z);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> inX, inY;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 2> outZ;
    AscendC::GlobalTensor<T> xGm, yGm, zGm;
};

template <typename T>
__global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z, AddTiling tiling) {
    AddKernel<T> kernel;
    kernel.Run(x, y, z, tiling);
}
