// Calls of aclnn functions on torch_npu's current stream: symbols, the objects of one call, and the launch
// itself.
//
// A call goes the way that op-plugin's EXEC_NPU_CMD goes: convert the arguments, ask for the workspace on the
// calling thread, and hand the launch to torch_npu, which runs it at once or on its task queue. Header only,
// so that the kernel of all operators without C++ and generated libraries share it.
#ifndef ASCEND_GRAPH_EAGER_ACLNN_H
#define ASCEND_GRAPH_EAGER_ACLNN_H

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <acl/acl_base.h>
#include <c10/core/DeviceGuard.h>
#include <c10/util/SmallVector.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "device.h"
#include "executor_cache.h"
#include "versions.h"

// What op_plugin/utils/op_api_common_base.h declares. That header is not included: it takes longer to compile
// than all the rest, and wants the version of torch_npu as a macro.
struct aclTensor;
struct aclScalar;
struct aclScalarList;
struct aclIntArray;
struct aclFloatArray;
struct aclBoolArray;
struct aclTensorList;
aclTensor* ConvertType(const at::Tensor& tensor);
aclDataType ConvertType(const at::ScalarType dtype);
aclrtStream GetAclStream();
void* GetWorkSpaceAddr(uint64_t size);
void InitExecSubTheadCtx(aclrtStream stream);
void RunAclCall(const std::string& name, const std::function<int()>& launch);
uint32_t OpApiGetTaskQueueEnable();

namespace ascend_graph::eager {

// An aclnn function failed. `code` is its return value.
class AclnnError : public std::runtime_error {
  public:
    AclnnError(const std::string& message, int code) : std::runtime_error(message), code(code) {}
    const int code;
};

// An aclnn function is in none of the libraries that are searched.
class MissingFunction : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// -------------------------------------------------------------------------------------------------------------
// symbols

namespace detail {

inline std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        if (!part.empty()) parts.push_back(part);
    }
    return parts;
}

inline std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// The libraries of custom operator packages that the environment names now. torch_npu reads these variables
// once, when it is loaded; a package that is selected later is found all the same.
inline std::vector<std::string> package_libraries() {
    std::vector<std::string> found;
    for (const auto& directory : split(environment("ASCEND_CUSTOM_OPP_PATH"), ':')) {
        found.push_back(directory + "/op_api/lib/libcust_opapi.so");
    }
    const std::string vendors = environment("ASCEND_OPP_PATH") + "/vendors";
    std::ifstream config(vendors + "/config.ini");
    for (std::string line; std::getline(config, line);) {
        const auto equals = line.find('=');
        if (line.rfind("load_priority", 0) != 0 || equals == std::string::npos) continue;
        for (const auto& vendor : split(line.substr(equals + 1), ',')) {
            const auto first = vendor.find_first_not_of(" \t\r");
            if (first == std::string::npos) continue;
            const auto last = vendor.find_last_not_of(" \t\r");
            found.push_back(vendors + "/" + vendor.substr(first, last - first + 1) +
                            "/op_api/lib/libcust_opapi.so");
        }
    }
    return found;
}

// Looks in the packages' libraries; without success, `report` says for each what is wrong with it.
inline void* find_in_packages(const std::string& name, std::string& report) {
    for (const auto& path : package_libraries()) {
        std::string why = "has no such function";
        if (!std::ifstream(path)) {
            why = "does not exist";
        } else if (void* library = dlopen(path.c_str(), RTLD_LAZY)) {
            if (void* symbol = dlsym(library, name.c_str())) return symbol;
        } else {
            why = std::string("does not load: ") + dlerror();
        }
        report += "\n  " + path + " " + why;
    }
    return nullptr;
}

// Packages come before CANN's own libraries, as their headers do. torch_npu has the same order, but of the
// packages that were selected when it was loaded.
inline void* find(const std::string& name, std::string& report) {
    void* symbol = find_in_packages(name, report);
    return symbol != nullptr ? symbol : GetOpApiFuncAddr(name.c_str());
}

template <typename Signature>
Signature* optional_symbol(const char* name) {
    return reinterpret_cast<Signature*>(GetOpApiFuncAddr(name));
}

template <typename Signature>
Signature* required_symbol(const char* name) {
    auto* symbol = optional_symbol<Signature>(name);
    if (symbol == nullptr) {
        throw MissingFunction(
            std::string(name) +
            " is not in libopapi.so, or libopapi.so is not found; source CANN's set_env.sh");
    }
    return symbol;
}

}  // namespace detail

