// libhccl.so: HCCL's functions. Each checks what it is given and puts its collective on the stream.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "ascend_graph/host_runtime.h"
#include "ascendc_host/internal/processors.h"
#include "hccl/communicator.h"
#include "hccl/hcom.h"

ACL_EXPORT const char* aclrtGetSocName();
ACL_EXPORT aclError aclrtGetDevice(int32_t* id);
ACL_EXPORT aclError aclrtSetDevice(int32_t id);

namespace ascend_graph::host {
namespace {

std::mutex mutex;  // of all communicators
auto& communicators = *new std::map<HcclComm, std::shared_ptr<Communicator>>;

int32_t current_device() {
    int32_t device = 0;
    aclrtGetDevice(&device);
    return device;
}

HcclResult refuse(HcclResult code, const std::string& text) {
    ascendgraphFail(code, text.c_str());
    return code;
}

HcclResult refuse_null(HcclResult code, const std::string& function, const char* parameters) {
    fail_null(code, function, parameters);
    return code;
}

// `results` are the function's other pointers, of which one may be null.
HcclResult refuse_comm(const std::string& function, const char* results = nullptr) {
    const std::string others = results == nullptr ? "" : std::string(", or ") + results + " is null";
    return refuse(HCCL_E_PARA, function + ": comm is not a live communicator" + others +
                                   "; expected one that was initialized and not destroyed" +
                                   (results == nullptr ? "" : ", and an address"));
}

std::shared_ptr<Communicator> communicator_of(HcclComm handle) {
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = communicators.find(handle);
    return found == communicators.end() ? nullptr : found->second;
}

// Between processes with PyTorch its own; a program without it has its ranks in itself.
const Transport& the_transport() { return transport() != nullptr ? *transport() : local_transport(); }

// The dtypes that the emulated device reduces (Ascend 910B: HCCL's reference, "HcclAllReduce").
HcclResult check_reduction(const char* function, HcclDataType dtype, HcclReduceOp op) {
    static const std::map<int, const char*> names{
        {HCCL_DATA_TYPE_INT8, "int8"},     {HCCL_DATA_TYPE_INT16, "int16"},  {HCCL_DATA_TYPE_INT32, "int32"},
        {HCCL_DATA_TYPE_INT64, "int64"},   {HCCL_DATA_TYPE_FP16, "float16"}, {HCCL_DATA_TYPE_FP32, "float32"},
        {HCCL_DATA_TYPE_BFP16, "bfloat16"}};
    const auto name = names.find(dtype);
    if (name == names.end()) {
        return refuse(HCCL_E_NOT_SUPPORT,
                      std::string(function) + ": HcclDataType " + std::to_string(dtype) +
                          " cannot be reduced; int8, int16, int32, int64, float16, float32 "
                          "and bfloat16 can");
    }
    if (op < HCCL_REDUCE_SUM || op > HCCL_REDUCE_MIN) {
        return refuse(HCCL_E_PARA, std::string(function) + ": HcclReduceOp " + std::to_string(op) +
                                       " is not one of sum (0), prod (1), max (2), min (3)");
    }
    if (op == HCCL_REDUCE_PROD && (dtype == HCCL_DATA_TYPE_INT16 || dtype == HCCL_DATA_TYPE_BFP16)) {
        return refuse(HCCL_E_NOT_SUPPORT, std::string(function) + ": prod of " + name->second +
                                              " is not supported on this device; sum, max and min are");
    }
    return HCCL_SUCCESS;
}

// Sends and receives between HcclGroupStart and HcclGroupEnd, which go out at once.
struct Grouped {
    std::shared_ptr<Communicator> communicator;
    aclrtStream stream;
    std::shared_ptr<OwnedCall> call;
};
thread_local int open_groups = 0;
thread_local std::vector<Grouped> grouped;

// A collective in the order of a stream. Its task is run until the others have answered; in a captured graph,
// by every replay.
struct Enqueued {
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<const OwnedCall> call;
    std::shared_ptr<Job> job;

