#include "communicate_tiling.h"
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr auto kFloat = HcclDataType::HCCL_DATA_TYPE_FP32;
constexpr auto kSum = HcclReduceOp::HCCL_REDUCE_SUM;
#if __NPU_ARCH__ == 3510
constexpr HcclServerType kServer = HCCL_SERVER_TYPE_CCU, kOther = HCCL_SERVER_TYPE_AICPU;
#else
constexpr HcclServerType kServer = HCCL_SERVER_TYPE_AICPU, kOther = HCCL_SERVER_TYPE_CCU;
#endif
constexpr HcclServerConfig kThirdVector = {CoreType::ON_AIV, 2};

// As libraries of kernels ask: a constant, for which a source is compiled once for each kind of core.
template <int32_t core = g_coreType>
constexpr bool on_vector_core() {
    return core == AIV;
}

// y = x times two, a share of each vector core.
__aicore__ inline void Double(GM_ADDR from, GM_ADDR to, uint32_t size) {
    TPipe pipe;
    TBuf<> memory;
    const uint32_t share = size / (GetBlockNum() * GetSubBlockNum()), first = GetBlockIdx() * share;
    pipe.InitBuffer(memory, share * sizeof(float));
    LocalTensor<float> local = memory.Get<float>();
    GlobalTensor<float> source, target;
    source.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(from) + first, share);
    target.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(to) + first, share);
    DataCopy(local, source, share);
    PipeBarrier<PIPE_ALL>();
    Adds(local, local, 0.0f, share);
    Muls(local, local, 2.0f, share);
    PipeBarrier<PIPE_ALL>();
    DataCopy(target, local, share);
    PipeBarrier<PIPE_ALL>();
}

// The slice of one rank, by the first vector core alone.
__aicore__ inline void DoubleSlice(GM_ADDR at, uint32_t slice, uint32_t size) {
    if (GetBlockIdx() != 0) return;
    auto* values = reinterpret_cast<__gm__ float*>(at) + slice * size;
    for (uint32_t i = 0; i < size; ++i) values[i] *= 2;
}

// The beginning of what an Ascend 950 has at a context.
struct Context {
    uint64_t workspace, workspace_bytes;
    uint32_t rank, ranks;
    uint64_t window_bytes, windows_in[64];
};

struct Item {
    uint64_t type;
    uint32_t res1[5];
    uint32_t length, srcAddrLow, srcAddrHigh, dstAddrLow, dstAddrHigh;
    uint32_t res2[4];
};

}  // namespace

