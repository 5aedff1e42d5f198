// Copies between the unified buffer and registers: aligned, by blocks, unaligned, and by indices.
#ifndef ASCENDC_HOST_REG_COMPUTE_LOAD_STORE_H
#define ASCENDC_HOST_REG_COMPUTE_LOAD_STORE_H

#include "ascendc_host/reg_compute/types.h"

namespace AscendC {
namespace Reg {
namespace detail {

// How many elements a copy moves between memory and a register, and what becomes of them there.
struct Distribution {
    uint32_t size;   // of an element in memory; 0: that of the type
    uint32_t bytes;  // in memory, for one register
    uint32_t alignment;
};

constexpr uint32_t size_of(LoadDist dist) {
    switch (dist) {
        case LoadDist::DIST_BRC_B8:
        case LoadDist::DIST_US_B8:
        case LoadDist::DIST_DS_B8:
        case LoadDist::DIST_UNPACK_B8:
        case LoadDist::DIST_UNPACK4_B8:
        case LoadDist::DIST_DINTLV_B8:
            return 1;
        case LoadDist::DIST_BRC_B16:
        case LoadDist::DIST_US_B16:
        case LoadDist::DIST_DS_B16:
        case LoadDist::DIST_UNPACK_B16:
        case LoadDist::DIST_E2B_B16:
        case LoadDist::DIST_DINTLV_B16:
            return 2;
        case LoadDist::DIST_BRC_B32:
        case LoadDist::DIST_UNPACK_B32:
        case LoadDist::DIST_E2B_B32:
        case LoadDist::DIST_DINTLV_B32:
            return 4;
        default:
            return 0;
    }
}
constexpr Distribution distribution(LoadDist dist) {
    const uint32_t size = size_of(dist);
    switch (dist) {
        case LoadDist::DIST_BRC_B8:
        case LoadDist::DIST_BRC_B16:
        case LoadDist::DIST_BRC_B32:
            return {size, size, size};
        case LoadDist::DIST_US_B8:
        case LoadDist::DIST_US_B16:
        case LoadDist::DIST_UNPACK_B8:
        case LoadDist::DIST_UNPACK_B16:
        case LoadDist::DIST_UNPACK_B32:
            return {size, width / 2, 32};
        case LoadDist::DIST_UNPACK4_B8:
            return {size, width / 4, 32};
        case LoadDist::DIST_DS_B8:
        case LoadDist::DIST_DS_B16:
            return {size, 2 * width, 32};
        case LoadDist::DIST_BLK:
            return {size, 32, 32};
        case LoadDist::DIST_E2B_B16:
        case LoadDist::DIST_E2B_B32:
            return {size, 8 * size, 8 * size};
        default:
            return {size, width, 32};
    }
}
constexpr bool is_dual(LoadDist dist) {
    return dist == LoadDist::DIST_DINTLV_B8 || dist == LoadDist::DIST_DINTLV_B16 ||
           dist == LoadDist::DIST_DINTLV_B32;
}
constexpr bool is_dual(StoreDist dist) {
    return dist == StoreDist::DIST_INTLV_B8 || dist == StoreDist::DIST_INTLV_B16 ||
           dist == StoreDist::DIST_INTLV_B32;
}

// Where byte `i` of a register comes from in memory; -1: it is 0.
constexpr int source_byte(LoadDist dist, uint32_t size, uint32_t i) {
    const uint32_t element = size == 0 ? 0 : i / size, inside = size == 0 ? 0 : i % size;
    switch (dist) {
        case LoadDist::DIST_BRC_B8:
        case LoadDist::DIST_BRC_B16:
        case LoadDist::DIST_BRC_B32:
            return static_cast<int>(inside);
        case LoadDist::DIST_US_B8:
        case LoadDist::DIST_US_B16:
            return static_cast<int>(element / 2 * size + inside);
        case LoadDist::DIST_DS_B8:
        case LoadDist::DIST_DS_B16:
            return static_cast<int>(2 * element * size + inside);
        case LoadDist::DIST_UNPACK_B8:
        case LoadDist::DIST_UNPACK_B16:
        case LoadDist::DIST_UNPACK_B32:
            return element % 2 != 0 ? -1 : static_cast<int>(element / 2 * size + inside);
        case LoadDist::DIST_UNPACK4_B8:
            return element % 4 != 0 ? -1 : static_cast<int>(element / 4);
        case LoadDist::DIST_BLK:
            return static_cast<int>(i % 32);
        case LoadDist::DIST_E2B_B16:
        case LoadDist::DIST_E2B_B32:
            return static_cast<int>(i / 32 * size + inside);
        default:
            return static_cast<int>(i);
    }
}

// `bytes` of the unified buffer from an address that a kernel computed. What is read may lie beyond the
// buffer that the address was taken from: an instruction reads whole registers, of which a mask uses a part.
inline unsigned char* in_buffer(const void* address, uint64_t bytes, uint32_t alignment, const char* api,
                                const Where& where) {
    const Block& block = ascendc_host::enter(where);
    auto* const begin = block.memory(ascendc_host::Memory::ub);
    const auto* const at = static_cast<const unsigned char*>(address);
    const uint64_t size = ascendc_host::whole_unified_buffer;
    if (__builtin_expect(at < begin || static_cast<uint64_t>(at - begin) > size, 0))
        refuse(api, where, "the address is not in the unified buffer");
    const uint64_t offset = static_cast<uint64_t>(at - begin);
    if (__builtin_expect(offset + bytes > size, 0)) {
        refuse(
            api, where,
            format("bytes %llu to %llu of the unified buffer, which has %llu",
                   static_cast<unsigned long long>(offset), static_cast<unsigned long long>(offset + bytes),
                   static_cast<unsigned long long>(size)));
    }
    if (__builtin_expect(offset % alignment != 0, 0)) {
        refuse(
            api, where,
            format("unaligned: byte %llu of the unified buffer is not a multiple of %u; use LoadUnAlign or "
                   "StoreUnAlign",
                   static_cast<unsigned long long>(offset), alignment));
    }
    return begin + offset;
}

// As above, for what is written: it ends where the buffer of TPipe::InitBuffer ends that it begins in.
inline unsigned char* for_writing(void* address, uint64_t bytes, uint32_t alignment, const char* api,
                                  const Where& where) {
    unsigned char* const at = in_buffer(address, bytes, alignment, api, where);
    const Block& block = ascendc_host::current();
    bool known = false;
    auto* const begin = block.memory(ascendc_host::Memory::ub);
    uint64_t rest = static_cast<uint64_t>(begin + ascendc_host::memory_bytes(ascendc_host::Memory::ub) - at);
    if (__builtin_expect(at > begin + ascendc_host::memory_bytes(ascendc_host::Memory::ub) || bytes > rest,
                         0))
        refuse(api, where, "it writes beyond what kernels have of the unified buffer");
    rest = 0;
    const auto look = [&](const ascendc_host::Buffer& buffer) {
        if (at < buffer.begin || at >= buffer.begin + buffer.bytes) return;
        known = true;
        rest = std::max<uint64_t>(rest, static_cast<uint64_t>(buffer.begin + buffer.bytes - at));
    };
    for (const auto& queue : block.queues) {
        if (queue.retired) continue;
        for (const auto& buffer : queue.buffers) look(buffer);
    }
    for (const auto& buffer : block.scratch) look(buffer);
    if (__builtin_expect(known && bytes > rest, 0)) {
        refuse(
            api, where,
            format(
                "it writes %llu bytes where its buffer has %llu; a mask (UpdateMask) leaves the rest alone",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(rest)));
    }
    return at;
}

template <LoadDist dist, typename U>
void load(U& dst, const void* address, const char* api, const Where& where) {
    constexpr Distribution how = distribution(dist);
    static_assert(!is_dual(dist), "DIST_DINTLV loads two registers: LoadAlign(dst0, dst1, address)");
    static_assert(sizeof(Element<U>) < 8 || dist == LoadDist::DIST_NORM || dist == LoadDist::DIST_BLK ||
                      dist == LoadDist::DIST_UNPACK_B32,
                  "elements of 8 bytes are loaded with DIST_NORM");
    constexpr bool norm = dist == LoadDist::DIST_NORM;
    const unsigned char* const from =
        in_buffer(address, norm ? U::bytes : how.bytes, how.alignment, api, where);
    if constexpr (norm) {
        std::memcpy(dst.data, from, U::bytes);
    } else {
        static_assert(U::bytes == width, "a RegTensor of two registers is loaded with DIST_NORM");
        for (uint32_t i = 0; i < width; ++i) {
            const int at = source_byte(dist, how.size, i);
            dst.data[i] = at < 0 ? 0 : from[at];
        }
    }
    dst.written = true;
}
template <LoadDist dist, typename U>
void load_two(U& dst0, U& dst1, const void* address, const char* api, const Where& where) {
    static_assert(is_dual(dist), "two registers are loaded with DIST_DINTLV_B8, _B16 or _B32");
    static_assert(U::bytes == width, "two registers of one part each");
    constexpr uint32_t size = size_of(dist);
    const unsigned char* const from = in_buffer(address, 2 * width, 32, api, where);
    for (uint32_t i = 0; i < width / size; ++i) {
        std::memcpy(dst0.data + i * size, from + 2 * i * size, size);
        std::memcpy(dst1.data + i * size, from + (2 * i + 1) * size, size);
    }
    dst0.written = dst1.written = true;
}

// The elements that a store takes from a register: their size there, and how much of each is stored.
struct Stored {
    uint32_t lane;
    uint32_t kept;
};
template <typename U>
constexpr Stored stored(StoreDist dist) {
    switch (dist) {
        case StoreDist::DIST_NORM_B8:
            return {1, 1};
        case StoreDist::DIST_NORM_B16:
            return {2, 2};
        case StoreDist::DIST_NORM_B32:
            return {4, 4};
        case StoreDist::DIST_PACK_B16:
            return {2, 1};
        case StoreDist::DIST_PACK_B32:
            return {4, 2};
        case StoreDist::DIST_PACK_B64:
            return {8, 4};
        case StoreDist::DIST_PACK4_B32:
            return {4, 1};
        case StoreDist::DIST_FIRST_ELEMENT_B8:
            return {1, 1};
        case StoreDist::DIST_FIRST_ELEMENT_B16:
            return {2, 2};
        case StoreDist::DIST_FIRST_ELEMENT_B32:
            return {4, 4};
        default:
            return {sizeof(Element<U>), sizeof(Element<U>)};
    }
}

template <StoreDist dist, typename U>
void store(void* address, const U& src, const MaskReg& mask, const char* api, const Where& where) {
    static_assert(!is_dual(dist), "DIST_INTLV stores two registers: StoreAlign(address, src0, src1, mask)");
    constexpr Stored how = stored<U>(dist);
    check_read(src, api, "srcReg", where);
    if constexpr (dist == StoreDist::DIST_FIRST_ELEMENT_B8 || dist == StoreDist::DIST_FIRST_ELEMENT_B16 ||
                  dist == StoreDist::DIST_FIRST_ELEMENT_B32) {
        std::memcpy(for_writing(address, how.kept, how.kept, api, where), src.data, how.kept);
        return;
    }
    check_read(mask, api, where);
    constexpr uint32_t lanes = U::bytes / how.lane, bits = width / lanes;
    uint32_t end = lanes;
    while (end > 0 && !mask.bit((end - 1) * bits)) --end;
    unsigned char* const to = for_writing(address, uint64_t(end) * how.kept, 32, api, where);
    for (uint32_t lane = 0; lane < end; ++lane) {
        if (mask.bit(lane * bits)) std::memcpy(to + lane * how.kept, src.data + lane * how.lane, how.kept);
    }
}
template <StoreDist dist, typename U>
void store_two(void* address, const U& src0, const U& src1, const char* api, const Where& where) {
    static_assert(is_dual(dist), "two registers are stored with DIST_INTLV_B8, _B16 or _B32");
    static_assert(U::bytes == width, "two registers of one part each");
    constexpr uint32_t size = dist == StoreDist::DIST_INTLV_B8    ? 1
                              : dist == StoreDist::DIST_INTLV_B16 ? 2
                                                                  : 4;
    check_read(src0, api, "srcReg0", where);
    check_read(src1, api, "srcReg1", where);
    unsigned char* const to = for_writing(address, 2 * width, 32, api, where);
    for (uint32_t i = 0; i < width / size; ++i) {
        std::memcpy(to + 2 * i * size, src0.data + i * size, size);
        std::memcpy(to + (2 * i + 1) * size, src1.data + i * size, size);
    }
}

template <typename T>
T* moved(T* address, const AddrReg& offset, const char* api, const Where& where) {
    if (!offset.written) refuse(api, where, "the AddrReg was never set; use CreateAddrReg");
    return reinterpret_cast<T*>(reinterpret_cast<uint64_t>(address) + offset.offset);
}

// Whether any element of block `index` of a register is active.
template <typename U>
bool any_of_block(const MaskReg& mask, uint32_t index) {
    for (uint32_t lane = 0; lane < 32 / sizeof(Element<U>); ++lane) {
        if (mask.bit(index * 32 + lane * sizeof(Element<U>))) return true;
    }
    return false;
}
template <typename U>
void load_blocks(U& dst, const void* address, uint32_t stride, const MaskReg& mask, const char* api,
                 const Where& where) {
    static_assert(U::bytes == width && sizeof(Element<U>) <= 4,
                  "blocks: one register of elements up to 4 bytes");
    check_read(mask, api, where);
    for (uint32_t i = 0; i < 8; ++i) {
        if (any_of_block<U>(mask, i)) {
            const auto* const from = static_cast<const unsigned char*>(address) + uint64_t(i) * stride * 32;
            std::memcpy(dst.data + i * 32, in_buffer(from, 32, 32, api, where), 32);
        } else {
            std::memset(dst.data + i * 32, 0, 32);
        }
    }
    dst.written = true;
}
template <typename U>
void store_blocks(void* address, const U& src, uint32_t stride, const MaskReg& mask, const char* api,
                  const Where& where) {
    static_assert(U::bytes == width && sizeof(Element<U>) <= 4,
                  "blocks: one register of elements up to 4 bytes");
    check_read(src, api, "srcReg", where);
    check_read(mask, api, where);
    constexpr uint32_t size = sizeof(Element<U>);
    for (uint32_t i = 0; i < 8; ++i) {
        if (!any_of_block<U>(mask, i)) continue;
        unsigned char* const to =
            for_writing(static_cast<unsigned char*>(address) + uint64_t(i) * stride * 32, 32, 32, api, where);
        for (uint32_t at = 0; at < 32; at += size) {
            if (mask.bit(i * 32 + at)) std::memcpy(to + at, src.data + i * 32 + at, size);
        }
    }
}

}  // namespace detail

// The sum of index times stride (in elements of T), for one to four loops.
template <typename T, typename... More>
AddrReg CreateAddrReg(uint16_t index, uint32_t stride, More... more) {
    static_assert(sizeof...(More) % 2 == 0 && sizeof...(More) <= 6,
                  "CreateAddrReg: one to four pairs of index and stride");
    AddrReg result;
    result.offset = uint64_t(index) * stride * sizeof(T);
    if constexpr (sizeof...(More) > 0) result.offset += CreateAddrReg<T>(more...).offset;
    result.written = true;
    return result;
}

// The functions have two names each. `Load` is LoadAlign's, `Store` is StoreAlign's.
#define ASCENDC_REG_COPIES(Load, Store)                                                                      \
    template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename A,         \
              detail::IfRegisters<U> = 0>                                                                    \
    void Load(U& dstReg, A* srcAddr, Where where = Where()) {                                                \
        static_assert(detail::agrees<T, U>, #Load ": the register has elements of another size");            \
        detail::load<dist>(dstReg, srcAddr, #Load, where);                                                   \
    }                                                                                                        \
    template <typename T = DefaultType, LoadDist dist = LoadDist::DIST_NORM, typename U, typename A,         \
              detail::IfRegisters<U> = 0>                                                                    \
    void Load(U& dstReg, A* srcAddr, const AddrReg& offset, Where where = Where()) {                         \
        detail::load<dist>(dstReg, detail::moved(srcAddr, offset, #Load, where), #Load, where);              \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode, LoadDist dist = LoadDist::DIST_NORM,           \
              typename U, typename A, detail::IfRegisters<U> = 0>                                            \
    void Load(U& dstReg, A*& srcAddr, int32_t postUpdateStride, Where where = Where()) {                     \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Load ": POST_MODE_UPDATE alone");          \
        detail::load<dist>(dstReg, srcAddr, #Load, where);                                                   \
        srcAddr += postUpdateStride;                                                                         \
    }                                                                                                        \
    template <typename T = DefaultType, LoadDist dist, typename U, typename A, detail::IfRegisters<U> = 0>   \
    void Load(U& dstReg0, U& dstReg1, A* srcAddr, Where where = Where()) {                                   \
        detail::load_two<dist>(dstReg0, dstReg1, srcAddr, #Load, where);                                     \
    }                                                                                                        \
    template <typename T = DefaultType, LoadDist dist, typename U, typename A, detail::IfRegisters<U> = 0>   \
    void Load(U& dstReg0, U& dstReg1, A* srcAddr, const AddrReg& offset, Where where = Where()) {            \
        detail::load_two<dist>(dstReg0, dstReg1, detail::moved(srcAddr, offset, #Load, where), #Load,        \
                               where);                                                                       \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode, LoadDist dist, typename U, typename A,         \
              detail::IfRegisters<U> = 0>                                                                    \
    void Load(U& dstReg0, U& dstReg1, A*& srcAddr, int32_t postUpdateStride, Where where = Where()) {        \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Load ": POST_MODE_UPDATE alone");          \
        detail::load_two<dist>(dstReg0, dstReg1, srcAddr, #Load, where);                                     \
        srcAddr += postUpdateStride;                                                                         \
    }                                                                                                        \
    template <typename T = DefaultType, DataCopyMode dataMode, typename U, typename A,                       \
              detail::IfRegisters<U> = 0>                                                                    \
    void Load(U& dstReg, A* srcAddr, uint32_t dataBlockStride, const MaskReg& mask, Where where = Where()) { \
        detail::load_blocks(dstReg, srcAddr, dataBlockStride, mask, #Load, where);                           \
    }                                                                                                        \
    template <typename T = DefaultType, DataCopyMode dataMode, PostLiteral postMode, typename U, typename A, \
              detail::IfRegisters<U> = 0>                                                                    \
    void Load(U& dstReg, A*& srcAddr, uint32_t dataBlockStride, uint32_t repeatStride, const MaskReg& mask,  \
              Where where = Where()) {                                                                       \
        A* const next = srcAddr + repeatStride * (32 / sizeof(A));                                           \
        constexpr bool update = postMode == PostLiteral::POST_MODE_UPDATE;                                   \
        detail::load_blocks(dstReg, update ? srcAddr : next, dataBlockStride, mask, #Load, where);           \
        if (update) srcAddr = next;                                                                          \
    }                                                                                                        \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename A>                     \
    void Load(MaskReg& mask, A* srcAddr, Where where = Where()) {                                            \
        detail::load_mask<dist>(mask, srcAddr, #Load, where);                                                \
    }                                                                                                        \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename A>                     \
    void Load(MaskReg& mask, A* srcAddr, const AddrReg& offset, Where where = Where()) {                     \
        detail::load_mask<dist>(mask, detail::moved(srcAddr, offset, #Load, where), #Load, where);           \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode, MaskDist dist = MaskDist::DIST_NORM,           \
              typename A>                                                                                    \
    void Load(MaskReg& mask, A*& srcAddr, int32_t offset, Where where = Where()) {                           \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Load ": POST_MODE_UPDATE alone");          \
        detail::load_mask<dist>(mask, srcAddr, #Load, where);                                                \
        srcAddr += offset;                                                                                   \
    }                                                                                                        \
    template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename A,       \
              detail::IfRegisters<U> = 0>                                                                    \
    void Store(A* dstAddr, U& srcReg, const MaskReg& mask, Where where = Where()) {                          \
        detail::store<dist>(dstAddr, srcReg, mask, #Store, where);                                           \
    }                                                                                                        \
    template <typename T = DefaultType, StoreDist dist = StoreDist::DIST_NORM, typename U, typename A,       \
              detail::IfRegisters<U> = 0>                                                                    \
    void Store(A* dstAddr, U& srcReg, const AddrReg& offset, const MaskReg& mask, Where where = Where()) {   \
        detail::store<dist>(detail::moved(dstAddr, offset, #Store, where), srcReg, mask, #Store, where);     \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode, StoreDist dist = StoreDist::DIST_NORM,         \
              typename U, typename A, detail::IfRegisters<U> = 0>                                            \
    void Store(A*& dstAddr, U& srcReg, int32_t postUpdateStride, const MaskReg& mask,                        \
               Where where = Where()) {                                                                      \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Store ": POST_MODE_UPDATE alone");         \
        detail::store<dist>(dstAddr, srcReg, mask, #Store, where);                                           \
        dstAddr += postUpdateStride;                                                                         \
    }                                                                                                        \
    template <typename T = DefaultType, StoreDist dist, typename U, typename A, detail::IfRegisters<U> = 0>  \
    void Store(A* dstAddr, U& srcReg0, U& srcReg1, const MaskReg&, Where where = Where()) {                  \
        detail::store_two<dist>(dstAddr, srcReg0, srcReg1, #Store, where);                                   \
    }                                                                                                        \
    template <typename T = DefaultType, StoreDist dist, typename U, typename A, detail::IfRegisters<U> = 0>  \
    void Store(A* dstAddr, U& srcReg0, U& srcReg1, const AddrReg& offset, const MaskReg&,                    \
               Where where = Where()) {                                                                      \
        detail::store_two<dist>(detail::moved(dstAddr, offset, #Store, where), srcReg0, srcReg1, #Store,     \
                                where);                                                                      \
    }                                                                                                        \
    template <typename T = DefaultType, DataCopyMode dataMode, typename U, typename A,                       \
              detail::IfRegisters<U> = 0>                                                                    \
    void Store(A* dstAddr, U& srcReg, uint32_t dataBlockStride, const MaskReg& mask,                         \
               Where where = Where()) {                                                                      \
        detail::store_blocks(dstAddr, srcReg, dataBlockStride, mask, #Store, where);                         \
    }                                                                                                        \
    template <typename T = DefaultType, DataCopyMode dataMode, PostLiteral postMode, typename U, typename A, \
              detail::IfRegisters<U> = 0>                                                                    \
    void Store(A*& dstAddr, U& srcReg, uint32_t dataBlockStride, uint32_t repeatStride, const MaskReg& mask, \
               Where where = Where()) {                                                                      \
        A* const next = dstAddr + repeatStride * (32 / sizeof(A));                                           \
        constexpr bool update = postMode == PostLiteral::POST_MODE_UPDATE;                                   \
        detail::store_blocks(update ? dstAddr : next, srcReg, dataBlockStride, mask, #Store, where);         \
        if (update) dstAddr = next;                                                                          \
    }                                                                                                        \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename A>                     \
    void Store(A* dstAddr, const MaskReg& mask, Where where = Where()) {                                     \
        detail::store_mask<dist>(dstAddr, mask, #Store, where);                                              \
    }                                                                                                        \
    template <typename T = DefaultType, MaskDist dist = MaskDist::DIST_NORM, typename A>                     \
    void Store(A* dstAddr, const MaskReg& mask, const AddrReg& offset, Where where = Where()) {              \
        detail::store_mask<dist>(detail::moved(dstAddr, offset, #Store, where), mask, #Store, where);        \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode, MaskDist dist = MaskDist::DIST_NORM,           \
              typename A>                                                                                    \
    void Store(A*& dstAddr, const MaskReg& mask, int32_t offset, Where where = Where()) {                    \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Store ": POST_MODE_UPDATE alone");         \
        detail::store_mask<dist>(dstAddr, mask, #Store, where);                                              \
        dstAddr += offset;                                                                                   \
    }

namespace detail {

template <MaskDist dist>
void load_mask(MaskReg& mask, const void* address, const char* api, const Where& where) {
    static_assert(dist != MaskDist::DIST_PACK,
                  "DIST_PACK stores masks; they are loaded with DIST_NORM, _US, _DS");
    constexpr uint32_t bytes = dist == MaskDist::DIST_NORM ? 32 : dist == MaskDist::DIST_US ? 16 : 64;
    const unsigned char* const from = in_buffer(address, bytes, std::min(bytes, 32u), api, where);
    for (uint32_t i = 0; i < width; ++i) {
        const uint32_t at = dist == MaskDist::DIST_NORM ? i : dist == MaskDist::DIST_US ? i / 2 : 2 * i;
        mask.set(i, (from[at / 8] >> (at % 8) & 1) != 0);
    }
    mask.written = true;
}
template <MaskDist dist>
void store_mask(void* address, const MaskReg& mask, const char* api, const Where& where) {
    static_assert(dist == MaskDist::DIST_NORM || dist == MaskDist::DIST_PACK,
                  "masks are stored with DIST_NORM or DIST_PACK");
    constexpr uint32_t step = dist == MaskDist::DIST_NORM ? 1 : 2, bytes = 32 / step;
    check_read(mask, api, where);
    unsigned char* const to = for_writing(address, bytes, bytes, api, where);
    for (uint32_t i = 0; i < 8 * bytes; ++i) {
        const unsigned char bit = static_cast<unsigned char>(1u << (i % 8));
        to[i / 8] = static_cast<unsigned char>(mask.bit(i * step) ? to[i / 8] | bit : to[i / 8] & ~bit);
    }
}

}  // namespace detail

ASCENDC_REG_COPIES(LoadAlign, StoreAlign)
ASCENDC_REG_COPIES(DataCopy, DataCopy)
#undef ASCENDC_REG_COPIES

// A whole register or the first `count` elements, wherever they lie.
template <typename T = DefaultType, typename U, typename A, detail::IfRegisters<U> = 0>
void Load(U& dstReg, A* srcAddr, Where where = Where()) {
    std::memcpy(dstReg.data, detail::in_buffer(srcAddr, U::bytes, 1, "Load", where), U::bytes);
    dstReg.written = true;
}
template <typename T = DefaultType, typename U, typename A, detail::IfRegisters<U> = 0>
void Store(A* dstAddr, U& srcReg, uint32_t count, Where where = Where()) {
    detail::check_read(srcReg, "Store", "srcReg", where);
    const uint64_t bytes = uint64_t(count) * sizeof(detail::Element<U>);
    if (bytes > U::bytes)
        detail::refuse("Store", where, detail::format("count %u; a register has %u", count, U::lanes));
    std::memcpy(detail::for_writing(dstAddr, bytes, 1, "Store", where), srcReg.data, bytes);
}
template <typename T = DefaultType, typename U, typename A, detail::IfRegisters<U> = 0>
void Store(A* dstAddr, U& srcReg, Where where = Where()) {
    Store(dstAddr, srcReg, U::lanes, where);
}

}  // namespace Reg
}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_LOAD_STORE_H
