#include "service.h"

#include <cstring>

namespace ascendc_host {

using ascend_graph::host::Collective;
using ascend_graph::host::CollectiveCall;
using ascend_graph::host::Piece;

namespace {

// HcclCMDType
enum Operation : uint32_t {
    all_reduce = 2,
    all_gather = 6,
    reduce_scatter = 7,
    all_to_all_v = 8,
    all_to_all = 10,
    half_all_to_all_v = 20
};
constexpr int32_t uint8 = 7;  // HcclDataType

const char* at(const void* data, uint64_t bytes) { return static_cast<const char*>(data) + bytes; }

// The slices of a turn of a task in steps, or all ranks.
struct Partners {
    uint32_t first, count;
};
Partners partners(const ServedTask& task, uint32_t turn, uint32_t ranks) {
    if (task.step == 0) return {0, ranks};
    return {turn % (ranks / task.step) * task.step, task.step};
}
uint32_t round_of(const ServedTask& task, uint32_t turn, uint32_t ranks) {
    return task.step == 0 ? turn : turn / (ranks / task.step);
}

}  // namespace

size_t dtype_bytes(int32_t dtype) {
    static constexpr uint8_t bytes[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 0, 0, 1, 1, 1, 1, 1};
    return dtype >= 0 && dtype < static_cast<int32_t>(sizeof bytes) ? bytes[dtype] : 0;
}

std::vector<Extent> sends_of(const ServedTask& task, uint32_t turn, const KernelContext& context) {
    const CommunicationTask& call = task.call;
    const uint64_t item = dtype_bytes(call.dtype), bytes = call.count * item;
    const uint32_t round = round_of(task, turn, context.ranks);
    const uint64_t stride = (call.stride == 0 ? call.count : call.stride) * item;
    std::vector<Extent> found;
    switch (call.operation) {
        case all_reduce:
        case all_gather:
            return {{at(call.send, bytes * round), bytes, context.rank}};
        case reduce_scatter:
        case all_to_all:
            for (uint32_t rank = 0; rank < context.ranks; ++rank)
                found.push_back({at(call.send, stride * rank + bytes * round), bytes, rank});
            return found;
        case all_to_all_v: {
            const auto [first, count] = partners(task, turn, context.ranks);
            for (uint32_t slice = first; slice < first + count; ++slice) {
                const uint32_t to = (context.rank + slice) % context.ranks;
                const uint64_t offset = task.send_offsets[to] + round * task.send_counts[to];
                found.push_back({at(call.send, offset * item), task.send_counts[to] * item, to});
            }
            return found;
        }
        default:
            // A part for each of the two dies of a device.
            for (uint32_t part = 0; part < 2 * context.ranks; ++part)
                found.push_back(
                    {at(call.send, task.send_offsets[part]), task.send_counts[part], part % context.ranks});
            return found;
    }
}

std::vector<Extent> receives_of(const ServedTask& task, uint32_t turn, const KernelContext& context) {
    const CommunicationTask& call = task.call;
    const uint64_t item = dtype_bytes(call.dtype), bytes = call.count * item;
    const uint32_t round = round_of(task, turn, context.ranks);
    const uint64_t stride = (call.stride == 0 ? call.count : call.stride) * item;
    std::vector<Extent> found;
    switch (call.operation) {
        case all_reduce:
        case reduce_scatter:
            return {{at(call.receive, bytes * round), bytes, context.rank}};
        case all_gather:
        case all_to_all:
            for (uint32_t rank = 0; rank < context.ranks; ++rank)
                found.push_back({at(call.receive, stride * rank + bytes * round), bytes, rank});
            return found;
        case all_to_all_v: {
            const auto [first, count] = partners(task, turn, context.ranks);
            for (uint32_t slice = first; slice < first + count; ++slice) {
                const uint32_t from = (context.rank + context.ranks - slice) % context.ranks;
                const uint64_t offset = task.receive_offsets[from] + round * task.receive_counts[from];
                found.push_back({at(call.receive, offset * item), task.receive_counts[from] * item, from});
            }
            return found;
        }
        default:
            return found;  // in the windows
    }
}

struct Services::Turn {
    std::shared_ptr<Services> services;
    Service& service;
    ServedTask& task;
    std::vector<Extent> receives;
    std::vector<char> sent, received;
    std::vector<Piece> send_pieces, receive_pieces;
    CollectiveCall call{};
};

Service& Services::of(KernelContext& context) {
    auto& found = services_[&context];
    if (found == nullptr) found = std::make_unique<Service>(context);
    return *found;
}

void Services::pump() {
    for (const auto& [context, service] : services_) pump(*service);
}

void Services::pump(Service& service) {
    for (const auto& session : service.sessions) {
        for (const auto& task : session) {
            if (task->behind != nullptr && !task->behind->is_done()) return;
            while (task->begun < task->committed) begin(service, *task);
            if (task->begun < task->turns) return;
        }
    }
}

void Services::begin(Service& service, ServedTask& task) {
    KernelContext& context = service.context;
    const uint32_t number = task.begun++;
    begun_ = true;
    auto* turn =
        new Turn{shared_from_this(), service, task, receives_of(task, number, context), {}, {}, {}, {}, {}};
    const std::vector<Extent> sends = sends_of(task, number, context);
    CollectiveCall& call = turn->call;
    call.dtype = uint8;
    call.reduction = task.call.reduction;
    if (task.call.operation == half_all_to_all_v) {
        // What each rank writes lies in the windows of the others; that all have written is what is awaited.
        for (const Extent& one : sends) {
            const bool second = &one - sends.data() >= context.ranks;
            const uint64_t before = second ? sends[one.rank].bytes : 0;
            std::memcpy(context.windows_in[one.rank] + task.call.window_offset + before, one.data, one.bytes);
        }
        call.kind = Collective::kBarrier;
    } else {
        uint64_t incoming = 0;
        for (const Extent& one : sends)
            turn->sent.insert(turn->sent.end(), at(one.data, 0), at(one.data, one.bytes));
        for (const Extent& one : turn->receives) incoming += one.bytes;
        turn->received.resize(incoming);
        call.send = turn->sent.data();
        call.recv = turn->received.data();
        switch (task.call.operation) {
            case all_reduce:
                call.kind = Collective::kAllReduce;
                call.dtype = task.call.dtype;
                call.count = task.call.count;
                break;
            case reduce_scatter:
                call.kind = Collective::kReduceScatter;
                call.dtype = task.call.dtype;
                call.count = task.call.count;
                break;
            case all_gather:
                call.kind = Collective::kAllGather;
                call.count = turn->sent.size();
                break;
            default:
                call.kind = Collective::kExchange;
                char* place = turn->sent.data();
                for (const Extent& one : sends) {
                    turn->send_pieces.push_back({place, one.bytes, one.rank});
                    place += one.bytes;
                }
                place = turn->received.data();
                for (const Extent& one : turn->receives) {
                    turn->receive_pieces.push_back({place, one.bytes, one.rank});
                    place += one.bytes;
                }
                call.sends = turn->send_pieces.data();
                call.send_count = turn->send_pieces.size();
                call.receives = turn->receive_pieces.data();
                call.receive_count = turn->receive_pieces.size();
        }
    }
    ++under_way_;
    context.begin(context.communicator, call, ended, turn);
}

void Services::ended(void* state, int error, const char* text) {
    const std::unique_ptr<Turn> turn(static_cast<Turn*>(state));
    Services& services = *turn->services;
    const std::lock_guard<std::mutex> alive(services.alive_);
    if (services.left_) return;
    services.change_([&] {
        const char* from = turn->received.data();
        for (const Extent& one : turn->receives) {
            const bool skipped = turn->task.skips_own_part && one.rank == turn->service.context.rank;
            if (error == 0 && !skipped && one.bytes != 0)
                std::memcpy(const_cast<void*>(one.data), from, one.bytes);
            from += one.bytes;
        }
        if (error != 0 && turn->service.failure.empty()) turn->service.failure = text;
        ++turn->task.ended;
        --services.under_way_;
        services.pump();
    });
}

std::string Services::unfinished() const {
    for (const auto& [context, service] : services_) {
        if (!service->failure.empty()) return service->failure;
        const auto& tasks = service->sessions.back();
        if (!tasks.empty())
            return format(
                "%s was given to communicator %s, and Finalize is not called: what serves it waits for more "
                "tasks for ever",
                tasks.back()->call.name, context->name);
    }
    return "";
}

void Services::leave() {
    const std::lock_guard<std::mutex> alive(alive_);
    left_ = true;
}

}  // namespace ascendc_host
