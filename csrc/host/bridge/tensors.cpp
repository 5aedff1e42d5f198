#include "tensors.h"

#include <array>
#include <cstring>

#include "formats.h"

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

namespace {

at::Tensor kept_memory(const at::Tensor& t, const Blocks& blocks) {
    TORCH_CHECK(
        t.storage().nbytes() >= static_cast<size_t>(c10::multiply_integers(blocks.kept)) * t.itemsize(), "a ",
        t.scalar_type(), " tensor of shape ", t.sizes(), " has memory of ", t.storage().nbytes(),
        " bytes, which is kept as ", c10::IntArrayRef(blocks.kept),
        "; a tensor in blocks is not seen as another dtype: cast it to ACL_FORMAT_ND (2) first");
    return wrap(t.storage().mutable_data(), t.scalar_type(), blocks.kept);
}

}  // namespace

bool write_blocks(const at::Tensor& device, const at::Tensor& alias) {
    const auto blocks = blocks_of(device);
    if (!blocks.has_value()) return false;
    TORCH_CHECK(alias.sizes() == device.sizes() && alias.strides() == device.strides() &&
                    alias.storage_offset() == device.storage_offset(),
                "a tensor of shape ", device.sizes(), " that is kept in blocks cannot become ", alias.sizes(),
                "; cast it to ACL_FORMAT_ND (2) first: torch_npu.npu_format_cast");
    at::Tensor whole = at::empty({0}, alias.options()).set_(alias.storage(), 0, blocks->sizes);
    put_blocks(whole, *blocks, kept_memory(device, *blocks));
    return true;
}

at::Tensor alias_on_cpu(const at::Tensor& t) {
    if (const auto blocks = blocks_of(t)) {
        return unblocked(kept_memory(t, *blocks), *blocks)
            .as_strided(t.sizes(), t.strides(), t.storage_offset());
    }
    const c10::Storage& memory = t.storage();
    c10::Storage storage(c10::Storage::use_byte_size_t(), memory.nbytes(),
                         at::DataPtr(const_cast<void*>(memory.data()), c10::Device(c10::kCPU)),
                         c10::GetCPUAllocator(), /*resizable=*/true);
    auto alias = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU) | (t.key_set() & kLazyState),
        t.dtype());
    auto* impl = alias.unsafeGetTensorImpl();
    impl->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
    return alias;
}

namespace {

// As PyTorch makes them: a storage of the tensor's size without memory.
at::Tensor zero_tensor(const at::Tensor& like, c10::Device device) {
    c10::Storage storage(at::empty({0}, like.options().device(device)).storage());
    storage.unsafeGetStorageImpl()->set_nbytes(
        at::detail::computeStorageNbytes(like.sizes(), like.strides(), like.itemsize()));
    auto made = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage),
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1).add(c10::DispatchKey::ZeroTensor), like.dtype());
    made.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
    return made;
}

// Whether the tensor was allocated with its strides, as new_empty_strided does: its storage ends where it
// ends. A part of something larger is a kernel's way to compute, and no property of its result.
bool has_strides_of_its_own(const at::Tensor& t) {
    return t.is_non_overlapping_and_dense() ||
           (t.storage_offset() == 0 && t.has_storage() &&
            t.storage().nbytes() == at::detail::computeStorageNbytes(t.sizes(), t.strides(), t.itemsize()));
}

}  // namespace

at::Tensor new_device_tensor(const at::Tensor& like, c10::Device device) {
    const auto options = like.options().device(device).pinned_memory(false);
    at::Tensor made;
    if (like._is_zerotensor()) {
        made = zero_tensor(like, device);
    } else if (has_strides_of_its_own(like)) {
        made = at::empty_strided(like.sizes(), like.strides(), options);
    } else {
        made = at::empty(like.sizes(), options);
    }
    if (like.is_conj()) made._set_conj(true);
    if (like.is_neg()) made._set_neg(true);
    return made;
}

void copy_to_device(const at::Tensor& device, const at::Tensor& cpu) {
    if (cpu.numel() == 0 || cpu._is_zerotensor()) return;
    if (device.dtype() == cpu.dtype() && device.strides() == cpu.strides() &&
        has_strides_of_its_own(device)) {
        std::memcpy(device.mutable_data_ptr(), cpu.const_data_ptr(),
                    at::detail::computeStorageNbytes(cpu.sizes(), cpu.strides(), cpu.itemsize()));
    } else {
        alias_on_cpu(device).copy_(cpu);
    }
}

at::Tensor view_on_device(const at::Tensor& device, const at::Tensor& alias, const at::Tensor& result) {
    auto view = at::detail::make_tensor<c10::TensorImpl>(
        c10::TensorImpl::VIEW, c10::Storage(device.storage()),
        (device.key_set() - kLazyState) | (result.key_set() & kLazyState), result.dtype());
    view.unsafeGetTensorImpl()->set_sizes_and_strides(
        result.sizes(), result.strides(),
        device.storage_offset() + result.storage_offset() - alias.storage_offset());
    return view;
}

const char* layout_of(const at::Tensor& t) {
    if (t.is_quantized()) return "quantized";
    if (t.is_nested()) return "nested";
    if (t.is_mkldnn()) return "mkldnn";
    return t.layout() == at::kSparse ? "sparse COO" : "compressed sparse";
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