    aclError run() {
        if (job == nullptr) job = communicator->begin(call);
        if (!job->done) return ASCENDGRAPH_WAITS;
        const auto ended = std::move(job);
        job = nullptr;
        return ended->error == ACL_SUCCESS ? ACL_SUCCESS : ascendgraphFail(ended->error, ended->text.c_str());
    }
};

HcclResult enqueue(std::shared_ptr<Communicator> communicator, std::shared_ptr<OwnedCall> owned,
                   aclrtStream stream) {
    owned->call.sends = owned->sends.data();
    owned->call.send_count = owned->sends.size();
    owned->call.receives = owned->receives.data();
    owned->call.receive_count = owned->receives.size();
    const char* function = owned->function;
    const aclError error = ascendgraphCommunicate(
        stream, function, [](void* p) { return static_cast<Enqueued*>(p)->run(); },
        new Enqueued{std::move(communicator), std::move(owned), nullptr},
        [](void* p) { delete static_cast<Enqueued*>(p); });
    return error == ACL_SUCCESS ? HCCL_SUCCESS : HCCL_E_INTERNAL;
}

// What every collective begins with: its communicator, and a call to be filled in.
class Entry {
  public:
    Entry(const char* function, HcclComm comm, Collective kind, HcclDataType dtype)
        : communicator_(communicator_of(comm)), owned_(std::make_shared<OwnedCall>()), function_(function) {
        owned_->function = function;
        call().kind = kind;
        call().dtype = dtype;
        if (communicator_ == nullptr) {
            error_ = refuse_comm(function);
        } else if (element_size(dtype) == 0) {
            error_ =
                refuse(HCCL_E_NOT_SUPPORT, std::string(function) + ": HcclDataType " + std::to_string(dtype) +
                                               " is not supported; expected a number of HcclDataType");
        }
    }

    CollectiveCall& call() { return owned_->call; }
    bool failed() const { return error_ != HCCL_SUCCESS; }
    HcclResult error() const { return error_; }
    uint32_t ranks() const { return communicator_->ranks; }

    Entry& buffers(const void* send, void* recv, uint64_t count) {
        call().send = const_cast<void*>(send);
        call().recv = recv;
        call().count = count;
        return *this;
    }
    Entry& reduces(HcclReduceOp op) {
        if (!failed()) error_ = check_reduction(function_, static_cast<HcclDataType>(call().dtype), op);
        call().reduction = op;
        return *this;
    }
    Entry& root(uint32_t rank, const char* argument = "root") {
        check_rank(rank, argument);
        call().root = rank;
        return *this;
    }
    Entry& sends(const void* data, uint64_t count, uint32_t rank) {
        check_rank(rank, "destRank");
        owned_->sends.push_back({const_cast<void*>(data), bytes(count), rank});
        return *this;
    }
    Entry& receives(const void* data, uint64_t count, uint32_t rank) {
        check_rank(rank, "srcRank");
        owned_->receives.push_back({const_cast<void*>(data), bytes(count), rank});
        return *this;
    }
    // A piece for each rank, at displacements of the buffer in elements.
    Entry& sends_pieces(const void* data, const uint64_t* counts, const uint64_t* displacements) {
        for (uint32_t i = 0; !failed() && i < ranks(); ++i) sends(at(data, displacements[i]), counts[i], i);
        return *this;
    }
    Entry& receives_pieces(const void* data, const uint64_t* counts, const uint64_t* displacements) {
        for (uint32_t i = 0; !failed() && i < ranks(); ++i)
            receives(at(data, displacements[i]), counts[i], i);
        return *this;
    }

    HcclResult enqueue(aclrtStream stream) {
        if (failed()) return error_;
        if (open_groups == 0 || call().kind != Collective::kExchange) {
            return host::enqueue(std::move(communicator_), std::move(owned_), stream);
        }
        for (Grouped& other : grouped) {
            if (other.communicator != communicator_ || other.stream != stream) continue;
            auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
            append(other.call->sends, owned_->sends);
            append(other.call->receives, owned_->receives);
            return HCCL_SUCCESS;
        }
        grouped.push_back({std::move(communicator_), stream, std::move(owned_)});
        return HCCL_SUCCESS;
    }

  private:
    void check_rank(uint32_t rank, const char* argument) {
        if (failed() || rank < ranks()) return;
        error_ = refuse(HCCL_E_PARA,
                        std::string(function_) + ": " + argument + " is " + std::to_string(rank) +
                            "; expected a rank of the communicator, 0 to " + std::to_string(ranks() - 1));
    }
    uint64_t bytes(uint64_t elements) const {
        return elements * element_size(static_cast<HcclDataType>(owned_->call.dtype));
    }
    const void* at(const void* data, uint64_t element) const {
        return static_cast<const char*>(data) + bytes(element);
    }

