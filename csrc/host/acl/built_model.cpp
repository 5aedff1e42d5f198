// Models that a program builds from streams (aclmdlRIBuildBegin): each bound stream records its tasks, and
// labels, switches and activations say which of them run.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "acl/handles.h"
#include "acl/runtime.h"

namespace ascend_graph::host {
namespace {

constexpr uint32_t kPersistent = 4;  // ACL_STREAM_PERSISTENT

aclError refuse(const char* function, const std::string& why) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, std::string(function) + ": " + why);
}

class BuiltModel;

// What one stream recorded.
struct Lane : Model {
    Lane(BuiltModel& model, Stream& stream, bool head) : model(model), stream(stream), head(head) {}
    BuiltModel& model;
    Stream& stream;
    const bool head;
};

class BuiltModel : public Model {
  public:
    std::vector<std::shared_ptr<Lane>> lanes;
    bool has_end = false;
    bool complete = false;
    std::atomic<bool> aborted{false};

    ~BuiltModel() override {
        for (const auto& lane : lanes) lane->end_capture();
    }
    std::shared_ptr<Lane> lane_of(const Stream& stream) const {
        for (const auto& lane : lanes) {
            if (&lane->stream == &stream) return lane;
        }
        return nullptr;
    }
    void unbind(const Stream& stream) {
        for (auto& lane : lanes) {
            if (&lane->stream == &stream) unbound_.push_back(lane);
        }
        lanes.erase(std::remove_if(lanes.begin(), lanes.end(),
                                   [&](const auto& one) { return &one->stream == &stream; }),
                    lanes.end());
    }

    // For tasks that are running: the others of the model go on at a place of theirs, stop, or end.
    void activate(Lane& lane, size_t place) { now_->streams.insert_or_assign(&lane, place); }
    void activate(Lane& lane) { now_->streams.emplace(&lane, 0); }
    void stop(Lane& lane) { now_->streams.erase(&lane); }
    void end() { now_->ended = true; }

    aclError replay(Execution& execution, Stream& stream) override;

  private:
    // Runs a stream's tasks up to one that waits, or until another task says what runs.
    aclError run(Lane& lane, Stream& stream, bool& progress);

    std::vector<std::shared_ptr<Lane>> unbound_;
    Execution* now_ = nullptr;       // whose tasks run
    const Execution* of_ = nullptr;  // which was begun: executions of one model follow one another
};

aclError BuiltModel::run(Lane& lane, Stream& stream, bool& progress) {
    while (!now_->ended) {
        const auto place = now_->streams.find(&lane);
        if (place == now_->streams.end()) return ACL_SUCCESS;
        const size_t next = place->second;
        if (next >= lane.tasks.size()) {
            now_->streams.erase(place);
            return ACL_SUCCESS;
        }
        // A task that jumps puts another place there.
        place->second = next + 1;
        const aclError error = lane.tasks[next].run(stream);
        if (error == kWaits) place->second = next;
        if (error != ACL_SUCCESS) return error;
        progress = true;
    }
    return ACL_SUCCESS;
}

aclError BuiltModel::replay(Execution& execution, Stream& stream) {
    const std::lock_guard<std::recursive_mutex> lock(running_);
    if (of_ != nullptr && of_ != &execution) return kWaits;
    of_ = now_ = &execution;
    if (!std::exchange(execution.begun, true)) {
        aborted = false;
        std::vector<std::shared_ptr<Lane>> all = lanes;
        all.insert(all.end(), unbound_.begin(), unbound_.end());
        for (const auto& lane : all) {
            if (lane->head) activate(*lane);
        }
    }
    aclError error = ACL_SUCCESS;
    for (bool progress = true; progress && error == ACL_SUCCESS && !execution.ended && !aborted;) {
        progress = false;
        std::vector<Model*> running;
        for (const auto& [lane, place] : execution.streams) running.push_back(lane);
        for (Model* lane : running) {
            const aclError one = run(static_cast<Lane&>(*lane), stream, progress);
            if (one != ACL_SUCCESS && one != kWaits) error = one;
        }
    }
    if (error == ACL_SUCCESS && !execution.ended && !aborted) {
        if (!execution.streams.empty()) return kWaits;
        error = fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                     "aclmdlRIExecute: the streams of the model ended, and none came to aclmdlRIEndTask; "
                     "call it on one that runs");
    }
    of_ = now_ = nullptr;
    execution = Execution{};
    return error;
}

