// Model capture (aclmdlRI*): what torch_npu's NPUGraph, aclgraph and npugraph_ex are made of.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "acl/runtime.h"

namespace ascend_graph::host {
namespace {

std::mutex models_mutex;
// Never destroyed: a model that lives until the process ends owns tensors of an allocator that is gone by
// then.
auto& models = *new std::unordered_map<void*, std::shared_ptr<Model>>;
uint32_t next_model_id = 1;

std::shared_ptr<Model> new_model() {
    auto model = std::make_shared<Model>();
    add_model(model);
    return model;
}

aclError wrong_capture(const std::string& message) {
    return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG, message);
}

aclError begin(aclrtStream handle, std::shared_ptr<Model> model, const char* function) {
    if (handle == nullptr)
        return wrong_capture(std::string(function) + ": the default stream cannot capture");
    Stream& stream = stream_of(handle);
    if (stream.capturing() != nullptr)
        return wrong_capture(std::string(function) + ": the stream captures already");
    std::lock_guard<std::mutex> lock(stream.state);
    model->begin_capture();
    stream.capture = std::move(model);
    stream.owns_capture = true;
    stream.behind.clear();
    return ACL_SUCCESS;
}

// Whether work of another stream was recorded that the stream which ends the capture has not waited for.
bool is_unjoined(const Model& model, const Progress& behind) {
    for (const auto& [id, tasks] : model.recorded) {
        const auto found = behind.find(id);
        if (found == behind.end() || found->second < tasks) return true;
    }
    return false;
}

}  // namespace

void add_model(const std::shared_ptr<Model>& model) {
    std::lock_guard<std::mutex> lock(models_mutex);
    model->id = next_model_id++;
    models.emplace(model.get(), model);
}

std::shared_ptr<Model> model_of(aclmdlRI handle) {
    std::lock_guard<std::mutex> lock(models_mutex);
    auto found = models.find(handle);
    return found == models.end() ? nullptr : found->second;
}

aclError not_a_model(const char* function) {
    return fail(ACL_ERROR_INVALID_RESOURCE_HANDLE,
                std::string(function) +
                    ": not a live model; expected one that aclmdlRICaptureEnd or "
                    "aclmdlRIBuildBegin made, not destroyed");
}

aclError Model::replay(Execution& execution, Stream& stream) {
    size_t& next = execution.next;
    std::lock_guard<std::recursive_mutex> lock(running_);
    while (next < tasks.size()) {
        const aclError error = tasks[next].run(stream);
        if (error == kWaits) return kWaits;
        ++next;
        if (error != ACL_SUCCESS) {
            next = 0;
            return error;
        }
    }
    next = 0;
    return ACL_SUCCESS;
}

void Model::replace(size_t place, Task task) {
    std::lock_guard<std::recursive_mutex> lock(running_);
    std::swap(tasks[place], task);
}

}  // namespace ascend_graph::host

using namespace ascend_graph::host;

ACL_EXPORT aclError aclmdlRICaptureBegin(aclrtStream stream, int) {
    return begin(stream, new_model(), "aclmdlRICaptureBegin");
}

ACL_EXPORT aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI handle, int) {
    auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRICaptureToModelRIBegin");
    return begin(stream, std::move(model), "aclmdlRICaptureToModelRIBegin");
}

