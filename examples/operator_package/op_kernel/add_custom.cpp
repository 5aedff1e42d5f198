// The kernel of AddCustom for any number of elements: z = x + y, in tiles, the last one padded.
#include "kernel_operator.h"

class AddKernel {
  public:
    __aicore__ inline void Run(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t total, uint32_t block,
                               uint32_t tile) {
        const uint32_t first = block * AscendC::GetBlockIdx();
        if (first >= total) return;
        const uint32_t count = total - first < block ? total - first : block;
        xGm.SetGlobalBuffer((__gm__ DTYPE_X*)x + first, count);
        yGm.SetGlobalBuffer((__gm__ DTYPE_Y*)y + first, count);
        zGm.SetGlobalBuffer((__gm__ DTYPE_Z*)z + first, count);
        pipe.InitBuffer(inX, 2, tile * sizeof(DTYPE_X));
        pipe.InitBuffer(inY, 2, tile * sizeof(DTYPE_Y));
        pipe.InitBuffer(outZ, 2, tile * sizeof(DTYPE_Z));
        for (uint32_t at = 0; at < count; at += tile) Add(at, count - at < tile ? count - at : tile);
    }

  private:
    __aicore__ inline void Add(uint32_t at, uint32_t count) {
        const AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(count * sizeof(DTYPE_X)), 0, 0, 0};
        const AscendC::DataCopyPadExtParams<DTYPE_X> pad{false, 0, 0, 0};
        AscendC::LocalTensor<DTYPE_X> x = inX.AllocTensor<DTYPE_X>();
        AscendC::LocalTensor<DTYPE_Y> y = inY.AllocTensor<DTYPE_Y>();
        AscendC::DataCopyPad(x, xGm[at], copy, pad);
        AscendC::DataCopyPad(y, yGm[at], copy, pad);
        inX.EnQue(x);
        inY.EnQue(y);
        x = inX.DeQue<DTYPE_X>();
        y = inY.DeQue<DTYPE_Y>();
        AscendC::LocalTensor<DTYPE_Z> z = outZ.AllocTensor<DTYPE_Z>();
        AscendC::Add(z, x, y, count);
        outZ.EnQue(z);
        inX.FreeTensor(x);
        inY.FreeTensor(y);
        z = outZ.DeQue<DTYPE_Z>();
        AscendC::DataCopyPad(zGm[at], z, copy);
        outZ.FreeTensor(z);
    }

    AscendC::TPipe pipe;
    AscendC::TQue<AscendC::QuePosition::VECIN, 2> inX, inY;
    AscendC::TQue<AscendC::QuePosition::VECOUT, 2> outZ;
    AscendC::GlobalTensor<DTYPE_X> xGm;
    AscendC::GlobalTensor<DTYPE_Y> yGm;
    AscendC::GlobalTensor<DTYPE_Z> zGm;
};

extern "C" __global__ __aicore__ void add_custom(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace,
                                                 GM_ADDR tiling) {
    GET_TILING_DATA(data, tiling);
    AddKernel kernel;
    kernel.Run(x, y, z, data.total, data.block, data.tile);
}