std::shared_ptr<BuiltModel> built_model(const char* function, aclmdlRI handle, aclError& error) {
    const auto model = model_of(handle);
    auto built = std::dynamic_pointer_cast<BuiltModel>(model);
    error = model == nullptr ? not_a_model(function)
            : built == nullptr
                ? refuse(function, "the model was captured; expected one of aclmdlRIBuildBegin")
                : ACL_SUCCESS;
    return built;
}

// The lane that the stream records into.
std::shared_ptr<Lane> lane_of(Stream& stream) { return std::dynamic_pointer_cast<Lane>(stream.capturing()); }
std::shared_ptr<Lane> recording_lane(const char* function, aclrtStream handle, aclError& error) {
    error = check_stream(function, handle);
    if (error != ACL_SUCCESS) return nullptr;
    auto lane = lane_of(stream_of(handle));
    if (lane == nullptr)
        error = refuse(function,
                       "the stream is not bound to a model that is being built; call "
                       "aclmdlRIBindStream first");
    return lane;
}

// A task that says what runs next: it is behind all that the stream has recorded.
aclError add(Lane& lane, const char* name, std::function<aclError()> body) {
    return lane.stream.mark({name, std::move(body)});
}

struct Label {
    std::weak_ptr<Lane> lane;
    size_t place = 0;
    bool is_set = false;
};
struct LabelList {
    std::vector<std::shared_ptr<Label>> labels;
};
auto& labels = *new Handles<Label>("aclrtCreateLabel");
auto& label_lists = *new Handles<LabelList>("aclrtCreateLabelList");

template <typename T>
bool holds(int condition, const void* left, const void* right) {
    T a{}, b{};
    std::memcpy(&a, left, sizeof(a));
    std::memcpy(&b, right, sizeof(b));
    switch (condition) {  // aclrtCondition
        case 0:
            return a == b;
        case 1:
            return a != b;
        case 2:
            return a > b;
        case 3:
            return a >= b;
        case 4:
            return a < b;
        default:
            return a <= b;
    }
}

}  // namespace

bool is_being_built(Stream& stream) { return lane_of(stream) != nullptr; }

