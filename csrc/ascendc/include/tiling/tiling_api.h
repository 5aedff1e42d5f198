// Tiling of Matmul on the host: how a matrix is divided among cores and into base blocks.
#ifndef ASCENDC_HOST_TILING_API_H
#define ASCENDC_HOST_TILING_API_H

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iostream>
#include <vector>

#include "../ascendc_host/sizes.h"
#include "../kernel_tiling/kernel_tiling.h"
#include "platform/platform_ascendc.h"

namespace matmul_tiling {

enum class DataType : int32_t {
    DT_FLOAT = 0,
    DT_FLOAT16 = 1,
    DT_INT8 = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 6,
    DT_UINT16 = 7,
    DT_UINT32 = 8,
    DT_INT64 = 9,
    DT_UINT64 = 10,
    DT_DOUBLE = 11,
    DT_BOOL = 12,
    DT_BF16 = 27,
    DT_BFLOAT16 = 27,
    DT_INT4 = 29
};
enum class TPosition : int32_t {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    LCM = VECCALC,
    SPM,
    SHM = SPM,
    TSCM,
    MAX
};
enum class CubeFormat : int32_t { ND = 0, NZ, ZN, ZZ, NN, ND_ALIGN, SCALAR, VECTOR };
enum class MatrixTraverse : int32_t { NOSET = 0, FIRSTM = 1, FIRSTN = 2 };

// The device, for those who do not have its PlatformAscendC.
struct PlatformInfo {
    platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::ASCEND910B;
    uint64_t l1Size = 0;
    uint64_t l0CSize = 0;
    uint64_t ubSize = 0;
    uint64_t l0ASize = 0;
    uint64_t l0BSize = 0;
};

// One core: the whole shape in base blocks that fit the cube's buffers.
class MatmulApiTiling {
  public:
    MatmulApiTiling() = default;
    explicit MatmulApiTiling(const platform_ascendc::PlatformAscendC&) {}
    explicit MatmulApiTiling(const PlatformInfo&) {}
    virtual ~MatmulApiTiling() = default;

    int32_t SetAType(TPosition, CubeFormat, DataType type, bool = false) { return set_bytes(a_bytes_, type); }
    int32_t SetBType(TPosition, CubeFormat, DataType type, bool = false) { return set_bytes(b_bytes_, type); }
    int32_t SetCType(TPosition, CubeFormat, DataType) { return 0; }
    int32_t SetBiasType(TPosition, CubeFormat, DataType) { return 0; }
    virtual int32_t SetShape(int32_t m, int32_t n, int32_t k) {
        if (m <= 0 || n <= 0 || k <= 0) return -1;
        m_ = m;
        n_ = n;
        k_ = k;
        return 0;
    }
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t k) { return SetOrgShape(m, n, k, k); }
    int32_t SetOrgShape(int32_t m, int32_t n, int32_t ka, int32_t kb) {
        if (m <= 0 || n <= 0 || ka <= 0 || kb <= 0) return -1;
        org_m_ = m;
        org_n_ = n;
        org_ka_ = ka;
        org_kb_ = kb;
        return 0;
    }
    int32_t EnableBias(bool bias = false) {
        bias_ = bias;
        return 0;
    }
    int32_t SetBias(bool bias = false) { return EnableBias(bias); }
    int32_t SetFixSplit(int32_t m = -1, int32_t n = -1, int32_t k = -1) {
        fix_m_ = m;
        fix_n_ = n;
        fix_k_ = k;
        return 0;
    }
    int32_t SetBufferSpace(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1) { return 0; }
    int32_t SetTraverse(MatrixTraverse traverse) {
        order_ = traverse == MatrixTraverse::FIRSTN ? 1 : 0;
        return 0;
    }
    int32_t SetMatmulConfigParams(...) { return 0; }
    int32_t GetBaseM() const { return base_m_; }
    int32_t GetBaseN() const { return base_n_; }
    int32_t GetBaseK() const { return base_k_; }

    // Fills `tiling`; -1 when no shape was set or it cannot be divided so.
    virtual int64_t GetTiling(optiling::TCubeTiling& tiling) { return fill(tiling, m_, n_, k_, 1); }

