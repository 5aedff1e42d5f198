// Calls of the functions that a library of an operator package registers, by the library's path.
//
// A tiling function writes into buffers with an inaccessible page after each: where it goes beyond, it is
// ended, and the heap stays as it is.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"
#include "ascend_graph/package_functions.h"
#include "exe_graph/node.h"
#include "exe_graph/package_library.h"

ACL_EXPORT void* ascendgraphPlatformOfThread();
ACL_EXPORT int ascendgraphInferPackageShape(const char* op_type, void* infer_shape, void* infer_dtype,
                                            size_t inputs, size_t attrs,
                                            const ascend_graph::host::Value* values, size_t count);

namespace ascend_graph::host::layout {

namespace {

constexpr int kTilingFailed = 561002;  // ACLNN_ERR_INNER_TILING_ERROR
constexpr int kFindFunctions = 561003;

int fail(int code, const std::string& text) { return ascendgraphFail(code, text.c_str()); }

struct Library {
    std::map<std::string, const Functions*> by_type;
    std::string error;
};

Library load(const char* path) {
    Library found;
    // Each library has its own registry: its own symbols go before those of other packages.
    void* const loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (loaded == nullptr) {
        found.error = std::string(path) + ": does not load: " + dlerror();
        return found;
    }
    size_t entries = 0;
    const Functions* table = read_table(
        reinterpret_cast<size_t (*)()>(dlsym(loaded, "GetRegisteredOpNum")),
        reinterpret_cast<int32_t (*)(void*, size_t)>(dlsym(loaded, "GetOpImplFunctionsV2")), &entries);
    if (table == nullptr) found.error = std::string(path) + ": " + ascendgraphRecentError();
    for (size_t i = 0; table != nullptr && i < entries; ++i)
        found.by_type.emplace(table[i].op_type, table + i);
    return found;
}

// Memory whose last byte is followed by a page that nobody may touch.
class GuardedBuffer {
  public:
    GuardedBuffer() = default;
    GuardedBuffer(const GuardedBuffer&) = delete;
    GuardedBuffer& operator=(const GuardedBuffer&) = delete;
    ~GuardedBuffer() { release(); }

    // Zeroed memory for `size` bytes, aligned to 8; null where there is none.
    void* of_size(size_t size) {
        const size_t wanted = (size + 7) / 8 * 8;
        if (wanted != size_ || memory_ == nullptr) {
            release();
            const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
            bytes_ = (wanted + page - 1) / page * page + page;
            void* made = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (made == MAP_FAILED) return nullptr;
            memory_ = static_cast<char*>(made);
            mprotect(memory_ + bytes_ - page, page, PROT_NONE);
            begin_ = memory_ + bytes_ - page - wanted;
            size_ = wanted;
        }
        return std::memset(begin_, 0, size_);
    }

  private:
    void release() {
        if (memory_ != nullptr) munmap(memory_, bytes_);
        memory_ = nullptr;
    }
    char *memory_ = nullptr, *begin_ = nullptr;
    size_t size_ = 0, bytes_ = 0;
};

struct Buffers {
    GuardedBuffer data, workspaces;
};
Buffers& buffers_of_thread() {
    static thread_local Buffers buffers;
    return buffers;
}

template <typename T>
void* word_of(T value) {
    void* word = nullptr;
    std::memcpy(&word, &value, sizeof value);
    return word;
}
template <typename T>
T value_of(const AnyValue& value) {
    T read;
    std::memcpy(&read, &value.word, sizeof read);
    return read;
}

// What TilingParse functions make of the compiler's notes; one for each operator of a library, for good. No
// lock is held while an author's function runs: a fault in it never comes back here.
class CompileInfos {
  public:
    bool find(const Functions& functions, void** info) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = known_.find(&functions);
        if (found != known_.end()) *info = found->second;
        return found != known_.end();
    }
    void add(const Functions& functions, void* info) {
        const std::lock_guard<std::mutex> lock(mutex_);
        known_.emplace(&functions, info);
    }

  private:
    std::mutex mutex_;
    std::map<const Functions*, void*> known_;
};

int compile_info(const Functions& functions, const std::vector<char>& node, void** info) {
    static CompileInfos& known = *new CompileInfos;
    if (known.find(functions, info)) return 0;
    if (functions.create_compile_info != nullptr)
        *info = reinterpret_cast<void* (*)()>(functions.create_compile_info)();
    if (functions.tiling_parse != nullptr) {
        static const char notes[] = "{}";
        ContextBlock context(node.data());
        context.add_input(const_cast<char*>(notes));
        context.add_input(ascendgraphPlatformOfThread());
        context.add_input(const_cast<char*>(functions.op_type));
        context.add_output(*info);
        const uint32_t status =
            reinterpret_cast<uint32_t (*)(void*)>(functions.tiling_parse)(context.finished());
        if (status != 0)
            return fail(kTilingFailed,
                        failure_text(std::string(functions.op_type) + ": the TilingParse function", status));
    }
    known.add(functions, *info);
    return 0;
}

// The outputs of a tiling context, in CANN's order.
enum TilingOutput {
    kKey,
    kBlocks,
    kZeroes,
    kData,
    kWorkspaces,
    kCondition,
    kScheduleMode,
    kLocalMemory,
    kAicpuBlocks,
    kTilingOutputs
};

int take_answers(const std::string& name, const ContextBlock& context, const layout::TilingData& data,
                 const List& workspaces, PackageTiling* tiling) {
    tiling->size = data.size;
    tiling->key = value_of<uint64_t>(context.output(kKey));
    tiling->blocks = value_of<uint32_t>(context.output(kBlocks));
    tiling->zeroes_outputs = value_of<bool>(context.output(kZeroes));
    tiling->condition = value_of<int32_t>(context.output(kCondition));
    tiling->schedule_mode = value_of<uint32_t>(context.output(kScheduleMode));
    tiling->local_memory = value_of<uint32_t>(context.output(kLocalMemory));
    tiling->aicpu_blocks = value_of<uint32_t>(context.output(kAicpuBlocks));
    if (workspaces.count > PackageTiling::kMostWorkspaces)
        return fail(kTilingFailed, name + ": the tiling function asked for " +
                                       std::to_string(workspaces.count) + " workspaces; expected at most " +
                                       std::to_string(PackageTiling::kMostWorkspaces));
    tiling->workspace_count = workspaces.count;
    std::memcpy(tiling->workspaces, &workspaces + 1, workspaces.count * sizeof(size_t));
    std::memcpy(tiling->data, data.data, std::min(data.size, tiling->capacity));
    return 0;
}

// Adds the sides of a node and its attrs; 0, or the error's code.
int describe(const std::string& name, size_t inputs, size_t attrs, const Value* values, size_t count,
             Side& given, Side& results, AttrBlock& block) {
    for (size_t i = 0; i < inputs; ++i) given.add(values[i]);
    for (size_t i = 0; i < attrs; ++i) {
        if (!block.add(values[inputs + i]))
            return fail(kTilingFailed, name + ": attr " + std::to_string(i) +
                                           " has no value, or one of a type that cannot be passed; expected "
                                           "a number, a text or a list of numbers");
    }
    for (size_t i = inputs + attrs; i < count; ++i) results.add(values[i]);
    return 0;
}

}  // namespace

