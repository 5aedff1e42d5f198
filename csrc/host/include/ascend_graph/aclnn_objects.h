// What the objects of the aclnn interface hold. libopapi.so makes them; authors' hand-written aclnn
// functions, which are compiled against headers of their own, look into the same memory.
#ifndef ASCEND_GRAPH_ACLNN_OBJECTS_H
#define ASCEND_GRAPH_ACLNN_OBJECTS_H

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

namespace ascend_graph::host {

// One allocation holds the object and, behind it, its sizes and strides, and the sizes of what the memory
// holds where that is in another format: every eager call makes some.
struct TensorObject {
    explicit TensorObject(uint64_t rank, uint64_t kept_rank = 0) : rank(rank), kept_rank(kept_rank) {}
    TensorObject(const TensorObject&) = delete;
    TensorObject& operator=(const TensorObject&) = delete;
    ~TensorObject() {
        if (view != nullptr) free_view(view);
    }
    static void operator delete(void* memory) { ::operator delete(memory); }

    void* storage = nullptr;
    int64_t offset = 0;
    int32_t dtype = 0;
    int32_t format = 0;
    uint64_t rank, kept_rank;
    // What a hand-written aclnn function made of it, and who frees that.
    mutable void* view = nullptr;
    mutable void (*free_view)(void*) = nullptr;

    int64_t* sizes() { return reinterpret_cast<int64_t*>(this + 1); }
    int64_t* strides() { return sizes() + rank; }
    const int64_t* sizes() const { return reinterpret_cast<const int64_t*>(this + 1); }
    const int64_t* strides() const { return sizes() + rank; }
    int64_t* kept() { return strides() + rank; }
    const int64_t* kept() const { return strides() + rank; }
};

// Whether an aclFormat keeps numbers otherwise than in the order of a tensor's sizes.
inline bool in_blocks(int32_t format) {
    switch (format) {
        case 3:   // NC1HWC0
        case 4:   // FRACTAL_Z
        case 29:  // FRACTAL_NZ
        case 32:  // NDC1HWC0
        case 33:  // FRACTAL_Z_3D
            return true;
        default:
            return format >= 50 && format <= 54;  // FRACTAL_NZ_C0_16 and its kin
    }
}

// Numbers that every tensor has room for: aclInitTensor may give it other ranks, up to 8.
constexpr uint64_t kLeastRoom = 3 * 8;

// `T` is an aclTensor: a TensorObject without members of its own.
template <typename T>
T* create_tensor(uint64_t rank, uint64_t kept_rank = 0) {
    static_assert(sizeof(T) == sizeof(TensorObject));
    const uint64_t room = std::max(2 * rank + kept_rank, kLeastRoom);
    return new (::operator new(sizeof(T) + room * sizeof(int64_t))) T(rank, kept_rank);
}

struct ScalarObject {
    int32_t dtype = 0;
    alignas(16) unsigned char value[16] = {};
};

template <typename T>
struct ArrayObject {
    std::vector<T> values;
};

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_ACLNN_OBJECTS_H
