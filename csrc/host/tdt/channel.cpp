// libacl_tdt_channel.so: the channels by which a device sends to its host. What sends here is a graph that
// prints (PrintV2); TorchAir receives it on a thread and writes it to stderr.
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

using Text = std::vector<char>;

struct Channel {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Text> waiting;
    size_t taken = 0;  // received, and not yet given back: its receiver is still at it
    bool destroyed = false;
};

// What was received: the receiver is done with it when it destroys it.
struct Dataset {
    std::vector<Text> items;
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

const Text* item_of(const void* item) { return static_cast<const Text*>(item); }

}  // namespace

ACL_EXPORT void* acltdtCreateChannelWithCapacity(uint32_t device, const char* name, size_t) {
    if (name == nullptr) {
        not_there("acltdtCreateChannelWithCapacity", "name is null; expected an address");
        return nullptr;
    }
    const std::lock_guard<std::mutex> lock(channels().mutex);
    auto& channel = channels().by_name[{device, name}];
    if (channel != nullptr) {
        not_there("acltdtCreateChannelWithCapacity",
                  "the device has a channel of that name already; give another name");
        return nullptr;
    }
    channel = std::make_shared<Channel>();
    channels().by_handle.emplace(channel.get(), channel);
    return channel.get();
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

// Waits for `timeout` milliseconds, without an end where it is negative.
ACL_EXPORT aclError acltdtReceiveTensor(const void* handle, void* received, int32_t timeout) {
    constexpr aclError kTimeout = 100062;  // ACL_ERROR_WAIT_CALLBACK_TIMEOUT
    const auto channel = channel_of(handle);
    if (channel == nullptr || received == nullptr)
        return not_there("acltdtReceiveTensor",
                         "not a live channel, or dataset is null; expected a channel, and an address");
    std::unique_lock<std::mutex> lock(channel->mutex);
    const auto ready = [&] { return channel->destroyed || !channel->waiting.empty(); };
    if (timeout < 0) {
        channel->changed.wait(lock, ready);
    } else if (!channel->changed.wait_for(lock, std::chrono::milliseconds(timeout), ready)) {
        return kTimeout;
    }
    if (channel->waiting.empty())
        return not_there("acltdtReceiveTensor", "the channel was destroyed; create it again");
    auto& dataset = *static_cast<Dataset*>(received);
    dataset.items.push_back(std::move(channel->waiting.front()));
    dataset.from = channel;
    channel->waiting.pop_front();
    ++channel->taken;
    return ACL_SUCCESS;
}

ACL_EXPORT size_t acltdtGetDatasetSize(const void* dataset) {
    return dataset == nullptr ? 0 : static_cast<const Dataset*>(dataset)->items.size();
}
ACL_EXPORT void* acltdtGetDataItem(const void* dataset, size_t index) {
    if (index >= acltdtGetDatasetSize(dataset)) return nullptr;
    return const_cast<Text*>(&static_cast<const Dataset*>(dataset)->items[index]);
}
ACL_EXPORT void* acltdtGetDataAddrFromItem(const void* item) {
    return item == nullptr ? nullptr : const_cast<char*>(item_of(item)->data());
}
ACL_EXPORT size_t acltdtGetDataSizeFromItem(const void* item) {
    return item == nullptr ? 0 : item_of(item)->size();
}
// A string has no dimensions.
ACL_EXPORT int acltdtGetDataTypeFromItem(const void*) { return kString; }
ACL_EXPORT size_t acltdtGetDimNumFromItem(const void*) { return 0; }
ACL_EXPORT aclError acltdtGetDimsFromItem(const void*, int64_t*, size_t) { return ACL_SUCCESS; }

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
    channel->waiting.emplace_back(text, text + size);
    channel->changed.notify_all();
    channel->changed.wait_for(lock, kPatience, [&] {
        return channel->destroyed || (channel->waiting.empty() && channel->taken == 0);
    });
    return true;
}
