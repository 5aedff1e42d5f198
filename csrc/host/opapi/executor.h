// The executor of one aclnn call: copies of its arguments, and what runs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ascend_graph/aclnn_adapter.h"
#include "opapi/dtype.h"
#include "opapi/executor_cache.h"
#include "opapi/meta.h"

namespace ascend_graph::host {

// Memory for the copies of one call's arguments: a block of its own that most calls fit into, then the heap.
class Arena {
  public:
    Arena() = default;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // Not initialized.
    template <typename T>
    T* allocate(size_t count) {
        static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
        const size_t size = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        if (size > static_cast<size_t>(end_ - next_)) {
            const size_t block = std::max(size, sizeof(own_));
            next_ = more_.emplace_back(new char[block]).get();
            end_ = next_ + block;
        }
        T* allocated = reinterpret_cast<T*>(next_);
        next_ += size;
        return allocated;
    }

    template <typename T>
    T* copy(const T* values, size_t count) {
        T* copied = allocate<T>(count);
        std::copy_n(values, count, copied);
        return copied;
    }

  private:
    static constexpr size_t kAlignment = alignof(std::max_align_t);
    // With it the executor stays below the sizes that malloc serves at once from a thread's cache.
    alignas(kAlignment) char own_[768];
    char* next_ = own_;
    char* end_ = own_ + sizeof(own_);
    std::vector<std::unique_ptr<char[]>> more_;
};

// An aclTensor of the caller, and the copy of it.
struct Source {
    const aclTensor* tensor;
    Tensor* copy;
    int64_t byte_offset;  // of the copy's data, in the storage
    Source* next;

    void move(void* address) const {
        copy->data = address == nullptr ? nullptr : static_cast<char*>(address) + byte_offset;
    }
};

// Between which tensors of a call its outputs begin, as far as its caller has said it.
struct OutputsFrom {
    size_t least = 0;
    size_t most = std::numeric_limits<int32_t>::max();

    void narrow(size_t low, size_t high) { least = std::max(least, low), most = std::min(most, high); }
};

// Owns a copy of every argument.
struct Executor {
    Executor(const char* name, KernelEntry kernel)
        : entry(kernel), op_type(arena.copy(name, std::strlen(name) + 1)), place(claim_kept_call()) {}
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    // Virtual, as libraries that CANN built delete executors: by the first entries of the table of functions.
    virtual ~Executor() {
        if (place != nullptr) give_up(place);
        if (prepared.destroy != nullptr) prepared.destroy(prepared.state);
    }

    Arena arena;
    KernelEntry entry;
    const char* op_type;
    Value* values = nullptr;
    size_t count = 0;
    size_t capacity = 0;
    ascendgraphPrepared prepared{};
    void* workspace = nullptr;
    uint64_t workspace_size = 0;
    void* user_handle = nullptr;  // what a hand-written function keeps from its first half to its second
    KeptCall* place;              // where it goes when it has run; null where it is not kept
    Source* sources = nullptr;
    ascendgraphPrepare prepare = nullptr;  // how it was prepared
    bool is_function = false;              // prepared by ascendgraphPrepareFunction
    OutputsFrom outputs_from;
    OutputsFrom output_lists_from;  // counted by parameters
    // Itself where it runs more than once; what has its values where it is one of those runs.
    std::shared_ptr<aclOpExecutor> kept;
    std::vector<int64_t> byte_offsets;  // of an executor that may be kept: of its tensors, in their storages

    // Says what is wrong with the source and returns its error; 0 where nothing is.
    int copy(const aclTensor& source, Tensor& target) {
        const auto* dims = arena.copy(source.sizes(), 2 * source.rank);
        Source* const kept_source = arena.allocate<Source>(1);
        *kept_source = {&source, &target, 0, std::exchange(sources, kept_source)};
        char* data = static_cast<char*>(source.storage);
        if (in_blocks(source.format)) {
            never_keep();  // a key does not know the format
            target = {data,
                      source.dtype,
                      static_cast<int32_t>(source.rank),
                      dims,
                      dims + source.rank,
                      source.format,
                      static_cast<int32_t>(source.kept_rank),
                      arena.copy(source.kept(), source.kept_rank),
                      source.offset};
            return 0;
        }
        const std::optional<int64_t> offset = byte_offset(source.dtype, source.offset);
        if (!offset) return within_a_byte(source);
        if (data != nullptr) data += *offset;
        kept_source->byte_offset = *offset;
        if (place != nullptr) byte_offsets.push_back(*offset);
        target = {data, source.dtype, static_cast<int32_t>(source.rank), dims, dims + source.rank};
        return 0;
    }

    Value& add(ValueKind kind, uint64_t length = 0) {
        if (count == capacity) {
            capacity = std::max<size_t>(8, 2 * capacity);
            auto* grown = arena.allocate<Value>(capacity);
            std::copy_n(values, count, grown);
            values = grown;
        }
        Value& added = values[count++] = Value{};
        added.kind = kind;
        added.count = length;
        return added;
    }

    // Null where the array is: an absent argument.
    template <typename Array>
    Value* add_array(ValueKind kind, const Array* array) {
        if (array != nullptr) return &add(kind, array->values.size());
        add(ValueKind::kAbsent);
        return nullptr;
    }

    int missing(const char* name) const {
        return ascendgraphFail(
            kParamNullptr,
            (std::string("aclnn") + op_type + ": required parameter '" + name + "' is null").c_str());
    }

    int within_a_byte(const aclTensor& tensor) const {
        const std::string offset = std::to_string(tensor.offset);
        return ascendgraphFail(kParamInvalid,
                               (std::string("aclnn") + op_type + ": a tensor of aclDataType " +
                                std::to_string(tensor.dtype) + " has the storage offset " + offset +
                                "; two elements lie in a byte, so that the offset must be even")
                                   .c_str());
    }

    // What was prepared knows the tensors' addresses.
    void never_keep() {
        if (place != nullptr) give_up(std::exchange(place, nullptr));
    }
    bool is_repeatable() const { return kept.get() == static_cast<const void*>(this); }
    size_t tensor_count() const { return byte_offsets.size(); }
    // The same call with its tensors in other storages, in the order of the arguments.
    void move_to(void* const* storages) {
        size_t n = 0;
        for (Value* value = values; value != values + count; ++value) {
            if (value->kind != ValueKind::kTensor && value->kind != ValueKind::kTensorList) continue;
            for (auto* tensor = const_cast<Tensor*>(value->tensors); tensor != value->tensors + value->count;
                 ++tensor, ++n) {
                char* const storage = static_cast<char*>(storages[n]);
                tensor->data = storage == nullptr ? nullptr : storage + byte_offsets[n];
            }
        }
    }
};

// One run of an executor that is repeatable, in its place: prepared, and gone when it has run. Null on
// failure.
int one_run(aclOpExecutor*& executor);

// Ends the collection of a call whose executor its caller destroys (nnopbase.cpp).
void forget_collected(const void* executor);

}  // namespace ascend_graph::host

struct aclOpExecutor : ascend_graph::host::Executor {
    using Executor::Executor;
};
