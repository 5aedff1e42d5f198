// The part of a block in its launch's communication: rules of Hccl, and what each call asks of the service.
#include <cstdlib>
#include <cstring>

#include "ascendc_host/adv_api/hccl/hccl.h"
#include "ascendc_host/internal/processors.h"
#include "service.h"

namespace ascendc_host {
namespace {

constexpr int only_compute = 1;  // SetDebugMode
// HcclCMDType
constexpr uint32_t all_reduce = 2, reduce_scatter = 7, all_to_all_v = 8, half_all_to_all_v = 20;

enum class Product { a2, a3, ascend950 };  // others go by the rules of Atlas A2
constexpr const char* short_names[] = {"Ascend910B", "Ascend910_93", "Ascend950"};
Product product() {
    static const Product found = [] {
        for (const Product one : {Product::a3, Product::ascend950}) {
            if (is_named(processor_of_process(), short_names[static_cast<int>(one)])) return one;
        }
        return Product::a2;
    }();
    return found;
}
const char* series_of(Product product) {
    for (const Processor& one : processors) {
        if (is_named(&one, short_names[static_cast<int>(product)])) return one.series;
    }
    return "";
}
void require_product(const char* api, std::initializer_list<Product> valid, const Where& where) {
    for (const Product one : valid) {
        if (one == product()) return;
    }
    std::string names;
    for (const Product one : valid) names += std::string(names.empty() ? "" : ", ") + series_of(one);
    fail(current(), where,
         format(
             "%s is not supported on %s; valid: %s (ASCEND_GRAPH_HOST_SOC says which the process stands for)",
             api, series_of(product()), names.c_str()));
}

bool is_reducible(int32_t dtype) {
    constexpr int32_t known[] = {0, 1, 2, 3, 4, 11};  // int8, int16, int32, fp16, fp32, bfp16
    for (const int32_t one : known) {
        if (one == dtype) return true;
    }
    return false;
}

// A block, for what is kept by blocks.
int64_t place_of(const Block& block) { return block.block_idx() * 4 + static_cast<int>(block.core); }

KernelContext& context_at(void* address) { return *KernelContext::at(address); }

// A task with what its call points at copied, checked.
ServedTask served(const CommunicationTask& call, const KernelContext& context,
                  const CommunicationOfTask* tiling, const Where& where) {
    const Block& block = current();
    const auto refuse = [&](const std::string& text) {
        fail(block, where, std::string(call.name) + ": " + text);
    };
    if (call.repeat == 0) refuse("repeat is 0; valid: 1 to 255");
    const bool writes = call.operation == half_all_to_all_v;
    if (dtype_bytes(call.dtype) == 0) refuse(format("HcclDataType %d is not supported", int(call.dtype)));
    if (call.operation == all_reduce || call.operation == reduce_scatter) {
        if (!is_reducible(call.dtype))
            refuse(format("HcclDataType %d cannot be reduced; valid: int8, int16, int32, fp16, fp32, bfp16",
                          int(call.dtype)));
        if (call.reduction != 0 && call.reduction != 2 && call.reduction != 3)
            refuse(format("HcclReduceOp %d; valid: sum (0), max (2), min (3)", int(call.reduction)));
    }
    ServedTask task;
    task.call = call;
    const size_t parts = writes ? 2 * context.ranks : context.ranks;
    const auto copied = [&](const uint64_t* from, const char* what) {
        if (from == nullptr) refuse(std::string(what) + " is null");
        return std::vector<uint64_t>(from, from + parts);
    };
    if (call.operation == all_to_all_v || writes) {
        task.send_counts = copied(call.send_counts, writes ? "sendSizes" : "sendCounts");
        task.send_offsets = copied(call.send_offsets, writes ? "sendOffsets" : "sdispls");
    }
    if (call.operation == all_to_all_v) {
        task.receive_counts = copied(call.receive_counts, "recvCounts");
        task.receive_offsets = copied(call.receive_offsets, "rdispls");
    }
    task.turns = call.repeat;
    if (tiling != nullptr) {
        task.skips_own_part = tiling->skips_own_part != 0 && product() == Product::a2 &&
                              call.operation != all_reduce && call.operation != reduce_scatter;
        if (tiling->step != 0 && call.operation == all_to_all_v) {
            require_product("SetStepSize", {Product::a3}, where);
            constexpr const char* pairwise = "AlltoAll=level0:fullmesh;level1:pairwise";
            if (std::strncmp(tiling->algorithm, pairwise, sizeof tiling->algorithm) != 0)
                refuse(format("steps of the algorithm %.128s; valid: %s", tiling->algorithm, pairwise));
            if (context.ranks % tiling->step != 0)
                refuse(format("a step of %u slices does not divide %u ranks", unsigned(tiling->step),
                              context.ranks));
            task.step = tiling->step;
            task.turns = call.repeat * (context.ranks / tiling->step);
        }
    }
    // All that it reads and writes lies in memory that there is.
    const auto check = [&](const std::vector<Extent>& extents, const char* what) {
        for (const Extent& one : extents) {
            if (one.bytes == 0) continue;
            if (one.data == nullptr || (reinterpret_cast<uintptr_t>(one.data) < 4096))
                refuse(std::string(what) + " is null");
            const size_t rest = allocation_rest(one.data);
            if (rest < one.bytes)
                refuse(format("%s: %llu bytes for rank %u, and its memory ends after %zu", what,
                              static_cast<unsigned long long>(one.bytes), one.rank, rest) +
                       workspace_hint(one.data));
        }
    };
    for (uint32_t turn = 0; turn < task.turns; ++turn) {
        check(sends_of(task, turn, context), writes ? "usrIn" : "sendBuf");
        check(receives_of(task, turn, context), "recvBuf");
    }
    if (product() == Product::ascend950) {
        constexpr uint64_t most_bytes = 256 * 1024 * 1024;
        uint64_t bytes = 0;
        for (const Extent& one : sends_of(task, 0, context)) bytes += one.bytes;
        if (bytes > most_bytes)
            refuse(format("%llu bytes at once; valid: up to %llu", static_cast<unsigned long long>(bytes),
                          static_cast<unsigned long long>(most_bytes)));
    }
    if (writes) {
        for (uint32_t rank = 0; rank < context.ranks; ++rank) {
            const uint64_t end =
                call.window_offset + task.send_counts[rank] + task.send_counts[rank + context.ranks];
            if (end > context.window_bytes)
                refuse(format("%llu bytes at most of a window of %llu (HCCL_BUFFSIZE)",
                              static_cast<unsigned long long>(end),
                              static_cast<unsigned long long>(context.window_bytes)));
        }
    }
    return task;
}

}  // namespace

void Channel::open(void* context, const void* tiling, Tiling kind, Worker worker, int64_t block, bool is_ccu,
                   const Where& where) {
    const Block& here = enter(where);
    const char* const api = kind == Tiling::copied ? "InitV2" : "Init";
    if (context == nullptr) {
        fail(here, where,
             format("%s: the context is null; an operator has one where its definition says "
                    "MC2().HcclGroup(\"<attr>\") and the attr names a communicator",
                    api));
    }
    if (KernelContext::at(context) == nullptr)
        fail(here, where,
             format("%s: this address does not hold a communicator's context; pass GetHcclContext's", api));
    if (kind == Tiling::copied) {
        if (tiling == nullptr) fail(here, where, "InitV2: initTiling is null");
        if (allocation_rest(tiling) != SIZE_MAX)
            fail(here, where,
                 "InitV2: initTiling lies in global memory; give the address of a copy, which "
                 "GET_TILING_DATA makes");
    }
    if (is_ccu != (product() == Product::ascend950))
        fail(here, where,
             format("Hccl<%s> is not supported on %s; valid: %s",
                    is_ccu ? "HCCL_SERVER_TYPE_CCU" : "HCCL_SERVER_TYPE_AICPU", series_of(product()),
                    is_ccu ? "HCCL_SERVER_TYPE_AICPU" : "HCCL_SERVER_TYPE_CCU"));
    *this = Channel();
    context_ = context;
    kind_ = kind;
    if (kind != Tiling::none) {
        CommunicationStart start;
        if (kind == Tiling::global && allocation_rest(tiling) < sizeof start)
            fail(here, where, "Init: initTiling does not lie in the memory of the tiling data");
        std::memcpy(&start, tiling, sizeof start);
        if (start.mark != CommunicationStart::kMark) {
            fail(here, where,
                 format(
                     "%s: initTiling is not a Mc2InitTiling that Mc2CcTilingConfig::GetTiling has filled; it "
                     "is the "
                     "first member of the tiling structure",
                     api));
        }
        tiling_ = static_cast<const uint8_t*>(tiling);
        silent_ = start.debug_mode == only_compute;
        queues_ = start.queues;
    }
    const Core core = ask_core();
    const bool on_its_core = worker == Worker::either || core == Core::unified ||
                             (worker == Worker::vector) == (core == Core::aiv);
    works_ = on_its_core && current().block_idx() == block;
    in_launch([&] {
        session_ = services_of_launch()
                       .finalized[{current().block_idx() * 4 + static_cast<int>(core), &context_at(context)}];
    });
    // Blocks wait for other ranks, which wait for blocks of this one.
    poll();
}

int Channel::set_tiling(Tiling kind, const void* address, uint64_t offset, const Where& where) {
    const char* const api = kind == Tiling::copied ? "SetCcTilingV2" : "SetCcTiling";
    require(api, where);
    const Block& block = current();
    if (kind == Tiling::global) require_product(api, {Product::a2, Product::a3}, where);
    if (kind != kind_)
        fail(block, where,
             format("%s: it goes with %s", api,
                    kind == Tiling::copied ? "InitV2" : "Init and its initTiling"));
    const void* place = kind == Tiling::copied ? tiling_ + offset : address;
    if (place == nullptr) fail(block, where, format("%s: the tiling is null", api));
    CommunicationOfTask found;
    std::memcpy(&found, place, sizeof found);
    if (found.mark != CommunicationOfTask::kMark) {
        fail(block, where,
             format("%s: expected a Mc2CcTiling that Mc2CcTilingConfig::GetTiling has filled; write "
                    "offsetof(<tiling structure>, <its Mc2CcTiling>)",
                    api));
    }
    const char* const name = context_at(context_).name;
    if (std::strncmp(found.group, name, sizeof found.group) != 0) {
        fail(block, where,
             format("%s: the tiling is for group %.128s, and the context is of communicator %s; give the "
                    "attr's value to "
                    "Mc2CcTilingConfig",
                    api, found.group, name));
    }
    if (found.operation >= operations)
        fail(block, where,
             format("%s: operation %u of the tiling; it has been written over", api, found.operation));
    tilings_[found.operation] = place;
    return 0;
}

void Channel::require(const char* api, const Where& where) const {
    const Block& block = enter(where);
    if (context_ == nullptr)
        fail(block, where, format("%s: the Hccl object is not initialized; call InitV2 first", api));
    if (finalized_)
        fail(block, where, format("%s: Finalize has ended this Hccl object; initialize another one", api));
}

Channel::Task& Channel::task_of(const char* api, int8_t handle, const Where& where) {
    require(api, where);
    if (handle < 0 || handle >= count_)
        fail(current(), where,
             format("%s: handle %d is of no task; %d tasks were prepared", api, int(handle), int(count_)));
    return tasks_[handle];
}

int8_t Channel::prepare(const CommunicationTask& call, bool commit, const Where& where) {
    require(call.name, where);
    const Block& block = current();
    KernelContext& context = context_at(context_);
    const CommunicationOfTask* tiling = static_cast<const CommunicationOfTask*>(tilings_[call.operation]);
    if (tiling == nullptr && kind_ != Tiling::none)
        fail(block, where, format("%s: no Mc2CcTiling of it is set; call SetCcTilingV2 first", call.name));
    if (call.operation == all_to_all_v) require_product(call.name, {Product::a3, Product::ascend950}, where);
    if (call.operation == half_all_to_all_v) require_product(call.name, {Product::ascend950}, where);
    if (count_ + others_ >= most)
        fail(block, where, format("%s: a communicator takes %d tasks in a launch", call.name, int(most)));
    CommunicationOfTask own{};
    if (tiling != nullptr) std::memcpy(&own, tiling, sizeof own);
    ServedTask task = served(call, context, tiling == nullptr ? nullptr : &own, where);
    const int8_t handle = count_++;
    tasks_[handle] = {call.name, task.turns, task.step, silent_ ? -1 : served_++, 0, 0};
    if (!works_ || silent_) return handle;
    std::string rule;
    in_launch([&] {
        Services& services = services_of_launch();
        Service& service = services.of(context);
        const std::pair<int64_t, const void*> giver{place_of(block), this};
        if (service.giver.second == nullptr) service.giver = giver;
        if (service.giver != giver) {
            rule = format(
                "%s: another core, or another Hccl object, gives tasks to communicator %s too; tasks come "
                "from cube cores or vector cores, one object of them",
                call.name, context.name);
            return;
        }
        if (service.prepared == most) {
            rule = format("%s: a communicator takes %d tasks in a launch", call.name, int(most));
            return;
        }
        ++service.prepared;
        task.behind = service.behind;
        if (commit) task.committed = 1;
        service.sessions.back().push_back(std::make_unique<ServedTask>(std::move(task)));
        services.pump();
    });
    if (!rule.empty()) fail(block, where, rule);
    // A commit at once is one of each turn.
    if (commit)
        for (uint32_t turn = 1; turn < tasks_[handle].turns; ++turn) this->commit(handle, where);
    return handle;
}

void Channel::commit(int8_t handle, const Where& where) {
    const Task& known = task_of("Commit", handle, where);
    if (!works_ || known.index < 0) return;
    bool beyond = false;
    in_launch([&] {
        Services& services = services_of_launch();
        ServedTask* task = services.of(context_at(context_)).task(session_, static_cast<size_t>(known.index));
        beyond = task->committed == task->turns;
        if (!beyond) ++task->committed;
        services.pump();
    });
    if (beyond)
        fail(current(), where,
             format("Commit: all %u turns of %s are committed; Commit is called as often as repeat says, and "
                    "less one "
                    "each where it is prepared with commit",
                    known.turns, known.name));
}

int Channel::wait(int8_t handle, const Where& where) {
    Task& known = task_of("Wait", handle, where);
    if (known.waited == known.turns)
        fail(current(), where,
             format("Wait: all %u turns of %s have been waited for; Wait is called as often as repeat says",
                    known.turns, known.name));
    ++known.waited;
    if (known.index < 0) return 0;
    KernelContext& context = context_at(context_);
    std::string failure;
    Services& services = services_of_launch();  // others may ask, from other threads
    const auto ready = [&] {
        Service& service = services.of(context);
        failure = service.failure;
        const ServedTask* task = service.task(session_, static_cast<size_t>(known.index));
        return !failure.empty() || (task != nullptr && task->ended >= known.waited);
    };
    wait_in_launch(ready, "Wait", where);
    if (!failure.empty()) fail(current(), where, format("Wait: %s: %s", known.name, failure.c_str()));
    return 0;
}

int Channel::query(int8_t handle, const Where& where) {
    const Task& known = task_of("Query", handle, where);
    if (known.index < 0) return static_cast<int>(known.turns);
    KernelContext& context = context_at(context_);
    int done = 0;
    bool failed = false;
    in_launch([&] {
        Service& service = services_of_launch().of(context);
        const ServedTask* task = service.task(session_, static_cast<size_t>(known.index));
        failed = !service.failure.empty();
        done = task == nullptr ? 0 : static_cast<int>(task->ended);
    });
    poll();
    return failed ? -1 : done;
}

int Channel::iterate(int8_t handle, uint16_t* slices, uint16_t count, bool waits, const Where& where) {
    require_product("Iterate", {Product::a3}, where);
    Task& known = task_of("Iterate", handle, where);
    const Block& block = current();
    if (known.step == 0)
        fail(block, where,
             format("Iterate: %s does not go in steps; call SetStepSize for its tiling", known.name));
    if (slices == nullptr || count == 0) fail(block, where, "Iterate: seqSlices is null or has no elements");
    const uint32_t all = context_at(context_).ranks, own = context_at(context_).rank;
    if (known.slice >= known.turns * known.step) return 0;
    for (uint16_t i = 0; i < count; ++i, ++known.slice) {
        const uint32_t slice = known.slice % all;
        if (waits && (known.slice + 1) % known.step == 0) wait(handle, where);
        slices[i] = static_cast<uint16_t>((waits ? own + all - slice : own + slice) % all);
    }
    return count;
}

void Channel::wait_for_group(int8_t group, int8_t handle, const Where& where) {
    require_product("InterHcclGroupSync", {Product::a3}, where);
    require("InterHcclGroupSync", where);
    const Block& block = current();
    if (group < 0 || group > 1 || context_of_launch(static_cast<size_t>(group)) == nullptr)
        fail(
            block, where,
            format("InterHcclGroupSync: unknown group %d; valid: 0, 1, as HcclGroup names them", int(group)));
    if (count_ + ++others_ > most)
        fail(block, where,
             format("InterHcclGroupSync: a communicator takes %d tasks in a launch", int(most)));
    if (!works_ || silent_) return;
    KernelContext& other = context_at(context_of_launch(static_cast<size_t>(group)));
    bool unknown = false;
    in_launch([&] {
        Services& services = services_of_launch();
        Service& source = services.of(other);
        const ServedTask* task =
            source.task(static_cast<uint32_t>(source.sessions.size() - 1), static_cast<size_t>(handle));
        unknown = task == nullptr;
        services.of(context_at(context_)).behind = task;
    });
    if (unknown)
        fail(block, where,
             format("InterHcclGroupSync: handle %d is of no task of group %d", int(handle), int(group)));
}

void Channel::finalize(bool waits, const Where& where) {
    require("Finalize", where);
    finalized_ = true;
    if (served_ == 0) return;
    const Block& block = current();
    KernelContext& context = context_at(context_);
    std::string rule;
    bool gives = false;
    Services& services = services_of_launch();  // others may ask, from other threads
    in_launch([&] {
        Service& service = services.of(context);
        ++services.finalized[{place_of(block), &context}];
        gives = service.giver == std::pair<int64_t, const void*>{place_of(block), this};
        if (!gives) return;
        for (const auto& task : service.sessions.back()) {
            if (task->committed < task->turns)
                rule = format(
                    "Finalize: %u of %u turns of %s are committed: what serves the communicator waits for "
                    "the others for ever",
                    task->committed, task->turns, task->call.name);
        }
    });
    if (!rule.empty()) fail(block, where, rule);
    if (!gives) return;
    std::string failure;
    if (waits) {
        const auto done = [&] {
            const Service& service = services.of(context);
            failure = service.failure;
            bool all = true;
            for (const auto& task : service.sessions.back()) all = all && task->is_done();
            return all || !failure.empty();
        };
        wait_in_launch(done, "Finalize", where);
        if (!failure.empty()) fail(block, where, format("Finalize: %s", failure.c_str()));
    }
    in_launch([&] {
        Service& service = services.of(context);
        service.sessions.emplace_back();
        service.giver.second = nullptr;
    });
}

// The items of BatchWrite, as Atlas A3 has them.
struct Item {
    uint64_t type;
    uint32_t reserved[5];
    uint32_t length;
    uint32_t source_low, source_high, target_low, target_high;
    uint32_t more[4];
};

int8_t Channel::batch_write(const void* items, uint32_t count, uint32_t queue, const Where& where) {
    require("BatchWrite", where);
    const Block& block = current();
    if (product() == Product::a2)
        fail(block, where,
             "BatchWrite: on Atlas A2 it writes to other servers, and all ranks of the host are of one");
    require_product("BatchWrite", {Product::a3}, where);
    if (items == nullptr || allocation_rest(items) < count * sizeof(Item))
        fail(block, where, format("BatchWrite: %u items do not lie in the memory at batchWriteInfo", count));
    if (count == 0 || count >= 2048)
        fail(block, where, format("BatchWrite: itemNum %u; valid: 1 to 2047", count));
    if (queue != 0 && queue >= queues_)
        fail(block, where, format("BatchWrite: queue %u; the tiling has %u (SetQueueNum)", queue, queues_));
    if (count_ + others_ >= most)
        fail(block, where, format("BatchWrite: a communicator takes %d tasks in a launch", int(most)));
    for (uint32_t i = 0; i < count; ++i) {
        Item item;
        std::memcpy(&item, static_cast<const Item*>(items) + i, sizeof item);
        const auto address = [](uint32_t low, uint32_t high) {
            return reinterpret_cast<uint8_t*>(uint64_t{high} << 32 | low);
        };
        const auto check = [&](const uint8_t* p, const char* what) {
            const size_t rest = allocation_rest(p);
            if (rest == SIZE_MAX || rest < item.length)
                fail(block, where,
                     format("BatchWrite: %u bytes %s item %u are not in global memory or a window",
                            item.length, what, i));
        };
        if (item.type != 0)
            fail(block, where,
                 format("BatchWrite: item %u has type %llu; valid: 0", i,
                        static_cast<unsigned long long>(item.type)));
        uint8_t* const target = address(item.target_low, item.target_high);
        const uint8_t* const source = address(item.source_low, item.source_high);
        check(source, "from");
        check(target, "to");
        if (!silent_) std::memcpy(target, source, item.length);
    }
    const int8_t handle = count_++;
    tasks_[handle] = {"BatchWrite", 1, 0, -1, 0, 0};
    return handle;
}

void Channel::barrier(uint32_t queue, const Where& where) const {
    require_product("QueueBarrier", {Product::a3}, where);
    require("QueueBarrier", where);
    if (queue != 0 && queue >= queues_)
        fail(current(), where,
             format("QueueBarrier: queue %u; the tiling has %u (SetQueueNum)", queue, queues_));
}

size_t window_rest(const Contexts& contexts, const void* p) {
    const auto* at = static_cast<const uint8_t*>(p);
    for (void* one : contexts) {
        const KernelContext* context = one == nullptr ? nullptr : KernelContext::at(one);
        for (uint32_t rank = 0; context != nullptr && rank < context->ranks; ++rank) {
            const uint8_t* const begin = context->windows_in[rank];
            const uint64_t bytes = 2 * context->window_bytes;  // the other window lies behind
            if (at >= begin && at < begin + bytes) return bytes - static_cast<size_t>(at - begin);
        }
    }
    return SIZE_MAX;
}

uint8_t* Channel::window(uint32_t rank, bool out, const Where& where) const {
    const char* const api = out ? "GetWindowsOutAddr" : "GetWindowsInAddr";
    require_product(api, {Product::a2, Product::a3}, where);
    require(api, where);
    const KernelContext& context = context_at(context_);
    if (rank >= context.ranks) return nullptr;
    return (out ? context.windows_out : context.windows_in)[rank];
}

uint32_t Channel::rank(const Where& where) const {
    require("GetRankId", where);
    return context_at(context_).rank;
}
uint32_t Channel::ranks(const Where& where) const {
    require("GetRankDim", where);
    return context_at(context_).ranks;
}
uint32_t Channel::queues(const Where& where) const {
    require_product("GetQueueNum", {Product::a3}, where);
    require("GetQueueNum", where);
    return queues_;
}

}  // namespace ascendc_host
