// Which block this is, and how pipes, cores and blocks wait for one another.
//
// Within a block everything runs in program order, so events and pipe barriers between its pipes have nothing
// to do, but where the order of pipes is checked.
#ifndef ASCENDC_HOST_BASIC_API_SYNC_H
#define ASCENDC_HOST_BASIC_API_SYNC_H

#include <cstring>
#include <ctime>

#include "ascendc_host/basic_api/tensor.h"
#include "ascendc_host/internal/pipes.h"
#include "ascendc_host/internal/processors.h"

// ASCENDC_HOST_CORE: the source is compiled once for each kind of core, so which one is a constant,
// and what is for the other kind is not made.
#ifdef ASCENDC_HOST_CORE
#define ASCEND_IS_AIV constexpr(ASCENDC_HOST_CORE == ::AscendC::AIV)
#define ASCEND_IS_AIC constexpr(ASCENDC_HOST_CORE == ::AscendC::AIC)
#define ASCEND_IS_NOT_AIV constexpr(ASCENDC_HOST_CORE != ::AscendC::AIV)
#define ASCEND_IS_NOT_AIC constexpr(ASCENDC_HOST_CORE != ::AscendC::AIC)
#else
#define ASCEND_IS_AIV (::ascendc_host::ask_core() == ::ascendc_host::Core::aiv)
#define ASCEND_IS_AIC (::ascendc_host::ask_core() == ::ascendc_host::Core::aic)
#define ASCEND_IS_NOT_AIV (::ascendc_host::ask_core() != ::ascendc_host::Core::aiv)
#define ASCEND_IS_NOT_AIC (::ascendc_host::ask_core() != ::ascendc_host::Core::aic)
#endif
#define KERNEL_TASK_TYPE_DEFAULT(type) ::AscendC::declare_kernel_type(type)
#define KERNEL_TASK_TYPE(key, type)                                         \
    if (::ascendc_host::current().tiling_key == static_cast<uint64_t>(key)) \
    ::AscendC::declare_kernel_type(type)

namespace AscendC {

inline void declare_kernel_type(KernelMetaType type) {
    using ascendc_host::KernelType;
    switch (type) {
        case KERNEL_TYPE_AIV_ONLY:
            return ascendc_host::declare_kernel_type(KernelType::aiv_only);
        case KERNEL_TYPE_AIC_ONLY:
            return ascendc_host::declare_kernel_type(KernelType::aic_only);
        case KERNEL_TYPE_MIX_AIV_1_0:
            return ascendc_host::declare_kernel_type(KernelType::mix_0_1);
        case KERNEL_TYPE_MIX_AIC_1_0:
            return ascendc_host::declare_kernel_type(KernelType::mix_1_0);
        case KERNEL_TYPE_MIX_AIC_1_1:
            return ascendc_host::declare_kernel_type(KernelType::mix_1_1);
        case KERNEL_TYPE_MIX_AIC_1_2:
            return ascendc_host::declare_kernel_type(KernelType::mix_1_2);
        default:
            return;  // one core has both units
    }
}

#ifdef ASCENDC_HOST_CORE
constexpr int32_t g_coreType = ASCENDC_HOST_CORE;
#else
// Which core this is, to be compared with AIC and AIV: a question like ASCEND_IS_AIC, not a constant.
struct CoreTypeQuestion {
    operator KernelCore() const { return ASCEND_IS_AIC ? AIC : AIV; }
};
constexpr CoreTypeQuestion g_coreType;
#endif

inline int64_t GetBlockIdx() { return ascendc_host::current().block_idx(); }
inline int64_t GetBlockNum() { return ascendc_host::current().count; }
inline int64_t GetSubBlockIdx() { return ascendc_host::current().sub_index; }
inline int64_t GetSubBlockNum() {
    const auto& block = ascendc_host::current();
    return block.core == ascendc_host::Core::aiv ? block.sub_count : 1;
}
inline int64_t GetTaskRation() { return GetSubBlockNum(); }
inline int64_t GetTaskRatio() { return GetTaskRation(); }
constexpr int16_t GetDataBlockSizeInBytes() { return ONE_BLK_SIZE; }
inline void GetArchVersion(uint32_t& version) { version = __NPU_ARCH__ / 10; }
inline int64_t GetProgramCounter() { return reinterpret_cast<int64_t>(__builtin_return_address(0)); }
inline int64_t GetSystemCycle() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t(now.tv_sec) * 1000000000 + now.tv_nsec) / 20;  // 50 MHz, as on the device
}
[[noreturn]] inline void Trap(Where where = Where()) {
    ascendc_host::fail(ascendc_host::enter(where), where, "Trap");
}
constexpr uint32_t GetUBSizeInBytes() { return TOTAL_UB_SIZE; }
inline uint32_t GetRuntimeUBSize() { return TOTAL_UB_SIZE; }