    std::shared_ptr<Communicator> communicator_;
    std::shared_ptr<OwnedCall> owned_;
    const char* function_;
    HcclResult error_ = HCCL_SUCCESS;
};

// The size of a window in MiB: the communicator's option, or CANN's variable, or its default.
uint64_t window_mib(uint32_t option) {
    if (option != HCCL_COMM_CONFIG_NOT_SET && option != 0) return option;
    const char* text = std::getenv("HCCL_BUFFSIZE");
    char* end = nullptr;
    const unsigned long given = text == nullptr ? 0 : std::strtoul(text, &end, 10);
    return given == 0 || *end != '\0' ? HCCL_COMM_DEFAULT_BUFFSIZE : given;
}

HcclResult connect(const char* function, const Transport& transport, uint32_t ranks, const HcclRootInfo* root,
                   uint32_t rank, const std::string& given_name, uint32_t buffer_size, uint32_t timeout,
                   HcclComm* comm) {
    if (root == nullptr || comm == nullptr) return refuse_null(HCCL_E_PTR, function, "rootInfo or comm");
    if (ranks == 0 || rank >= ranks) {
        return refuse(HCCL_E_PARA, std::string(function) + ": rank " + std::to_string(rank) +
                                       " is out of range; expected less than nRanks, " +
                                       std::to_string(ranks));
    }
    const std::string address(root->internal, strnlen(root->internal, sizeof root->internal));
    void* group = nullptr;
    const int32_t device = current_device();
    std::unique_ptr<Windows> windows;
    try {
        windows = std::make_unique<Windows>(window_mib(buffer_size) * Windows::kMiB);
    } catch (const std::exception& error) {
        return refuse(HCCL_E_MEMORY, std::string(function) + ": " + error.what());
    }
    windows->members.resize(ranks);
    windows->members[rank].window = windows->descriptor();
    if (transport.connect(address.c_str(), ranks, rank, device, timeout, windows->members.data(), &group) !=
        ACL_SUCCESS)
        return refuse(HCCL_E_INTERNAL, std::string(function) + ": " + ascendgraphRecentError());
    std::lock_guard<std::mutex> lock(mutex);
    const std::string name = given_name.empty() ? "hccl_" + address : given_name;
    auto made =
        std::make_shared<Communicator>(name, ranks, rank, device, group, transport, std::move(windows));
    *comm = made.get();
    communicators.emplace(*comm, std::move(made));
    return HCCL_SUCCESS;
}

// Seconds that a collective may take: CANN's variable, and its default.
uint32_t execution_timeout() {
    const char* text = std::getenv("HCCL_EXEC_TIMEOUT");
    char* end = nullptr;
    const unsigned long seconds = text == nullptr ? 0 : std::strtoul(text, &end, 10);
    return end == nullptr || end == text || *end != '\0' ? 1836 : static_cast<uint32_t>(seconds);
}

// Of the ranks of one process each has a communicator of the name: that of the thread's device is meant. Null
// where there is none; `known` says which there are.
std::shared_ptr<Communicator> communicator_named(const std::string& name, std::string& known) {
    std::shared_ptr<Communicator> found;
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [handle, communicator] : communicators) {
        if (communicator->name == name && (found == nullptr || communicator->device == current_device()))
            found = communicator;
        known += (known.empty() ? "" : ", ") + communicator->name;
    }
    if (known.empty()) known = "none";
    return found;
}

// What an operator package asks for a launch.
int hold_context(const char* group, KernelContext** context, void** held) {
    const std::string name = group == nullptr ? "" : group;
    std::string known;
    std::shared_ptr<Communicator> found = communicator_named(name, known);
    if (found == nullptr) {
        return ascendgraphFail(HCCL_E_PARA,
                               ("no communicator is named '" + name + "'; there are: " + known).c_str());
    }
    try {
        *context = &found->context();
    } catch (const std::exception& error) {
        return ascendgraphFail(HCCL_E_INTERNAL, ("communicator " + name + ": " + error.what()).c_str());
    }
    *held = new std::shared_ptr<Communicator>(std::move(found));
    return ACL_SUCCESS;
}
uint32_t ranks_of(const char* group, uint64_t* window_bytes) {
    std::string known;
    const auto found = communicator_named(group == nullptr ? "" : group, known);
    if (found == nullptr) return 0;
    if (window_bytes != nullptr) *window_bytes = found->window_bytes();
    return found->ranks;
}
const bool contexts_are_there = [] {
    ascendgraphSetContexts(
        hold_context, [](void* held) { delete static_cast<std::shared_ptr<Communicator>*>(held); }, ranks_of);
    return true;
}();

}  // namespace
}  // namespace ascend_graph::host

