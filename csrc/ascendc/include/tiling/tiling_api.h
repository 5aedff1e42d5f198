// Tiling on the host. Here of Matmul: how a matrix is divided among cores and into base blocks.
#ifndef ASCENDC_HOST_TILING_API_H
#define ASCENDC_HOST_TILING_API_H

#include <algorithm>
#include <iostream>
#include <numeric>

#include "../kernel_tiling/kernel_tiling.h"
#include "../securec.h"
#include "function_tiling.h"
#include "hccl/hccl_tiling.h"
#include "matmul_cores.h"
#include "platform/platform_ascendc.h"
// ge::Shape, which callers of these functions make without an include of their own.
#if defined(__has_include) && __has_include("graph/tensor.h")
#include "graph/tensor.h"
#endif

namespace matmul_tiling {

// As with CANN, what tiling functions call half is as large as a double; kernels have their own.
#ifndef ASCENDC_HOST_HALF_H
using half = double;
#endif

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
    DT_UNDEFINED = 28,
    DT_INT4 = 29,
    DT_BFLOAT16 = 33,
    DT_HIFLOAT8 = 34,
    DT_FLOAT8_E4M3FN = 35,
    DT_FLOAT8_E5M2 = 36,
    DT_FLOAT4_E2M1 = 37,
    DT_FLOAT8_E8M0 = 38,
    DT_FLOAT4_E1M2 = 39,
    DT_MAX = 40
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
enum class MatrixMadType : int32_t { NORMAL = 0, HF32 = 1, MXMODE = 2 };
enum class DequantType { SCALAR = 0, TENSOR = 1 };
enum class ScheduleType : int32_t { INNER_PRODUCT = 0, OUTER_PRODUCT = 1, N_BUFFER_33 = 2 };

// How a kernel's Matmul object is configured: 0 is the normal template, 1 that of large copies.
struct MatmulConfigParams {
    explicit MatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                                ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                                MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false)
        : mmConfigType(mmConfigTypeIn),
          enableL1CacheUB(enableL1CacheUBIn),
          scheduleType(scheduleTypeIn),
          traverse(traverseIn),
          enVecND2NZ(enVecND2NZIn) {}
    int32_t mmConfigType;
    bool enableL1CacheUB;
    ScheduleType scheduleType;
    MatrixTraverse traverse;
    bool enVecND2NZ;
};

// The device, for those who do not have its PlatformAscendC.
struct PlatformInfo {
    platform_ascendc::SocVersion socVersion = platform_ascendc::SocVersion::ASCEND910B;
    uint64_t l1Size = 0;
    uint64_t l0CSize = 0;
    uint64_t ubSize = 0;
    uint64_t l0ASize = 0;
    uint64_t l0BSize = 0;
};

// Bytes of the memories that a tiling uses.
struct SysTilingTempBufSize {
    int32_t ubSize = 0;
    int32_t l1Size = 0;
    int32_t l0cSize = 0;
};

// One core: the whole shape in base blocks that fit the cube's buffers.
class MatmulApiTiling {
  public:
    MatmulApiTiling() = default;
    explicit MatmulApiTiling(const platform_ascendc::PlatformAscendC&) {}
    explicit MatmulApiTiling(const PlatformInfo&) {}
    virtual ~MatmulApiTiling() = default;