// One operator's two aclnn functions.
struct Function {
    std::string name;
    void* get_workspace_size;
    void* run;
    bool is_kept;  // whether libopapi.so keeps executors of earlier calls
};
// Shared with the calls in flight: an operator may be unregistered while torch_npu's queue still has some.
using FunctionPtr = std::shared_ptr<const Function>;

// The path of the library that a function is in.
inline std::string library_of(void* function) {
    Dl_info info{};
    return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

// Finds aclnn<Op> and aclnn<Op>GetWorkspaceSize where CANN and torch_npu look for them. `package_only`: no
// header declares it, so that its parameters are known only if a custom operator package has it.
inline FunctionPtr find_function(const std::string& name, bool package_only = false) {
    std::string report;
    void* const get_workspace_size = detail::find(name + "GetWorkspaceSize", report);
    void* const run = get_workspace_size == nullptr ? nullptr : detail::find(name, report);
    if (run != nullptr && package_only) {
        const std::string library = library_of(get_workspace_size);
        constexpr std::string_view kPackage = "/libcust_opapi.so";
        if (library.size() < kPackage.size() ||
            library.compare(library.size() - kPackage.size(), kPackage.size(), kPackage) != 0) {
            throw MissingFunction(
                name + " is in " + library +
                ", which is not a custom operator package's, and no header declared it when this "
                "library was generated: its parameters are not known. Generate the library with its header, "
                "--aclnn");
        }
    }
    if (run != nullptr) {
        const bool is_kept = detail::ExecutorCache::get().takes(name.c_str());
        return std::make_shared<const Function>(Function{name, get_workspace_size, run, is_kept});
    }
    const std::string missing = name + (get_workspace_size == nullptr ? "GetWorkspaceSize" : "");
    const auto value = [](const char* variable) {
        const std::string set = detail::environment(variable);
        return std::string(variable) + (set.empty() ? " is not set" : "=" + set);
    };
    throw MissingFunction(
        missing + " is in no library of operators. Looked in:" + report +
        "\n  libopapi.so and libaclnn_*.so of CANN: no such function\nSet ASCEND_CUSTOM_OPP_PATH to the "
        "directory of the operator package that has it (its op_api/lib/libcust_opapi.so is looked for), or "
        "install "
        "the package below $ASCEND_OPP_PATH/vendors.\n  now: " +
        value("ASCEND_CUSTOM_OPP_PATH") + "\n       " + value("ASCEND_OPP_PATH") +
        "\nascend-graph doctor --op " + name + " says where it is.");
}

// ----------------------------------------------------------------------------------------------------------------
// objects of one call

// The functions of libopapi.so that make and destroy what aclnn functions take, looked up once.
struct Objects {
    template <typename T>
    using Destroy = int(const T*);
    aclTensor* (*create_tensor)(const int64_t*, uint64_t, aclDataType, const int64_t*, int64_t, aclFormat,
                                const int64_t*, uint64_t, void*) =
        detail::required_symbol<aclTensor*(const int64_t*, uint64_t, aclDataType, const int64_t*, int64_t,
                                           aclFormat, const int64_t*, uint64_t, void*)>("aclCreateTensor");
    aclIntArray* (*create_ints)(const int64_t*, uint64_t) =
        detail::required_symbol<aclIntArray*(const int64_t*, uint64_t)>("aclCreateIntArray");
    aclFloatArray* (*create_floats)(const float*, uint64_t) =
        detail::required_symbol<aclFloatArray*(const float*, uint64_t)>("aclCreateFloatArray");
    aclBoolArray* (*create_bools)(const bool*, uint64_t) =
        detail::required_symbol<aclBoolArray*(const bool*, uint64_t)>("aclCreateBoolArray");
    aclTensorList* (*create_tensors)(const aclTensor* const*, uint64_t) =
        detail::required_symbol<aclTensorList*(const aclTensor* const*, uint64_t)>("aclCreateTensorList");
    Destroy<aclTensor>* destroy_tensor = detail::required_symbol<Destroy<aclTensor>>("aclDestroyTensor");
    Destroy<aclIntArray>* destroy_ints = detail::required_symbol<Destroy<aclIntArray>>("aclDestroyIntArray");
    Destroy<aclFloatArray>* destroy_floats =
        detail::required_symbol<Destroy<aclFloatArray>>("aclDestroyFloatArray");
    Destroy<aclBoolArray>* destroy_bools =
        detail::required_symbol<Destroy<aclBoolArray>>("aclDestroyBoolArray");
    Destroy<aclTensorList>* destroy_tensors =
        detail::required_symbol<Destroy<aclTensorList>>("aclDestroyTensorList");
    // Absent in some releases.
    int (*destroy_executor)(aclOpExecutor*) =
        detail::optional_symbol<int(aclOpExecutor*)>("aclDestroyAclOpExecutor");
    int (*init_huge_memory)(void*,
                            bool) = detail::optional_symbol<int(void*, bool)>("InitHugeMemThreadLocal");
    void (*uninit_huge_memory)(void*,
                               bool) = detail::optional_symbol<void(void*, bool)>("UnInitHugeMemThreadLocal");
    void (*release_huge_memory)(void*, bool) = detail::optional_symbol<void(void*, bool)>("ReleaseHugeMem");

    static const Objects& get() {
        static const Objects objects;
        return objects;
    }
};

// Numbers beyond the range of 32 bits are refused, not made infinite.
inline bool float32_holds(double value) {
    return std::isfinite(static_cast<float>(value)) || !std::isfinite(value);
}
inline float narrowed(const std::string& subject, double value) {
    TORCH_CHECK(float32_holds(value), subject, " is ", value,
                ", which float32 does not hold; expected -3.4028235e+38 to 3.4028235e+38, inf or nan");
    return static_cast<float>(value);
}

// Makes the aclnn objects of one call and destroys them with itself.
class Arguments {
  public:
    Arguments() = default;
    Arguments(const Arguments&) = delete;
    Arguments& operator=(const Arguments&) = delete;
    ~Arguments() {
        for (auto owned = owned_.rbegin(); owned != owned_.rend(); ++owned) owned->first(owned->second);
    }

    // Sizes, strides, offset, format and storage as op-plugin converts them; null for an undefined tensor.
    const aclTensor* add(const at::Tensor& tensor) {
        if (!tensor.defined()) return nullptr;
        const auto plain = detail::PlainTensor::of(tensor);
        // What op-plugin's ConvertType makes of it, without its detours.
        aclTensor* made = !plain ? ConvertType(tensor)
                                 : objects.create_tensor(plain->sizes.data(), plain->sizes.size(),
                                                         plain->dtype, plain->strides.data(), plain->offset,
                                                         plain->format, &plain->elements, 1, plain->data);
        return own(objects.destroy_tensor, made, "aclCreateTensor");
    }
    const aclTensor* add(const std::optional<at::Tensor>& tensor) { return tensor ? add(*tensor) : nullptr; }

    // An empty list is null, as op-plugin passes it.
    template <typename Tensors>
    const aclTensorList* add_list(const Tensors& tensors) {
        if (tensors.empty()) return nullptr;
        c10::SmallVector<const aclTensor*, 8> elements;
        const size_t before = owned_.size();
        for (const at::Tensor& tensor : tensors) elements.push_back(add(tensor));
        aclTensorList* list = objects.create_tensors(elements.data(), elements.size());
        if (list != nullptr) owned_.resize(before);  // the list owns its elements now
        return own(objects.destroy_tensors, list, "aclCreateTensorList");
    }
    const aclTensorList* add(at::TensorList tensors) { return add_list(tensors); }

    const aclIntArray* add(at::IntArrayRef values) {
        return own(objects.destroy_ints, objects.create_ints(values.data(), values.size()),
                   "aclCreateIntArray");
    }
    // Schemas carry doubles, aclnn functions take floats.
    const aclFloatArray* add(at::ArrayRef<double> values) {
        c10::SmallVector<float, 16> floats;
        for (const double value : values) floats.push_back(narrowed("a number of a list", value));
        return own(objects.destroy_floats, objects.create_floats(floats.data(), floats.size()),
                   "aclCreateFloatArray");
    }
    const aclBoolArray* add(at::ArrayRef<bool> values) {
        return own(objects.destroy_bools, objects.create_bools(values.data(), values.size()),
                   "aclCreateBoolArray");
    }
    // A number as op-plugin converts it: double, int64 or bool.
    const aclScalar* add(const at::Scalar& value) {
        static auto* const create =
            detail::required_symbol<aclScalar*(void*, aclDataType)>("aclCreateScalar");
        static auto* const destroy = detail::required_symbol<int(const aclScalar*)>("aclDestroyScalar");
        aclScalar* made = nullptr;
        if (value.isBoolean()) {
            bool held = value.toBool();
            made = create(&held, ACL_BOOL);
        } else if (value.isIntegral(false)) {
            int64_t held = value.toLong();
            made = create(&held, ACL_INT64);
        } else if (value.isComplex()) {
            c10::complex<double> held = value.toComplexDouble();
            made = create(&held, ACL_COMPLEX128);
        } else {
            double held = value.toDouble();
            made = create(&held, ACL_DOUBLE);
        }
        return own(destroy, made, "aclCreateScalar");
    }
    // Numbers, each as above.
    const aclScalarList* add(at::ArrayRef<at::Scalar> values) {
        static auto* const create =
            detail::required_symbol<aclScalarList*(const aclScalar* const*, uint64_t)>("aclCreateScalarList");
        static auto* const destroy =
            detail::required_symbol<int(const aclScalarList*)>("aclDestroyScalarList");
        c10::SmallVector<const aclScalar*, 8> elements;
        const size_t before = owned_.size();
        for (const at::Scalar& value : values) elements.push_back(add(value));
        aclScalarList* list = create(elements.data(), elements.size());
        if (list != nullptr) owned_.resize(before);  // the list owns its elements now
        return own(destroy, list, "aclCreateScalarList");
    }
    const aclScalarList* add(const std::vector<at::Scalar>& values) {
        return add(at::ArrayRef<at::Scalar>(values));
    }
    // A value that may be absent is null then.
    template <typename T>
    auto add(const c10::OptionalArrayRef<T>& values) {
        return values.has_value() ? add(*values) : nullptr;
    }
    template <typename T>
    auto add(const std::optional<T>& value) {
        return value ? add(*value) : nullptr;
    }
    // Host memory that the function writes.
    template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
    T* add(T* memory) {
        return memory;
    }
    const void* add(std::nullptr_t) { return nullptr; }
    float add(float value) { return value; }
    // Host memory for one number, for as long as the call's objects live.
    int64_t* add_memory() { return &memory_.emplace_back(0); }
    int64_t add(int64_t value) { return value; }
    double add(double value) { return value; }
    bool add(bool value) { return value; }
    // aclnn functions end a string at its first null character.
    char* add(std::string_view value) {
        TORCH_CHECK(value.find('\0') == std::string_view::npos,
                    "a string argument has a null character in it, where an aclnn function ends it; pass one "
                    "without");
        return strings_.emplace_back(value).data();
    }
    const aclBoolArray* add(const c10::List<bool>& values) {
        const c10::SmallVector<bool, 16> bools(values.begin(), values.end());
        return add(at::ArrayRef<bool>(bools.data(), bools.size()));
    }
    // Dtypes of a schema, in aclDataType's numbers.
    const aclIntArray* add(const Dtypes& dtypes) {
        std::vector<int64_t> numbers;
        for (const int64_t dtype : dtypes.values) numbers.push_back(add(Dtype{dtype}));
        return add(at::IntArrayRef(numbers));
    }
    int64_t add(Dtype dtype) {
        return dtype.value >= kNpuDtypes
                   ? dtype.value - kNpuDtypes
                   : static_cast<int64_t>(ConvertType(static_cast<at::ScalarType>(dtype.value)));
    }

    const Objects& objects = Objects::get();

    // The runtime's text on the calling thread's last error, as the end of a message.
    static std::string recent_error() {
        const char* text = aclGetRecentErrMsg == nullptr ? nullptr : aclGetRecentErrMsg();
        return text == nullptr || *text == '\0' ? "" : std::string(": ") + text;
    }

  private:
    template <typename T>
    const T* own(int (*destroy)(const T*), T* object, const char* made_by) {
        if (object == nullptr)
            throw AclnnError(std::string(made_by) + " returned null" + recent_error() +
                                 "; check that CANN and torch_npu go together: ascend-graph doctor",
                             -1);
        owned_.emplace_back(Owned{reinterpret_cast<int (*)(const void*)>(destroy), object});
        return object;
    }

    using Owned = std::pair<int (*)(const void*), const void*>;
    c10::SmallVector<Owned, 8> owned_;
    std::list<std::string> strings_;
    std::list<int64_t> memory_;
};

// --------------------------------------------------------------------------------------------------------------
// launch

namespace detail {

// What a call is from its arguments to the end of its launch, which may be on torch_npu's queue thread.
struct Call {
    explicit Call(const Function& function) : function(function), thread(std::this_thread::get_id()) {}
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call() {
        // A launched executor belongs to the runtime; one that was never launched still belongs to the call.
        if (executor != nullptr && !found && arguments.objects.destroy_executor != nullptr)
            arguments.objects.destroy_executor(executor);
    }

    template <typename AddToKey, typename GetWorkspaceSize>
    void prepare(AddToKey&& add_to_key, GetWorkspaceSize&& get_workspace_size) {
        stream = GetAclStream();
        const Determinism determinism = apply_determinism();
        if (function.is_kept) {
            CallKey key;
            // A name of our own, for other callers have keys in the same cache.
            key.add(std::string_view("ascend_graph"));
            key.add(static_cast<int64_t>(reinterpret_cast<intptr_t>(function.get_workspace_size)));
            key.add(determinism.level);
            key.add(determinism.wanted);
            key.add(static_cast<int64_t>(core_limits()));
            key.add(static_cast<int64_t>(c10_npu::current_device()));
            key.add(static_cast<int64_t>(reinterpret_cast<intptr_t>(stream)));
            add_to_key(key);
            if (key.is_whole()) return prepare_kept(key, get_workspace_size);
        }
        prepare_new(get_workspace_size);
    }

    template <typename GetWorkspaceSize>
    void prepare_kept(CallKey& key, GetWorkspaceSize&& get_workspace_size) {
        const ExecutorCache& cache = ExecutorCache::get();
        const Keeping keeping(cache, key);
        executor = cache.find(key.bytes(), key.size(), &workspace_size);
        found = executor != nullptr;
        if (!found) return prepare_new(get_workspace_size);
        workspace = GetWorkSpaceAddr(workspace_size);
    }

    template <typename GetWorkspaceSize>
    void prepare_new(GetWorkspaceSize&& get_workspace_size) {
        const int error = get_workspace_size(arguments, &workspace_size, &executor);
        if (error != 0) fail(function.name + "GetWorkspaceSize", error);
        workspace = GetWorkSpaceAddr(workspace_size);
    }

    int launch() {
        // torch_npu may try again after an out-of-memory error; an executor serves once.
        if (executor == nullptr) return status;
        InitExecSubTheadCtx(stream);
        using Run = int(void*, uint64_t, aclOpExecutor*, aclrtStream);
        status = reinterpret_cast<Run*>(function.run)(workspace, workspace_size,
                                                      std::exchange(executor, nullptr), stream);
        const auto release = arguments.objects.release_huge_memory;
        if (release != nullptr) release(nullptr, false);
        if (std::this_thread::get_id() != thread) return status;  // torch_npu reports errors of its queue
        failed = status != 0;
        return 0;
    }

    void check() const {
        if (failed) fail(function.name, status);
    }

    [[noreturn]] static void fail(const std::string& function, int code) {
        const std::string recent = Arguments::recent_error();
        throw AclnnError(function + " failed with error " + std::to_string(code) +
                             (recent.empty() ? "; set ASCEND_SLOG_PRINT_TO_STDOUT=1 to see why" : recent),
                         code);
    }

    const Function& function;
    const std::thread::id thread;
    Arguments arguments;
    aclOpExecutor* executor = nullptr;
    bool found = false;  // the executor is the cache's
    uint64_t workspace_size = 0;
    void* workspace = nullptr;
    aclrtStream stream = nullptr;
    int status = 0;
    bool failed = false;  // on the calling thread
};

// The thread-local memory of libopapi.so for one call.
class HugeMemory {
  public:
    HugeMemory() {
        if (objects_.init_huge_memory != nullptr) objects_.init_huge_memory(nullptr, false);
    }
    ~HugeMemory() {
        if (objects_.uninit_huge_memory != nullptr) objects_.uninit_huge_memory(nullptr, false);
    }
    HugeMemory(const HugeMemory&) = delete;
    HugeMemory& operator=(const HugeMemory&) = delete;

  private:
    const Objects& objects_ = Objects::get();
};

}  // namespace detail

// Calls `get_workspace_size(arguments, &workspace_size, &executor)`, which calls aclnn<Op>GetWorkspaceSize
// and returns its result, then launches aclnn<Op> on the current stream. `add_to_key(key)` says all that the
// executor depends on: where one of an equal call is kept, the first function is not called.
template <typename AddToKey, typename GetWorkspaceSize>
void launch(const FunctionPtr& function, AddToKey&& add_to_key, GetWorkspaceSize&& get_workspace_size) {
    const detail::HugeMemory huge_memory;
    if (OpApiGetTaskQueueEnable() == 0) {
        // RunAclCall launches before it returns, so that nothing needs to be on the heap.
        detail::Call call(*function);
        call.prepare(add_to_key, get_workspace_size);
        RunAclCall(function->name, [&call] { return call.launch(); });
        call.check();
    } else {
        const auto call = std::make_shared<detail::Call>(*function);
        call->prepare(add_to_key, get_workspace_size);
        RunAclCall(function->name, [call, function] { return call->launch(); });
        call->check();  // where torch_npu launched it at once after all
    }
}

// ----------------------------------------------------------------------------------------------------------------
// for generated kernels

// Describes an argument in messages.
inline std::string describe(const at::Tensor& tensor) {
    if (!tensor.defined()) return "None";
    std::ostringstream text;
    text << tensor.scalar_type() << tensor.sizes() << " on " << tensor.device();
    if (!tensor.is_contiguous()) text << " with strides " << tensor.strides();
    return text.str();
}
inline std::string describe(const std::optional<at::Tensor>& tensor) {
    return tensor ? describe(*tensor) : "None";
}
inline std::string describe(at::TensorList tensors) {
    std::string text = "[";
    for (const at::Tensor& tensor : tensors) text += (text.size() > 1 ? ", " : "") + describe(tensor);
    return text + "]";
}
inline std::string describe(const c10::List<bool>& values) {
    std::string text = "[";
    for (const bool value : values)
        text += std::string(text.size() > 1 ? ", " : "") + (value ? "True" : "False");
    return text + "]";
}
inline std::string describe(Dtype dtype) { return std::to_string(dtype.value); }
inline std::string describe(const Dtypes& dtypes) { return c10::str(dtypes.values); }
template <typename T>
std::string describe(const T& value) {
    return c10::str(value);
}

inline std::string describe(std::nullptr_t) { return "None"; }
inline std::string describe(const std::vector<at::Scalar>& values) {
    return c10::str(at::ArrayRef<at::Scalar>(values));
}
template <typename T>
std::string describe(const c10::OptionalArrayRef<T>& values) {
    return values.has_value() ? c10::str(*values) : "None";
}
template <typename T>
std::string describe(const std::optional<T>& value) {
    return value ? describe(*value) : "None";
}
template <typename T>
std::string describe(T*) {
    return "host memory";
}

// Numbers of any kind as what an aclScalarList is made from.
template <typename Numbers>
std::vector<at::Scalar> scalars_of(const Numbers& numbers) {
    std::vector<at::Scalar> made;
    for (const auto number : numbers) made.emplace_back(number);
    return made;
}
inline std::vector<at::Scalar> scalars_of(const c10::List<bool>& numbers) {
    std::vector<at::Scalar> made;
    for (const bool number : numbers) made.emplace_back(number);
    return made;
}

// A number that a function wrote into host memory, as an output of its operator.
template <typename T>
void read_back(const char* op, const at::Tensor& output, T number) {
    TORCH_CHECK(output.numel() == 1, op,
                ": the function gives one number; expected an output of one element, not ", describe(output));
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        output.fill_(static_cast<int64_t>(number));
    } else {
        output.fill_(number);
    }
}

