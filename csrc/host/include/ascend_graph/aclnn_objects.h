// What the objects of the aclnn interface hold. libopapi.so makes them; authors' hand-written aclnn
// functions, which are compiled against headers of their own, look into the same memory.
#ifndef ASCEND_GRAPH_ACLNN_OBJECTS_H
#define ASCEND_GRAPH_ACLNN_OBJECTS_H

#include <cstdint>
#include <new>
#include <vector>

namespace ascend_graph::host {

// One allocation holds the object and, behind it, its sizes and strides: every eager call makes some.
struct TensorObject {
    explicit TensorObject(uint64_t rank) : rank(rank) {}
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
    uint64_t rank;
    // What a hand-written aclnn function made of it, and who frees that.
    mutable void* view = nullptr;
    mutable void (*free_view)(void*) = nullptr;

    int64_t* sizes() { return reinterpret_cast<int64_t*>(this + 1); }
    int64_t* strides() { return sizes() + rank; }
    const int64_t* sizes() const { return reinterpret_cast<const int64_t*>(this + 1); }
    const int64_t* strides() const { return sizes() + rank; }
};

// `T` is an aclTensor: a TensorObject without members of its own.
template <typename T>
T* create_tensor(uint64_t rank) {
    static_assert(sizeof(T) == sizeof(TensorObject));
    return new (::operator new(sizeof(T) + 2 * rank * sizeof(int64_t))) T(rank);
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