    int32_t SetAType(TPosition, CubeFormat, DataType type, bool transposed = false) {
        a_transposed_ = transposed;
        return set_bits(a_bits_, type);
    }
    int32_t SetBType(TPosition, CubeFormat, DataType type, bool transposed = false) {
        b_transposed_ = transposed;
        return set_bits(b_bits_, type);
    }
    int32_t SetCType(TPosition, CubeFormat, DataType) { return 0; }
    int32_t SetBiasType(TPosition, CubeFormat, DataType) { return 0; }
    // -1 is what SetOrgShape says.
    virtual int32_t SetShape(int32_t m, int32_t n, int32_t k) {
        if (is_no_size(m) || is_no_size(n) || is_no_size(k)) return -1;
        m_given_ = m;
        n_given_ = n;
        k_given_ = k;
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
    void SetMatmulConfigParams(const MatmulConfigParams& configParams) {
        schedule_ = configParams.scheduleType;
        if (configParams.traverse != MatrixTraverse::NOSET) SetTraverse(configParams.traverse);
    }
    void SetMatmulConfigParams(int32_t mmConfigTypeIn = 1, bool enableL1CacheUBIn = false,
                               ScheduleType scheduleTypeIn = ScheduleType::INNER_PRODUCT,
                               MatrixTraverse traverseIn = MatrixTraverse::NOSET, bool enVecND2NZIn = false) {
        SetMatmulConfigParams(
            MatmulConfigParams(mmConfigTypeIn, enableL1CacheUBIn, scheduleTypeIn, traverseIn, enVecND2NZIn));
    }
    // Of several products at once: the axes of A, B and C, where rows of different matrices may alternate,
    // and the most matrices of a call.
    int32_t SetALayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
        return set_axes(a_axes_, b, s, n, g, d);
    }
    int32_t SetBLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
        return set_axes(b_axes_, b, s, n, g, d);
    }
    int32_t SetCLayout(int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
        return set_axes(c_axes_, b, s, n, g, d);
    }
    int32_t SetBatchInfoForNormal(int32_t batchA, int32_t batchB, int32_t m, int32_t n, int32_t k) {
        if (batchA <= 0 || batchB <= 0 || m <= 0 || n <= 0 || k <= 0) return -1;
        a_axes_ = {batchA, m, 1, 1, k};
        b_axes_ = {batchB, n, 1, 1, k};
        c_axes_ = {std::max(batchA, batchB), m, 1, 1, n};
        is_normal_ = true;
        return 0;
    }
    int32_t SetBatchNum(int32_t batch) {
        if (batch <= 0) return -1;
        batch_ = batch;
        return 0;
    }
    // How the values of C are made, and what the device tries: the division does not depend on it here.
    int32_t SetDequantType(DequantType) { return 0; }
    int32_t SetMadType(MatrixMadType type) { return type == MatrixMadType::NORMAL ? 0 : -1; }
    int32_t SetSplitRange(int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1, int32_t = -1,
                          int32_t = -1) {
        return 0;
    }
    int32_t SetDoubleBuffer(bool, bool, bool, bool, bool = true, bool = true) { return 0; }
    // Of a B of which half is kept; the division is that of the whole.
    int32_t SetSparse(bool = false) { return 0; }
    int32_t GetBaseM() const { return base_m_; }
    int32_t GetBaseN() const { return base_n_; }
    int32_t GetBaseK() const { return base_k_; }

    // Fills `tiling`; -1 when no shape was set or it cannot be divided so.
    virtual int64_t GetTiling(optiling::TCubeTiling& tiling) {
        take_shape();
        return fill(tiling, m_, n_, k_, 1);
    }

  protected:
    void take_shape() {
        m_ = m_given_ == -1 ? org_m_ : m_given_;
        n_ = n_given_ == -1 ? org_n_ : n_given_;
        k_ = k_given_ == -1 ? org_ka_ : k_given_;
    }
    int64_t fill(optiling::TCubeTiling& tiling, int32_t m, int32_t n, int32_t k, int32_t cores) {
        if (org_m_ <= 0 || m <= 0 || !holds_batch(m, n, k)) return -1;
        const int32_t c0 = 256 / a_bits_;
        base_m_ = fix_m_ > 0 ? fix_m_ : std::min(128, up(m, 16));
        base_n_ = fix_n_ > 0 ? fix_n_ : std::min(256, up(n, 16));
        // L0A and L0B hold two blocks each, in 64 KiB.
        constexpr int32_t l0_bits = 32 * 1024 * 8;
        const int32_t most_k = std::min(l0_bits / a_bits_ / base_m_, l0_bits / b_bits_ / base_n_) / c0 * c0;
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
        if (schedule_ == ScheduleType::N_BUFFER_33) {
            // A is three blocks high and wide at most, and B as high.
            tiling.stepM = std::min(3, (m + base_m_ - 1) / base_m_);
            tiling.stepKa = tiling.stepKb = (k + base_k_ - 1) / base_k_;
            if (tiling.stepKa > 3) return -1;
            tiling.depthA1 = tiling.stepM * tiling.stepKa;
            tiling.depthB1 = 2 * tiling.stepKb;
        }
        tiling.isBias = bias_;
        tiling.iterateOrder = order_;
        tiling.shareL1Size = (base_m_ * a_bits_ + base_n_ * b_bits_) * base_k_ * 2 / 8;
        tiling.shareL0CSize = base_m_ * base_n_ * 4;
        tiling.dbL0A = tiling.dbL0B = 2;
        tiling.dbL0C = 1;
        tiling.ALayoutInfoB = a_axes_.b;
        tiling.ALayoutInfoS = a_axes_.s;
        tiling.ALayoutInfoN = a_axes_.n;
        tiling.ALayoutInfoG = a_axes_.g;
        tiling.ALayoutInfoD = a_axes_.d;
        tiling.BLayoutInfoB = b_axes_.b;
        tiling.BLayoutInfoS = b_axes_.s;
        tiling.BLayoutInfoN = b_axes_.n;
        tiling.BLayoutInfoG = b_axes_.g;
        tiling.BLayoutInfoD = b_axes_.d;
        tiling.CLayoutInfoB = c_axes_.b;
        tiling.CLayoutInfoS1 = c_axes_.s;
        tiling.CLayoutInfoN = c_axes_.n;
        tiling.CLayoutInfoG = c_axes_.g;
        tiling.CLayoutInfoS2 = c_axes_.d;
        tiling.BatchNum = batch_;
        ascendc_host::tiling_data_written(&tiling, sizeof tiling);
        return 0;
    }
    static int32_t up(int32_t value, int32_t to) { return (value + to - 1) / to * to; }

    int32_t m_ = 0, n_ = 0, k_ = 0;
    int32_t a_bits_ = 16, b_bits_ = 16;
    bool a_transposed_ = false, b_transposed_ = false;

  private:
    static bool is_no_size(int32_t size) { return size <= 0 && size != -1; }
    struct Axes {
        int32_t b = 0, s = 0, n = 0, g = 0, d = 0;
    };
    int32_t set_axes(Axes& axes, int32_t b, int32_t s, int32_t n, int32_t g, int32_t d) {
        if (b <= 0 || s <= 0 || n <= 0 || g <= 0 || d <= 0) return -1;
        axes = {b, s, n, g, d};
        is_normal_ = false;
        return 0;
    }
    // Alternating rows are in L1 all at once.
    bool holds_batch(int32_t m, int32_t n, int32_t k) const {
        if (batch_ == 0 || is_normal_) return true;
        const int64_t bits = (int64_t(m) * a_bits_ + int64_t(n) * b_bits_) * k * batch_;
        return bits + (bias_ ? int64_t(n) * batch_ * a_bits_ : 0) <= 512 * 1024 * 8;
    }
    static int32_t set_bits(int32_t& bits, DataType type) {
        switch (type) {
            case DataType::DT_INT4:
                bits = 4;
                return 0;
            case DataType::DT_INT8:
            case DataType::DT_UINT8:
                bits = 8;
                return 0;
            case DataType::DT_FLOAT16:
            case DataType::DT_BF16:
            case DataType::DT_BFLOAT16:
                bits = 16;
                return 0;
            case DataType::DT_FLOAT:
                bits = 32;
                return 0;
            default:
                return -1;
        }
    }
    int32_t org_m_ = 0, org_n_ = 0, org_ka_ = 0, org_kb_ = 0;
    int32_t fix_m_ = -1, fix_n_ = -1, fix_k_ = -1;
    int32_t base_m_ = 0, base_n_ = 0, base_k_ = 0;
    int32_t order_ = 0;
    bool bias_ = false;
    Axes a_axes_, b_axes_, c_axes_;
    int32_t batch_ = 0;
    bool is_normal_ = false;
    int32_t m_given_ = 0, n_given_ = 0, k_given_ = 0;
    ScheduleType schedule_ = ScheduleType::INNER_PRODUCT;
};
using MatmulApiTilingBase = MatmulApiTiling;

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
    // Parts of M and N are multiples of these; -1 and 0 leave them alone.
    int32_t SetAlignSplit(int32_t alignM, int32_t alignN, int32_t alignK) {
        if (alignM < -1 || alignN < -1 || alignK < -1) return -1;
        align_m_ = std::max(alignM, 1);
        align_n_ = std::max(alignN, 1);
        return 0;
    }
    void EnableMultiCoreSplitK(bool) {}
    void SetSplitK(bool) {}
    bool EnableL1BankConflictOptimise() { return false; }
    int32_t GetCoreNum(int32_t& cores, int32_t& m_cores, int32_t& n_cores) const {
        cores = used_;
        m_cores = m_parts_;
        n_cores = n_parts_;
        return 0;
    }
    int32_t GetSingleShape(int32_t& shapeM, int32_t& shapeN, int32_t& shapeK) const {
        if (used_ == 0) return -1;
        shapeM = part_m_;
        shapeN = part_n_;
        shapeK = single_k_ > 0 ? single_k_ : k_;
        return 0;
    }
    int64_t GetTiling(optiling::TCubeTiling& tiling) override {
        take_shape();
        if (m_ <= 0 || n_ <= 0 || k_ <= 0) return -1;
        const bool is_fixed = single_m_ > 0 || single_n_ > 0 || single_k_ > 0;
        int32_t m = single_m_ > 0 ? single_m_ : m_;
        int32_t n = single_n_ > 0 ? single_n_ : n_;
        used_ = cores_;
        if (!is_fixed) {
            const ascendc_host::MatmulCores::Shape shape{m_,           n_, k_, 256 / a_bits_, a_transposed_,
                                                         b_transposed_};
            const auto parts = ascendc_host::MatmulCores(shape, cores_).divide();
            used_ = parts.m * parts.n;
            if (cores_ > 1) {
                m = up(ascendc_host::MatmulCores::share(m_, parts.m), align_m_);
                // A part of B begins with a whole byte.
                n = up(ascendc_host::MatmulCores::share(n_, parts.n),
                       b_bits_ < 8 ? std::lcm(align_n_, 8 / b_bits_) : align_n_);
            }
        }
        part_m_ = m;
        part_n_ = n;
        m_parts_ = (m_ + m - 1) / m;
        n_parts_ = (n_ + n - 1) / n;
        return fill(tiling, m, n, single_k_ > 0 ? single_k_ : k_, used_);
    }

  private:
    int32_t cores_ = 1;
    int32_t single_m_ = -1, single_n_ = -1, single_k_ = -1;
    int32_t align_m_ = 1, align_n_ = 1;
    int32_t used_ = 0, m_parts_ = 0, n_parts_ = 0, part_m_ = 0, part_n_ = 0;
};

