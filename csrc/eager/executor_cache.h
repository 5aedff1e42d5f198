// The executors that libopapi.so keeps of earlier calls: what a call is, as bytes, and the way to ask for
// one.
//
// CANN's cache is the one that torch_npu's own operators use. A call is looked for by its key; where an
// executor of an equal call is kept, only the addresses of the tensors are exchanged in it, and nothing is
// converted, tiled or asked for again. Which functions may be called so is CANN's to say, function by
// function.
#ifndef ASCEND_GRAPH_EAGER_EXECUTOR_CACHE_H
#define ASCEND_GRAPH_EAGER_EXECUTOR_CACHE_H

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <acl/acl_base.h>
#include <c10/util/OptionalArrayRef.h>
#include <torch_npu/csrc/core/NPUStorageImpl.h>

#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "versions.h"

struct aclOpExecutor;
void* GetOpApiFuncAddr(const char* name);

namespace ascend_graph::eager {

// Dtypes as schemas carry them: torch's numbers, or this plus aclDataType's number for a dtype that torch
// does not have.
inline constexpr int64_t kNpuDtypes = 256;
struct Dtype {
    int64_t value;
};
struct Dtypes {
    at::IntArrayRef values;
};

namespace detail {

// torch_npu's storages, which know their format. The library does not export the class's type_info, so it is
// recognized by name, once.
inline const torch_npu::NPUStorageImpl* npu_storage(const c10::StorageImpl* storage) {
    static std::atomic<const std::type_info*> known{nullptr};
    const std::type_info* type = &typeid(*storage);
    if (type != known.load(std::memory_order_relaxed)) {
        if (std::string_view(type->name()) != "N9torch_npu14NPUStorageImplE") return nullptr;
        known.store(type, std::memory_order_relaxed);
    }
    return static_cast<const torch_npu::NPUStorageImpl*>(storage);
}

// The tensors of nearly all calls: of a common dtype, with data, stored as they are seen.
struct PlainTensor {
    at::IntArrayRef sizes;
    at::IntArrayRef strides;
    int64_t offset;
    aclDataType dtype;
    aclFormat format;
    int64_t elements;  // of the storage
    void* data;        // of the storage

    // Nothing for all others.
    static inline __attribute__((always_inline)) std::optional<PlainTensor> of(const at::Tensor& tensor) {
        const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
        // By at::ScalarType's number, up to BFloat16.
        constexpr aclDataType kDtypes[] = {ACL_UINT8,        ACL_INT8,         ACL_INT16,        ACL_INT32,
                                           ACL_INT64,        ACL_FLOAT16,      ACL_FLOAT,        ACL_DOUBLE,
                                           ACL_COMPLEX32,    ACL_COMPLEX64,    ACL_COMPLEX128,   ACL_BOOL,
                                           ACL_DT_UNDEFINED, ACL_DT_UNDEFINED, ACL_DT_UNDEFINED, ACL_BF16};
        const auto number = static_cast<size_t>(tensor.scalar_type());
        const aclDataType dtype = number < std::size(kDtypes) ? kDtypes[number] : ACL_DT_UNDEFINED;
        if (dtype == ACL_DT_UNDEFINED || !tensor.is_privateuseone() || !impl->has_storage())
            return std::nullopt;
        const c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
        const auto* npu = npu_storage(storage);
        if (npu == nullptr || storage->data() == nullptr) return std::nullopt;
        switch (npu->npu_desc_.npu_format_) {
            case ACL_FORMAT_ND:
            case ACL_FORMAT_NCHW:
            case ACL_FORMAT_NHWC:
            case ACL_FORMAT_NCDHW:
                break;
            default:
                return std::nullopt;
        }
        const at::IntArrayRef sizes = tensor.sizes();
        constexpr aclFormat kByRank[] = {ACL_FORMAT_ND,  ACL_FORMAT_ND,   ACL_FORMAT_ND,
                                         ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_NCDHW};
        const aclFormat format = sizes.size() < std::size(kByRank) ? kByRank[sizes.size()] : ACL_FORMAT_ND;
        return PlainTensor{sizes,
                           tensor.strides(),
                           tensor.storage_offset(),
                           dtype,
                           format,
                           static_cast<int64_t>(storage->nbytes() / tensor.itemsize()),
                           const_cast<void*>(storage->data())};
    }
};

}  // namespace detail

// All that a call's executor depends on, other than the addresses of tensors, as words that are equal for
// equal calls only: every value is preceded by what it is and, where that varies, by how long.
class CallKey {
  public:
    // Calls that need more are not kept.
    static constexpr size_t kWords = 512, kAddresses = 64;