using namespace ascend_graph::host;

// torchair sets before every run whether collectives are deterministic; these always are.
ACL_EXPORT HcclResult HcclSetConfig(HcclConfig, HcclConfigValue) { return HCCL_SUCCESS; }

ACL_EXPORT uint32_t HcclGetCommConfigCapability() { return kConfigCapability; }

ACL_EXPORT HcclResult HcclGetRootInfo(HcclRootInfo* info) {
    if (info == nullptr) return refuse_null(HCCL_E_PTR, "HcclGetRootInfo", "rootInfo");
    std::memset(info, 0, sizeof *info);
    if (the_transport().serve(info->internal, sizeof info->internal) != ACL_SUCCESS)
        return refuse(HCCL_E_INTERNAL, std::string("HcclGetRootInfo: ") + ascendgraphRecentError());
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* root, uint32_t rank,
                                           HcclComm* comm) {
    return connect("HcclCommInitRootInfo", the_transport(), ranks, root, rank, "", 0, execution_timeout(),
                   comm);
}

ACL_EXPORT HcclResult HcclCommInitRootInfoConfig(uint32_t ranks, const HcclRootInfo* root, uint32_t rank,
                                                 const HcclCommConfig* config, HcclComm* comm) {
    if (config == nullptr) return refuse_null(HCCL_E_PTR, "HcclCommInitRootInfoConfig", "config");
    constexpr int32_t kNotSet = -1;
    const uint32_t timeout = config->hcclExecTimeOut == kNotSet
                                 ? execution_timeout()
                                 : static_cast<uint32_t>(config->hcclExecTimeOut);
    const std::string name(config->hcclCommName, strnlen(config->hcclCommName, sizeof config->hcclCommName));
    return connect("HcclCommInitRootInfoConfig", the_transport(), ranks, root, rank, name,
                   config->hcclBufferSize, timeout, comm);
}