// Several products at once, on one core.
class BatchMatmulTiling : public MatmulApiTiling {
  public:
    using MatmulApiTiling::MatmulApiTiling;

    int32_t GetCoreNum(int32_t& dim, int32_t& mDim, int32_t& nDim, int32_t& batchCoreM,
                       int32_t& batchCoreN) const {
        dim = mDim = nDim = batchCoreM = batchCoreN = 1;
        return 0;
    }
};

}  // namespace matmul_tiling

// What tilings use, of the larger one where the sizes of another are there.
#define ASCENDC_MATMUL_SPACE(Name)                                                                     \
    inline int32_t Name(optiling::TCubeTiling& tiling, matmul_tiling::SysTilingTempBufSize& bufSize) { \
        bufSize.ubSize = std::max<int32_t>(bufSize.ubSize, tiling.shareUbSize);                        \
        bufSize.l1Size = std::max<int32_t>(bufSize.l1Size, tiling.shareL1Size);                        \
        bufSize.l0cSize = std::max<int32_t>(bufSize.l0cSize, tiling.shareL0CSize);                     \
        return 0;                                                                                      \
    }
ASCENDC_MATMUL_SPACE(MatmulGetTmpBufSize)
ASCENDC_MATMUL_SPACE(MatmulGetTmpBufSizeV2)
ASCENDC_MATMUL_SPACE(MultiCoreMatmulGetTmpBufSize)
ASCENDC_MATMUL_SPACE(MultiCoreMatmulGetTmpBufSizeV2)
ASCENDC_MATMUL_SPACE(BatchMatmulGetTmpBufSize)
ASCENDC_MATMUL_SPACE(BatchMatmulGetTmpBufSizeV2)
#undef ASCENDC_MATMUL_SPACE

#endif  // ASCENDC_HOST_TILING_API_H
