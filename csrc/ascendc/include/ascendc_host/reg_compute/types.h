// The registers of the vector unit of dav-3510: RegTensor, MaskReg, and what addresses and unaligned copies
// keep.
#ifndef ASCENDC_HOST_REG_COMPUTE_TYPES_H
#define ASCENDC_HOST_REG_COMPUTE_TYPES_H

#include "ascendc_host/basic_api/cast.h"

namespace AscendC {

constexpr uint32_t VECTOR_REG_WIDTH = 256;
constexpr uint32_t VECTOR_REG_WIDTH_2XVL = 512;  // with RegTraitNumTwo
constexpr uint32_t GetVecLen() { return VECTOR_REG_WIDTH; }
// The register that counts the bytes Squeeze left.
enum class SpecialPurposeReg { AR };

namespace Reg {

// How many registers a RegTensor has. Elements of 64 bits lie in two as in one: the host does not part them.
struct RegTrait {
    int REG_NUM = 1;
};
constexpr RegTrait RegTraitNumOne = {1};
constexpr RegTrait RegTraitNumTwo = {2};

// Where no type is named, that of the register or the address is meant.
struct DefaultType {};

enum class MaskMergeMode { UNKNOWN, MERGING, ZEROING };
enum class PostLiteral { POST_MODE_NORMAL, POST_MODE_UPDATE };
enum class DataCopyMode { DATA_BLOCK_COPY };
enum class MaskPattern { ALL, VL1, VL2, VL3, VL4, VL8, VL16, VL32, VL64, VL128, M3, M4, H, Q, ALLF = 15 };
enum class HighLowPart { LOWEST, HIGHEST };
enum class RegLayout { UNKNOWN = -1, ZERO, ONE, TWO, THREE };
enum class SatMode { UNKNOWN = -1, NO_SAT, SAT };
enum class IndexOrder { INCREASE_ORDER, DECREASE_ORDER };
enum class MemType { VEC_STORE, VEC_LOAD, SCALAR_STORE, SCALAR_LOAD, VEC_ALL, SCALAR_ALL };
enum class MaskDist { DIST_NORM, DIST_US, DIST_DS, DIST_PACK };
enum class GatherMaskMode { NO_STORE_REG, STORE_REG };
enum class HistogramsBinType { BIN0, BIN1 };
enum class HistogramsType { FREQUENCY, ACCUMULATE };
enum class PairReduce { SUM };
using AscendC::ReduceType;

enum class LoadDist {
    DIST_NORM,
    DIST_BRC_B8,
    DIST_BRC_B16,
    DIST_BRC_B32,
    DIST_US_B8,
    DIST_US_B16,
    DIST_DS_B8,
    DIST_DS_B16,
    DIST_UNPACK_B8,
    DIST_UNPACK_B16,
    DIST_UNPACK_B32,
    DIST_UNPACK4_B8,
    DIST_BLK,
    DIST_E2B_B16,
    DIST_E2B_B32,
    DIST_DINTLV_B8,
    DIST_DINTLV_B16,
    DIST_DINTLV_B32
};
enum class StoreDist {
    DIST_NORM,
    DIST_NORM_B8,
    DIST_NORM_B16,
    DIST_NORM_B32,
    DIST_FIRST_ELEMENT_B8,
    DIST_FIRST_ELEMENT_B16,
    DIST_FIRST_ELEMENT_B32,
    DIST_PACK_B16,
    DIST_PACK_B32,
    DIST_PACK_B64,
    DIST_PACK4_B32,
    DIST_INTLV_B8,
    DIST_INTLV_B16,
    DIST_INTLV_B32
};

struct CastTrait {
    RegLayout layoutMode = RegLayout::UNKNOWN;
    SatMode satMode = SatMode::UNKNOWN;
    MaskMergeMode mrgMode = MaskMergeMode::UNKNOWN;
    RoundMode roundMode = RoundMode::UNKNOWN;
};
constexpr CastTrait castTrait = {};

namespace detail {

using ascendc_host::Block;
using ascendc_host::format;
using ascendc_host::Wide;

constexpr uint32_t width = VECTOR_REG_WIDTH;

// The bytes of a register, whatever its elements are: kernels view one type's register as another's.
// A register that nothing was written to must not be read. Its bytes are no zeros, so that elements which a
// masked instruction left alone are not taken for results.
template <uint32_t registers>
struct alignas(32) Storage {
    static constexpr uint32_t bytes = width * registers;
    Storage() { std::memset(data, 0xa5, bytes); }
    unsigned char data[bytes];
    bool written = false;
};

}  // namespace detail

template <typename T, const RegTrait& regTrait = RegTraitNumOne>
struct RegTensor : detail::Storage<static_cast<uint32_t>(regTrait.REG_NUM)> {
    using ActualT = T;
    static constexpr const RegTrait& trait = regTrait;
    static constexpr uint32_t lanes = RegTensor::bytes / sizeof(T);
    // How many bits of a mask belong to an element; the lowest of them decides.
    static constexpr uint32_t mask_bits = detail::width / lanes;
    static_assert(regTrait.REG_NUM == 1 || sizeof(T) >= 4,
                  "RegTensor: only elements of 4 and 8 bytes may have two registers");