ACL_EXPORT HcclResult HcclCommInitAll(uint32_t count, int32_t* devices, HcclComm* comms) {
    if (devices == nullptr || comms == nullptr)
        return refuse_null(HCCL_E_PTR, "HcclCommInitAll", "devices or comms");
    if (count == 0) return refuse(HCCL_E_PARA, "HcclCommInitAll: ndev is 0; give at least 1");
    HcclRootInfo root{};
    if (local_transport().serve(root.internal, sizeof root.internal) != ACL_SUCCESS)
        return refuse(HCCL_E_INTERNAL, std::string("HcclCommInitAll: ") + ascendgraphRecentError());
    // Each rank waits for the others to come.
    std::vector<HcclResult> results(count, HCCL_SUCCESS);
    std::vector<std::string> texts(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank) {
        threads.emplace_back([&, rank] {
            if (aclrtSetDevice(devices[rank]) != ACL_SUCCESS)
                results[rank] = HCCL_E_PARA;
            else
                results[rank] = connect("HcclCommInitAll", local_transport(), count, &root, rank, "", 0,
                                        execution_timeout(), &comms[rank]);
            if (results[rank] != HCCL_SUCCESS) texts[rank] = ascendgraphRecentError();
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (uint32_t rank = 0; rank < count; ++rank) {
        if (results[rank] != HCCL_SUCCESS) return refuse(results[rank], texts[rank]);
    }
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclCommDestroy(HcclComm comm) {
    std::shared_ptr<Communicator> doomed = communicator_of(comm);  // dies outside the lock
    if (doomed == nullptr) return refuse_comm("HcclCommDestroy");
    std::lock_guard<std::mutex> lock(mutex);
    communicators.erase(comm);
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclGetCommName(HcclComm comm, char* name) {
    const auto found = communicator_of(comm);
    if (found == nullptr || name == nullptr) return refuse_comm("HcclGetCommName", "commName");
    constexpr size_t kLength = 128;
    std::strncpy(name, found->name.c_str(), kLength - 1);
    name[kLength - 1] = '\0';
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcomGetCommHandleByGroup(const char* group, HcclComm* comm) {
    if (group == nullptr || comm == nullptr)
        return refuse_null(HCCL_E_PTR, "HcomGetCommHandleByGroup", "group or commHandle");
    std::string known;
    const auto found = communicator_named(group, known);
    if (found == nullptr) {
        return refuse(HCCL_E_PARA, std::string("HcomGetCommHandleByGroup: no communicator is named ") +
                                       group + "; there are: " + known);
    }
    *comm = found.get();
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclGetRankSize(HcclComm comm, uint32_t* ranks) {
    const auto found = communicator_of(comm);
    if (found == nullptr || ranks == nullptr) return refuse_comm("HcclGetRankSize", "rankSize");
    *ranks = found->ranks;
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
    const auto found = communicator_of(comm);
    if (found == nullptr || rank == nullptr) return refuse_comm("HcclGetRankId", "rank");
    *rank = found->rank;
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclCommGetHandleWithName(const char* name, HcclComm* comm) {
    return HcomGetCommHandleByGroup(name, comm);
}

ACL_EXPORT HcclResult HcomGetRankSize(const char* group, uint32_t* ranks) {
    HcclComm comm = nullptr;
    const HcclResult found = HcomGetCommHandleByGroup(group, &comm);
    return found == HCCL_SUCCESS ? HcclGetRankSize(comm, ranks) : found;
}
ACL_EXPORT HcclResult HcomGetRankId(const char* group, uint32_t* rank) {
    HcclComm comm = nullptr;
    const HcclResult found = HcomGetCommHandleByGroup(group, &comm);
    return found == HCCL_SUCCESS ? HcclGetRankId(comm, rank) : found;
}
// All ranks are of one server.
ACL_EXPORT HcclResult HcomGetLocalRankSize(const char* group, uint32_t* ranks) {
    return HcomGetRankSize(group, ranks);
}
ACL_EXPORT HcclResult HcomGetLocalRankId(const char* group, uint32_t* rank) {
    return HcomGetRankId(group, rank);
}

// Both windows, one after the other.
ACL_EXPORT HcclResult HcclGetHcclBuffer(HcclComm comm, void** buffer, uint64_t* size) {
    const auto found = communicator_of(comm);
    if (found == nullptr || buffer == nullptr || size == nullptr)
        return refuse_comm("HcclGetHcclBuffer", "buffer or size");
    try {
        *buffer = found->context().windows_in[found->rank];
    } catch (const std::exception& error) {
        return refuse(HCCL_E_INTERNAL, std::string("HcclGetHcclBuffer: ") + error.what());
    }
    *size = 2 * found->window_bytes();
    return HCCL_SUCCESS;
}

// One layer, of all ranks.
ACL_EXPORT HcclResult HcclRankGraphGetLayers(HcclComm comm, uint32_t** layers, uint32_t* count) {
    static uint32_t only[] = {0};
    if (communicator_of(comm) == nullptr || layers == nullptr || count == nullptr)
        return refuse_comm("HcclRankGraphGetLayers", "a result");
    *layers = only;
    *count = 1;
    return HCCL_SUCCESS;
}
ACL_EXPORT HcclResult HcclRankGraphGetRankSizeByLayer(HcclComm comm, uint32_t layer, uint32_t* ranks) {
    if (layer != 0)
        return refuse(HCCL_E_PARA, "HcclRankGraphGetRankSizeByLayer: netLayer " + std::to_string(layer) +
                                       " is not there; expected 0, the only layer of the host");
    return HcclGetRankSize(comm, ranks);
}
ACL_EXPORT HcclResult HcclRankGraphGetTopoTypeByLayer(HcclComm comm, uint32_t layer, CommTopo* topology) {
    if (communicator_of(comm) == nullptr || topology == nullptr || layer != 0)
        return refuse(
            HCCL_E_PARA,
            "HcclRankGraphGetTopoTypeByLayer: comm is not a live communicator, topoType is null, or "
            "netLayer is not 0; expected 0, the only layer of the host");
    const char* name = aclrtGetSocName();
    const bool is_a3 =
        name != nullptr && ascendc_host::is_named(ascendc_host::find_processor(name), "Ascend910_93");
    *topology = is_a3 ? COMM_TOPO_910_93 : COMM_TOPO_1DMESH;
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* error) {
    const auto found = communicator_of(comm);
    if (found == nullptr || error == nullptr) return refuse_comm("HcclGetCommAsyncError", "asyncError");
    const std::string failure = found->failure();
    *error = failure.empty() ? HCCL_SUCCESS : refuse(HCCL_E_REMOTE, failure);  // the text is asked for next
    return HCCL_SUCCESS;
}

ACL_EXPORT const char* HcclGetErrorString(HcclResult code) {
    switch (code) {
        case HCCL_SUCCESS:
            return "no error";
        case HCCL_E_PARA:
            return "parameter error";
        case HCCL_E_PTR:
            return "null pointer";
        case HCCL_E_NOT_SUPPORT:
            return "not supported";
        case HCCL_E_UNAVAIL:
            return "unavailable";
        case HCCL_E_TIMEOUT:
            return "timeout";
        case HCCL_E_REMOTE:
            return "a collective failed";
        default:
            return "internal error";
    }
}

ACL_EXPORT HcclResult HcclAllReduce(void* send, void* recv, uint64_t count, HcclDataType dtype,
                                    HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    return Entry("HcclAllReduce", comm, Collective::kAllReduce, dtype)
        .buffers(send, recv, count)
        .reduces(op)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclReduce(void* send, void* recv, uint64_t count, HcclDataType dtype, HcclReduceOp op,
                                 uint32_t root, HcclComm comm, aclrtStream stream) {
    return Entry("HcclReduce", comm, Collective::kReduce, dtype)
        .buffers(send, recv, count)
        .reduces(op)
        .root(root)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclBroadcast(void* buffer, uint64_t count, HcclDataType dtype, uint32_t root,
                                    HcclComm comm, aclrtStream stream) {
    return Entry("HcclBroadcast", comm, Collective::kBroadcast, dtype)
        .buffers(nullptr, buffer, count)
        .root(root)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
    return Entry("HcclBarrier", comm, Collective::kBarrier, HCCL_DATA_TYPE_INT8).enqueue(stream);
}

ACL_EXPORT HcclResult HcclAllGather(void* send, void* recv, uint64_t count, HcclDataType dtype, HcclComm comm,
                                    aclrtStream stream) {
    return Entry("HcclAllGather", comm, Collective::kAllGather, dtype)
        .buffers(send, recv, count)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclAllGatherV(const void* send, uint64_t count, const void* recv, const void* counts,
                                     const void* displacements, HcclDataType dtype, HcclComm comm,
                                     aclrtStream stream) {
    return Entry("HcclAllGatherV", comm, Collective::kAllGatherV, dtype)
        .buffers(send, nullptr, count)
        .receives_pieces(recv, static_cast<const uint64_t*>(counts),
                         static_cast<const uint64_t*>(displacements))
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclReduceScatter(void* send, void* recv, uint64_t count, HcclDataType dtype,
                                        HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    return Entry("HcclReduceScatter", comm, Collective::kReduceScatter, dtype)
        .buffers(send, recv, count)
        .reduces(op)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclReduceScatterV(const void* send, const void* counts, const void* displacements,
                                         const void* recv, uint64_t count, HcclDataType dtype,
                                         HcclReduceOp op, HcclComm comm, aclrtStream stream) {
    return Entry("HcclReduceScatterV", comm, Collective::kReduceScatterV, dtype)
        .buffers(nullptr, const_cast<void*>(recv), count)
        .reduces(op)
        .sends_pieces(send, static_cast<const uint64_t*>(counts), static_cast<const uint64_t*>(displacements))
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclScatter(void* send, void* recv, uint64_t count, HcclDataType dtype, uint32_t root,
                                  HcclComm comm, aclrtStream stream) {
    return Entry("HcclScatter", comm, Collective::kScatter, dtype)
        .buffers(send, recv, count)
        .root(root)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclAlltoAllV(const void* send, const void* send_counts, const void* send_displacements,
                                    HcclDataType send_type, const void* recv, const void* recv_counts,
                                    const void* recv_displacements, HcclDataType recv_type, HcclComm comm,
                                    aclrtStream stream) {
    if (send_type != recv_type)
        return refuse(HCCL_E_PARA, "HcclAlltoAllV: sendType and recvType differ; they must be the same");
    auto numbers = [](const void* p) { return static_cast<const uint64_t*>(p); };
    return Entry("HcclAlltoAllV", comm, Collective::kExchange, send_type)
        .sends_pieces(send, numbers(send_counts), numbers(send_displacements))
        .receives_pieces(recv, numbers(recv_counts), numbers(recv_displacements))
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclAlltoAllVC(const void* send, const void* matrix, HcclDataType send_type,
                                     const void* recv, HcclDataType recv_type, HcclComm comm,
                                     aclrtStream stream) {
    const auto found = communicator_of(comm);
    if (found == nullptr) return refuse_comm("HcclAlltoAllVC");
    const auto* counts = static_cast<const uint64_t*>(matrix);  // row i: what rank i sends to each
    const uint32_t n = found->ranks;
    std::vector<uint64_t> sent(counts + found->rank * n, counts + (found->rank + 1) * n), received(n);
    for (uint32_t i = 0; i < n; ++i) received[i] = counts[i * n + found->rank];
    auto displacements = [](const std::vector<uint64_t>& of) {
        std::vector<uint64_t> sums(of.size(), 0);
        std::partial_sum(of.begin(), of.end() - 1, sums.begin() + 1);
        return sums;
    };
    return HcclAlltoAllV(send, sent.data(), displacements(sent).data(), send_type, recv, received.data(),
                         displacements(received).data(), recv_type, comm, stream);
}

ACL_EXPORT HcclResult HcclAlltoAll(const void* send, uint64_t send_count, HcclDataType send_type,
                                   const void* recv, uint64_t recv_count, HcclDataType recv_type,
                                   HcclComm comm, aclrtStream stream) {
    const auto found = communicator_of(comm);
    if (found == nullptr) return refuse_comm("HcclAlltoAll");
    if (send_type != recv_type || send_count != recv_count) {
        return refuse(HCCL_E_PARA, "HcclAlltoAll: what is sent (" + std::to_string(send_count) +
                                       " of HcclDataType " + std::to_string(send_type) +
                                       ") and what is received (" + std::to_string(recv_count) + " of " +
                                       std::to_string(recv_type) + ") must be the same");
    }
    std::vector<uint64_t> counts(found->ranks, send_count), displacements(found->ranks);
    for (uint32_t i = 0; i < found->ranks; ++i) displacements[i] = i * send_count;
    return HcclAlltoAllV(send, counts.data(), displacements.data(), send_type, recv, counts.data(),
                         displacements.data(), recv_type, comm, stream);
}

ACL_EXPORT HcclResult HcclSend(void* buffer, uint64_t count, HcclDataType dtype, uint32_t to, HcclComm comm,
                               aclrtStream stream) {
    return Entry("HcclSend", comm, Collective::kExchange, dtype).sends(buffer, count, to).enqueue(stream);
}

ACL_EXPORT HcclResult HcclRecv(void* buffer, uint64_t count, HcclDataType dtype, uint32_t from, HcclComm comm,
                               aclrtStream stream) {
    return Entry("HcclRecv", comm, Collective::kExchange, dtype)
        .receives(buffer, count, from)
        .enqueue(stream);
}

ACL_EXPORT HcclResult HcclBatchSendRecv(HcclSendRecvItem* items, uint32_t count, HcclComm comm,
                                        aclrtStream stream) {
    if (items == nullptr || count == 0)
        return refuse_null(HCCL_E_PARA, "HcclBatchSendRecv", "itemNum is 0 or sendRecvInfo");
    // Items have dtypes of their own: all are bytes.
    Entry entry("HcclBatchSendRecv", comm, Collective::kExchange, HCCL_DATA_TYPE_UINT8);
    for (uint32_t i = 0; i < count && !entry.failed(); ++i) {
        const HcclSendRecvItem& item = items[i];
        const uint64_t bytes = item.count * element_size(item.dataType);
        item.sendRecvType == HCCL_SEND ? entry.sends(item.buf, bytes, item.remoteRank)
                                       : entry.receives(item.buf, bytes, item.remoteRank);
    }
    return entry.enqueue(stream);
}

ACL_EXPORT HcclResult HcclGroupStart() {
    ++open_groups;
    return HCCL_SUCCESS;
}

ACL_EXPORT HcclResult HcclGroupEnd() {
    if (open_groups == 0)
        return refuse(HCCL_E_PARA,
                      "HcclGroupEnd: no group is open on this thread; call HcclGroupStart first");
    if (--open_groups > 0) return HCCL_SUCCESS;
    HcclResult first = HCCL_SUCCESS;
    for (Grouped& g : std::exchange(grouped, {})) {
        const HcclResult error = enqueue(std::move(g.communicator), std::move(g.call), g.stream);
        if (first == HCCL_SUCCESS) first = error;
    }
    return first;
}
