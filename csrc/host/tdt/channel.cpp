// libacl_tdt_channel.so: the channels by which a device sends to its host, and a host to its device. What
// sends here is a graph that prints (PrintV2), which TorchAir receives on a thread and writes to stderr, or
// the program.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/runtime.h"

extern "C" aclError aclrtGetDevice(int32_t* id);

namespace {

constexpr int kString = 13;                   // ACL_STRING
constexpr const char* kPrinted = "_npu_log";  // the channel of what is printed

constexpr int kTensor = 0;               // ACL_TENSOR_DATA_TENSOR
constexpr int kSlice = 3;                // ACL_TENSOR_DATA_SLICE_TENSOR
constexpr aclError kTimeout = 100062;    // ACL_ERROR_WAIT_CALLBACK_TIMEOUT
constexpr aclError kQueueFull = 207014;  // ACL_ERROR_RT_QUEUE_FULL

struct Item {
    int tensor_type = kTensor;
    int dtype = kString;
    std::vector<int64_t> dims{};
    std::vector<char> own{};  // of what was received
    void* data = nullptr;
    size_t size = 0;
    bool received = false;
};
using Message = std::vector<std::shared_ptr<Item>>;

// As a channel holds it: with the bytes.
std::shared_ptr<Item> copy(const Item& item) {
    auto held = std::make_shared<Item>(item);
    const auto* const bytes = static_cast<const char*>(item.data);
    held->own.assign(bytes, bytes + item.size);
    held->data = held->own.data();
    held->received = true;
    return held;
}

struct Channel {
    explicit Channel(size_t capacity) : capacity(capacity) {}
    const size_t capacity;  // 0 for no limit
    std::mutex mutex{};
    std::condition_variable changed{};
    std::deque<Message> waiting{};
    size_t taken = 0;  // received, and not yet given back: its receiver is still at it
    bool destroyed = false;
    uint64_t stopped = 0;  // how often those who wait were woken
};

// What was received: the receiver is done with it when it destroys it. The program's own items are the
// program's to destroy.
struct Dataset {
    Message items;
    std::shared_ptr<Channel> from;
};

struct Channels {
    std::mutex mutex;
    std::map<const void*, std::shared_ptr<Channel>> by_handle;
    std::map<std::pair<uint32_t, std::string>, std::shared_ptr<Channel>> by_name;
};
Channels& channels() {
    static Channels& instance = *new Channels;  // used until the process ends
    return instance;
}

std::shared_ptr<Channel> channel_of(const void* handle) {
    const std::lock_guard<std::mutex> lock(channels().mutex);
    const auto found = channels().by_handle.find(handle);
    return found == channels().by_handle.end() ? nullptr : found->second;
}

aclError not_there(const char* function, const char* what) {
    return ascendgraphFail(ACL_ERROR_INVALID_PARAM, (std::string(function) + ": " + what).c_str());
}

uint32_t current_device() {
    int32_t device = 0;
    return aclrtGetDevice(&device) == ACL_SUCCESS ? static_cast<uint32_t>(device) : 0;
}

const Item* item_of(const void* item) { return static_cast<const Item*>(item); }

aclError not_live(const char* function) {
    return not_there(function, "not a live channel; expected one that acltdtCreateChannel made");
}

// Waits for `timeout` milliseconds, without an end where it is negative, until `ready`, or a stop.
template <typename Ready>
bool wait(Channel& channel, std::unique_lock<std::mutex>& lock, int32_t timeout, Ready ready) {
    const uint64_t stopped = channel.stopped;
    const auto woken = [&] { return channel.destroyed || channel.stopped != stopped || ready(); };
    if (timeout < 0) {
        channel.changed.wait(lock, woken);
    } else {
        channel.changed.wait_for(lock, std::chrono::milliseconds(timeout), woken);
    }
    return !channel.destroyed && ready();
}

}  // namespace

static void* create(const char* function, uint32_t device, const char* name, size_t capacity) {
    if (name == nullptr) {
        not_there(function, "name is null; expected an address");
        return nullptr;
    }
    const std::lock_guard<std::mutex> lock(channels().mutex);
    auto& channel = channels().by_name[{device, name}];
    if (channel != nullptr) {
        not_there(function, "the device has a channel of that name already; give another name");
        return nullptr;
    }
    channel = std::make_shared<Channel>(capacity);
    channels().by_handle.emplace(channel.get(), channel);
    return channel.get();
}
ACL_EXPORT void* acltdtCreateChannel(uint32_t device, const char* name) {
    return create("acltdtCreateChannel", device, name, 0);
}
ACL_EXPORT void* acltdtCreateChannelWithCapacity(uint32_t device, const char* name, size_t capacity) {
    return create("acltdtCreateChannelWithCapacity", device, name, capacity);
}

