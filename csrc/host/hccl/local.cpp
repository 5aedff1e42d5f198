// Collectives between the ranks of one process, each a thread with a device of its own: what a program
// without PyTorch has, and HcclCommInitAll anywhere.
//
// A collective is a meeting: every rank shows its call, then each computes its own result from the buffers of
// all, and when all have done so each writes it. Sends and receives are letters, for only two take part.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "ascend_graph/host_runtime.h"
#include "hccl/communicator.h"

ACL_EXPORT float aclFloat16ToFloat(uint16_t value);
ACL_EXPORT uint16_t aclFloatToFloat16(float value);

namespace ascend_graph::host {
namespace {

using Bytes = std::vector<char>;
using Limit = std::chrono::seconds;

struct Half {
    uint16_t bits;
    operator float() const { return aclFloat16ToFloat(bits); }
    static Half of(float value) { return {aclFloatToFloat16(value)}; }
};
struct Brain {
    uint16_t bits;
    operator float() const {
        const uint32_t wide = uint32_t{bits} << 16;
        float value;
        std::memcpy(&value, &wide, sizeof value);
        return value;
    }
    static Brain of(float value) {  // to nearest, ties to even
        uint32_t wide;
        std::memcpy(&wide, &value, sizeof wide);
        if ((wide & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(wide >> 16 | 0x40u)};
        return {static_cast<uint16_t>((wide + 0x7fffu + (wide >> 16 & 1u)) >> 16)};
    }
};

template <typename T>
T reduced(T a, T b, int32_t reduction) {
    const auto narrowed = [](auto value) {
        if constexpr (std::is_arithmetic_v<T>)
            return static_cast<T>(value);
        else
            return T::of(static_cast<float>(value));
    };
    // Integers wrap around.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                    std::conditional_t<std::is_same_v<T, double>, double, float>>;
    switch (reduction) {
        case HCCL_REDUCE_SUM:
            return narrowed(static_cast<Wide>(a) + static_cast<Wide>(b));
        case HCCL_REDUCE_PROD:
            return narrowed(static_cast<Wide>(a) * static_cast<Wide>(b));
        case HCCL_REDUCE_MAX:
            return b > a ? b : a;
        default:
            return b < a ? b : a;
    }
}

template <typename T>
void reduce_into(Bytes& total, const char* with, int32_t reduction) {
    for (size_t at = 0; at < total.size(); at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, total.data() + at, sizeof a);
        std::memcpy(&b, with + at, sizeof b);
        a = reduced(a, b, reduction);
        std::memcpy(total.data() + at, &a, sizeof a);
    }
}

void reduce_into(Bytes& total, const char* with, int32_t dtype, int32_t reduction) {
    switch (dtype) {
        case HCCL_DATA_TYPE_INT8:
            return reduce_into<int8_t>(total, with, reduction);
        case HCCL_DATA_TYPE_INT16:
            return reduce_into<int16_t>(total, with, reduction);
        case HCCL_DATA_TYPE_INT32:
            return reduce_into<int32_t>(total, with, reduction);
        case HCCL_DATA_TYPE_INT64:
            return reduce_into<int64_t>(total, with, reduction);
        case HCCL_DATA_TYPE_FP16:
            return reduce_into<Half>(total, with, reduction);
        case HCCL_DATA_TYPE_BFP16:
            return reduce_into<Brain>(total, with, reduction);
        case HCCL_DATA_TYPE_FP32:
            return reduce_into<float>(total, with, reduction);
        default:
            throw std::runtime_error(
                "HcclDataType " + std::to_string(dtype) +
                " cannot be reduced; expected int8, int16, int32, int64, float16, float32 or bfloat16");
    }
}

// The ranks of a communicator.
class Group {
  public:
    explicit Group(uint32_t ranks) : ranks(ranks), members(ranks), calls_(ranks), left_(ranks) {}

    const uint32_t ranks;
    std::vector<std::optional<Member>> members;  // as they come
    std::mutex mutex;
    std::condition_variable changed;

    void leave(uint32_t rank) {
        std::lock_guard<std::mutex> lock(mutex);
        left_[rank] = true;
        changed.notify_all();
    }

    void send(uint32_t from, const Piece& piece) {
        const auto* data = static_cast<const char*>(piece.data);
        std::lock_guard<std::mutex> lock(mutex);
        letters_[{from, piece.rank}].emplace_back(data, data + piece.bytes);
        changed.notify_all();
    }
    void receive(uint32_t to, const Piece& piece, Limit limit) {
        std::unique_lock<std::mutex> lock(mutex);
        auto& from = letters_[{piece.rank, to}];
        await(lock, limit, piece.rank, [&] { return !from.empty(); });
        const Bytes letter = std::move(from.front());
        from.pop_front();
        if (letter.size() != piece.bytes) {
            throw std::runtime_error("rank " + std::to_string(piece.rank) + " sends " +
                                     std::to_string(letter.size()) + " bytes and rank " + std::to_string(to) +
                                     " receives " + std::to_string(piece.bytes) +
                                     "; expected the same size in both calls");
        }
        std::memcpy(piece.data, letter.data(), letter.size());
    }

