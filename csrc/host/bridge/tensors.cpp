#include "tensors.h"

#include <array>

namespace ascend_graph::host {

at::Tensor wrap(void* data, at::ScalarType dtype, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    const auto meta = c10::scalarTypeToTypeMeta(dtype);
    const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, meta.itemsize());
    c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, at::DataPtr(data, c10::Device(c10::kCPU)),
                         c10::GetCPUAllocator(), /*resizable=*/true);
    auto tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                           c10::DispatchKeySet(c10::DispatchKey::CPU), meta);
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    return tensor;
}

at::Tensor wrap(void* data, at::ScalarType dtype, c10::IntArrayRef sizes) {
    c10::SmallVector<int64_t, 8> strides(sizes.size());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
        strides[d] = stride;
        stride *= std::max<int64_t>(sizes[d], 1);
    }
    return wrap(data, dtype, sizes, strides);
}

at::Tensor alias_on_cpu(const at::Tensor& t) {
    return wrap(t.numel() == 0 ? nullptr : t.data_ptr(), t.scalar_type(), t.sizes(), t.strides());
}

namespace {
struct DtypePair {
    int32_t ge;
    at::ScalarType torch;
};
constexpr std::array<DtypePair, 22> kDtypes{{
    {0, at::kFloat},          {1, at::kHalf},
    {2, at::kChar},           {3, at::kInt},
    {4, at::kByte},           {6, at::kShort},
    {7, at::kUInt16},         {8, at::kUInt32},
    {9, at::kLong},           {10, at::kUInt64},
    {11, at::kDouble},        {12, at::kBool},
    {16, at::kComplexFloat},  {17, at::kComplexDouble},
    {18, at::kQInt8},         {20, at::kQInt32},
    {21, at::kQUInt8},        {27, at::kBFloat16},
    {33, at::kComplexHalf},   {35, at::kFloat8_e5m2},
    {36, at::kFloat8_e4m3fn}, {37, at::kFloat8_e8m0fnu},
}};
}  // namespace

std::optional<at::ScalarType> scalar_type_of(int32_t ge_dtype) {
    for (const auto& pair : kDtypes) {
        if (pair.ge == ge_dtype) return pair.torch;
    }
    return std::nullopt;
}

std::optional<int32_t> ge_dtype_of(at::ScalarType dtype) {
    for (const auto& pair : kDtypes) {
        if (pair.torch == dtype) return pair.ge;
    }
    return std::nullopt;
}

}  // namespace ascend_graph::host
