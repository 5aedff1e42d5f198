// Collectives of libhccl as collectives of gloo: on CPU tensors over the same memory.
//
// What moves data moves bytes, whatever the dtype. What reduces does it in the dtype itself, as gloo does on
// the CPU, but int16, which gloo has not and which is reduced as int32: the low half of a sum or product is
// the same.
#include "ascend_graph/collectives.h"

#include <torch/csrc/utils/pybind.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "ascend_graph/host_runtime.h"
#include "tensors.h"
#include "with_python.h"

namespace ascend_graph::host {
namespace {

struct Group {
    c10::intrusive_ptr<c10d::Backend> backend;
    std::vector<int64_t> processes;  // of the ranks
    std::chrono::milliseconds timeout;
};

at::ScalarType scalar_type(int32_t hccl_dtype) {
    switch (hccl_dtype) {
        case 0:
            return at::kChar;
        case 1:
            return at::kShort;
        case 2:
            return at::kInt;
        case 3:
            return at::kHalf;
        case 4:
            return at::kFloat;
        case 5:
            return at::kLong;
        case 7:
            return at::kByte;
        case 10:
            return at::kDouble;
        case 11:
            return at::kBFloat16;
        case 6:
            return at::kUInt64;
        case 8:
            return at::kUInt16;
        case 9:
            return at::kUInt32;
        case 15:
            return at::kFloat8_e4m3fn;
        case 16:
            return at::kFloat8_e5m2;
        default:
            TORCH_CHECK(false, "HcclDataType ", hccl_dtype,
                        " has no dtype in PyTorch; cast the tensor to a dtype that has");
    }
}

c10d::ReduceOp reduction(int32_t hccl_op) {
    constexpr c10d::ReduceOp::RedOpType kOps[] = {c10d::ReduceOp::SUM, c10d::ReduceOp::PRODUCT,
                                                  c10d::ReduceOp::MAX, c10d::ReduceOp::MIN};
    return kOps[hccl_op];
}

at::Tensor elements(void* data, at::ScalarType dtype, uint64_t count) {
    return wrap(data, dtype, {static_cast<int64_t>(count)});
}

class Run {
  public:
    Run(Group& group, const CollectiveCall& call)
        : group_(group), backend_(*group.backend), call_(call), dtype_(scalar_type(call.dtype)) {}

    void operator()() {
        switch (call_.kind) {
            case Collective::kAllReduce:
                return all_reduce();
            case Collective::kReduce:
                return reduce(elements(call_.send, dtype_, call_.count), call_.recv, call_.root);
            case Collective::kBroadcast:
                return broadcast(bytes(call_.recv), call_.root);
            case Collective::kAllGather:
                return all_gather();
            case Collective::kReduceScatter:
                return reduce_scatter();
            case Collective::kScatter:
                return scatter();
            case Collective::kAllGatherV:
                return all_gather_v();
            case Collective::kReduceScatterV:
                return reduce_scatter_v();
            case Collective::kBarrier:
                return barrier();
            case Collective::kExchange:
                return exchange();
        }
    }

  private:
    uint64_t ranks() const { return backend_.getSize(); }
    uint32_t rank() const { return backend_.getRank(); }

    at::Tensor bytes(void* data, uint64_t times = 1) const {
        return elements(data, at::kByte, call_.count * times * c10::elementSize(dtype_));
    }

    template <typename Options>
    Options options() const {
        Options made;
        made.timeout = group_.timeout;
        return made;
    }

    void wait(const c10::intrusive_ptr<c10d::Work>& work) const { work->wait(group_.timeout); }

    // What gloo reduces instead of a tensor: a tensor of its own, for gloo writes to it.
    at::Tensor reducible(const at::Tensor& t) const {
        return t.scalar_type() == at::kShort ? t.to(at::kInt) : t.clone();
    }