    T get(uint32_t lane) const {
        T value;
        std::memcpy(&value, this->data + lane * sizeof(T), sizeof(T));
        return value;
    }
    void set(uint32_t lane, T value) { std::memcpy(this->data + lane * sizeof(T), &value, sizeof(T)); }
};

// A bit for each byte of a register. An element of several bytes has several bits, of which the lowest
// counts.
struct MaskReg {
    uint64_t bits[4] = {};
    bool written = false;

    bool bit(uint32_t index) const { return (bits[index / 64] >> (index % 64) & 1) != 0; }
    void set(uint32_t index, bool value = true) {
        const uint64_t one = uint64_t{1} << (index % 64);
        bits[index / 64] = value ? bits[index / 64] | one : bits[index / 64] & ~one;
    }
};

// An offset in bytes.
struct AddrReg {
    uint64_t offset = 0;
    bool written = false;
};

// What an unaligned copy keeps of the block of 32 bytes that it ended in.
struct UnalignRegForLoad {
    uint64_t block = 0;       // the number of the block that it holds
    uint64_t next_block = 0;  // as far as the address says that the next load was announced for
};
struct UnalignRegForStore {
    unsigned char kept[32] = {};
    uint32_t count = 0;
    unsigned char* at = nullptr;  // where the kept bytes belong
};
struct UnalignReg : UnalignRegForLoad, UnalignRegForStore {};

namespace detail {

template <typename T>
struct IsRegister : std::false_type {};
template <typename T, const RegTrait& trait>
struct IsRegister<RegTensor<T, trait>> : std::true_type {};
template <typename... U>
using IfRegisters = std::enable_if_t<(IsRegister<U>::value && ...), int>;

template <typename U>
using Element = typename U::ActualT;

// The type that a call names is that of the register's elements, or one of its size.
template <typename T, typename U>
constexpr bool agrees =
    std::is_same<T, DefaultType>::value ||
    sizeof(std::conditional_t<std::is_same<T, DefaultType>::value, char, T>) == sizeof(Element<U>);

[[noreturn]] inline void refuse(const char* api, const Where& where, const std::string& what) {
    ascendc_host::fail(ascendc_host::current(), where, std::string(api) + ": " + what);
}

template <typename U>
void check_read(const U& source, const char* api, const char* name, const Where& where) {
    if (__builtin_expect(!source.written, 0))
        refuse(api, where, format("%s is a register that nothing was written to", name));
}
inline void check_read(const MaskReg& mask, const char* api, const Where& where) {
    if (__builtin_expect(!mask.written, 0))
        refuse(api, where,
               "the mask is a register that nothing was written to; use CreateMask or UpdateMask");
}

// Stores results where the mask says; elsewhere there are zeros, or what was there.
template <typename U>
class Result {
  public:
    Result(U& to, const MaskReg& mask, MaskMergeMode mode, const char* api, const Where& where)
        : to_(to), mask_(mask), merging_(mode == MaskMergeMode::MERGING) {
        check_read(mask, api, where);
    }
    // `f(lane)` is computed for every lane: the sources may be the destination itself, lane by lane.
    template <typename F>
    void each(const F& f) {
        using T = Element<U>;
        for (uint32_t lane = 0; lane < U::lanes; ++lane) {
            if (mask_.bit(lane * U::mask_bits))
                to_.set(lane, static_cast<T>(f(lane)));
            else if (!merging_)
                to_.set(lane, zero<T>());
        }
        to_.written = true;
    }
    template <typename T>
    static T zero() {
        T value;
        std::memset(static_cast<void*>(&value), 0, sizeof value);
        return value;
    }

  private:
    U& to_;
    const MaskReg& mask_;
    bool merging_;
};

// The merge mode of a template argument that is one, or that points to a structure with one.
template <auto mode>
constexpr MaskMergeMode merge_mode() {
    if constexpr (std::is_same<decltype(mode), MaskMergeMode>::value)
        return mode;
    else
        return mode->mrgMode;
}

}  // namespace detail
}  // namespace Reg

// The older name of the same.
namespace MicroAPI = Reg;

}  // namespace AscendC

#endif  // ASCENDC_HOST_REG_COMPUTE_TYPES_H