ACL_EXPORT aclError aclmdlRICaptureEnd(aclrtStream handle, aclmdlRI* model) {
    Stream& stream = stream_of(handle);
    const auto captured = stream.capturing();
    if (captured == nullptr || !stream.owns_capture || model == nullptr) {
        return wrong_capture("aclmdlRICaptureEnd: the stream did not begin a capture");
    }
    std::scoped_lock lock(captured->recording, stream.state);
    captured->end_capture();
    stream.capture.reset();
    stream.owns_capture = false;
    if (is_unjoined(*captured, stream.behind)) {
        std::lock_guard<std::mutex> models_lock(models_mutex);
        models.erase(captured.get());
        return fail(
            ACL_ERROR_RT_STREAM_UNJOINED,
            "aclmdlRICaptureEnd: another stream recorded work that the capturing stream has not waited "
            "for; join it with torch.npu.current_stream().wait_stream(other) before the capture ends");
    }
    *model = captured.get();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRICaptureGetInfo(aclrtStream handle, int* status, aclmdlRI* model) {
    const auto captured = stream_of(handle).capturing();
    if (status != nullptr) *status = captured != nullptr ? kCaptureActive : kCaptureNone;
    if (model != nullptr) *model = captured.get();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRICaptureThreadExchangeMode(int* mode) {
    thread_local int current = 0;
    if (mode == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlRICaptureThreadExchangeMode", "mode");
    std::swap(current, *mode);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIGetId(aclmdlRI handle, uint32_t* id) {
    auto model = model_of(handle);
    if (model == nullptr || id == nullptr) return not_a_model("aclmdlRIGetId");
    *id = model->id;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIExecuteAsync(aclmdlRI handle, aclrtStream stream) {
    auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRIExecuteAsync");
    if (aclError error = check_stream("aclmdlRIExecuteAsync", stream)) return error;
    if (model->capturing()) {
        return fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG,
                    "aclmdlRIExecuteAsync: the model is not complete; end its capture, or call "
                    "aclmdlRIBuildEnd first");
    }
    Stream& target = stream_of(stream);
    return target.enqueue({"model", [model, &target, execution = Execution{}]() mutable {
                               aclError error = ACL_SUCCESS;
                               await_remote([&] {
                                   error = model->replay(execution, target);
                                   return error != kWaits;
                               });
                               return error;
                           }});
}

ACL_EXPORT aclError aclmdlRIDestroy(aclmdlRI handle) {
    // The tasks may own tensors whose release calls back into the runtime: the model dies outside the lock.
    std::shared_ptr<Model> doomed = model_of(handle);
    if (doomed == nullptr) return not_a_model("aclmdlRIDestroy");
    {
        std::lock_guard<std::mutex> lock(models_mutex);
        models.erase(handle);
    }
    for (const auto& [function, data] : doomed->at_end) function(data);
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRIDebugPrint(aclmdlRI handle) {
    auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRIDebugPrint");
    for (const Task& task : model->tasks) std::printf("%s\n", task.name.c_str());
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRICaptureTaskGrpBegin(aclrtStream handle) {
    Stream& stream = stream_of(handle);
    const auto captured = stream.capturing();
    if (captured == nullptr || stream.group_open) {
        return wrong_capture(
            "aclmdlRICaptureTaskGrpBegin: the stream captures nothing, or a group is open already");
    }
    stream.group_open = true;
    std::lock_guard<std::mutex> lock(captured->recording);
    stream.group_begin = captured->tasks.size();
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRICaptureTaskGrpEnd(aclrtStream handle, aclrtTaskGrp* group) {
    Stream& stream = stream_of(handle);
    const auto captured = stream.capturing();
    if (captured == nullptr || !stream.group_open || group == nullptr) {
        return wrong_capture("aclmdlRICaptureTaskGrpEnd: no group is open on the stream");
    }
    stream.group_open = false;
    // Groups live as long as the process: a handle has no destroy function in ACL, and a graph has few of
    // them.
    std::lock_guard<std::mutex> lock(captured->recording);
    *group = new TaskGroup{captured, stream.group_begin, captured->tasks.size()};
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream handle, aclrtTaskGrp group) {
    Stream& stream = stream_of(handle);
    if (group == nullptr || stream.update != nullptr || static_cast<TaskGroup*>(group)->model.expired()) {
        return wrong_capture(
            "aclmdlRICaptureTaskUpdateBegin: no such group, its model is gone, or an update is open");
    }
    stream.update = static_cast<TaskGroup*>(group);
    stream.update_next = stream.update->begin;
    ++active_captures;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream handle) {
    Stream& stream = stream_of(handle);
    if (stream.update == nullptr) return wrong_capture("aclmdlRICaptureTaskUpdateEnd: no update is open");
    stream.update = nullptr;
    --active_captures;
    return ACL_SUCCESS;
}

ACL_EXPORT aclError aclmdlRISetName(aclmdlRI handle, const char* name) {
    const auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRISetName");
    if (name == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlRISetName", "name");
    model->name = name;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclmdlRIGetName(aclmdlRI handle, uint32_t size, char* name) {
    constexpr size_t kMost = 512;
    const auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRIGetName");
    if (name == nullptr || size == 0)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlRIGetName", "name, or maxLen is 0: it");
    const size_t length = std::min({model->name.size(), size - size_t{1}, kMost - 1});
    std::memcpy(name, model->name.data(), length);
    name[length] = '\0';
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclmdlRIDestroyRegisterCallback(aclmdlRI handle, void (*function)(void*), void* data) {
    const auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRIDestroyRegisterCallback");
    if (function == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlRIDestroyRegisterCallback", "func");
    model->at_end.emplace_back(function, data);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI handle, void (*function)(void*)) {
    const auto model = model_of(handle);
    if (model == nullptr) return not_a_model("aclmdlRIDestroyUnregisterCallback");
    auto& all = model->at_end;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == function; });
    if (found == all.end())
        return fail(ACL_ERROR_RT_PARAM_INVALID,
                    "aclmdlRIDestroyUnregisterCallback: func is not registered with the model; call "
                    "aclmdlRIDestroyRegisterCallback first");
    all.erase(found);
    return ACL_SUCCESS;
}