extern "C" __global__ __aicore__ void communicate(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling) {
    REGISTER_TILING_DEFAULT(CommunicateTiling);
    GET_TILING_DATA(data, tiling);
    const int32_t way = data.way;
    if (way == COMPUTE_FIRST || way == BOTH_CORES) {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    } else {
        KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    }
    GM_ADDR context = GetHcclContext<HCCL_GROUP_ID_0>();
    auto* given = reinterpret_cast<__gm__ CommunicateTiling*>(tiling);
    const uint32_t size = data.size;

    if (way == CCU) {
        Hccl<kOther> hccl;
        return hccl.InitV2(context, &data);
    }
    if (way == COMPUTE_FIRST) {
        // Given by the third vector core; the cube cores prepare too, and give nothing.
        Hccl<kServer, kThirdVector> hccl;
        hccl.InitV2(context, &data);
        hccl.SetCcTilingV2(offsetof(CommunicateTiling, reduce));
        const auto handle = hccl.AllReduce(workspace, y, size / 2, kFloat, kSum, 2);
        if constexpr (on_vector_core()) {
            Double(x, workspace, size);
            SyncAll();
            hccl.Commit(handle);
            hccl.Commit(handle);
            hccl.Wait(handle);
            hccl.Wait(handle);
            SyncAll();
        }
        return hccl.Finalize();
    }

    Hccl<kServer> hccl;
    if (way == NO_INIT) {
        hccl.GetRankId();
        return;
    }
    if (way == GLOBAL_TILING) {
        hccl.Init(context, &given->init);
        hccl.SetCcTiling(&given->gather);
    } else if (way == OLD) {
        hccl.Init(context);
    } else {
        hccl.InitV2(context, way == TILING_IN_GLOBAL_MEMORY ? static_cast<const void*>(given)
                             : way == NO_MC2_TILING         ? static_cast<const void*>(&data.reduce)
                                                            : &data);
        if (way != NO_TILING) hccl.SetCcTilingV2(offsetof(CommunicateTiling, reduce));
        hccl.SetCcTilingV2(offsetof(CommunicateTiling, gather));
        hccl.SetCcTilingV2(offsetof(CommunicateTiling, scatter));
        hccl.SetCcTilingV2(offsetof(CommunicateTiling, exchange));
        const bool steps = way == STEPS || way == STEPS_BEFORE || way == OTHER_ALGORITHM;
        hccl.SetCcTilingV2(steps ? offsetof(CommunicateTiling, steps)
                                 : offsetof(CommunicateTiling, exchange_v));
        hccl.SetCcTilingV2(offsetof(CommunicateTiling, write));
        hccl.SetCcTilingV2(offsetof(CommunicateTiling, half));
        if (way == OTHER_GROUP) hccl.SetCcTilingV2(offsetof(CommunicateTiling, other));
    }
    const uint32_t ranks = hccl.GetRankDim(), rank = hccl.GetRankId(), part = size / ranks;
    const auto turns = [&](HcclHandle handle, int count, bool commit = true) {
        for (int i = 0; i < count; ++i) {
            if (commit) hccl.Commit(handle);
            hccl.Wait(handle);
        }
    };
    const auto finish = [&] {
        SyncAll();
        hccl.Finalize();
    };
    const auto at = [](GM_ADDR p, uint64_t element) { return p + element * sizeof(float); };

    switch (way) {
        case ALL_REDUCE:
            turns(hccl.AllReduce(x, y, size / 2, kFloat, kSum, 2), 2);
            return finish();
        case ALL_REDUCE_MAX:
            turns(hccl.AllReduce<true>(x, y, size, kFloat, HcclReduceOp::HCCL_REDUCE_MAX), 1, false);
            return finish();
        case ALL_GATHER:
            turns(hccl.AllGather(x, y, part / 3, kFloat, part, 3), 3);
            return finish();
        case REDUCE_SCATTER:
            turns(hccl.ReduceScatter(x, y, part / 2, kFloat, kSum, part, 2), 2);
            return finish();
        case ALL_TO_ALL:
            turns(hccl.AlltoAll(x, y, part, kFloat), 1);
            return finish();
        case ALL_TO_ALL_V:
        case OTHER_ALGORITHM:
        case STEPS:
        case STEPS_BEFORE: {
            uint64_t sent[8], from[8], received[8], to[8];
            for (uint32_t i = 0; i < ranks; ++i) {
                sent[i] = received[i] = way == ALL_TO_ALL_V ? rank + i + 1 : part;
                from[i] = to[i] = i * part;
            }
            const auto handle = hccl.AlltoAllV(x, sent, from, kFloat, y, received, to, kFloat);
            uint16_t slice[1];
            if (way == ALL_TO_ALL_V) {
                turns(handle, 1);
            } else if (way == STEPS) {
                for (uint32_t i = 0; i < ranks; ++i) hccl.Commit(handle);
                while (hccl.Iterate(handle, slice, 1) != 0) DoubleSlice(y, slice[0], part);
            } else {
                while (hccl.Iterate<false>(handle, slice, 1) != 0) {
                    DoubleSlice(x, slice[0], part);
                    hccl.Commit(handle);
                }
                for (uint32_t i = 0; i < ranks; ++i) hccl.Wait(handle);
            }
            return finish();
        }
        case WINDOWS: {
            // A share of each block, and a flag of it behind them all.
            const uint32_t share = size / GetBlockNum(), block = GetBlockIdx();
            auto* source = reinterpret_cast<__gm__ float*>(x) + block * share;
            auto* next = reinterpret_cast<__gm__ float*>(hccl.GetWindowsInAddr((rank + 1) % ranks));
            auto* own = reinterpret_cast<__gm__ float*>(hccl.GetWindowsInAddr(rank));
            auto* target = reinterpret_cast<__gm__ float*>(y) + block * share;
            for (uint32_t i = 0; i < share; ++i) next[block * share + i] = source[i];
            auto* said = reinterpret_cast<__gm__ int32_t*>(next + size) + block * 16;
            auto* heard = reinterpret_cast<__gm__ int32_t*>(own + size) + block * 16;
            GlobalTensor<int32_t> flag;
            flag.SetGlobalBuffer(said, 16);
            DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(flag);
            WriteGmByPassDCache(said, int32_t{1});
            while (ReadGmByPassDCache(heard) != 1) {
            }
            for (uint32_t i = 0; i < share; ++i) target[i] = own[block * share + i];
            WriteGmByPassDCache(heard, int32_t{0});                        // for the next launch
            if (hccl.GetWindowsOutAddr(ranks) != nullptr) target[0] = -1;  // there is no such rank
            // No rank writes for the next launch before all have read.
            turns(hccl.AllReduce(workspace, workspace, 8, kFloat, kSum), 1);
            return finish();
        }
        case TWO_GROUPS: {
            Hccl<kServer> other;
            other.InitV2(GetHcclContext<HCCL_GROUP_ID_1>(), &data);
            other.SetCcTilingV2(offsetof(CommunicateTiling, other));
            const auto gathered = hccl.AllGather(x, workspace, part, kFloat, 0);
            // The cores that do not give tasks do not know those of the others.
            other.InterHcclGroupSync(0, gathered);
            const auto reduced = other.AllReduce<true>(workspace, y, size, kFloat, kSum);
            hccl.Commit(gathered);
            hccl.Wait(gathered);
            other.Wait(reduced);
            SyncAll();
            hccl.Finalize();
            return other.Finalize();
        }
        case BATCH_WRITE: {
            if (GetBlockIdx() == 0) {
                auto* items = reinterpret_cast<__gm__ Item*>(workspace);
                const auto low = [](GM_ADDR p) {
                    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(p));
                };
                const auto high = [](GM_ADDR p) {
                    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(p) >> 32);
                };
                for (uint32_t i = 0; i < ranks; ++i) {
                    GM_ADDR source = at(x, i * part);
                    GM_ADDR target = at(hccl.GetWindowsInAddr(i), rank * part);
                    items[i] = {0,
                                {},
                                static_cast<uint32_t>(part * sizeof(float)),
                                low(source),
                                high(source),
                                low(target),
                                high(target),
                                {}};
                }
                const auto written = hccl.BatchWrite(workspace, ranks, hccl.GetQueueNum() - 1);
                hccl.QueueBarrier(1);
                hccl.Wait(written);
                // That all have written, and later that all have read.
                const auto reduced = hccl.AllReduce<true>(x, at(workspace, 4096), 8, kFloat, kSum);
                hccl.Wait(reduced);
                auto* own = reinterpret_cast<__gm__ float*>(hccl.GetWindowsInAddr(rank));
                for (uint32_t i = 0; i < size; ++i) reinterpret_cast<__gm__ float*>(y)[i] = own[i];
                hccl.Wait(hccl.AllReduce<true>(x, at(workspace, 4096), 8, kFloat, kSum));
                hccl.Finalize();
            }
            return SyncAll();
        }
        case WRITE: {
            // The parts of two dies: the first of a third, the second of the rest.
            auto* sizes = reinterpret_cast<__gm__ uint64_t*>(workspace);
            auto* offsets = sizes + 2 * ranks;
            for (uint32_t i = 0; i < ranks; ++i) {
                sizes[i] = part / 3 * sizeof(float);
                sizes[i + ranks] = (part - part / 3) * sizeof(float);
                offsets[i] = i * part * sizeof(float);
                offsets[i + ranks] = offsets[i] + sizes[i];
            }
            const auto written =
                hccl.AlltoAllvWrite(x, reinterpret_cast<GM_ADDR>(offsets), reinterpret_cast<GM_ADDR>(sizes),
                                    rank * part * sizeof(float), part * sizeof(float));
            turns(written, 1);
            auto* own =
                reinterpret_cast<__gm__ float*>(reinterpret_cast<__gm__ Context*>(context)->windows_in[rank]);
            if (GetBlockIdx() == 0)
                for (uint32_t i = 0; i < size; ++i) reinterpret_cast<__gm__ float*>(y)[i] = own[i];
            return finish();
        }
        case BEYOND_WINDOW: {
            // Both windows of a rank lie one after the other.
            GlobalTensor<float> window;
            window.SetGlobalBuffer(
                reinterpret_cast<__gm__ float*>(hccl.GetWindowsInAddr((rank + 1) % ranks)));
            return window.SetValue(2 * 1024 * 1024 / sizeof(float), 1.0f);
        }
        case QUERY: {
            const auto handle = hccl.AllGather<true>(x, y, part, kFloat, 0);
            while (hccl.Query(handle) < 1) {
            }
            return finish();
        }
        case TWO_OBJECTS: {
            turns(hccl.AllReduce(x, workspace, size, kFloat, kSum), 1);
            finish();
            Hccl<kServer> again;
            again.InitV2(context, &data);
            again.SetCcTilingV2(offsetof(CommunicateTiling, reduce));
            const auto handle = again.AllReduce<true>(workspace, y, size, kFloat, kSum);
            again.Wait(handle);
            SyncAll();
            return again.Finalize();
        }
        case SILENT:
            turns(hccl.AllReduce(x, y, size, kFloat, kSum), 1);
            Double(x, y, size);
            return finish();
        case GLOBAL_TILING:
        case OLD:
            turns(hccl.AllGather(x, y, part, kFloat, 0), 1);
            return finish();
        // What a device refuses, or would wait for without end:
        case NO_FINALIZE:
            return turns(hccl.AllReduce(x, y, size, kFloat, kSum), 1);
        case NOT_COMMITTED:
            hccl.AllReduce<true>(x, y, size / 2, kFloat, kSum);
            hccl.AllGather(x, y, part, kFloat, 0);
            return finish();
        case NO_TILING:
            hccl.AllReduce(x, y, size, kFloat, kSum);
            return;
        case UNKNOWN_HANDLE:
            hccl.Wait(0);
            return;
        case OUTSIDE:
            hccl.AllGather(x, y, part, kFloat, part + 1);
            return;
        case PRODUCT: {
            hccl.AllReduce(x, y, size, kFloat, HcclReduceOp::HCCL_REDUCE_PROD);
            return;
        }
        case WAITS_TOO_OFTEN:
            turns(hccl.AllReduce(x, y, size, kFloat, kSum), 1);
            hccl.Wait(0);
            return;
        case WAITS_FIRST:
            hccl.Wait(hccl.AllReduce(x, y, size, kFloat, kSum));
            return;
        case BOTH_CORES:
            hccl.AllReduce(x, y, size, kFloat, kSum);
            return;
        case ONE_FAILS:
            if (rank == 1) hccl.Wait(-1);
            turns(hccl.AllReduce(x, y, size, kFloat, kSum), 1);
            return finish();
        default:
            return;
    }
}