  protected:
    int64_t fill(optiling::TCubeTiling& tiling, int32_t m, int32_t n, int32_t k, int32_t cores) {
        if (org_m_ <= 0 || m <= 0) return -1;
        const int32_t c0 = 32 / a_bytes_;
        base_m_ = fix_m_ > 0 ? fix_m_ : std::min(128, up(m, 16));
        base_n_ = fix_n_ > 0 ? fix_n_ : std::min(256, up(n, 16));
        // L0A and L0B hold two blocks each, in 64 KiB.
        const int32_t most_k =
            std::min(32 * 1024 / a_bytes_ / base_m_, 32 * 1024 / b_bytes_ / base_n_) / c0 * c0;
        base_k_ = fix_k_ > 0 ? fix_k_ : std::max(c0, std::min(most_k, up(k, c0)));
        tiling = {};
        tiling.usedCoreNum = cores;
        tiling.M = org_m_;
        tiling.N = org_n_;
        tiling.Ka = org_ka_;
        tiling.Kb = org_kb_;
        tiling.singleCoreM = m;
        tiling.singleCoreN = n;
        tiling.singleCoreK = k;
        tiling.baseM = base_m_;
        tiling.baseN = base_n_;
        tiling.baseK = base_k_;
        tiling.depthA1 = tiling.depthB1 = 2;
        tiling.stepM = tiling.stepN = tiling.stepKa = tiling.stepKb = 1;
        tiling.isBias = bias_;
        tiling.iterateOrder = order_;
        tiling.shareL1Size = (base_m_ * a_bytes_ + base_n_ * b_bytes_) * base_k_ * 2;
        tiling.shareL0CSize = base_m_ * base_n_ * 4;
        tiling.dbL0A = tiling.dbL0B = 2;
        tiling.dbL0C = 1;
        ascendc_host::tiling_data_written(&tiling, sizeof tiling);
        return 0;
    }
    static int32_t up(int32_t value, int32_t to) { return (value + to - 1) / to * to; }

    int32_t m_ = 0, n_ = 0, k_ = 0;

  private:
    static int32_t set_bytes(int32_t& bytes, DataType type) {
        switch (type) {
            case DataType::DT_INT8:
            case DataType::DT_UINT8:
                bytes = 1;
                return 0;
            case DataType::DT_FLOAT16:
            case DataType::DT_BF16:
                bytes = 2;
                return 0;
            case DataType::DT_FLOAT:
                bytes = 4;
                return 0;
            default:
                return -1;
        }
    }
    int32_t a_bytes_ = 2, b_bytes_ = 2;
    int32_t org_m_ = 0, org_n_ = 0, org_ka_ = 0, org_kb_ = 0;
    int32_t fix_m_ = -1, fix_n_ = -1, fix_k_ = -1;
    int32_t base_m_ = 0, base_n_ = 0, base_k_ = 0;
    int32_t order_ = 0;
    bool bias_ = false;
};

// Several cores: M and N are divided, K is not.
class MultiCoreMatmulTiling : public MatmulApiTiling {
  public:
    using MatmulApiTiling::MatmulApiTiling;

    int32_t SetDim(int32_t cores) {
        if (cores <= 0) return -1;
        cores_ = cores;
        return 0;
    }
    int32_t SetShape(int32_t m, int32_t n, int32_t k) override { return MatmulApiTiling::SetShape(m, n, k); }
    int32_t SetSingleShape(int32_t m = -1, int32_t n = -1, int32_t k = -1) {
        single_m_ = m;
        single_n_ = n;
        single_k_ = k;
        return 0;
    }
    int32_t SetSingleRange(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1,
                           int32_t = -1) {
        return 0;
    }
    void EnableMultiCoreSplitK(bool) {}
    int32_t GetCoreNum(int32_t& cores, int32_t& m_cores, int32_t& n_cores) const {
        cores = used_;
        m_cores = m_parts_;
        n_cores = n_parts_;
        return 0;
    }
    int64_t GetTiling(optiling::TCubeTiling& tiling) override {
        if (m_ <= 0) return -1;
        int32_t m = single_m_;
        int32_t n = single_n_;
        if (m <= 0 || n <= 0) divide(m, n);
        m_parts_ = (m_ + m - 1) / m;
        n_parts_ = (n_ + n - 1) / n;
        used_ = m_parts_ * n_parts_;
        if (used_ > cores_) return -1;
        return fill(tiling, m, n, single_k_ > 0 ? single_k_ : k_, used_);
    }

