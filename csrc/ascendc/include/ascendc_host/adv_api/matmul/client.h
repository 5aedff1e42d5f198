// Matmul of kernels that have vector cores, too: how many matrices there are is a parameter of each call for
// several of them, and what a call computed may be waited for.
#ifndef ASCENDC_HOST_ADV_API_MATMUL_CLIENT_H
#define ASCENDC_HOST_ADV_API_MATMUL_CLIENT_H

#include "ascendc_host/adv_api/matmul/matmul_impl.h"

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class CallBack = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
class MatmulClient : public MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, CallBack, POLICY> {
    using DstT = typename C_TYPE::T;

  public:
    template <bool sync = true, bool waitIterateBatch = false>
    void IterateBatch(const GlobalTensor<DstT>& gm, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                      const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0, const uint32_t = 0,
                      const bool enPartialSum = false, const uint8_t enAtomic = 0, Where where = Where()) {
        this->iterate_batch(gm, {batchA, batchB, matrixStrideA, matrixStrideB, enSequentialWrite},
                            enPartialSum, enAtomic, where);
        waits_ = waits_of(sync, waitIterateBatch);
    }
    template <bool sync = true>
    void IterateBatch(const LocalTensor<DstT>& ubCmatrix, uint32_t batchA, uint32_t batchB,
                      bool enSequentialWrite, const uint32_t matrixStrideA = 0,
                      const uint32_t matrixStrideB = 0, const uint32_t = 0, const bool enPartialSum = false,
                      const uint8_t enAtomic = 0, Where where = Where()) {
        static_assert(sync, "IterateBatch: without sync C goes to global memory");
        this->iterate_batch(ubCmatrix, {batchA, batchB, matrixStrideA, matrixStrideB, enSequentialWrite},
                            enPartialSum, enAtomic, where);
        waits_ = Waits::none;
    }
    // batchLoop times IterateBatch, from where A, B and the bias begin, to the workspace, in C's layout.
    template <bool sync = true, bool waitIterateBatch = false>
    void IterateNBatch(const uint32_t batchLoop, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                       const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0, const uint32_t = 0,
                       Where where = Where()) {
        static_assert(
            detail::config_of(MM_CFG).isNBatch,
            "IterateNBatch: the configuration has isNBatch = true, as GetNormalConfig(false, true)");
        static_assert(A_TYPE::layout != LayoutMode::NORMAL && C_TYPE::layout != LayoutMode::NORMAL,
                      "IterateNBatch: the layouts are BSNGD, SBNGD and BNGS1S2");
        this->check(where);
        detail::BatchCall call{batchA, batchB, matrixStrideA, matrixStrideB, enSequentialWrite};
        if (batchLoop > 1 && this->use_bias_ && !detail::config_of(MM_CFG).isBiasBatch)
            ascendc_host::fail(ascendc_host::current(), where,
                               "IterateNBatch: a bias without batches (isBiasBatch = false) in more than one "
                               "loop; where the later loops take it from is not documented");
        for (uint32_t loop = 0; loop < batchLoop; ++loop) {
            call.first_a = uint64_t(loop) * batchA;
            call.first_b = uint64_t(loop) * batchB;
            this->iterate_batch(this->workspace_, call, false, 0, where);
        }
        waits_ = waits_of(sync, waitIterateBatch);
        loops_ = sync ? 0 : batchLoop;
        loop_ = 0;
    }
    // What the next loop of IterateNBatch<false> computed.
    template <bool sync = true>
    GlobalTensor<DstT> GetBatchTensorC(uint32_t batchA, uint32_t batchB, bool = false,
                                       Where where = Where()) {
        static_assert(!sync, "GetBatchTensorC: sync is false; GetBatchTensorC<false>");
        return next_batch(batchA, batchB, where);
    }
    template <bool sync = true>
    void GetBatchTensorC(const LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB, bool = false,
                         Where where = Where()) {
        static_assert(!sync, "GetBatchTensorC: sync is false; GetBatchTensorC<false>");
        next_batch(c, batchA, batchB, where);
    }
    template <bool sync = true>
    GlobalTensor<DstT> GetBatchC(uint32_t batchA, uint32_t batchB, bool = false, Where where = Where()) {
        return next_batch(batchA, batchB, where);
    }
    template <bool sync = true>
    void GetBatchC(const LocalTensor<DstT>& c, uint32_t batchA, uint32_t batchB, bool = false,
                   Where where = Where()) {
        next_batch(c, batchA, batchB, where);
    }
    void WaitIterateBatch(Where where = Where()) {
        const auto& block = ascendc_host::enter(where);
        if (waits_ != Waits::batch)
            ascendc_host::fail(block, where,
                               "WaitIterateBatch: nothing to wait for, on a device it never ends; call "
                               "IterateBatch<false, true> or IterateNBatch<false, true> before it");
        waits_ = Waits::none;
    }

  private:
    // What the last call for batches leaves to wait for.
    enum class Waits { none, pieces, batch };
    static constexpr Waits waits_of(bool sync, bool waits) {
        return sync ? Waits::none : waits ? Waits::batch : Waits::pieces;
    }
    detail::Batches<A_TYPE, B_TYPE, C_TYPE> next_loop(uint32_t a, uint32_t b, const Where& where) {
        this->check(where);
        if (waits_ != Waits::pieces || loop_ >= loops_)
            ascendc_host::fail(
                ascendc_host::current(), where,
                ascendc_host::format("GetBatchTensorC: %u of %u loops are taken; it gives what "
                                     "IterateNBatch<false> before it computed, once",
                                     loop_, loops_));
        detail::BatchCall call{a, b};
        call.first_a = uint64_t(loop_) * a;
        call.first_b = uint64_t(loop_) * b;
        ++loop_;
        return {this->batch_shape(), call};
    }
    GlobalTensor<DstT> next_batch(uint32_t a, uint32_t b, const Where& where) {
        const uint64_t before =
            uint64_t(loop_) * std::max(a, b) * this->tiling_.singleCoreM * this->tiling_.singleCoreN;
        const auto batches = next_loop(a, b, where);
        if (batches.first_of_c() != before)
            ascendc_host::fail(
                ascendc_host::current(), where,
                "GetBatchTensorC: what a loop computed is not a piece of the workspace in this "
                "layout of C; call GetBatchTensorC<false>(local, batchA, batchB)");
        return this->workspace_[before];
    }
    void next_batch(const LocalTensor<DstT>& c, uint32_t a, uint32_t b, const Where& where) {
        const auto batches = next_loop(a, b, where);
        batches.check_local_row(true, ascendc_host::current(), where);
        const bool has_rows = detail::alternates(C_TYPE::layout);
        const uint64_t count = has_rows ? this->single_n_ : batches.step_of_c();
        for (uint32_t i = 0; i < batches.matrices_of_c(); ++i) {
            for (int row = 0; row < (has_rows ? this->single_m_ : 1); ++row) {
                const uint64_t at = batches.step_of_c() * i + batches.row_of_c() * row;
                const auto* from = this->workspace_.use_bytes((batches.first_of_c() + at) * sizeof(DstT),
                                                              count * sizeof(DstT), "GetBatchTensorC",
                                                              "the workspace", where);
                std::memcpy(c.use(at + count, "GetBatchTensorC", "C", where) + at, from,
                            count * sizeof(DstT));
            }
        }
    }

    Waits waits_ = Waits::none;
    uint32_t loops_ = 0, loop_ = 0;  // of IterateNBatch<false>: all, and those that were taken
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_MATMUL_CLIENT_H
