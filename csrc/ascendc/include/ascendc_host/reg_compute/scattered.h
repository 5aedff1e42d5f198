// Unaligned copies, with a register that keeps the block of 32 bytes they end in, and copies by indices.
#ifndef ASCENDC_HOST_REG_COMPUTE_SCATTERED_H
#define ASCENDC_HOST_REG_COMPUTE_SCATTERED_H

#include "ascendc_host/reg_compute/load_store.h"

namespace AscendC {
namespace Reg {
namespace detail {

inline uint64_t block_of(const void* address) { return reinterpret_cast<uint64_t>(address) / 32; }

// An unaligned load takes what comes before the first multiple of 32 bytes from its UnalignReg: the block
// that LoadUnAlignPre or the load before left there.
template <typename U>
void load_unaligned(U& dst, UnalignRegForLoad& ureg, const void* address, const void* next, const char* api,
                    const Where& where) {
    const unsigned char* const from = in_buffer(address, U::bytes, 1, api, where);
    if (reinterpret_cast<uint64_t>(from) % 32 != 0 && block_of(from) != ureg.block &&
        block_of(from) != ureg.next_block) {
        refuse(api, where,
               "its UnalignReg does not hold the block that the address lies in; call LoadUnAlignPre before");
    }
    std::memcpy(dst.data, from, U::bytes);
    dst.written = true;
    ureg.block = block_of(from + U::bytes);
    ureg.next_block = block_of(next);
}

// Bytes that follow those kept: whole blocks are stored, the rest is kept.
inline void store_unaligned(void* address, const unsigned char* from, uint64_t bytes,
                            UnalignRegForStore& ureg, const char* api, const Where& where) {
    unsigned char* const to = static_cast<unsigned char*>(address);
    if (ureg.count != 0 && ureg.at + ureg.count != to) {
        refuse(api, where,
               format("its UnalignReg keeps %u bytes for another place; call StoreUnAlignPost before",
                      ureg.count));
    }
    for_writing(to, bytes, 1, api, where);
    const uint64_t end = reinterpret_cast<uint64_t>(to) + bytes, whole = end / 32 * 32;
    const uint64_t stored =
        whole > reinterpret_cast<uint64_t>(to) ? whole - reinterpret_cast<uint64_t>(to) : 0;
    if (stored != 0) {
        std::memcpy(ureg.at, ureg.kept, ureg.count);
        std::memcpy(to, from, stored);
        ureg.count = 0;
    }
    if (ureg.count == 0) ureg.at = to + stored;
    std::memcpy(ureg.kept + ureg.count, from + stored, bytes - stored);
    ureg.count += static_cast<uint32_t>(bytes - stored);
}
inline void store_kept(const void* address, UnalignRegForStore& ureg, const char* api, const Where& where) {
    if (ureg.count == 0) return;
    if (ureg.at + ureg.count != address)
        refuse(api, where,
               format("the %u bytes that its UnalignReg keeps end at another address", ureg.count));
    std::memcpy(for_writing(ureg.at, ureg.count, 1, api, where), ureg.kept, ureg.count);
    ureg.count = 0;
}
template <typename U>
uint64_t bytes_of(uint32_t count, const char* api, const Where& where) {
    if (count > U::lanes) refuse(api, where, format("%u elements; a register has %u", count, U::lanes));
    return uint64_t(count) * sizeof(Element<U>);
}

}  // namespace detail

// The functions have two names each.
#define ASCENDC_REG_UNALIGNED(LoadPre, Load, Store, StorePost)                                               \
    template <typename T = DefaultType, typename A>                                                          \
    void LoadPre(UnalignRegForLoad& ureg, A* srcAddr, Where where = Where()) {                               \
        detail::in_buffer(srcAddr, 1, 1, #LoadPre, where);                                                   \
        ureg.block = ureg.next_block = detail::block_of(srcAddr);                                            \
    }                                                                                                        \
    template <typename T = DefaultType, typename A>                                                          \
    void LoadPre(UnalignRegForLoad& ureg, A* srcAddr, const AddrReg& areg, Where where = Where()) {          \
        LoadPre(ureg, detail::moved(srcAddr, areg, #LoadPre, where), where);                                 \
    }                                                                                                        \
    template <typename T = DefaultType, typename U, typename A, detail::IfRegisters<U> = 0>                  \
    void Load(U& dstReg, UnalignRegForLoad& ureg, A* srcAddr, Where where = Where()) {                       \
        detail::load_unaligned(dstReg, ureg, srcAddr, srcAddr + U::lanes, #Load, where);                     \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode = PostLiteral::POST_MODE_UPDATE, typename U,    \
              typename A, detail::IfRegisters<U> = 0>                                                        \
    void Load(U& dstReg, UnalignRegForLoad& ureg, A*& srcAddr, uint32_t postUpdateStride,                    \
              Where where = Where()) {                                                                       \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Load ": POST_MODE_UPDATE alone");          \
        detail::load_unaligned(dstReg, ureg, srcAddr, srcAddr + postUpdateStride, #Load, where);             \
        srcAddr += postUpdateStride;                                                                         \
    }                                                                                                        \
    template <typename T = DefaultType, typename U, typename A, detail::IfRegisters<U> = 0>                  \
    void Load(U& dstReg, UnalignRegForLoad& ureg, A* srcAddr, const AddrReg& areg, uint32_t = 0,             \
              Where where = Where()) {                                                                       \
        A* const from = detail::moved(srcAddr, areg, #Load, where);                                          \
        detail::load_unaligned(dstReg, ureg, from, from + U::lanes, #Load, where);                           \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode = PostLiteral::POST_MODE_UPDATE, typename U,    \
              typename A, detail::IfRegisters<U> = 0>                                                        \
    void Store(A*& dstAddr, U& srcReg, UnalignRegForStore& ureg, uint32_t postUpdateStride,                  \
               Where where = Where()) {                                                                      \
        static_assert(postMode == PostLiteral::POST_MODE_UPDATE, #Store ": POST_MODE_UPDATE alone");         \
        detail::check_read(srcReg, #Store, "srcReg", where);                                                 \
        const uint64_t bytes = detail::bytes_of<U>(postUpdateStride, #Store, where);                         \
        detail::store_unaligned(dstAddr, srcReg.data, bytes, ureg, #Store, where);                           \
        dstAddr += postUpdateStride;                                                                         \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode = PostLiteral::POST_MODE_UPDATE, typename U,    \
              typename A, detail::IfRegisters<U> = 0>                                                        \
    void Store(A* dstAddr, U& srcReg, UnalignRegForStore& ureg, const AddrReg& areg,                         \
               Where where = Where()) {                                                                      \
        detail::check_read(srcReg, #Store, "srcReg", where);                                                 \
        detail::store_unaligned(detail::moved(dstAddr, areg, #Store, where), srcReg.data, U::bytes, ureg,    \
                                #Store, where);                                                              \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode = PostLiteral::POST_MODE_UPDATE, typename U,    \
              typename A, detail::IfRegisters<U> = 0>                                                        \
    void Store(A* dstAddr, U& srcReg, UnalignRegForStore& ureg, Where where = Where()) {                     \
        detail::check_read(srcReg, #Store, "srcReg", where);                                                 \
        auto& block = ascendc_host::enter(where);                                                            \
        if (!block.squeezed_waits)                                                                           \
            detail::refuse(#Store, where, "without a length it follows a Squeeze with STORE_REG");           \
        block.squeezed_waits = false;                                                                        \
        auto* const to = reinterpret_cast<unsigned char*>(dstAddr) + block.squeezed - block.squeezed_last;   \
        detail::store_unaligned(to, srcReg.data, block.squeezed_last, ureg, #Store, where);                  \
    }                                                                                                        \
    template <typename T = DefaultType, PostLiteral postMode = PostLiteral::POST_MODE_UPDATE, typename A>    \
    void StorePost(A*& dstAddr, UnalignRegForStore& ureg, int32_t postUpdateStride, Where where = Where()) { \
        detail::store_kept(dstAddr, ureg, #StorePost, where);                                                \
        dstAddr += postUpdateStride;                                                                         \
    }                                                                                                        \
    template <typename T = DefaultType, typename A>                                                          \
    void StorePost(A*, UnalignRegForStore& ureg, const AddrReg&, Where where = Where()) {                    \
        detail::store_kept(ureg.at + ureg.count, ureg, #StorePost, where);                                   \
    }                                                                                                        \
    template <typename T = DefaultType, typename A>                                                          \
    void StorePost(A* dstAddr, UnalignRegForStore& ureg, Where where = Where()) {                            \
        const uint64_t squeezed = ascendc_host::current().squeezed;                                          \
        detail::store_kept(reinterpret_cast<unsigned char*>(dstAddr) + squeezed, ureg, #StorePost, where);   \
    }
ASCENDC_REG_UNALIGNED(LoadUnAlignPre, LoadUnAlign, StoreUnAlign, StoreUnAlignPost)
ASCENDC_REG_UNALIGNED(DataCopyUnAlignPre, DataCopyUnAlign, DataCopyUnAlign, DataCopyUnAlignPost)
#undef ASCENDC_REG_UNALIGNED

// --- by indices
// ---------------------------------------------------------------------------------------------------

namespace detail {

template <typename U, typename A, typename V>
void gather(U& dst, A* base, const V& index, const MaskReg& mask, const char* api, const Where& where) {
    using T = Element<U>;
    static_assert(sizeof(T) == sizeof(A) || (sizeof(T) == 2 && sizeof(A) == 1),
                  "Gather: the register's elements have the size of the buffer's, or 2 bytes of 1");
    check_read(index, api, "index", where);
    in_buffer(base, 0, 32, api, where);
    const V indices = index;
    Result<U>(dst, mask, MaskMergeMode::ZEROING, api, where).each([&](uint32_t lane) {
        const A* const from = base + static_cast<std::make_unsigned_t<Element<V>>>(indices.get(lane));
        T value = Result<U>::template zero<T>();
        std::memcpy(static_cast<void*>(&value), in_buffer(from, sizeof(A), sizeof(A), api, where), sizeof(A));
        return value;
    });
}
template <typename A, typename U, typename V>
void scatter(A* base, const U& src, const V& index, const MaskReg& mask, const char* api,
             const Where& where) {
    constexpr bool bytes = sizeof(A) == 1;
    static_assert(sizeof(Element<U>) == sizeof(A), "Scatter: register and buffer have elements of one size");
    constexpr uint32_t lanes = bytes ? U::lanes / 2 : U::lanes;
    static_assert(lanes <= V::lanes, "Scatter: the register of indices is too short");
    check_read(src, api, "srcReg", where);
    check_read(index, api, "index", where);
    check_read(mask, api, where);
    in_buffer(base, 0, 32, api, where);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        if (!mask.bit(lane * (width / lanes))) continue;
        A* const to = base + static_cast<std::make_unsigned_t<Element<V>>>(index.get(lane));
        const uint32_t from = (bytes ? 2 : 1) * lane;
        std::memcpy(for_writing(to, sizeof(A), sizeof(A), api, where), src.data + from * sizeof(A),
                    sizeof(A));
    }
}

}  // namespace detail

// dst[i] = base[index[i]]. Bytes become unsigned numbers of 16 bits.
template <typename T0 = DefaultType, typename T1 = DefaultType, typename T2 = DefaultType, typename U,
          typename A, typename V, detail::IfRegisters<U, V> = 0>
void Gather(U& dstReg, A* baseAddr, V& index, const MaskReg& mask, Where where = Where()) {
    detail::gather(dstReg, baseAddr, index, mask, "Gather", where);
}
template <typename T0 = DefaultType, typename T1 = DefaultType, typename T2 = DefaultType, typename U,
          typename A, typename V, detail::IfRegisters<U, V> = 0>
void DataCopyGather(U& dstReg, A* baseAddr, V& index, const MaskReg& mask, Where where = Where()) {
    detail::gather(dstReg, baseAddr, index, mask, "DataCopyGather", where);
}
// base[index[i]] = src[i]; of bytes the even ones. Which of several for one index remains is not defined.
template <typename T = DefaultType, typename T1 = DefaultType, typename A, typename U, typename V,
          detail::IfRegisters<U, V> = 0>
void Scatter(A* baseAddr, U& srcReg, V& index, const MaskReg& mask, Where where = Where()) {
    detail::scatter(baseAddr, srcReg, index, mask, "Scatter", where);
}
template <typename T = DefaultType, typename T1 = DefaultType, typename A, typename U, typename V,
          detail::IfRegisters<U, V> = 0>
void DataCopyScatter(A* baseAddr, U& srcReg, V& index, const MaskReg& mask, Where where = Where()) {
    detail::scatter(baseAddr, srcReg, index, mask, "DataCopyScatter", where);
}
// Blocks of 32 bytes at offsets in bytes.
template <typename T = DefaultType, typename U, typename A, typename V, detail::IfRegisters<U, V> = 0>
void GatherB(U& dstReg, A* baseAddr, V& index, const MaskReg& mask, Where where = Where()) {
    static_assert(sizeof(detail::Element<V>) == 4, "GatherB: indices are uint32_t");
    detail::check_read(index, "GatherB", "index", where);
    detail::check_read(mask, "GatherB", where);
    const V indices = index;
    for (uint32_t i = 0; i < 8; ++i) {
        std::memset(dstReg.data + i * 32, 0, 32);
        if (!detail::any_of_block<U>(mask, i)) continue;
        const auto* const from = reinterpret_cast<const unsigned char*>(baseAddr) + indices.get(i);
        std::memcpy(dstReg.data + i * 32, detail::in_buffer(from, 32, 32, "GatherB", where), 32);
    }
    dstReg.written = true;
}
template <typename T = DefaultType, typename U, typename A, typename V, detail::IfRegisters<U, V> = 0>
void DataCopyGatherB(U& dstReg, A* baseAddr, V& index, const MaskReg& mask, Where where = Where()) {
    GatherB(dstReg, baseAddr, index, mask, where);
}
// dst[i] = src[index[i]], of registers.
template <typename T = DefaultType, typename T1 = DefaultType, typename U, typename V,
          detail::IfRegisters<U, V> = 0>
void Gather(U& dstReg, U& srcReg, V& indexReg, Where where = Where()) {
    static_assert(sizeof(detail::Element<V>) == sizeof(detail::Element<U>),
                  "Gather: indices have the size of the elements");
    detail::check_read(srcReg, "Gather", "srcReg", where);
    detail::check_read(indexReg, "Gather", "indexReg", where);
    const U from = srcReg;
    const V indices = indexReg;
    for (uint32_t lane = 0; lane < U::lanes; ++lane)
        dstReg.set(lane, from.get(static_cast<uint32_t>(indices.get(lane)) % U::lanes));
    dstReg.written = true;
}

}  // namespace Reg
}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_SCATTERED_H
