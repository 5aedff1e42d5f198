#include "formats.h"

#include <atomic>
#include <cstring>
#include <numeric>
#include <typeinfo>

#include "torch_npu/csrc/core/NPUStorageImpl.h"

namespace ascend_graph::host {
namespace {

// aclFormat's numbers.
enum : int32_t { kNC1HWC0 = 3, kFractalZ = 4, kFractalNz = 29, kNDC1HWC0 = 32, kFractalZ3D = 33 };

// A format as a permutation: a tensor is padded and seen with the sizes `seen` in the place of its own, and
// the dimensions of that are kept in the order `order`.
struct Layout {
    c10::SmallVector<int64_t, 6> padded;
    c10::SmallVector<int64_t, 8> seen;
    c10::SmallVector<int64_t, 8> order;
};

// Channels in blocks, each block's with the image's points in between: NCHW, or NCDHW.
Layout images(const Blocks& b, bool deep) {
    const int64_t n = b.sizes[0], blocks = b.kept[deep ? 2 : 1], channels = b.kept.back();
    Layout layout{{n, blocks * channels}, {n, blocks, channels}, {}};
    for (size_t d = 2; d < b.sizes.size(); ++d) {
        layout.padded.push_back(b.sizes[d]);
        layout.seen.push_back(b.sizes[d]);
    }
    if (deep) {
        layout.order = {0, 3, 1, 4, 5, 2};
    } else {
        layout.order = {0, 1, 3, 4, 2};
    }
    return layout;
}

// Filters in blocks of 16 by blocks of channels: NCHW, or NCDHW.
Layout filters(const Blocks& b, bool deep) {
    const int64_t filters = b.kept[1], filter = b.kept[2], channel = b.kept[3];
    int64_t points = 1;
    for (size_t d = 2; d < b.sizes.size(); ++d) points *= b.sizes[d];
    const int64_t channels = points == 0 ? 0 : b.kept[0] / points;
    Layout layout{{filters * filter, channels * channel}, {filters, filter, channels, channel}, {}};
    for (size_t d = 2; d < b.sizes.size(); ++d) {
        layout.padded.push_back(b.sizes[d]);
        layout.seen.push_back(b.sizes[d]);
    }
    if (deep) {
        layout.order = {4, 2, 5, 6, 0, 1, 3};
    } else {
        layout.order = {2, 4, 5, 0, 1, 3};
    }
    return layout;
}

Layout layout_of(const Blocks& b) {
    const auto expect = [&](size_t rank, size_t kept) {
        TORCH_CHECK(b.sizes.size() == rank && b.kept.size() == kept, "a tensor of shape ",
                    c10::IntArrayRef(b.sizes), " cannot be kept in the format ", format_name(b.format),
                    " as ", c10::IntArrayRef(b.kept), "; tensors of ", rank, " dimensions can");
    };
    Layout layout;
    switch (b.format) {
        case kNC1HWC0:
            expect(4, 5);
            layout = images(b, false);
            break;
        case kNDC1HWC0:
            expect(5, 6);
            layout = images(b, true);
            break;
        case kFractalZ:
            expect(4, 4);
            layout = filters(b, false);
            break;
        case kFractalZ3D:
            expect(5, 4);
            layout = filters(b, true);
            break;
        default:
            TORCH_CHECK(false, "the format ", b.format,
                        " is not supported on the host; cast the tensor to ACL_FORMAT_ND (2): "
                        "torch_npu.npu_format_cast");
    }
    bool fits = c10::multiply_integers(layout.seen) == c10::multiply_integers(b.kept);
    for (size_t d = 0; d < b.sizes.size(); ++d) fits = fits && layout.padded[d] >= b.sizes[d];
    TORCH_CHECK(fits, "memory of sizes ", c10::IntArrayRef(b.kept),
                " does not fit; expected that of a tensor of shape ", c10::IntArrayRef(b.sizes),
                " in the format ", format_name(b.format));
    return layout;
}

// The dimensions as they are kept, of what the layout sees.
c10::SmallVector<int64_t, 8> ordered(const Layout& layout) {
    c10::SmallVector<int64_t, 8> sizes;
    for (int64_t d : layout.order) sizes.push_back(layout.seen[static_cast<size_t>(d)]);
    return sizes;
}

// The part of a padded tensor that the tensor itself is.
at::Tensor inner(at::Tensor padded, c10::IntArrayRef sizes) {
    for (size_t d = 0; d < sizes.size(); ++d) padded = padded.narrow(static_cast<int64_t>(d), 0, sizes[d]);
    return padded;
}

// FRACTAL_NZ has the rows and columns of the last two dimensions in blocks of 16 rows of 32 bytes, column of
// blocks by column. Calls `copy(plain, kept, bytes)` for what of a row is in a block.
template <typename Copy>
void for_rows_of_blocks(const at::Tensor& plain, const at::Tensor& kept, const Blocks& b, Copy copy) {
    const size_t rank = b.sizes.size();
    // A tensor of one dimension is a matrix of one column, one of none a matrix of one number.
    const int64_t rows = rank == 0 ? 1 : b.sizes[rank < 2 ? 0 : rank - 2],
                  columns = rank < 2 ? 1 : b.sizes[rank - 1];
    const int64_t* const k = b.kept.data() + (b.kept.size() < 4 ? 0 : b.kept.size() - 4);
    TORCH_CHECK(
        b.kept.size() == std::max<size_t>(rank, 2) + 2 && rows <= k[1] * k[2] && columns <= k[0] * k[3],
        "memory of sizes ", c10::IntArrayRef(b.kept), " does not fit; expected that of a tensor of shape ",
        c10::IntArrayRef(b.sizes), " in the format FRACTAL_NZ, whose last two dimensions become four");
    const auto item = static_cast<int64_t>(plain.itemsize());
    auto* const first = static_cast<char*>(plain.data_ptr());
    auto* const first_kept = static_cast<char*>(kept.data_ptr());
    const int64_t matrices = rows * columns == 0 ? 0 : plain.numel() / (rows * columns);
    for (int64_t matrix = 0; matrix < matrices; ++matrix) {
        for (int64_t row = 0; row < rows; ++row) {
            char* const line = first + (matrix * rows + row) * columns * item;
            for (int64_t block = 0; block * k[3] < columns; ++block) {
                const int64_t place = ((matrix * k[0] + block) * k[1] * k[2] + row) * k[3];
                copy(line + block * k[3] * item, first_kept + place * item,
                     static_cast<size_t>(std::min(k[3], columns - block * k[3]) * item));
            }
        }
    }
}

// libtorch_npu does not export the class's type: it is known by its name.
const torch_npu::NPUStorageDesc* description(const c10::StorageImpl& storage) {
    static std::atomic<const std::type_info*> known{nullptr};
    const std::type_info& type = typeid(storage);
    if (&type != known.load(std::memory_order_relaxed)) {
        if (std::strcmp(type.name(), "N9torch_npu14NPUStorageImplE") != 0) return nullptr;
        known.store(&type, std::memory_order_relaxed);
    }
    return &static_cast<const torch_npu::NPUStorageImpl&>(storage).npu_desc_;
}

}  // namespace

const char* format_name(int32_t format) {
    switch (format) {
        case kNC1HWC0:
            return "NC1HWC0";
        case kFractalZ:
            return "FRACTAL_Z";
        case kFractalNz:
            return "FRACTAL_NZ";
        case kNDC1HWC0:
            return "NDC1HWC0";
        case kFractalZ3D:
            return "FRACTAL_Z_3D";
        default:
            return "FRACTAL_NZ with blocks of a given width";
    }
}

std::optional<Blocks> blocks_of(const at::Tensor& t) {
    const c10::StorageImpl* storage = t.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    if (storage == nullptr) return std::nullopt;
    if (const auto* described = description(*storage)) {
        if (!in_blocks(described->npu_format_)) return std::nullopt;
        return Blocks{static_cast<int32_t>(described->npu_format_),
                      {described->storage_sizes_.begin(), described->storage_sizes_.end()},
                      {described->base_sizes_.begin(), described->base_sizes_.end()}};
    }
    if (typeid(*storage) == typeid(KeptStorage)) return static_cast<const KeptStorage*>(storage)->blocks;
    return std::nullopt;
}

Blocks blocks_of(const Tensor& t) {
    Blocks blocks{t.format, {t.kept, t.kept + t.kept_rank}, {t.sizes, t.sizes + t.rank}};
    const c10::IntArrayRef sizes(t.sizes, static_cast<size_t>(t.rank));
    const c10::IntArrayRef strides(t.strides, static_cast<size_t>(t.rank));
    const size_t rank = sizes.size();
    c10::SmallVector<size_t, 5> own(rank);  // the view's dimension that is each of the tensor's
    std::iota(own.begin(), own.end(), size_t{0});
    if (t.format == kFractalNz && rank >= 2 && strides[rank - 2] == 1 && strides[rank - 1] != 1) {
        std::swap(own[rank - 2], own[rank - 1]);
        std::swap(blocks.sizes[rank - 2], blocks.sizes[rank - 1]);
    }
    int64_t stride = 1;
    bool whole = t.view_offset == 0;
    for (size_t d = rank; d-- > 0;) {
        whole = whole && (blocks.sizes[d] == 1 || strides[own[d]] == stride);
        stride *= blocks.sizes[d];
    }
    TORCH_CHECK(
        whole, "a view with sizes ", sizes, ", strides ", strides, " and offset ", t.view_offset,
        " of a tensor in the format ", format_name(t.format), ", which is kept as ",
        c10::IntArrayRef(blocks.kept),
        ", is not one of the whole tensor or of its transposed matrices; cast it to ACL_FORMAT_ND (2) first");
    return blocks;
}

at::Tensor unblocked(const at::Tensor& kept, const Blocks& blocks) {
    if (blocks.format == kFractalNz) {
        at::Tensor plain = at::empty(blocks.sizes, kept.options());
        for_rows_of_blocks(plain, kept.contiguous(), blocks, [](char* row, const char* place, size_t bytes) {
            std::memcpy(row, place, bytes);
        });
        return plain;
    }
    const Layout layout = layout_of(blocks);
    c10::SmallVector<int64_t, 8> back(layout.order.size());
    for (size_t d = 0; d < back.size(); ++d)
        back[static_cast<size_t>(layout.order[d])] = static_cast<int64_t>(d);
    const at::Tensor padded = kept.reshape(ordered(layout)).permute(back).reshape(layout.padded);
    return inner(padded, blocks.sizes).contiguous();
}

void put_blocks(const at::Tensor& plain, const Blocks& blocks, const at::Tensor& kept) {
    if (blocks.format == kFractalNz) {
        kept.zero_();
        for_rows_of_blocks(plain.contiguous(), kept, blocks, [](const char* row, char* place, size_t bytes) {
            std::memcpy(place, row, bytes);
        });
        return;
    }
    const Layout layout = layout_of(blocks);
    at::Tensor padded = at::zeros(layout.padded, plain.options());
    inner(padded, blocks.sizes).copy_(plain);
    kept.view(ordered(layout)).copy_(padded.view(layout.seen).permute(layout.order));
}

}  // namespace ascend_graph::host