    CallKey() = default;
    CallKey(const CallKey&) = delete;
    CallKey& operator=(const CallKey&) = delete;

    // Whether everything that was added has found its place in the key.
    bool is_whole() const { return whole_; }
    uint8_t* bytes() { return reinterpret_cast<uint8_t*>(words_.data()); }
    size_t size() const { return count_ * sizeof(uint64_t); }
    // The storages of the tensors, in the order in which they were added.
    c10::ArrayRef<void*> addresses() const { return {addresses_.data(), addressed_}; }

    void add(const at::Tensor& tensor) {
        if (!tensor.defined()) return add(nullptr);
        const auto plain = detail::PlainTensor::of(tensor);
        const size_t rank = plain ? plain->sizes.size() : 0;
        if (!plain || addressed_ == kAddresses || kWords - count_ < 5 + 2 * rank) {
            whole_ = false;
            return;
        }
        // Two tensors in one memory are another call than two in two: a kernel may be chosen by that.
        size_t same = 0;
        while (same < addressed_ && addresses_[same] != plain->data) ++same;
        addresses_[addressed_++] = plain->data;
        uint64_t* word = words_.data() + count_;
        *word++ = kTensor;
        *word++ = static_cast<uint64_t>(plain->dtype) << 32 | rank;
        *word++ = same;
        *word++ = static_cast<uint64_t>(plain->offset);
        *word++ = static_cast<uint64_t>(plain->elements);
        for (const int64_t size : plain->sizes) *word++ = static_cast<uint64_t>(size);
        for (const int64_t stride : plain->strides) *word++ = static_cast<uint64_t>(stride);
        count_ = static_cast<size_t>(word - words_.data());
    }
    void add(const std::optional<at::Tensor>& tensor) { tensor ? add(*tensor) : add(nullptr); }
    template <typename Tensors>
    void add_list(const Tensors& tensors) {
        put(kTensors, tensors.size());
        for (const at::Tensor& tensor : tensors) add(tensor);
    }
    void add(at::TensorList tensors) { add_list(tensors); }
    void add(at::IntArrayRef values) {
        put(kInts, values.size());
        put(values.data(), values.size() * sizeof(int64_t));
    }
    void add(at::ArrayRef<double> values) {
        put(kFloats, values.size());
        put(values.data(), values.size() * sizeof(double));
    }
    void add(const std::vector<at::Scalar>& values) { add(at::ArrayRef<at::Scalar>(values)); }
    void add(at::ArrayRef<at::Scalar> values) {
        put(kScalars, values.size());
        for (const at::Scalar& value : values) add(value);
    }
    void add(const c10::List<bool>& values) {
        put(kBools, values.size());
        for (const bool value : values) put(value);
    }
    void add(const at::Scalar& value) {
        if (value.isBoolean()) return put(kBool, value.toBool());
        if (value.isIntegral(false)) return put(kInt, static_cast<uint64_t>(value.toLong()));
        if (!value.isFloatingPoint()) {
            whole_ = false;
            return;
        }
        add(value.toDouble());
    }
    template <typename T>
    void add(const c10::OptionalArrayRef<T>& values) {
        values.has_value() ? add(*values) : add(nullptr);
    }
    template <typename T>
    void add(const std::optional<T>& value) {
        value ? add(*value) : add(nullptr);
    }
    // What is written into host memory is written by the first phase, which may not be skipped.
    template <typename T>
    void add(T*) {
        whole_ = false;
    }
    void add(std::nullptr_t) { put(kNull); }
    void add(int64_t value) { put(kInt, static_cast<uint64_t>(value)); }
    void add(bool value) { put(kBool, value); }
    void add(float value) { add(static_cast<double>(value)); }
    void add(double value) {
        uint64_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        put(kFloat, bits);
    }
    void add(std::string_view value) {
        put(kString, value.size());
        put(value.data(), value.size());
    }
    void add(Dtype dtype) { put(kInt, static_cast<uint64_t>(dtype.value)); }
    void add(const Dtypes& dtypes) { add(dtypes.values); }