  private:
    // The division into most parts; of these the one with the squarest part, and M is divided before N.
    void divide(int32_t& m, int32_t& n) const {
        int64_t best = -1;
        for (int32_t parts = 1; parts <= cores_; ++parts) {
            const int32_t part_m = single_m_ > 0 ? single_m_ : up((m_ + parts - 1) / parts, 16);
            const int32_t m_parts = (m_ + part_m - 1) / part_m;
            if (m_parts > cores_) continue;
            const int32_t part_n =
                single_n_ > 0 ? single_n_ : up((n_ + cores_ / m_parts - 1) / (cores_ / m_parts), 16);
            const int32_t n_parts = (n_ + part_n - 1) / part_n;
            if (m_parts * n_parts > cores_) continue;
            const int64_t score = int64_t(m_parts) * n_parts * 1000000 - std::abs(part_m - part_n);
            if (score < best) continue;  // of equal ones the one with more parts of M
            best = score;
            m = std::min(part_m, m_);
            n = std::min(part_n, n_);
        }
    }
    int32_t cores_ = 1;
    int32_t single_m_ = -1, single_n_ = -1, single_k_ = -1;
    int32_t used_ = 0, m_parts_ = 0, n_parts_ = 0;
};

}  // namespace matmul_tiling

namespace AscendC {

// The shape of a tensor, as the functions below take it.
class TensorShape {
  public:
    TensorShape(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
    explicit TensorShape(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}
    size_t GetDimNum() const { return sizes_.size(); }
    int64_t GetDim(size_t index) const { return sizes_.at(index); }
    int64_t GetShapeSize() const {
        int64_t size = 1;
        for (int64_t one : sizes_) size *= one;
        return size;
    }

  private:
    std::vector<int64_t> sizes_;
};

// Temporary space: the host needs none, and says the least that a buffer can have.
constexpr uint32_t least_temporary_space = 256;
#define ASCENDC_TMP_SIZE(Name)                                                                            \
    template <typename Shape>                                                                             \
    void Get##Name##MaxMinTmpSize(const Shape&, uint32_t, bool, uint32_t& maxValue, uint32_t& minValue) { \
        maxValue = minValue = least_temporary_space;                                                      \
    }                                                                                                     \
    inline void Get##Name##TmpBufferFactorSize(uint32_t, uint32_t& maxLiveNodeCnt, uint32_t& extraBuf) {  \
        maxLiveNodeCnt = 1;                                                                               \
        extraBuf = 0;                                                                                     \
    }
ASCENDC_TMP_SIZE(Sin)
ASCENDC_TMP_SIZE(Cos)
ASCENDC_TMP_SIZE(Tan)
ASCENDC_TMP_SIZE(Asin)
ASCENDC_TMP_SIZE(Acos)
ASCENDC_TMP_SIZE(Atan)
ASCENDC_TMP_SIZE(Sinh)
ASCENDC_TMP_SIZE(Cosh)
ASCENDC_TMP_SIZE(Tanh)
ASCENDC_TMP_SIZE(Asinh)
ASCENDC_TMP_SIZE(Acosh)
ASCENDC_TMP_SIZE(Atanh)
ASCENDC_TMP_SIZE(Log)
ASCENDC_TMP_SIZE(Log2)
ASCENDC_TMP_SIZE(Log10)
ASCENDC_TMP_SIZE(Erf)
ASCENDC_TMP_SIZE(Erfc)
ASCENDC_TMP_SIZE(Lgamma)
ASCENDC_TMP_SIZE(Floor)
ASCENDC_TMP_SIZE(Ceil)
ASCENDC_TMP_SIZE(Round)
ASCENDC_TMP_SIZE(Trunc)
ASCENDC_TMP_SIZE(Frac)
ASCENDC_TMP_SIZE(Sign)
ASCENDC_TMP_SIZE(Sigmoid)
ASCENDC_TMP_SIZE(Power)
ASCENDC_TMP_SIZE(Xor)
ASCENDC_TMP_SIZE(Clamp)
ASCENDC_TMP_SIZE(Fmod)
ASCENDC_TMP_SIZE(Rint)
ASCENDC_TMP_SIZE(Hypot)
#undef ASCENDC_TMP_SIZE

template <typename Shape>
void GetPowerMaxMinTmpSize(const Shape&, const Shape&, bool, uint32_t, bool, uint32_t& maxValue,
                           uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}
enum class ReducePattern : uint32_t { AR = 0, RA = 1, R };
#define ASCENDC_REDUCE_TMP_SIZE(Name)                                                                    \
    template <typename Shape, typename DataType>                                                         \
    void Get##Name##MaxMinTmpSize(const Shape&, DataType, ReducePattern, bool, bool, uint32_t& maxValue, \
                                  uint32_t& minValue) {                                                  \
        maxValue = minValue = least_temporary_space;                                                     \
    }