    void all_reduce() {
        if (call_.count == 0) return;
        at::Tensor result = elements(call_.recv, dtype_, call_.count);
        const bool in_place = dtype_ != at::kShort;
        if (in_place && call_.recv != call_.send) result.copy_(elements(call_.send, dtype_, call_.count));
        std::vector<at::Tensor> tensors{in_place ? result
                                                 : reducible(elements(call_.send, dtype_, call_.count))};
        auto opts = options<c10d::AllreduceOptions>();
        opts.reduceOp = reduction(call_.reduction);
        wait(backend_.allreduce(tensors, opts));
        if (!in_place) result.copy_(tensors[0]);
    }

    void reduce(const at::Tensor& send, void* recv, uint32_t root) {
        if (send.numel() == 0) return;
        std::vector<at::Tensor> tensors{reducible(send)};
        auto opts = options<c10d::ReduceOptions>();
        opts.reduceOp = reduction(call_.reduction);
        opts.rootRank = root;
        wait(backend_.reduce(tensors, opts));
        if (rank() == root) elements(recv, dtype_, send.numel()).copy_(tensors[0]);
    }

    void broadcast(const at::Tensor& buffer, uint32_t root) {
        if (buffer.numel() == 0) return;
        std::vector<at::Tensor> tensors{buffer};
        auto opts = options<c10d::BroadcastOptions>();
        opts.rootRank = root;
        wait(backend_.broadcast(tensors, opts));
    }

    void all_gather() {
        if (call_.count == 0) return;
        at::Tensor result = bytes(call_.recv, ranks());
        at::Tensor send = bytes(call_.send);
        // In place the part to send lies in the result.
        if (overlaps(send, result)) send = send.clone();
        wait(backend_._allgather_base(result, send, options<c10d::AllgatherOptions>()));
    }

    static bool overlaps(const at::Tensor& a, const at::Tensor& b) {
        const auto* first = static_cast<const char*>(a.const_data_ptr());
        const auto* second = static_cast<const char*>(b.const_data_ptr());
        return first < second + b.nbytes() && second < first + a.nbytes();
    }

    void reduce_scatter() {
        if (call_.count == 0) return;
        at::Tensor result = elements(call_.recv, dtype_, call_.count);
        at::Tensor send = elements(call_.send, dtype_, call_.count * ranks());
        at::Tensor part = reducible(result);
        if (dtype_ == at::kShort || overlaps(send, result)) send = reducible(send);
        auto opts = options<c10d::ReduceScatterOptions>();
        opts.reduceOp = reduction(call_.reduction);
        wait(backend_._reduce_scatter_base(part, send, opts));
        result.copy_(part);
    }

    void scatter() {
        if (call_.count == 0) return;
        std::vector<at::Tensor> outputs{bytes(call_.recv)};
        std::vector<std::vector<at::Tensor>> inputs;
        if (rank() == call_.root) {
            at::Tensor send = bytes(call_.send, ranks());
            if (overlaps(send, outputs[0])) send = send.clone();
            inputs.push_back(send.chunk(ranks()));
        }
        auto opts = options<c10d::ScatterOptions>();
        opts.rootRank = call_.root;
        wait(backend_.scatter(outputs, inputs, opts));
    }

    void all_gather_v() {
        for (size_t i = 0; i < call_.receive_count; ++i) {
            const Piece& piece = call_.receives[i];
            at::Tensor part = elements(piece.data, at::kByte, piece.bytes);
            if (piece.rank == rank() && piece.data != call_.send) part.copy_(bytes(call_.send));
            broadcast(part, piece.rank);
        }
    }

    void reduce_scatter_v() {
        for (size_t i = 0; i < call_.send_count; ++i) {
            const Piece& piece = call_.sends[i];
            const uint64_t count = piece.bytes / c10::elementSize(dtype_);
            reduce(elements(piece.data, dtype_, count), call_.recv, piece.rank);
        }
    }

    void barrier() { wait(backend_.barrier(options<c10d::BarrierOptions>())); }

