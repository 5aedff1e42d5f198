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

namespace {

// A part of the same size for each rank, at a stride.
std::vector<Extent> parts(const void* data, const CommunicationTask& call, uint32_t round, uint32_t ranks) {
    const uint64_t item = dtype_bytes(call.dtype), bytes = call.count * item;
    const uint64_t stride = (call.stride == 0 ? call.count : call.stride) * item;
    std::vector<Extent> found;
    for (uint32_t rank = 0; rank < ranks; ++rank)
        found.push_back({at(data, stride * rank + bytes * round), bytes, rank});
    return found;
}
Extent whole(const void* data, const CommunicationTask& call, uint32_t round, uint32_t rank) {
    const uint64_t bytes = call.count * dtype_bytes(call.dtype);
    return {at(data, bytes * round), bytes, rank};
}
// Of AlltoAllV: slice i goes to the i-th rank behind this one, and comes from the i-th before it.
std::vector<Extent> slices(const void* data, const ServedTask& task, uint32_t turn,
                           const KernelContext& context, const std::vector<uint64_t>& counts,
                           const std::vector<uint64_t>& offsets, bool is_sent) {
    const uint64_t item = dtype_bytes(task.call.dtype);
    const uint32_t ranks = context.ranks, round = round_of(task, turn, ranks);
    const auto [first, count] = partners(task, turn, ranks);
    std::vector<Extent> found;
    for (uint32_t slice = first; slice < first + count; ++slice) {
        const uint32_t other = (context.rank + (is_sent ? slice : ranks - slice)) % ranks;
        found.push_back(
            {at(data, (offsets[other] + round * counts[other]) * item), counts[other] * item, other});
    }
    return found;
}

}  // namespace

std::vector<Extent> sends_of(const ServedTask& task, uint32_t turn, const KernelContext& context) {
    const CommunicationTask& call = task.call;
    switch (call.operation) {
        case all_reduce:
        case all_gather:
            return {whole(call.send, call, turn, context.rank)};
        case reduce_scatter:
        case all_to_all:
            return parts(call.send, call, turn, context.ranks);
        case all_to_all_v:
            return slices(call.send, task, turn, context, task.send_counts, task.send_offsets, true);
        default: {
            // A part for each of the two dies of a device.
            std::vector<Extent> found;
            for (uint32_t part = 0; part < 2 * context.ranks; ++part)
                found.push_back(
                    {at(call.send, task.send_offsets[part]), task.send_counts[part], part % context.ranks});
            return found;
        }
    }
}

std::vector<Extent> receives_of(const ServedTask& task, uint32_t turn, const KernelContext& context) {
    const CommunicationTask& call = task.call;
    switch (call.operation) {
        case all_reduce:
        case reduce_scatter:
            return {whole(call.receive, call, turn, context.rank)};
        case all_gather:
        case all_to_all:
            return parts(call.receive, call, turn, context.ranks);
        case all_to_all_v:
            return slices(call.receive, task, turn, context, task.receive_counts, task.receive_offsets,
                          false);
        default:
            return {};  // in the windows
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