ASCENDC_REDUCE_TMP_SIZE(ReduceSum)
ASCENDC_REDUCE_TMP_SIZE(ReduceMean)
ASCENDC_REDUCE_TMP_SIZE(ReduceMax)
ASCENDC_REDUCE_TMP_SIZE(ReduceMin)
ASCENDC_REDUCE_TMP_SIZE(ReduceProd)
ASCENDC_REDUCE_TMP_SIZE(ReduceAny)
ASCENDC_REDUCE_TMP_SIZE(ReduceAll)
#undef ASCENDC_REDUCE_TMP_SIZE
template <typename Shape>
void GetBroadCastMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const Shape&, const Shape&, uint32_t,
                               bool, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
}

template <typename Shape>
uint32_t GetSoftMaxMaxTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
template <typename Shape>
uint32_t GetSoftMaxMinTmpSize(const Shape&, uint32_t, bool) {
    return least_temporary_space;
}
// Both names of the function, and the one tensor and the one scalar that it chooses from.
#define ASCENDC_SELECT_TMP_SIZE(Name)                                                                    \
    template <typename Shape>                                                                            \
    uint32_t Get##Name##MaxTmpSize(const Shape&, const Shape&, uint32_t, const Shape&, uint32_t, bool) { \
        return least_temporary_space;                                                                    \
    }                                                                                                    \
    template <typename Shape>                                                                            \
    uint32_t Get##Name##MinTmpSize(const Shape&, const Shape&, uint32_t, const Shape&, uint32_t, bool) { \
        return least_temporary_space;                                                                    \
    }                                                                                                    \
    template <typename Shape>                                                                            \
    void Get##Name##MaxMinTmpSize(const Shape&, const Shape&, uint32_t, const Shape&, uint32_t, bool,    \
                                  uint32_t& maxValue, uint32_t& minValue) {                              \
        maxValue = minValue = least_temporary_space;                                                     \
    }
ASCENDC_SELECT_TMP_SIZE(Select)
ASCENDC_SELECT_TMP_SIZE(SelectWithBytesMask)
#undef ASCENDC_SELECT_TMP_SIZE

// What TopK's documentation says of rows: false of others.
inline bool is_topk(int32_t inner, int32_t outter, uint32_t item_size, TopKMode mode) {
    const bool has_size = mode == TopKMode::TOPK_NSMALL ? inner == 32 : inner > 0 && inner <= 4096;
    return has_size && inner % 32 == 0 && outter > 0 && (item_size == 2 || item_size == 4);
}
inline bool GetTopKMaxMinTmpSize(const platform_ascendc::PlatformAscendC&, const int32_t inner,
                                 const int32_t outter, const bool, const bool, enum TopKMode mode, const bool,
                                 const uint32_t dataTypeSize, uint32_t& maxValue, uint32_t& minValue) {
    maxValue = minValue = least_temporary_space;
    return is_topk(inner, outter, dataTypeSize, mode);
}
inline bool TopKTilingFunc(const platform_ascendc::PlatformAscendC&, const int32_t inner,
                           const int32_t outter, const int32_t k, const uint32_t dataTypeSize, const bool,
                           enum TopKMode mode, const bool, optiling::TopkTiling& topKTiling) {
    if (!is_topk(inner, outter, dataTypeSize, mode) || k < 1 || k > inner) return false;
    topKTiling = {};
    topKTiling.tmpLocalSize = least_temporary_space;
    topKTiling.allDataSize = inner * outter;
    topKTiling.innerDataSize = inner;
    return true;
}

// All rows at once: SoftMax needs no division of them on the host.
template <typename Shape>
void SoftMaxTilingFunc(const Shape& shape, uint32_t item_size, uint32_t, optiling::SoftMaxTiling& tiling) {
    const size_t rank = shape.GetDimNum();
    const auto columns = rank == 0 ? 1u : static_cast<uint32_t>(shape.GetDim(rank - 1));
    const auto size = static_cast<uint32_t>(shape.GetShapeSize());
    const uint32_t rows = columns == 0 ? 0 : size / columns;
    const uint32_t per_block = item_size == 0 ? 1 : 32 / item_size;
    tiling = {};
    tiling.srcM = tiling.outMaxM = tiling.splitM = tiling.reduceM = rows;
    tiling.srcK = tiling.splitK = columns;
    tiling.srcSize = tiling.splitSize = size;
    tiling.outMaxK = tiling.reduceK = per_block;
    tiling.outMaxSize = tiling.reduceSize = rows * per_block;
    tiling.rangeM = 1;
}

}  // namespace AscendC

#endif  // ASCENDC_HOST_TILING_API_H
