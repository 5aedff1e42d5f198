// The aclnn objects' contents, private to libopapi.so.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

// One allocation holds the object and, behind it, its sizes and strides: every eager call makes some.
struct aclTensor {
    void* storage;
    int64_t offset;
    int32_t dtype;
    int32_t format;
    uint64_t rank;

    int64_t* sizes() { return reinterpret_cast<int64_t*>(this + 1); }
    int64_t* strides() { return sizes() + rank; }
    const int64_t* sizes() const { return reinterpret_cast<const int64_t*>(this + 1); }
    const int64_t* strides() const { return sizes() + rank; }

    static aclTensor* create(uint64_t rank) {
        void* memory = ::operator new(sizeof(aclTensor) + 2 * rank * sizeof(int64_t));
        return new (memory) aclTensor{nullptr, 0, 0, 0, rank};
    }
    static void operator delete(void* memory) { ::operator delete(memory); }
};
struct aclScalar {
    int32_t dtype;
    alignas(16) unsigned char value[16];
};
struct aclIntArray {
    std::vector<int64_t> values;
};
struct aclFloatArray {
    std::vector<float> values;
};
struct aclBoolArray {
    std::vector<unsigned char> values;
};
struct aclTensorList {
    std::vector<const aclTensor*> tensors;
};
struct aclScalarList {
    std::vector<const aclScalar*> scalars;
};