ACL_EXPORT aclError acltdtDestroyChannel(void* handle) {
    std::shared_ptr<Channel> channel;
    {
        const std::lock_guard<std::mutex> lock(channels().mutex);
        const auto found = channels().by_handle.find(handle);
        if (found == channels().by_handle.end())
            return not_there("acltdtDestroyChannel",
                             "not a live channel; expected one that acltdtCreateChannelWithCapacity made");
        channel = found->second;
        channels().by_handle.erase(found);
        for (auto named = channels().by_name.begin(); named != channels().by_name.end(); ++named) {
            if (named->second != channel) continue;
            channels().by_name.erase(named);
            break;
        }
    }
    const std::lock_guard<std::mutex> lock(channel->mutex);
    channel->destroyed = true;
    channel->changed.notify_all();
    return ACL_SUCCESS;
}

ACL_EXPORT void* acltdtCreateDataset() { return new Dataset; }

ACL_EXPORT aclError acltdtDestroyDataset(void* handle) {
    if (handle == nullptr) return not_there("acltdtDestroyDataset", "dataset is null; expected an address");
    const std::unique_ptr<Dataset> dataset(static_cast<Dataset*>(handle));
    if (dataset->from == nullptr) return ACL_SUCCESS;
    const std::lock_guard<std::mutex> lock(dataset->from->mutex);
    --dataset->from->taken;
    dataset->from->changed.notify_all();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError acltdtReceiveTensor(const void* handle, void* received, int32_t timeout) {
    const auto channel = channel_of(handle);
    if (channel == nullptr || received == nullptr)
        return not_there("acltdtReceiveTensor",
                         "not a live channel, or dataset is null; expected a channel, and an address");
    std::unique_lock<std::mutex> lock(channel->mutex);
    if (!wait(*channel, lock, timeout, [&] { return !channel->waiting.empty(); })) {
        return channel->destroyed
                   ? not_there("acltdtReceiveTensor", "the channel was destroyed; create it again")
                   : kTimeout;
    }
    auto& dataset = *static_cast<Dataset*>(received);
    for (auto& item : channel->waiting.front()) dataset.items.push_back(std::move(item));
    dataset.from = channel;
    channel->waiting.pop_front();
    ++channel->taken;
    channel->changed.notify_all();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError acltdtSendTensor(const void* handle, const void* sent, int32_t timeout) {
    const auto channel = channel_of(handle);
    if (channel == nullptr || sent == nullptr)
        return not_there("acltdtSendTensor",
                         "not a live channel, or dataset is null; expected a channel, and an address");
    if (timeout < -1)
        return not_there("acltdtSendTensor", "timeout must be -1 (no limit), 0, or positive milliseconds");
    Message message;
    for (const auto& item : static_cast<const Dataset*>(sent)->items) message.push_back(copy(*item));
    std::unique_lock<std::mutex> lock(channel->mutex);
    const auto has_room = [&] {
        return channel->capacity == 0 || channel->waiting.size() < channel->capacity;
    };
    if (!wait(*channel, lock, timeout, has_room)) {
        ascendgraphFail(kQueueFull, "acltdtSendTensor: the channel is full; call acltdtReceiveTensor first");
        return kQueueFull;
    }
    channel->waiting.push_back(std::move(message));
    channel->changed.notify_all();
    return ACL_SUCCESS;
}
ACL_EXPORT aclError acltdtQueryChannelSize(const void* handle, size_t* size) {
    const auto channel = channel_of(handle);
    if (channel == nullptr) return not_live("acltdtQueryChannelSize");
    if (size == nullptr) return not_there("acltdtQueryChannelSize", "size is null; expected an address");
    const std::lock_guard<std::mutex> lock(channel->mutex);
    *size = channel->waiting.size();
    return ACL_SUCCESS;
}
ACL_EXPORT aclError acltdtCleanChannel(void* handle) {
    const auto channel = channel_of(handle);
    if (channel == nullptr) return not_live("acltdtCleanChannel");
    const std::lock_guard<std::mutex> lock(channel->mutex);
    channel->waiting.clear();
    channel->changed.notify_all();
    return ACL_SUCCESS;
}
// Wakes who waits to send or to receive.
ACL_EXPORT aclError acltdtStopChannel(void* handle) {
    const auto channel = channel_of(handle);
    if (channel == nullptr) return not_live("acltdtStopChannel");
    const std::lock_guard<std::mutex> lock(channel->mutex);
    ++channel->stopped;
    channel->changed.notify_all();
    return ACL_SUCCESS;
}

ACL_EXPORT void* acltdtCreateDataItem(int tensor_type, const int64_t* dims, size_t rank, int dtype,
                                      void* data, size_t size) {
    if ((rank != 0 && dims == nullptr) || (size != 0 && data == nullptr)) {
        not_there("acltdtCreateDataItem", "dims or data is null; expected an address");
        return nullptr;
    }
    return new Item{tensor_type, dtype, {dims, dims + rank}, {}, data, size, false};
}
ACL_EXPORT aclError acltdtDestroyDataItem(void* item) {
    if (item == nullptr) return not_there("acltdtDestroyDataItem", "dataItem is null; expected an address");
    if (item_of(item)->received)
        return not_there("acltdtDestroyDataItem",
                         "the item was received: it ends with its dataset; call acltdtDestroyDataset");
    delete static_cast<Item*>(item);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError acltdtAddDataItem(void* dataset, void* item) {
    if (dataset == nullptr || item == nullptr)
        return not_there("acltdtAddDataItem", "dataset or dataItem is null; expected an address");
    static_cast<Dataset*>(dataset)->items.emplace_back(static_cast<Item*>(item), [](Item*) {});
    return ACL_SUCCESS;
}

ACL_EXPORT size_t acltdtGetDatasetSize(const void* dataset) {
    return dataset == nullptr ? 0 : static_cast<const Dataset*>(dataset)->items.size();
}
// Queues of a device give a dataset a name; channels here do not.
ACL_EXPORT const char* acltdtGetDatasetName(const void* dataset) { return dataset == nullptr ? nullptr : ""; }
ACL_EXPORT void* acltdtGetDataItem(const void* dataset, size_t index) {
    if (index >= acltdtGetDatasetSize(dataset)) return nullptr;
    return static_cast<const Dataset*>(dataset)->items[index].get();
}
ACL_EXPORT void* acltdtGetDataAddrFromItem(const void* item) {
    return item == nullptr ? nullptr : item_of(item)->data;
}
ACL_EXPORT size_t acltdtGetDataSizeFromItem(const void* item) {
    return item == nullptr ? 0 : item_of(item)->size;
}
ACL_EXPORT int acltdtGetTensorTypeFromItem(const void* item) {
    return item == nullptr ? -1 : item_of(item)->tensor_type;
}
ACL_EXPORT int acltdtGetDataTypeFromItem(const void* item) {
    return item == nullptr ? -1 : item_of(item)->dtype;
}
ACL_EXPORT size_t acltdtGetDimNumFromItem(const void* item) {
    return item == nullptr ? 0 : item_of(item)->dims.size();
}
ACL_EXPORT aclError acltdtGetDimsFromItem(const void* item, int64_t* dims, size_t rank) {
    if (item == nullptr) return not_there("acltdtGetDimsFromItem", "dataItem is null; expected an address");
    const auto& own = item_of(item)->dims;
    if (rank < own.size() || (!own.empty() && dims == nullptr))
        return not_there(
            "acltdtGetDimsFromItem",
            "dimNum is less than acltdtGetDimNumFromItem says, or dims is null; give them all room");
    std::copy(own.begin(), own.end(), dims);
    return ACL_SUCCESS;
}
// No tensor of a channel here is a slice of another.
ACL_EXPORT aclError acltdtGetSliceInfoFromItem(const void* item, size_t* count, size_t* index) {
    if (item == nullptr || count == nullptr || index == nullptr)
        return not_there("acltdtGetSliceInfoFromItem",
                         "dataItem, sliceNum or sliceId is null; expected an address");
    if (item_of(item)->tensor_type != kSlice)
        return not_there("acltdtGetSliceInfoFromItem",
                         "the item is not a slice of a tensor; expected ACL_TENSOR_DATA_SLICE_TENSOR");
    *count = *index = 0;
    return ACL_SUCCESS;
}

// Sends a line to who prints for this thread's device, and waits until it is printed; false where nobody
// does.
ACL_EXPORT bool ascendgraphPrint(const char* text, size_t size) {
    constexpr std::chrono::seconds kPatience{5};
    std::shared_ptr<Channel> channel;
    {
        const std::lock_guard<std::mutex> lock(channels().mutex);
        const auto found = channels().by_name.find({current_device(), kPrinted});
        if (found == channels().by_name.end()) return false;
        channel = found->second;
    }
    std::unique_lock<std::mutex> lock(channel->mutex);
    Item line;
    line.data = const_cast<char*>(text);
    line.size = size;
    channel->waiting.push_back({copy(line)});
    channel->changed.notify_all();
    channel->changed.wait_for(lock, kPatience, [&] {
        return channel->destroyed || (channel->waiting.empty() && channel->taken == 0);
    });
    return true;
}
