// Descriptions of tensors.
#include "acl/tensor_desc.h"

#include <algorithm>
#include <string>

#include "acl/runtime.h"

using namespace ascend_graph::host;

extern "C" size_t aclDataTypeSize(aclDataType dtype);

ACL_EXPORT aclTensorDesc* aclCreateTensorDesc(aclDataType dtype, int rank, const int64_t* dims,
                                              aclFormat format) {
    if (rank < 0 || (rank > 0 && dims == nullptr)) return nullptr;
    return new aclTensorDesc{dtype, format, {dims, dims + rank}, {}, 2, {}, {}};
}
ACL_EXPORT void aclDestroyTensorDesc(const aclTensorDesc* desc) { delete desc; }
ACL_EXPORT void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
    if (desc != nullptr && name != nullptr) desc->name = name;
}
ACL_EXPORT aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
    if (desc == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorFormat", "desc");
    desc->kept_format = static_cast<int32_t>(format);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclSetTensorShape(aclTensorDesc* desc, int rank, const int64_t* dims) {
    if (desc == nullptr || rank < 0 || (rank > 0 && dims == nullptr))
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorShape", "desc or its dims");
    desc->kept.assign(dims, dims + rank);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclSetTensorPlaceMent(aclTensorDesc*, int) { return ACL_SUCCESS; }
ACL_EXPORT aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
    return desc == nullptr ? static_cast<aclDataType>(-1) : desc->dtype;
}
ACL_EXPORT aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
    return desc == nullptr ? static_cast<aclFormat>(-1) : desc->format;
}
ACL_EXPORT size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
    return desc == nullptr ? 0 : desc->dims.size();
}
ACL_EXPORT aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* size) {
    if (desc == nullptr || size == nullptr || index >= desc->dims.size()) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclGetTensorDescDimV2: index " + std::to_string(index) +
                        " is out of range; expected less than aclGetTensorDescNumDims");
    }
    *size = desc->dims[index];
    return ACL_SUCCESS;
}

ACL_EXPORT const char* aclGetTensorDescName(aclTensorDesc* desc) {
    return desc == nullptr ? "" : desc->name.c_str();
}
ACL_EXPORT size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
    size_t count = desc != nullptr;
    if (desc != nullptr) {
        for (int64_t size : desc->dims) count *= size > 0 ? static_cast<size_t>(size) : 0;
    }
    return count;
}
ACL_EXPORT size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
    return desc == nullptr ? 0 : aclGetTensorDescElementCount(desc) * aclDataTypeSize(desc->dtype);
}

// The first form, with a result for a size that is not there.
ACL_EXPORT int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
    int64_t size = -1;
    return aclGetTensorDescDimV2(desc, index, &size) == ACL_SUCCESS ? size : -1;
}
// As older names have it: how memory holds the tensor.
ACL_EXPORT aclError aclSetTensorStorageFormat(aclTensorDesc* desc, aclFormat format) {
    if (desc == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorStorageFormat", "desc");
    return aclSetTensorFormat(desc, format);
}
ACL_EXPORT aclError aclSetTensorStorageShape(aclTensorDesc* desc, int rank, const int64_t* dims) {
    if (desc == nullptr || rank < 0 || (rank > 0 && dims == nullptr))
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorStorageShape", "desc or its dims");
    return aclSetTensorShape(desc, rank, dims);
}
// And what it is without regard to memory.
ACL_EXPORT aclError aclSetTensorOriginFormat(aclTensorDesc* desc, aclFormat format) {
    if (desc == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorOriginFormat", "desc");
    desc->format = format;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclSetTensorOriginShape(aclTensorDesc* desc, int rank, const int64_t* dims) {
    if (desc == nullptr || rank < 0 || (rank > 0 && dims == nullptr))
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorOriginShape", "desc or its dims");
    desc->dims.assign(dims, dims + rank);
    return ACL_SUCCESS;
}

// Sizes of a dimension that is only known when the operator runs.
ACL_EXPORT aclError aclSetTensorShapeRange(aclTensorDesc* desc, size_t count, int64_t ranges[][2]) {
    if (desc == nullptr || (count != 0 && ranges == nullptr))
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclSetTensorShapeRange", "desc or dimsRange");
    desc->shape_range.clear();
    for (size_t i = 0; i < count; ++i) desc->shape_range.emplace_back(ranges[i][0], ranges[i][1]);
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclGetTensorDescDimRange(const aclTensorDesc* desc, size_t index, size_t count,
                                             int64_t* range) {
    constexpr const char* function = "aclGetTensorDescDimRange";
    if (desc == nullptr || range == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, function, "desc or dimRange");
    if (index >= desc->dims.size() || count < 2)
        return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": index " + std::to_string(index) +
                                                 " or dimRangeNum " + std::to_string(count) +
                                                 " is out of range; expected less than " +
                                                 std::to_string(desc->dims.size()) + ", and at least 2");
    const int64_t size = desc->dims[index];
    const auto known =
        index < desc->shape_range.size() ? desc->shape_range[index] : std::make_pair(size, size);
    range[0] = known.first;
    range[1] = known.second;
    return ACL_SUCCESS;
}