  private:
    enum Tag : uint64_t {
        kNull = 1,
        kTensor,
        kTensors,
        kInts,
        kFloats,
        kScalars,
        kBools,
        kBool,
        kInt,
        kFloat,
        kString
    };
    void put(uint64_t word) {
        if (count_ == kWords) {
            whole_ = false;
            return;
        }
        words_[count_++] = word;
    }
    void put(Tag tag, uint64_t word) {
        put(tag);
        put(word);
    }
    void put(const void* values, size_t size) {
        const size_t words = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
        if (words > kWords - count_) {
            whole_ = false;
            return;
        }
        if (words == 0) return;
        words_[count_ + words - 1] = 0;  // the rest of the last word
        std::memcpy(&words_[count_], values, size);
        count_ += words;
    }

    // Not initialized: only what was written is read.
    std::array<uint64_t, kWords> words_;
    std::array<void*, kAddresses> addresses_;
    size_t count_ = 0;
    size_t addressed_ = 0;
    bool whole_ = true;
};

namespace detail {

// The functions of libopapi.so for its cache; all of them, or none is used.
struct ExecutorCache {
    template <typename Signature>
    static Signature* symbol(const char* name) {
        return reinterpret_cast<Signature*>(GetOpApiFuncAddr(name));
    }
    void (*begin)() = symbol<void()>("InitPTACacheThreadLocal");
    void (*end)() = symbol<void()>("UnInitPTACacheThreadLocal");
    bool (*can_use)(const char*) = symbol<bool(const char*)>("CanUsePTACache");
    void (*set_key)(uint8_t*, size_t) = symbol<void(uint8_t*, size_t)>("SetPTACacheHashKey");
    void (*add_address)(void*) = symbol<void(void*)>("AddTensorAddrToCachedList");
    aclOpExecutor* (*find)(uint8_t*, size_t, uint64_t*) =
        symbol<aclOpExecutor*(uint8_t*, size_t, uint64_t*)>("PTAFindExecCache");

    static const ExecutorCache& get() {
        static const ExecutorCache cache;
        return cache;
    }
    bool takes(const char* function) const {
        return begin != nullptr && end != nullptr && can_use != nullptr && set_key != nullptr &&
               add_address != nullptr && find != nullptr && can_use(function);
    }
};

// The cores that the calling thread may use, as torch_npu limits them.
inline uint64_t core_limits() {
    constexpr int kCubeCores = 0, kVectorCores = 1;
    if (c10_npu::is_core_control_enabled == nullptr || c10_npu::GetResInCurrentThread == nullptr ||
        !c10_npu::is_core_control_enabled())
        return ~uint64_t{0};
    return static_cast<uint64_t>(c10_npu::GetResInCurrentThread(kCubeCores)) << 32 |
           c10_npu::GetResInCurrentThread(kVectorCores);
}

// While it lives, the executor that an aclnn function makes on this thread is kept under the key.
class Keeping {
  public:
    Keeping(const ExecutorCache& cache, CallKey& key) : cache_(cache) {
        cache_.begin();
        for (void* address : key.addresses()) cache_.add_address(address);
        cache_.set_key(key.bytes(), key.size());
    }
    Keeping(const Keeping&) = delete;
    Keeping& operator=(const Keeping&) = delete;
    ~Keeping() { cache_.end(); }

  private:
    const ExecutorCache& cache_;
};

}  // namespace detail
}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_EXECUTOR_CACHE_H