namespace detail {
constexpr ascendc_host::Pipe pipe_of(pipe_t pipe) {
    using ascendc_host::Pipe;
    switch (pipe) {
        case PIPE_V:
        case PIPE_V2:
            return Pipe::vector;
        case PIPE_M:
            return Pipe::cube;
        case PIPE_MTE1:
            return Pipe::mte1;
        case PIPE_MTE2:
            return Pipe::mte2;
        case PIPE_MTE3:
            return Pipe::mte3;
        case PIPE_FIX:
            return Pipe::fixpipe;
        default:
            return Pipe::scalar;
    }
}
struct PipePair {
    pipe_t from, to;
};
// In the order of HardEvent.
constexpr PipePair events[] = {
    {PIPE_MTE2, PIPE_MTE1}, {PIPE_MTE1, PIPE_MTE2}, {PIPE_MTE1, PIPE_M},  {PIPE_M, PIPE_MTE1},
    {PIPE_MTE2, PIPE_V},    {PIPE_V, PIPE_MTE2},    {PIPE_MTE3, PIPE_V},  {PIPE_V, PIPE_MTE3},
    {PIPE_M, PIPE_V},       {PIPE_V, PIPE_M},       {PIPE_V, PIPE_V},     {PIPE_MTE3, PIPE_MTE1},
    {PIPE_MTE1, PIPE_MTE3}, {PIPE_MTE1, PIPE_V},    {PIPE_MTE2, PIPE_M},  {PIPE_M, PIPE_MTE2},
    {PIPE_V, PIPE_MTE1},    {PIPE_M, PIPE_FIX},     {PIPE_FIX, PIPE_M},   {PIPE_MTE3, PIPE_MTE2},
    {PIPE_MTE2, PIPE_MTE3}, {PIPE_S, PIPE_V},       {PIPE_V, PIPE_S},     {PIPE_S, PIPE_MTE2},
    {PIPE_MTE2, PIPE_S},    {PIPE_S, PIPE_MTE3},    {PIPE_MTE3, PIPE_S},  {PIPE_MTE2, PIPE_FIX},
    {PIPE_FIX, PIPE_MTE2},  {PIPE_FIX, PIPE_S},     {PIPE_M, PIPE_S},     {PIPE_FIX, PIPE_MTE3},
    {PIPE_MTE1, PIPE_FIX},  {PIPE_FIX, PIPE_MTE1},  {PIPE_FIX, PIPE_FIX}, {PIPE_FIX, PIPE_V},
    {PIPE_V, PIPE_FIX},
};
static_assert(sizeof(events) / sizeof(*events) == static_cast<size_t>(HardEvent::MAX),
              "each HardEvent has its two pipes");

inline void check_event(const char* api, int64_t id, const Where& where) {
    if (__builtin_expect(id >= 0 && id < ascendc_host::most_events, 1)) return;
    ascendc_host::fail(ascendc_host::current(), where,
                       ascendc_host::format("%s: the number of the event is %lld; it must be 0 to %d", api,
                                            static_cast<long long>(id), ascendc_host::most_events - 1));
}
inline void set_flag(pipe_t from, pipe_t to, int64_t id, const Where& where) {
    check_event("SetFlag", id, where);
    ascendc_host::set_pipe_flag(pipe_of(from), pipe_of(to), static_cast<uint64_t>(id), where);
}
inline void wait_flag(pipe_t from, pipe_t to, int64_t id, const Where& where) {
    check_event("WaitFlag", id, where);
    ascendc_host::wait_pipe_flag(pipe_of(from), pipe_of(to), static_cast<uint64_t>(id), where);
}
inline void barrier(pipe_t pipe) {
    if (__builtin_expect(!ascendc_host::pipes_are_checked, 1)) return;
    if (pipe == PIPE_ALL) return ascendc_host::wait_for_all_pipes();
    ascendc_host::wait_for_pipe(pipe_of(pipe), pipe_of(pipe));
}
}  // namespace detail

