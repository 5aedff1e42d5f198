// aclTensor, aclScalar and the arrays of the aclnn interface.
#include "opapi/meta.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "acl/abi.h"
#include "ascend_graph/host_runtime.h"
#include "opapi/dtype.h"

using ascend_graph::host::fail_null;

namespace {

constexpr int kParamNullptr = 161001;  // ACLNN_ERR_PARAM_NULLPTR
constexpr int kParamInvalid = 161002;  // ACLNN_ERR_PARAM_INVALID

template <typename Result>
Result* null_argument(const char* function, const char* parameters) {
    fail_null(kParamNullptr, function, parameters);
    return nullptr;
}

template <typename T>
int destroy(const T* object) {
    delete object;
    return 0;
}

}  // namespace

extern "C" int aclInit(const char* config);

ACL_EXPORT int aclnnInit(const char* config) {
    constexpr int kRepeated = 100002;  // ACL_ERROR_REPEAT_INITIALIZE
    const int error = aclInit(config);
    return error == kRepeated ? 0 : error;
}

ACL_EXPORT int aclnnFinalize() { return 0; }

namespace {

void set(aclTensor* tensor, const int64_t* sizes, int dtype, const int64_t* strides, int64_t offset,
         int format, const int64_t* storage_sizes, void* data) {
    const uint64_t rank = tensor->rank;
    tensor->storage = data;
    tensor->offset = offset;
    tensor->dtype = dtype;
    tensor->format = format;
    std::copy_n(sizes, rank, tensor->sizes());
    std::copy_n(storage_sizes, tensor->kept_rank, tensor->kept());
    if (strides != nullptr) {
        std::copy_n(strides, rank, tensor->strides());
        return;
    }
    int64_t stride = 1;
    for (size_t d = rank; d-- > 0;) {
        tensor->strides()[d] = stride;
        stride *= sizes[d];
    }
}

}  // namespace

ACL_EXPORT aclTensor* aclCreateTensor(const int64_t* sizes, uint64_t rank, int dtype, const int64_t* strides,
                                      int64_t offset, int format, const int64_t* storage_sizes,
                                      uint64_t storage_rank, void* data) {
    if ((rank != 0 && sizes == nullptr) || (storage_rank != 0 && storage_sizes == nullptr)) {
        return null_argument<aclTensor>("aclCreateTensor", "viewDims or storageDims");
    }
    aclTensor* tensor = aclTensor::create(rank, storage_rank);
    set(tensor, sizes, dtype, strides, offset, format, storage_sizes, data);
    return tensor;
}
ACL_EXPORT int aclInitTensor(aclTensor* tensor, const int64_t* sizes, uint64_t rank, int dtype,
                             const int64_t* strides, int64_t offset, int format, const int64_t* storage_sizes,
                             uint64_t storage_rank, void* data) {
    if (tensor == nullptr || (rank != 0 && sizes == nullptr) ||
        (storage_rank != 0 && storage_sizes == nullptr)) {
        return fail_null(kParamNullptr, "aclInitTensor", "tensor, viewDims or storageDims");
    }
    if (2 * rank + storage_rank > ascend_graph::host::kLeastRoom) {
        return ascendgraphFail(kParamInvalid, ("aclInitTensor: viewDimsNum is " + std::to_string(rank) +
                                               "; expected at most 8 dimensions")
                                                  .c_str());
    }
    if (tensor->view != nullptr) tensor->free_view(std::exchange(tensor->view, nullptr));
    tensor->rank = rank;
    tensor->kept_rank = storage_rank;
    set(tensor, sizes, dtype, strides, offset, format, storage_sizes, data);
    return 0;
}
ACL_EXPORT int aclSetRawTensorAddr(aclTensor* tensor, void* address) {
    if (tensor == nullptr) return fail_null(kParamNullptr, "aclSetRawTensorAddr", "tensor");
    if (tensor->view != nullptr) tensor->free_view(std::exchange(tensor->view, nullptr));
    tensor->storage = address;
    return 0;
}
ACL_EXPORT int aclGetRawTensorAddr(const aclTensor* tensor, void** address) {
    if (tensor == nullptr || address == nullptr)
        return fail_null(kParamNullptr, "aclGetRawTensorAddr", "tensor or addr");
    *address = tensor->storage;
    return 0;
}

ACL_EXPORT aclScalar* aclCreateScalar(void* value, int dtype) {
    if (value == nullptr) return null_argument<aclScalar>("aclCreateScalar", "value");
    auto* scalar = new aclScalar{};
    scalar->dtype = dtype;
    std::memcpy(scalar->value, value, std::min(ascend_graph::host::item_size(dtype), sizeof(scalar->value)));
    return scalar;
}
ACL_EXPORT aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
    if (size != 0 && value == nullptr) return null_argument<aclIntArray>("aclCreateIntArray", "value");
    return new aclIntArray{{{value, value + size}}};
}
ACL_EXPORT aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
    if (size != 0 && value == nullptr) return null_argument<aclFloatArray>("aclCreateFloatArray", "value");
    return new aclFloatArray{{{value, value + size}}};
}
ACL_EXPORT aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
    if (size != 0 && value == nullptr) return null_argument<aclBoolArray>("aclCreateBoolArray", "value");
    return new aclBoolArray{{{value, value + size}}};
}
ACL_EXPORT aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
    if (size != 0 && value == nullptr) return null_argument<aclTensorList>("aclCreateTensorList", "value");
    return new aclTensorList{{value, value + size}};
}
ACL_EXPORT aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
    if (size != 0 && value == nullptr) return null_argument<aclScalarList>("aclCreateScalarList", "value");
    return new aclScalarList{{value, value + size}};
}