    // Shows the call to all, and returns what `result` makes of the calls of all when none reads any more.
    template <typename F>
    auto meet(uint32_t rank, const CollectiveCall& call, Limit limit, const F& result) {
        std::unique_lock<std::mutex> lock(mutex);
        calls_[rank] = &call;
        arrive(lock, limit);
        const std::vector<const CollectiveCall*> all = calls_;
        lock.unlock();
        for (uint32_t other = 0; other < ranks; ++other) check(*all[other], other, call, rank);
        auto made = result(all);
        lock.lock();
        arrive(lock, limit);
        return made;
    }

  private:
    template <typename Ready>
    void await(std::unique_lock<std::mutex>& lock, Limit limit, std::optional<uint32_t> whom,
               const Ready& ready) {
        const auto gone = [&]() -> std::optional<uint32_t> {
            for (uint32_t rank = 0; rank < ranks; ++rank) {
                if (left_[rank] && (!whom || *whom == rank)) return rank;
            }
            return std::nullopt;
        };
        if (!changed.wait_for(lock, limit, [&] { return ready() || gone(); }))
            throw std::runtime_error("it timed out after " + std::to_string(limit.count()) +
                                     " seconds; check that all ranks call the same collectives");
        if (!ready())
            throw std::runtime_error(
                "rank " + std::to_string(*gone()) +
                " has left the communicator; destroy it after the last collective of all ranks");
    }
    void arrive(std::unique_lock<std::mutex>& lock, Limit limit) {
        const uint64_t mine = round_;
        if (++arrived_ == ranks) {
            arrived_ = 0;
            ++round_;
            changed.notify_all();
            return;
        }
        await(lock, limit, std::nullopt, [&] { return round_ != mine; });
    }
    static void check(const CollectiveCall& other, uint32_t other_rank, const CollectiveCall& own,
                      uint32_t rank) {
        const auto differ = [&](const char* what, uint64_t a, uint64_t b) {
            throw std::runtime_error("rank " + std::to_string(rank) + " has " + what + " " +
                                     std::to_string(a) + " and rank " + std::to_string(other_rank) + " " +
                                     std::to_string(b) + "; expected the same in all ranks");
        };
        if (other.kind != own.kind)
            differ("collective", static_cast<uint64_t>(own.kind), static_cast<uint64_t>(other.kind));
        if (other.dtype != own.dtype)
            differ("HcclDataType", static_cast<uint64_t>(own.dtype), static_cast<uint64_t>(other.dtype));
        const bool own_counts =
            own.kind == Collective::kAllGatherV || own.kind == Collective::kReduceScatterV;
        if (!own_counts && other.count != own.count) differ("count", own.count, other.count);
    }

    std::vector<const CollectiveCall*> calls_;
    std::vector<char> left_;
    std::map<std::pair<uint32_t, uint32_t>, std::deque<Bytes>> letters_;
    uint32_t arrived_ = 0;
    uint64_t round_ = 0;
};

// A rank's part in a group.
struct Part {
    std::shared_ptr<Group> group;
    uint32_t rank;
    Limit limit;