template <HardEvent event>
void SetFlag(int32_t id, Where where = Where()) {
    constexpr detail::PipePair pipes = detail::events[static_cast<size_t>(event)];
    detail::set_flag(pipes.from, pipes.to, id, where);
}
template <HardEvent event>
void WaitFlag(int32_t id, Where where = Where()) {
    constexpr detail::PipePair pipes = detail::events[static_cast<size_t>(event)];
    detail::wait_flag(pipes.from, pipes.to, id, where);
}
template <pipe_t pipe>
void PipeBarrier() {
    detail::barrier(pipe);
}
template <MemDsbT kind>
void DataSyncBarrier() {}
template <pipe_t source, pipe_t destination>
class TQueSync {
  public:
    void SetFlag(TEventID id, Where where = Where()) { detail::set_flag(source, destination, id, where); }
    void WaitFlag(TEventID id, Where where = Where()) { detail::wait_flag(source, destination, id, where); }
};

// Locks between pipes of one core.
using MutexID = uint8_t;
inline MutexID AllocMutexID() { return 0; }
inline void ReleaseMutexID(MutexID) {}
class Mutex {
  public:
    // Where the order of pipes is checked, one that locks waits for all that was issued: the host cannot tell
    // which of them held the lock.
    template <pipe_t pipe>
    static void Lock(MutexID) {
        detail::barrier(PIPE_ALL);
    }
    template <pipe_t pipe>
    static void Unlock(MutexID) {}
};

namespace detail {
// Raises where memory by which blocks wait for one another holds what no kernel wrote. Here they do not need
// it, and on a device they wait for ever, or not at all.
inline void require_zeroed(const char* api, const uint8_t* at, const Where& where) {
    uint32_t found = 0;
    std::memcpy(&found, at, sizeof found);
    if (found == 0xfefefefe)
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: its workspace in global memory was not set to 0; do so before, with "
                                 "InitGlobalMemory or a copy, and let the blocks wait for that",
                                 api));
}
inline void require_zeroed(const char* api, const GlobalTensor<int32_t>& workspace, const Where& where) {
    if (ascendc_host::lacks_workspace(workspace.GetPhyAddr()))
        workspace.use_bytes(0, sizeof(uint32_t), api, "its workspace", where);
    if (workspace.has_memory(sizeof(uint32_t)))
        require_zeroed(api, reinterpret_cast<const uint8_t*>(workspace.GetPhyAddr()), where);
}
}  // namespace detail