ACL_EXPORT int aclDestroyTensor(const aclTensor* tensor) { return destroy(tensor); }
ACL_EXPORT int aclDestroyScalar(const aclScalar* scalar) { return destroy(scalar); }
ACL_EXPORT int aclDestroyIntArray(const aclIntArray* array) { return destroy(array); }
ACL_EXPORT int aclDestroyFloatArray(const aclFloatArray* array) { return destroy(array); }
ACL_EXPORT int aclDestroyBoolArray(const aclBoolArray* array) { return destroy(array); }

// A list owns its elements, as CANN documents.
ACL_EXPORT int aclDestroyTensorList(const aclTensorList* list) {
    if (list != nullptr) {
        for (const aclTensor* tensor : list->tensors) delete tensor;
    }
    return destroy(list);
}
ACL_EXPORT int aclDestroyScalarList(const aclScalarList* list) {
    if (list != nullptr) {
        for (const aclScalar* scalar : list->scalars) delete scalar;
    }
    return destroy(list);
}

ACL_EXPORT int aclGetViewShape(const aclTensor* tensor, int64_t** sizes, uint64_t* rank) {
    if (tensor == nullptr || sizes == nullptr || rank == nullptr) {
        return fail_null(kParamNullptr, "aclGetViewShape", "an argument");
    }
    *rank = tensor->rank;
    *sizes = new int64_t[tensor->rank];  // the caller frees it with delete[], as CANN documents
    std::copy_n(tensor->sizes(), tensor->rank, *sizes);
    return 0;
}
ACL_EXPORT int aclGetStorageShape(const aclTensor* tensor, int64_t** sizes, uint64_t* rank) {
    if (tensor == nullptr || sizes == nullptr || rank == nullptr)
        return fail_null(kParamNullptr, "aclGetStorageShape", "an argument");
    *rank = tensor->kept_rank;
    *sizes = new int64_t[tensor->kept_rank];
    std::copy_n(tensor->kept(), tensor->kept_rank, *sizes);
    return 0;
}
ACL_EXPORT int aclGetViewStrides(const aclTensor* tensor, int64_t** strides, uint64_t* rank) {
    if (tensor == nullptr || strides == nullptr || rank == nullptr) {
        return fail_null(kParamNullptr, "aclGetViewStrides", "an argument");
    }
    *rank = tensor->rank;
    *strides = new int64_t[tensor->rank];
    std::copy_n(tensor->strides(), tensor->rank, *strides);
    return 0;
}
ACL_EXPORT int aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
    if (tensor == nullptr || offset == nullptr)
        return fail_null(kParamNullptr, "aclGetViewOffset", "an argument");
    *offset = tensor->offset;
    return 0;
}
ACL_EXPORT int aclGetDataType(const aclTensor* tensor, int* dtype) {
    if (tensor == nullptr || dtype == nullptr)
        return fail_null(kParamNullptr, "aclGetDataType", "an argument");
    *dtype = tensor->dtype;
    return 0;
}
ACL_EXPORT int aclGetFormat(const aclTensor* tensor, int* format) {
    if (tensor == nullptr || format == nullptr)
        return fail_null(kParamNullptr, "aclGetFormat", "an argument");
    *format = tensor->format;
    return 0;
}
namespace {
template <typename List>
int count(const char* function, const List* list, size_t length, uint64_t* size) {
    if (list == nullptr || size == nullptr) return fail_null(kParamNullptr, function, "an argument");
    *size = length;
    return 0;
}
template <typename Array>
size_t length_of(const Array* array) {
    return array == nullptr ? 0 : array->values.size();
}
}  // namespace

ACL_EXPORT int aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
    return count("aclGetIntArraySize", array, length_of(array), size);
}
ACL_EXPORT int aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
    return count("aclGetFloatArraySize", array, length_of(array), size);
}
ACL_EXPORT int aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
    return count("aclGetBoolArraySize", array, length_of(array), size);
}
ACL_EXPORT int aclGetTensorListSize(const aclTensorList* list, uint64_t* size) {
    return count("aclGetTensorListSize", list, list == nullptr ? 0 : list->tensors.size(), size);
}
ACL_EXPORT int aclGetScalarListSize(const aclScalarList* list, uint64_t* size) {
    return count("aclGetScalarListSize", list, list == nullptr ? 0 : list->scalars.size(), size);
}