aclError clean_built_tasks(Stream& stream) {
    const auto lane = lane_of(stream);
    if (lane == nullptr) return ACL_SUCCESS;
    const std::lock_guard<std::mutex> lock(lane->recording);
    lane->tasks.clear();
    return ACL_SUCCESS;
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT aclError aclmdlRIBuildBegin(aclmdlRI* model, uint32_t flag) {
    if (model == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlRIBuildBegin", "modelRI");
    if (flag != 0) return refuse("aclmdlRIBuildBegin", "flag is " + std::to_string(flag) + "; it must be 0");
    if (aclError error = check_current("aclmdlRIBuildBegin")) return error;
    auto built = std::make_shared<BuiltModel>();
    add_model(built);
    *model = static_cast<Model*>(built.get());
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIBindStream(aclmdlRI handle, aclrtStream stream, uint32_t flag) {
    constexpr const char* function = "aclmdlRIBindStream";
    constexpr uint32_t kHead = 0, kNotHead = 0x7FFFFFFF;
    aclError error = ACL_SUCCESS;
    const auto model = built_model(function, handle, error);
    if (model == nullptr) return error;
    if (stream == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "stream");
    if ((error = check_stream(function, stream)) != ACL_SUCCESS) return error;
    Stream& bound = stream_of(stream);
    if (flag != kHead && flag != kNotHead)
        return refuse(function, "flag is " + std::to_string(flag) +
                                    "; it must be ACL_MODEL_STREAM_FLAG_HEAD or …_DEFAULT");
    if ((bound.flags & kPersistent) == 0)
        return refuse(function,
                      "the stream is not persistent; create it by aclrtCreateStreamWithConfig with "
                      "ACL_STREAM_PERSISTENT");
    if (model->complete)
        return refuse(function, "the model is complete: aclmdlRIBuildEnd was called; build another");
    if (bound.capturing() != nullptr)
        return refuse(function,
                      "stream is bound to another model, or captures; call aclmdlRIUnbindStream first");
    auto lane = std::make_shared<Lane>(*model, bound, flag == kHead);
    model->lanes.push_back(lane);
    lane->begin_capture();
    const std::lock_guard<std::mutex> lock(bound.state);
    bound.capture = lane;
    bound.owns_capture = false;
    bound.behind.clear();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIUnbindStream(aclmdlRI handle, aclrtStream stream) {
    constexpr const char* function = "aclmdlRIUnbindStream";
    aclError error = ACL_SUCCESS;
    const auto model = built_model(function, handle, error);
    if (model == nullptr) return error;
    if ((error = check_stream(function, stream)) != ACL_SUCCESS) return error;
    const auto lane = model->lane_of(stream_of(stream));
    if (lane == nullptr)
        return refuse(function, "the stream is not bound to the model; expected one of aclmdlRIBindStream");
    lane->end_capture();
    model->unbind(stream_of(stream));
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIEndTask(aclmdlRI handle, aclrtStream stream) {
    constexpr const char* function = "aclmdlRIEndTask";
    aclError error = ACL_SUCCESS;
    const auto model = built_model(function, handle, error);
    if (model == nullptr) return error;
    const auto lane = recording_lane(function, stream, error);
    if (lane == nullptr) return error;
    if (&lane->model != model.get())
        return refuse(
            function,
            "stream is bound to another model; give it one that aclmdlRIBindStream bound to this one");
    model->has_end = true;
    return add(*lane, "end of model", [built = model.get()] {
        built->end();
        return ACL_SUCCESS;
    });
}

ACL_EXPORT aclError aclmdlRIBuildEnd(aclmdlRI handle, void*) {
    constexpr const char* function = "aclmdlRIBuildEnd";
    aclError error = ACL_SUCCESS;
    const auto model = built_model(function, handle, error);
    if (model == nullptr) return error;
    if (!model->has_end) return refuse(function, "no stream has an end; call aclmdlRIEndTask first");
    for (const auto& lane : model->lanes) lane->end_capture();
    model->complete = true;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream);
ACL_EXPORT aclError aclrtSynchronizeStream(aclrtStream stream);
ACL_EXPORT aclError aclmdlRIExecute(aclmdlRI handle, int32_t timeout) {
    if (timeout < -1 || timeout == 0)
        return refuse("aclmdlRIExecute", "timeout is " + std::to_string(timeout) +
                                             "; it must be -1 (no limit) or positive milliseconds");
    if (aclError error = aclmdlRIExecuteAsync(handle, nullptr)) return error;
    return aclrtSynchronizeStream(nullptr);
}

ACL_EXPORT aclError aclmdlRIAbort(aclmdlRI handle) {
    aclError error = ACL_SUCCESS;
    const auto model = built_model("aclmdlRIAbort", handle, error);
    if (model == nullptr) return error;
    model->aborted = true;
    resume_waiting_streams();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclrtActiveStream(aclrtStream activated, aclrtStream stream) {
    constexpr const char* function = "aclrtActiveStream";
    aclError error = ACL_SUCCESS;
    const auto lane = recording_lane(function, stream, error);
    const auto other = lane == nullptr ? nullptr : recording_lane(function, activated, error);
    if (other == nullptr) return error;
    if (&other->model != &lane->model) return refuse(function, "the streams are of two models");
    return add(*lane, "activate stream", [target = other.get()] {
        target->model.activate(*target);
        return ACL_SUCCESS;
    });
}

ACL_EXPORT aclError aclrtSwitchStream(void* left, int condition, void* right, int type, aclrtStream if_true,
                                      aclrtStream if_false, aclrtStream stream) {
    constexpr const char* function = "aclrtSwitchStream";
    if (left == nullptr || right == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "leftValue or rightValue");
    if (condition < 0 || condition > 5 || type < 0 || type > 1)
        return refuse(function, "cond must be one of 0 to 5, and dataType 0 (int32) or 1 (int64)");
    if (if_false != nullptr) return refuse(function, "falseStream is reserved: it must be null");
    aclError error = ACL_SUCCESS;
    const auto lane = recording_lane(function, stream, error);
    const auto other = lane == nullptr ? nullptr : recording_lane(function, if_true, error);
    if (other == nullptr) return error;
    if (&other->model != &lane->model) return refuse(function, "the streams are of two models");
    return add(*lane, "switch stream", [=, here = lane.get(), there = other.get()] {
        const bool is_true =
            type == 0 ? holds<int32_t>(condition, left, right) : holds<int64_t>(condition, left, right);
        if (!is_true) return ACL_SUCCESS;
        there->model.stop(*here);
        there->model.activate(*there);
        return ACL_SUCCESS;
    });
}

ACL_EXPORT aclError aclrtCreateLabel(void** label) {
    if (label == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclrtCreateLabel", "label");
    if (aclError error = check_current("aclrtCreateLabel")) return error;
    *label = labels.add(std::make_shared<Label>());
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtDestroyLabel(void* label) {
    return labels.take(label) != nullptr ? ACL_SUCCESS : labels.not_live("aclrtDestroyLabel", "label");
}
ACL_EXPORT aclError aclrtSetLabel(void* handle, aclrtStream stream) {
    const auto label = labels.find(handle);
    if (label == nullptr) return labels.not_live("aclrtSetLabel", "label");
    aclError error = ACL_SUCCESS;
    const auto lane = recording_lane("aclrtSetLabel", stream, error);
    if (lane == nullptr) return error;
    if (label->is_set) return refuse("aclrtSetLabel", "the label is set already; create another");
    {
        const std::lock_guard<std::mutex> lock(lane->recording);
        *label = {lane, lane->tasks.size(), true};
    }
    return add(*lane, "label", [] { return ACL_SUCCESS; });
}
ACL_EXPORT aclError aclrtCreateLabelList(void** given, size_t count, void** list) {
    constexpr const char* function = "aclrtCreateLabelList";
    if (given == nullptr || list == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "labels or labelList");
    if (count == 0 || count > 65535)
        return refuse(function, "num is " + std::to_string(count) + "; it must be 1 to 65535");
    auto made = std::make_shared<LabelList>();
    for (size_t i = 0; i < count; ++i) {
        made->labels.push_back(labels.find(given[i]));
        if (made->labels.back() == nullptr) return labels.not_live(function, "a label");
    }
    *list = label_lists.add(std::move(made));
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclrtDestroyLabelList(void* list) {
    return label_lists.take(list) != nullptr ? ACL_SUCCESS
                                             : label_lists.not_live("aclrtDestroyLabelList", "labelList");
}
ACL_EXPORT aclError aclrtSwitchLabelByIndex(void* index, uint32_t count, void* handle, aclrtStream stream) {
    constexpr const char* function = "aclrtSwitchLabelByIndex";
    const auto list = label_lists.find(handle);
    if (list == nullptr) return label_lists.not_live(function, "labelList");
    if (index == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, function, "ptr");
    if (count != list->labels.size())
        return refuse(function, "maxValue is " + std::to_string(count) +
                                    "; it must be the number of labels, " +
                                    std::to_string(list->labels.size()));
    aclError error = ACL_SUCCESS;
    const auto lane = recording_lane(function, stream, error);
    if (lane == nullptr) return error;
    return add(*lane, "switch label", [index, list, here = lane.get()] {
        uint32_t chosen = 0;
        std::memcpy(&chosen, index, sizeof(chosen));
        const auto& label = *list->labels[std::min<size_t>(chosen, list->labels.size() - 1)];
        const auto there = label.lane.lock();
        if (there == nullptr || &there->model != &here->model)
            return refuse("aclrtSwitchLabelByIndex",
                          "label " + std::to_string(chosen) +
                              " is not set on a stream of the model; call aclrtSetLabel first");
        here->model.stop(*here);
        here->model.activate(*there, label.place);
        return ACL_SUCCESS;
    });
}