// All blocks, or all vector cores of a kernel on split cores.
template <bool isAIVOnly = true>
void SyncAll(Where where = Where()) {
    ascendc_host::enter(where);
    detail::barrier(PIPE_ALL);
    ascendc_host::barrier(isAIVOnly, where);
}
template <bool isAIVOnly = true>
void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>&, int32_t usedCores = 0,
             Where where = Where()) {
    (void)usedCores;
    ascendc_host::enter(where);
    detail::require_zeroed("SyncAll", gmWorkspace, where);
    SyncAll<isAIVOnly>(where);
}
// The flags that SyncAll uses on a device.
constexpr uint16_t SYNC_AIC_FLAG = 11;
constexpr uint16_t SYNC_AIV_FLAG = 12;
constexpr uint16_t SYNC_AIC_AIV_FLAG = 13;
constexpr uint16_t SYNC_AIV_ONLY_ALL = 14;
template <uint8_t modeId, pipe_t pipe>
void CrossCoreSetFlag(uint16_t flagId, Where where = Where()) {
    ascendc_host::enter(where);
    if (__builtin_expect(ascendc_host::pipes_are_checked, 0))
        ascendc_host::set_flag_for_blocks(detail::pipe_of(pipe));
    ascendc_host::set_cross_flag(modeId, flagId, where);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t flagId, Where where = Where()) {
    ascendc_host::enter(where);
    ascendc_host::wait_cross_flag(flagId, where);
}
// The same between the cube core and the vector cores of one group.
#if __NPU_ARCH__ == 3510
template <pipe_t pipe, uint8_t mode = 2>
#else
template <pipe_t pipe>
#endif
void NotifyEvent(uint16_t flagId, Where where = Where()) {
#if __NPU_ARCH__ != 3510
    constexpr uint8_t mode = 2;
#endif
    CrossCoreSetFlag<mode, pipe>(flagId, where);
}
template <pipe_t pipe = PIPE_S, uint8_t mode = 0>
void WaitEvent(uint16_t flagId, Where where = Where()) {
    CrossCoreWaitFlag<mode, pipe>(flagId, where);
}
// Block `blockIdx` tells and waits by numbered events.
template <bool isAIVOnly = true>
void IBSet(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>&, int32_t blockIdx,
           int32_t eventID, Where where = Where()) {
    ascendc_host::enter(where);
    detail::require_zeroed("IBSet", gmWorkspace, where);
    detail::barrier(PIPE_ALL);
    ascendc_host::set_block_event(blockIdx, eventID, where);
}
template <bool isAIVOnly = true>
void IBWait(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>&, int32_t blockIdx,
            int32_t eventID, Where where = Where()) {
    ascendc_host::enter(where);
    detail::require_zeroed("IBWait", gmWorkspace, where);
    detail::barrier(PIPE_ALL);
    ascendc_host::wait_block_event(blockIdx, eventID, where);
}
// Blocks one after the other: a block waits for its predecessor and tells its successor.
constexpr int32_t block_order_event = -1;
inline void InitDetermineComputeWorkspace(GlobalTensor<int32_t>&, LocalTensor<int32_t>&) {}
inline void WaitPreBlock(GlobalTensor<int32_t>&, LocalTensor<int32_t>&, Where where = Where()) {
    ascendc_host::enter(where);
    detail::barrier(PIPE_ALL);
    if (GetBlockIdx() > 0) ascendc_host::wait_block_event(GetBlockIdx() - 1, block_order_event, where);
}
inline void NotifyNextBlock(GlobalTensor<int32_t>&, LocalTensor<int32_t>&, Where where = Where()) {
    ascendc_host::enter(where);
    detail::barrier(PIPE_ALL);
    ascendc_host::set_block_event(GetBlockIdx(), block_order_event, where);
}
inline void SetNextTaskStart() {}
inline void WaitPreTaskEnd() {}
// Atomic copies, masks and what LoadData keeps, as a core has them at first; the scale of casts on dav-3510.
inline void InitSocState() {
    ascendc_host::Block& block = ascendc_host::current();
    block.atomic = ascendc_host::Block::Atomic::none;
    block.counter_mode = false;
    block.mask_high = block.mask_low = ~uint64_t{0};
    block.feature_pad = 0;
    block.feature_boundary = 0;
#if __NPU_ARCH__ == 3510
    block.deq.kind = ascendc_host::Block::Dequantizer::Kind::half;
    block.deq.scale = 1;
#endif
}
// Some blocks wait until others have arrived, round after round. Each that arrives counts its rounds in 512
// bytes of the workspace, which are zeros at first.
enum class PipeMode : uint8_t { SCALAR_MODE = 0, MTE3_MODE, MAX };
template <PipeMode pipeMode>
class GroupBarrier {
    static_assert(pipeMode == PipeMode::MTE3_MODE, "GroupBarrier: pipeMode must be PipeMode::MTE3_MODE");

  public:
    GroupBarrier(GM_ADDR groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn)
        : workspace_(groupWorkspace), arriving_(arriveSizeIn), waiting_(waitSizeIn) {}
    void Arrive(uint32_t arriveIndex, Where where = Where()) {
        check("Arrive", arriveIndex, arriving_, where);
        detail::require_zeroed("GroupBarrier::Arrive", workspace_ + uint64_t(arriveIndex) * 512, where);
        __atomic_fetch_add(rounds_of(arriveIndex), 1, __ATOMIC_SEQ_CST);
    }
    void Wait(uint32_t waitIndex, Where where = Where()) {
        check("Wait", waitIndex, waiting_, where);
        if (arriving_ != 0) detail::require_zeroed("GroupBarrier::Wait", workspace_, where);
        ++round_;
        for (uint32_t i = 0; i < arriving_; ++i) {
            while (__atomic_load_n(rounds_of(i), __ATOMIC_SEQ_CST) < round_) ascendc_host::poll();
        }
    }
    uint64_t GetWorkspaceLen() const { return uint64_t(arriving_ > waiting_ ? arriving_ : waiting_) * 512; }

