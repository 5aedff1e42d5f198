// Dynamic inputs and outputs: the addresses and shapes of several tensors in one piece of global memory.
//
// The first word is the offset of the addresses in bytes. Behind it, for each tensor: its rank in the lower
// half of a word and its index in the upper half, then its sizes. The addresses follow.
#ifndef ASCENDC_HOST_BASIC_API_LIST_H
#define ASCENDC_HOST_BASIC_API_LIST_H

#include "ascendc_host/basic_api/tensor.h"

namespace AscendC {

template <typename T>
class TensorDesc {
  public:
    // Where GetDesc writes the sizes; without it only the address is known.
    void SetShapeAddr(uint64_t* sizes) { sizes_ = sizes; }
    uint64_t GetDim() const { return rank_; }
    uint64_t GetIndex() const { return index_; }
    uint64_t GetShape(uint32_t axis, const Where& where = Where()) const {
        if (sizes_ == nullptr || axis >= rank_) {
            ascendc_host::fail(
                ascendc_host::enter(where), where,
                ascendc_host::format("TensorDesc: dimension %u of a tensor of rank %llu%s", axis,
                                     static_cast<unsigned long long>(rank_),
                                     sizes_ == nullptr ? "; SetShapeAddr was not called" : ""));
        }
        return sizes_[axis];
    }
    T* GetDataPtr() const { return data_; }
    GlobalTensor<T> GetDataObj() const {
        GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer(data_);
        return tensor;
    }

  private:
    friend class ListTensorDesc;
    uint64_t* sizes_ = nullptr;
    uint64_t rank_ = 0, index_ = 0;
    T* data_ = nullptr;
};

class ListTensorDesc {
  public:
    ListTensorDesc() = default;
    explicit ListTensorDesc(__gm__ void* data, uint32_t = ~0u, uint32_t = ~0u) { Init(data); }

    void Init(__gm__ void* data, uint32_t = ~0u, uint32_t = ~0u) {
        words_ = static_cast<const uint64_t*>(data);
        count_ = 0;
        if (words_ == nullptr) return;
        for (const uint64_t* word = words_ + 1; word < addresses(); word += 1 + rank_of(*word)) ++count_;
    }
    uint32_t GetSize() const { return count_; }

    template <typename T>
    __gm__ T* GetDataPtr(uint32_t index, const Where& where = Where()) const {
        check(index, where);
        return reinterpret_cast<T*>(addresses()[index]);
    }
    template <typename T>
    void GetDesc(TensorDesc<T>& description, uint32_t index, const Where& where = Where()) const {
        check(index, where);
        const uint64_t* word = words_ + 1;
        for (uint32_t i = 0; i < index; ++i) word += 1 + rank_of(*word);
        description.rank_ = rank_of(*word);
        description.index_ = *word >> 32;
        description.data_ = reinterpret_cast<T*>(addresses()[index]);
        if (description.sizes_ != nullptr)
            std::memcpy(description.sizes_, word + 1, description.rank_ * sizeof(uint64_t));
    }

  private:
    static uint32_t rank_of(uint64_t word) { return static_cast<uint32_t>(word); }
    const uint64_t* addresses() const { return words_ + words_[0] / sizeof(uint64_t); }
    void check(uint32_t index, const Where& where) const {
        if (index < count_) return;
        ascendc_host::fail(ascendc_host::enter(where), where,
                           ascendc_host::format("ListTensorDesc: tensor %u of %u", index, count_));
    }

    const uint64_t* words_ = nullptr;
    uint32_t count_ = 0;
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_LIST_H