const Functions* registered_functions(const char* library, const char* op_type) {
    static std::mutex mutex;
    static auto& loaded = *new std::map<std::string, Library>;
    const auto known = [&]() -> const Library* {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto found = loaded.find(library);
        return found == loaded.end() ? nullptr : &found->second;
    };
    const Library* found = known();
    if (found == nullptr) {
        Library made = load(library);  // runs the library's constructors
        const std::lock_guard<std::mutex> lock(mutex);
        found = &loaded.try_emplace(library, std::move(made)).first->second;
    }
    if (!found->error.empty()) return fail(kFindFunctions, found->error), nullptr;
    const auto one = found->by_type.find(op_type);
    if (one != found->by_type.end()) return one->second;
    return fail(kFindFunctions, std::string(library) + ": registers no functions of " + op_type +
                                    "; write IMPL_OP_OPTILING for it"),
           nullptr;
}

}  // namespace ascend_graph::host::layout

using namespace ascend_graph::host;

ACL_EXPORT int ascendgraphTilePackage(const char* library, const char* op_type, size_t inputs, size_t attrs,
                                      const Value* values, size_t count, PackageTiling* tiling) {
    using namespace layout;
    const std::string name = op_type;
    const Functions* functions = registered_functions(library, op_type);
    if (functions == nullptr) return kFindFunctions;
    if (functions->tiling == nullptr)
        return fail(kFindFunctions,
                    name + ": " + library + " has no tiling function of it; write IMPL_OP_OPTILING for it");
    Side given, results;
    AttrBlock block(attrs);
    if (const int failed = describe(name, inputs, attrs, values, count, given, results, block)) return failed;
    const std::vector<char> node = node_bytes(op_type, given, results, block.bytes());
    void* info = nullptr;
    if (const int failed = compile_info(*functions, node, &info)) return failed;

    Buffers& buffers = buffers_of_thread();
    layout::TilingData data;
    data.capacity = tiling->capacity;
    data.data = buffers.data.of_size(tiling->capacity);
    constexpr size_t kListBytes = sizeof(List) + PackageTiling::kMostWorkspaces * sizeof(size_t);
    auto* workspaces = static_cast<List*>(buffers.workspaces.of_size(kListBytes));
    if (data.data == nullptr || workspaces == nullptr)
        return fail(kTilingFailed, name + ": out of memory; free memory");
    workspaces->capacity = PackageTiling::kMostWorkspaces;

    ContextBlock context(node.data());
    for (layout::Tensor& tensor : given.tensors) context.add_input(&tensor);
    for (layout::Tensor& tensor : results.tensors) context.add_input(&tensor);
    context.add_input(info);
    context.add_input(ascendgraphPlatformOfThread());
    context.add_input(nullptr);              // the tiling function, for none but GE's own kernels
    context.add_input(word_of(int32_t{0}));  // not deterministic, and no level of it
    context.add_input(word_of(int32_t{0}));
    for (int output = 0; output < kTilingOutputs; ++output) {
        context.add_output(output == kData         ? static_cast<void*>(&data)
                           : output == kWorkspaces ? static_cast<void*>(workspaces)
                                                   : nullptr);
    }
    ascendgraphTakeLoggedErrors();  // those of others
    const uint32_t status = reinterpret_cast<uint32_t (*)(void*)>(functions->tiling)(context.finished());
    if (status != 0) return fail(kTilingFailed, failure_text(name + ": the tiling function", status));
    return take_answers(name, context, data, *workspaces, tiling);
}

ACL_EXPORT int ascendgraphInferPackage(const char* library, const char* op_type, size_t inputs, size_t attrs,
                                       const Value* values, size_t count) {
    using namespace layout;
    const Functions* functions = registered_functions(library, op_type);
    if (functions == nullptr) return kFindFunctions;
    if (functions->infer_shape == nullptr)
        return fail(kFindFunctions, std::string(op_type) + ": " + library +
                                        " has no InferShape function of it; write IMPL_OP_INFERSHAPE for it");
    return ascendgraphInferPackageShape(op_type, functions->infer_shape, functions->infer_dtype, inputs,
                                        attrs, values, count);
}