  private:
    uint32_t* rounds_of(uint32_t index) const {
        return reinterpret_cast<uint32_t*>(workspace_ + uint64_t(index) * 512);
    }
    static void check(const char* api, uint32_t index, uint32_t count, const Where& where) {
        const auto& block = ascendc_host::enter(where);
        if (ascendc_host::is_named(ascendc_host::processor_of_process(), "Ascend910_93"))
            ascendc_host::fail(
                block, where,
                ascendc_host::format("GroupBarrier::%s: Atlas A3 does not have it; use SyncAll "
                                     "or CrossCoreSetFlag and CrossCoreWaitFlag",
                                     api));
        if (index >= count)
            ascendc_host::fail(
                block, where,
                ascendc_host::format("GroupBarrier::%s: index %u of %u blocks", api, index, count));
    }

    GM_ADDR workspace_;
    uint32_t arriving_, waiting_, round_ = 0;
};
// Where the device keeps the flags of CrossCoreSetFlag; here they are the runtime's.
inline void SetSyncBaseAddr(uint64_t) {}

// Instructions are where they are needed.
inline void ICachePreLoad(int64_t) {}
#define PRELOAD(len) ::AscendC::ICachePreLoad(len)

// There is one memory, so caches need no care; but code that cares may be waiting for another block.
template <typename T, CacheLine line, DcciDst destination = DcciDst::CACHELINE_ALL>
void DataCacheCleanAndInvalid(const GlobalTensor<T>& tensor) {
    if (__builtin_expect(ascendc_host::pipes_are_checked, 0))
        ascendc_host::clean_data_cache(line == CacheLine::SINGLE_CACHE_LINE ? tensor.GetPhyAddr() : nullptr);
    ascendc_host::poll();
}
template <typename T, CacheLine line>
void DataCachePreload(const GlobalTensor<T>&, int64_t) {}
template <typename T>
T ReadGmByPassDCache(__gm__ T* address) {
    ascendc_host::poll();
    return *static_cast<volatile T*>(address);
}
template <typename T>
void WriteGmByPassDCache(__gm__ T* address, T value) {
    *static_cast<volatile T*>(address) = value;
}

}  // namespace AscendC

// The intrinsic forms of the same, but for the index: vector cores of one group have one.
inline int64_t get_block_idx() { return ascendc_host::current().index; }
inline int64_t get_block_num() { return AscendC::GetBlockNum(); }
inline int64_t get_subblockid() { return AscendC::GetSubBlockIdx(); }
inline int64_t get_subblockdim() { return AscendC::GetSubBlockNum(); }
inline void icache_preload(int64_t) {}
// Bytes into a variable of the kernel's own: what the compiler makes of copies of tiling data.
inline void copy_data_align64(uint8_t* dst, const uint8_t* src, uint64_t size) {
    std::memcpy(dst, src, size);
}
[[noreturn]] inline void trap() { AscendC::Trap(); }
// An object, so that a kernel's own variable of this name hides it.
struct BlockIndex {
    operator int64_t() const { return get_block_idx(); }
};
inline constexpr BlockIndex block_idx{};
inline void pipe_barrier(pipe_t pipe) { AscendC::detail::barrier(pipe); }
template <typename Event>
void set_flag(pipe_t from, pipe_t to, Event id, const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::set_flag(from, to, static_cast<int64_t>(id), where);
}
template <typename Event>
void wait_flag(pipe_t from, pipe_t to, Event id, const ascendc_host::Where& where = ascendc_host::Where()) {
    AscendC::detail::wait_flag(from, to, static_cast<int64_t>(id), where);
}

using AscendC::g_coreType;

#endif  // ASCENDC_HOST_BASIC_API_SYNC_H