    void exchange() {
        std::vector<c10::intrusive_ptr<c10d::Work>> under_way;
        std::vector<const Piece*> to_self;
        for (size_t i = 0; i < call_.send_count; ++i) {
            const Piece& piece = call_.sends[i];
            if (piece.rank == rank()) {
                to_self.push_back(&piece);
            } else if (piece.bytes != 0) {
                std::vector<at::Tensor> tensors{elements(piece.data, at::kByte, piece.bytes)};
                under_way.push_back(backend_.send(tensors, static_cast<int>(piece.rank), 0));
            }
        }
        size_t from_self = 0;
        for (size_t i = 0; i < call_.receive_count; ++i) {
            const Piece& piece = call_.receives[i];
            if (piece.rank == rank()) {
                TORCH_CHECK(from_self < to_self.size() && to_self[from_self]->bytes == piece.bytes, "rank ",
                            rank(), " receives ", piece.bytes,
                            " bytes of itself; expected as many sent as received");
                std::memmove(piece.data, to_self[from_self++]->data, piece.bytes);
            } else if (piece.bytes != 0) {
                std::vector<at::Tensor> tensors{elements(piece.data, at::kByte, piece.bytes)};
                under_way.push_back(backend_.recv(tensors, static_cast<int>(piece.rank), 0));
            }
        }
        for (const auto& work : under_way) wait(work);
    }

    Group& group_;
    c10d::Backend& backend_;
    const CollectiveCall& call_;
    const at::ScalarType dtype_;
};

// Whether a process of this machine has ended; its parent need not have looked at it.
bool has_ended(int64_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name = stat.rfind(')');  // the state follows the program's name
    return name == std::string::npos || name + 2 >= stat.size() || stat[name + 2] == 'Z' ||
           stat[name + 2] == 'X';
}

// Which ranks have ended, as the beginning of a sentence. A process closes its connections a moment before it
// is seen to have ended.
std::string ended_ranks(const std::vector<int64_t>& processes) {
    for (int attempt = 0; attempt < 10; ++attempt) {
        std::string ended;
        for (size_t rank = 0; rank < processes.size(); ++rank) {
            if (!has_ended(processes[rank])) continue;
            ended += (ended.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (process " +
                     std::to_string(processes[rank]) + ")";
        }
        if (!ended.empty()) return ended + " has ended; ";
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return "";
}

py::object collectives() { return py::module_::import("ascend_graph.host.runtime.collectives"); }

int serve(char* address, size_t size) {
    return with_python([&] {
        const auto text = collectives().attr("serve")().cast<std::string>();
        TORCH_CHECK(text.size() < size, "the address ", text, " is too long; expected less than ", size,
                    " characters");
        std::memcpy(address, text.c_str(), text.size() + 1);
    });
}

int connect(const char* address, uint32_t ranks, uint32_t rank, int32_t device, uint32_t timeout,
            Member* members, void** group) {
    return with_python([&] {
        auto made = collectives()
                        .attr("connect")(address, ranks, rank, device, members[rank].window)
                        .cast<py::tuple>();
        const auto processes = made[1].cast<std::vector<int64_t>>();
        const auto windows = made[2].cast<std::vector<int32_t>>();
        for (uint32_t i = 0; i < ranks; ++i) members[i] = {processes[i], windows[i]};
        // 0 is no limit; c10d has none of its own, and counts in milliseconds of 64 bits.
        const std::chrono::seconds limit =
            timeout == 0 ? std::chrono::hours(24 * 365) : std::chrono::seconds(timeout);
        *group = new Group{made[0].cast<c10::intrusive_ptr<c10d::Backend>>(), processes, limit};
    });
}

int run(void* handle, const char* name, const CollectiveCall& call) {
    Group& group = *static_cast<Group*>(handle);
    try {
        at::AutoDispatchBelowADInplaceOrView below_autograd;
        Run{group, call}();
        return 0;
    } catch (const std::exception& error) {
        const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
        const std::string text =
            torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
        constexpr int kFailure = 500001;  // ACL_ERROR_FAILURE
        return ascendgraphFail(
            kFailure, (std::string(name) + " failed: " + ended_ranks(group.processes) + text).c_str());
    }
}

void close(void* handle) { delete static_cast<Group*>(handle); }

const bool collectives_registered = [] {
    ascendgraphSetTransport({serve, connect, run, close});
    return true;
}();

}  // namespace
}  // namespace ascend_graph::host