// An integer that a C parameter can hold; the others are refused, not cut.
template <typename T>
int64_t ranged(const char* name, int64_t value) {
    const bool fits = std::is_unsigned_v<T> && sizeof(T) == 8
                          ? value >= 0
                          : value >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                                value <= static_cast<int64_t>(std::numeric_limits<T>::max());
    TORCH_CHECK(
        fits, name, " is ", value, ", which does not fit; expected ",
        std::is_unsigned_v<T> && sizeof(T) == 8 ? 0 : static_cast<int64_t>(std::numeric_limits<T>::min()),
        " or more, as the aclnn function's parameter of ", 8 * sizeof(T), " bits holds");
    return value;
}

// Calls an aclnn function with arguments of known types: those of `Arguments::add`, in the function's order.
template <typename... T>
void call(const char* op, const FunctionPtr& function, const T&... values) {
    try {
        launch(
            function, [&](CallKey& key) { (key.add(values), ...); },
            [&](Arguments& objects, uint64_t* workspace_size, aclOpExecutor** executor) {
                using GetWorkspaceSize = int(decltype(objects.add(values))..., uint64_t*, aclOpExecutor**);
                return reinterpret_cast<GetWorkspaceSize*>(function->get_workspace_size)(
                    objects.add(values)..., workspace_size, executor);
            });
    } catch (const AclnnError& error) {
        std::string text = std::string(op) + ": " + error.what() + "\n  arguments:";
        ((text += " " + describe(values)), ...);
        throw AclnnError(text, error.code);
    }
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_ACLNN_H