    void run(const CollectiveCall& call) const {
        const size_t item = element_size(static_cast<HcclDataType>(call.dtype)), bytes = call.count * item;
        using Calls = std::vector<const CollectiveCall*>;
        const auto sent = [&](const CollectiveCall& of, size_t offset = 0) {
            return static_cast<const char*>(of.send) + offset;
        };
        // The sum of a part of what all send.
        const auto reduction = [&](const Calls& all, size_t offset, size_t size) {
            Bytes total(sent(*all[0], offset), sent(*all[0], offset) + size);
            for (size_t i = 1; i < all.size(); ++i)
                reduce_into(total, sent(*all[i], offset), call.dtype, call.reduction);
            return total;
        };
        const auto write = [](void* to, const Bytes& result) {
            if (!result.empty()) std::memcpy(to, result.data(), result.size());
        };
        const auto meet = [&](const auto& result) { return group->meet(rank, call, limit, result); };
        switch (call.kind) {
            case Collective::kAllReduce:
                return write(call.recv, meet([&](const Calls& all) { return reduction(all, 0, bytes); }));
            case Collective::kReduce: {
                const Bytes total = meet([&](const Calls& all) { return reduction(all, 0, bytes); });
                return rank == call.root ? write(call.recv, total) : void();
            }
            case Collective::kBroadcast:
                return write(call.recv, meet([&](const Calls& all) {
                                 const auto* from = static_cast<const char*>(all[call.root]->recv);
                                 return Bytes(from, from + bytes);
                             }));
            case Collective::kAllGather:
                return write(call.recv, meet([&](const Calls& all) {
                                 Bytes gathered;
                                 for (const auto* one : all)
                                     gathered.insert(gathered.end(), sent(*one), sent(*one) + bytes);
                                 return gathered;
                             }));
            case Collective::kReduceScatter:
                return write(call.recv,
                             meet([&](const Calls& all) { return reduction(all, rank * bytes, bytes); }));
            case Collective::kScatter:
                return write(call.recv, meet([&](const Calls& all) {
                                 const char* from = sent(*all[call.root], rank * bytes);
                                 return Bytes(from, from + bytes);
                             }));
            case Collective::kAllGatherV: {
                const auto parts = meet([&](const Calls& all) {
                    std::vector<Bytes> each;
                    for (const auto* one : all) each.emplace_back(sent(*one), sent(*one) + one->count * item);
                    return each;
                });
                for (size_t i = 0; i < call.receive_count; ++i) {
                    if (parts[call.receives[i].rank].size() != call.receives[i].bytes)
                        throw std::runtime_error(
                            "rank " + std::to_string(call.receives[i].rank) +
                            " sends another count than is received of it; expected the same in both calls");
                    write(call.receives[i].data, parts[call.receives[i].rank]);
                }
                return;
            }
            case Collective::kReduceScatterV:
                return write(call.recv, meet([&](const Calls& all) {
                                 Bytes total;
                                 for (const auto* one : all) {
                                     const Piece& piece = one->sends[rank];
                                     const auto* data = static_cast<const char*>(piece.data);
                                     if (total.empty())
                                         total.assign(data, data + bytes);
                                     else
                                         reduce_into(total, data, call.dtype, call.reduction);
                                 }
                                 return total;
                             }));
            case Collective::kBarrier:
                meet([](const Calls&) { return 0; });
                return;
            case Collective::kExchange:
                for (size_t i = 0; i < call.send_count; ++i) group->send(rank, call.sends[i]);
                for (size_t i = 0; i < call.receive_count; ++i) group->receive(rank, call.receives[i], limit);
                return;
        }
    }
};

std::mutex groups_mutex;
// By address, until all ranks have come.
auto& groups = *new std::map<std::string, std::shared_ptr<Group>>;
unsigned next_number = 0;

int failed(const std::string& text) { return ascendgraphFail(ACL_ERROR_FAILURE, text.c_str()); }

std::string prefix() { return "process:" + std::to_string(getpid()) + "/"; }

int serve(char* address, size_t size) {
    std::lock_guard<std::mutex> lock(groups_mutex);
    const std::string text = prefix() + std::to_string(next_number++);
    std::strncpy(address, text.c_str(), size - 1);
    return ACL_SUCCESS;
}

int connect(const char* address, uint32_t ranks, uint32_t rank, int32_t, uint32_t timeout, Member* members,
            void** handle) {
    const std::string place(address);
    if (place.rfind(prefix(), 0) != 0) {
        return failed("rootInfo holds '" + place.substr(0, 64) +
                      "', which is not of this process; a program without PyTorch has its ranks as threads");
    }
    std::shared_ptr<Group> group;
    {
        std::lock_guard<std::mutex> lock(groups_mutex);
        auto& made = groups[place];
        if (made == nullptr) made = std::make_shared<Group>(ranks);
        group = made;
    }
    if (group->ranks != ranks)
        return failed("a rank takes part in a group of " + std::to_string(group->ranks) +
                      " ranks, and rank " + std::to_string(rank) + " in one of " + std::to_string(ranks));
    const char* text = std::getenv("HCCL_CONNECT_TIMEOUT");
    const long given = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    std::unique_lock<std::mutex> lock(group->mutex);
    if (group->members[rank])
        return failed("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " is taken");
    group->members[rank] = Member{getpid(), members[rank].window};
    group->changed.notify_all();
    const auto here = [&] {
        for (const auto& member : group->members)
            if (!member) return false;
        return true;
    };
    if (!group->changed.wait_for(lock, Limit(given > 0 ? given : 120), here))
        return failed("not all of " + std::to_string(ranks) + " ranks came within HCCL_CONNECT_TIMEOUT");
    for (uint32_t i = 0; i < ranks; ++i) members[i] = *group->members[i];
    lock.unlock();
    {
        std::lock_guard<std::mutex> groups_lock(groups_mutex);
        groups.erase(place);
    }
    constexpr uint32_t kYear = 365 * 24 * 3600;
    *handle = new Part{std::move(group), rank, Limit(timeout == 0 ? kYear : timeout)};
    return ACL_SUCCESS;
}

int run(void* handle, const char* name, const CollectiveCall& call) {
    try {
        static_cast<Part*>(handle)->run(call);
        return ACL_SUCCESS;
    } catch (const std::exception& error) {
        return failed(std::string(name) + " failed: " + error.what());
    }
}

void close(void* handle) {
    auto* part = static_cast<Part*>(handle);
    part->group->leave(part->rank);
    delete part;
}

}  // namespace

const Transport& local_transport() {
    static const Transport transport{serve, connect, run, close};
    return transport;
}

}  // namespace ascend_graph::host
