// The Matmul object: C = A * B + bias over a core's part of a matrix, by the tiling that the host computed.
//
// On split cores the object belongs to the vector cores, which send their requests to the cube core; here the
// vector core computes them itself, and the cube core has nothing to do.
#ifndef LIB_MATMUL_INTF_H
#define LIB_MATMUL_INTF_H

#include "../ascendc_host/matmul_config.h"
#include "../kernel_operator.h"
#include "../kernel_tiling/kernel_tiling.h"

namespace AscendC {

// As narrow as the device's.
inline uint16_t CeilDiv(uint16_t a, uint16_t b) { return static_cast<uint16_t>((a + b - 1) / b); }
inline uint16_t CeilAlign(uint16_t a, uint16_t b) { return static_cast<uint16_t>(CeilDiv(a, b) * b); }
template <typename T>
T CeilAlign(T a, T b) {
    return (a + b - 1) / b * b;
}

template <TPosition POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS = false,
          LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false, TPosition SRCPOS = TPosition::GM>
struct MatmulType {
    static constexpr TPosition pos = POSITION;
    static constexpr CubeFormat format = FORMAT;
    using T = TYPE;
    static constexpr bool isTrans = ISTRANS;
    static constexpr LayoutMode layout = LAYOUT;
    static constexpr bool ibShare = IBSHARE;
};

namespace detail {

// A matrix in global or local memory, by rows or in fractals of 16 rows and 32 bytes, seen as rows x columns.
template <typename T>
class MatrixView {
  public:
    void bind(const GlobalTensor<T>& tensor, bool transposed) {
        global_ = tensor;
        local_ = {};
        transposed_ = transposed;
        bound_ = true;
    }
    void bind(const LocalTensor<T>& tensor, bool transposed) {
        local_ = tensor;
        transposed_ = transposed;
        bound_ = true;
    }
    bool bound() const { return bound_; }
    bool is_local() const { return local_.bytes() != nullptr; }
    bool transposed() const { return transposed_; }

    // to[i * columns + j] = element [row + i, column + j]. `stored_rows` and `stored_columns` are the whole
    // matrix as it lies in memory, before it is transposed.
    template <typename W>
    void read(W* to, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns, CubeFormat format,
              uint64_t stored_rows, uint64_t stored_columns, const char* name, const Where& where) const {
        if (transposed_) {
            std::vector<W> turned(rows * columns);
            read_stored(turned.data(), column, row, columns, rows, format, stored_rows, stored_columns, name,
                        where);
            for (uint64_t i = 0; i < rows; ++i) {
                for (uint64_t j = 0; j < columns; ++j) to[i * columns + j] = turned[j * rows + i];
            }
        } else {
            read_stored(to, row, column, rows, columns, format, stored_rows, stored_columns, name, where);
        }
    }

  private:
    const T* run(uint64_t at, uint64_t count, const char* name, const Where& where) const {
        if (is_local()) return local_.use(at + count, "Matmul", name, where) + at;
        return reinterpret_cast<const T*>(
            global_.use_bytes(at * sizeof(T), count * sizeof(T), "Matmul", name, where));
    }
    template <typename W>
    void read_stored(W* to, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns, CubeFormat format,
                     uint64_t stored_rows, uint64_t stored_columns, const char* name,
                     const Where& where) const {
        constexpr uint64_t c0 = 32 / sizeof(T);
        const bool fractals = format == CubeFormat::NZ;
        const uint64_t high = (stored_rows + 15) / 16 * 16;
        const uint64_t step = fractals ? c0 : columns;
        for (uint64_t i = 0; i < rows; ++i) {
            for (uint64_t j = 0; j < columns;) {
                const uint64_t at_column = column + j;
                const uint64_t count = fractals ? std::min(step - at_column % c0, columns - j) : columns;
                const uint64_t at = fractals ? at_column / c0 * high * c0 + (row + i) * c0 + at_column % c0
                                             : (row + i) * stored_columns + at_column;
                const T* from = run(at, count, name, where);
                if constexpr (std::is_same<W, float>::value && !std::is_same<Wide<T>, T>::value) {
                    ascendc_host::widen(from, to + i * columns + j, count);
                } else {
                    for (uint64_t l = 0; l < count; ++l) to[i * columns + j + l] = static_cast<W>(from[l]);
                }
                j += count;
            }
        }
    }
    GlobalTensor<T> global_;
    LocalTensor<T> local_;
    bool transposed_ = false;
    bool bound_ = false;
};

// Whether a constant tiling says all that a call needs.
constexpr bool is_whole(const MatmulConfig&) { return false; }
constexpr bool is_whole(const MatmulApiStaticTiling& constants) {
    return constants.singleCoreM > 0 && constants.singleCoreN > 0 && constants.singleCoreK > 0 &&
           constants.baseM > 0 && constants.baseN > 0 && constants.baseK > 0;
}
constexpr bool splits_channels(const MatmulConfig& config) { return config.isEnableChannelSplit; }
constexpr bool splits_channels(const MatmulApiStaticTiling& constants) {
    return splits_channels(constants.cfg);
}
// The tiling of a call: what is constant, and the rest as it is given.
inline TCubeTiling tiling_of(const MatmulConfig&, const TCubeTiling* given) { return *given; }
inline TCubeTiling tiling_of(const MatmulApiStaticTiling& constants, const TCubeTiling* given) {
    TCubeTiling tiling = given == nullptr ? TCubeTiling() : *given;
    const auto set = [](auto& field, int32_t constant) {
        if (constant > 0) field = constant;
    };
    set(tiling.M, constants.M);
    set(tiling.N, constants.N);
    set(tiling.Ka, constants.Ka);
    set(tiling.Kb, constants.Kb);
    set(tiling.singleCoreM, constants.singleCoreM);
    set(tiling.singleCoreN, constants.singleCoreN);
    set(tiling.singleCoreK, constants.singleCoreK);
    set(tiling.baseM, constants.baseM);
    set(tiling.baseN, constants.baseN);
    set(tiling.baseK, constants.baseK);
    return tiling;
}

}  // namespace detail

// Functions that replace the device's own copies; there are none to replace here, so only the absence of them
// is accepted.
template <auto copy_out = nullptr, auto copy_a1 = nullptr, auto copy_b1 = nullptr>
struct MatmulCallBackFunc {
    static_assert(copy_out == nullptr && copy_a1 == nullptr && copy_b1 == nullptr,
                  "Matmul callbacks are not supported on the host");
};

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class CallBack = MatmulCallBackFunc<>>
class MatmulImpl {
    using SrcAT = typename A_TYPE::T;
    using SrcBT = typename B_TYPE::T;
    using DstT = typename C_TYPE::T;
    using BiasT = typename BIAS_TYPE::T;
    using W = detail::Sum<SrcAT>;

  public:
    // Whether REGIST_MATMUL_OBJ initialises the object without a tiling.
    static constexpr bool has_whole_tiling = detail::is_whole(MM_CFG);
    static_assert(C_TYPE::format == CubeFormat::ND || C_TYPE::format == CubeFormat::ND_ALIGN ||
                      C_TYPE::format == CubeFormat::NZ,
                  "Matmul: C is of the formats ND, ND_ALIGN and NZ");
    static_assert(!detail::splits_channels(MM_CFG) ||
                      (C_TYPE::format == CubeFormat::NZ && std::is_same<DstT, float>::value),
                  "Matmul: isEnableChannelSplit is for C of float in the format NZ");

    void Init(const TCubeTiling* tiling, TPipe* = nullptr, Where where = Where()) {
        const auto& block = ascendc_host::enter(where);
        if (tiling == nullptr && !detail::is_whole(MM_CFG))
            ascendc_host::fail(block, where,
                               "Matmul: the tiling is null; only an object whose MatmulApiStaticTiling has "
                               "singleCoreM, singleCoreN, singleCoreK, baseM, baseN and baseK needs none");
        tiling_ = detail::tiling_of(MM_CFG, tiling);
        if (tiling_.singleCoreM <= 0 || tiling_.singleCoreN <= 0 || tiling_.singleCoreK <= 0 ||
            tiling_.baseM <= 0 || tiling_.baseN <= 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "Matmul: tiling with singleCore %d x %d x %d and base %d x %d; all must be above 0",
                    tiling_.singleCoreM, tiling_.singleCoreN, tiling_.singleCoreK, tiling_.baseM,
                    tiling_.baseN));
        }
        SetOrgShape(tiling_.M, tiling_.N, tiling_.Ka, tiling_.Kb);
        SetSingleShape(tiling_.singleCoreM, tiling_.singleCoreN, tiling_.singleCoreK);
        use_bias_ = false;
        initialised_ = true;
    }
    void SetOrgShape(int m, int n, int k) { SetOrgShape(m, n, k, k); }
    void SetOrgShape(int m, int n, int ka, int kb, int kc = 0) {
        org_m_ = m;
        org_n_ = n;
        org_ka_ = ka;
        org_kb_ = kb;
        org_kc_ = kc;
    }
    void SetSingleShape(int m, int n, int k) {
        single_m_ = m;
        single_n_ = n;
        single_k_ = k;
        restart();
    }
    void SetTail(int m = -1, int n = -1, int k = -1) {
        if (m > 0) single_m_ = m;
        if (n > 0) single_n_ = n;
        if (k > 0) single_k_ = k;
        restart();
    }
    void SetTensorA(const GlobalTensor<SrcAT>& gm, bool isTransposeA = false) { bind(a_, gm, isTransposeA); }
    void SetTensorA(const LocalTensor<SrcAT>& local, bool isTransposeA = false) {
        bind(a_, local, isTransposeA);
    }
    void SetTensorB(const GlobalTensor<SrcBT>& gm, bool isTransposeB = false) { bind(b_, gm, isTransposeB); }
    void SetTensorB(const LocalTensor<SrcBT>& local, bool isTransposeB = false) {
        bind(b_, local, isTransposeB);
    }
    void SetBias(const GlobalTensor<BiasT>& gm) { bind_bias(gm); }
    void SetBias(const LocalTensor<BiasT>& local) { bind_bias(local); }
    void DisableBias() { use_bias_ = false; }
    void ClearBias() { use_bias_ = false; }
    // Results times a scale, as a word of the fixpipe has it: one for all, or one for each column of this
    // core.
    void SetQuantScalar(const uint64_t scale) {
        quant_mode_ = sizeof(DstT) == 1 ? REQ8 : DEQF16;
        quant_scale_ = scale;
    }
    void SetQuantVector(const GlobalTensor<uint64_t>& scales) { bind_scales(scales); }
    void SetQuantVector(const LocalTensor<uint64_t>& scales) { bind_scales(scales); }
    template <typename T>
    void SetWorkspace(T&&) {}
    template <typename T>
    void SetWorkspace(const T*, int) {}
    void SetLocalWorkspace(const LocalTensor<uint8_t>&) {}
    void SetHF32(bool = false, int32_t = 0) {}
    void SetSubBlockIdx(uint8_t) {}
    void SetUserDefInfo(uint64_t) {}
    template <typename T>
    void SetSelfDefineData(T) {}
    void End() { initialised_ = false; }

    // The whole part of this core.
    template <bool sync = true>
    void IterateAll(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                    bool = false, bool = false, Where where = Where()) {
        check(where);
        compute(0, 0, single_m_, single_n_, where);
        write(gm, enAtomic, enSequentialWrite ? whole_row(single_n_) : row_of_c(), 0, 0, single_m_, single_n_,
              where);
        restart();
    }
    template <bool sync = true>
    void IterateAll(const LocalTensor<DstT>& local, uint8_t = 0, Where where = Where()) {
        check(where);
        compute(0, 0, single_m_, single_n_, where);
        write_local(local, whole_row(single_n_), single_m_, single_n_, where);
        restart();
    }
    void WaitIterateAll() {}

    // One base block after the other: true while there is one, which GetTensorC then gives. Without sync one
    // call begins all of them, and each GetTensorC gives the next.
    template <bool sync = true>
    bool Iterate(bool enPartialSum = false, Where where = Where()) {
        check(where);
        const int rows = (single_m_ + tiling_.baseM - 1) / tiling_.baseM;
        const int columns = (single_n_ + tiling_.baseN - 1) / tiling_.baseN;
        if (++step_ >= rows * columns) {
            restart();
            return false;
        }
        // Order 0 runs along M first, order 1 along N.
        m_at_ = tiling_.iterateOrder == 0 ? step_ % rows : step_ / columns;
        n_at_ = tiling_.iterateOrder == 0 ? step_ / rows : step_ % columns;
        is_taken_ = false;
        const auto before = std::move(c_);
        compute(m_at_ * tiling_.baseM, n_at_ * tiling_.baseN, block_m(), block_n(), where);
        if (enPartialSum && before.size() == c_.size()) {
            for (size_t i = 0; i < c_.size(); ++i) c_[i] = detail::add_op()(c_[i], before[i]);
        }
        return true;
    }
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                    Where where = Where()) {
        check(where);
        take<sync>(where);
        if (enSequentialWrite) {
            write(gm, enAtomic, tiling_.baseN, 0, 0, block_m(), block_n(), where);
        } else {
            write(gm, enAtomic, row_of_c(), m_at_ * tiling_.baseM, n_at_ * tiling_.baseN, block_m(),
                  block_n(), where);
        }
    }
    template <bool sync = true>
    void GetTensorC(const LocalTensor<DstT>& local, uint8_t = 0, bool = false, Where where = Where()) {
        check(where);
        take<sync>(where);
        write_local(local, tiling_.baseN, block_m(), block_n(), where);
    }

    // To both; what is asked for beside them is about global memory.
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<DstT>& gm, const LocalTensor<DstT>& co2Local, uint8_t enAtomic = 0,
                    bool enSequentialWrite = false, Where where = Where()) {
        GetTensorC<sync>(gm, enAtomic, enSequentialWrite, where);
        write_local(co2Local, tiling_.baseN, block_m(), block_n(), where);
    }
    // As it was called at first. The block is there when GetTensorC returns: nothing waits for it.
    void AsyncGetTensorC(const LocalTensor<DstT>& c, Where where = Where()) {
        GetTensorC<false>(c, 0, false, where);
    }
    void WaitGetTensorC() {}

  private:
    void restart() { step_ = -1; }
    int block_m() const { return std::min(tiling_.baseM, single_m_ - m_at_ * tiling_.baseM); }
    int block_n() const { return std::min(tiling_.baseN, single_n_ - n_at_ * tiling_.baseN); }
    // Rows of C in ND_ALIGN are whole blocks of 32 bytes.
    static int whole_row(int columns) {
        constexpr int block = ONE_BLK_SIZE / sizeof(DstT);
        return C_TYPE::format == CubeFormat::ND_ALIGN ? (columns + block - 1) / block * block : columns;
    }
    int row_of_c() const { return whole_row(org_kc_ != 0 ? org_kc_ : org_n_); }
    template <bool sync>
    void take(const Where& where) {
        if (!sync && is_taken_ && !Iterate<sync>(false, where))
            ascendc_host::fail(ascendc_host::current(), where,
                               "Matmul: GetTensorC after the last base block");
        is_taken_ = true;
    }
    template <typename View, typename Tensor>
    void bind(View& view, const Tensor& tensor, bool transposed) {
        view.bind(tensor, transposed);
        restart();
    }
    template <typename Tensor>
    void bind_bias(const Tensor& tensor) {
        bias_.bind(tensor, false);
        use_bias_ = true;
    }
    template <typename Tensor>
    void bind_scales(const Tensor& tensor) {
        static_assert(sizeof(DstT) == 1 || std::is_same<W, int32_t>::value,
                      "SetQuantVector: C is of 8 bits, or A and B are");
        quant_mode_ = sizeof(DstT) == 1 ? VREQ8 : VDEQF16;
        quant_scales_.bind(tensor, false);
    }
    void check(const Where& where) {
        const auto& block = ascendc_host::enter(where);
        if (!initialised_)
            ascendc_host::fail(block, where,
                               "Matmul: not initialised; call REGIST_MATMUL_OBJ with its tiling, or Init");
        if (!a_.bound() || !b_.bound())
            ascendc_host::fail(block, where, "Matmul: call SetTensorA and SetTensorB first");
        if (org_m_ <= 0 || org_n_ <= 0)
            ascendc_host::fail(
                block, where,
                "Matmul: the sizes of the matrices are not known; without a tiling call SetOrgShape first");
    }

    // c_[m, n] = A[row.., :] * B[:, column..] + bias, in panels that stay in the processor's cache.
    void compute(int row, int column, int m, int n, const Where& where) {
        constexpr int panel = 512;
        c_.assign(size_t(m) * n, W(0));
        columns_ = n;
        if (quant_mode_ == VREQ8 || quant_mode_ == VDEQF16) {
            scales_.resize(n);
            quant_scales_.read(scales_.data(), 0, column, 1, n, CubeFormat::ND, 1, org_n_, "quantTensor",
                               where);
        }
        if (use_bias_) {
            std::vector<W> bias(n);
            bias_.read(bias.data(), 0, column, 1, n, CubeFormat::ND, 1, org_n_, "bias", where);
            for (int i = 0; i < m; ++i) std::copy(bias.begin(), bias.end(), c_.begin() + size_t(i) * n);
        }
        const int ka = a_.is_local() ? single_k_ : org_ka_;
        const int rows_a = a_.is_local() ? single_m_ : org_m_;
        const int kb = b_.is_local() ? single_k_ : org_kb_;
        const int columns_b = b_.is_local() ? single_n_ : org_n_;
        static thread_local std::vector<W> a, b;
        for (int first = 0; first < single_k_; first += panel) {
            const int k = std::min(panel, single_k_ - first);
            a.resize(size_t(m) * k);
            b.resize(size_t(k) * n);
            a_.read(a.data(), row, first, m, k, A_TYPE::format, a_.transposed() ? ka : rows_a,
                    a_.transposed() ? rows_a : ka, "A", where);
            b_.read(b.data(), first, column, k, n, B_TYPE::format, b_.transposed() ? columns_b : kb,
                    b_.transposed() ? kb : columns_b, "B", where);
            ascendc_host::multiply_add(a.data(), b.data(), c_.data(), m, n, k);
        }
    }
    void results(size_t at, DstT* to, int count) const {
        if (quant_mode_ == NoQuant)
            return detail::convert_run(c_.data() + at, to, count, RoundMode::CAST_NONE);
        for (int j = 0; j < count; ++j)
            to[j] = detail::fix_element<DstT>(c_[at + j], false, quant_mode_, scales_.data(), quant_scale_,
                                              (at + j) % columns_);
    }
    void write(const GlobalTensor<DstT>& gm, uint8_t atomic, int row_length, int row, int column, int m,
               int n, const Where& where) {
        auto& block = ascendc_host::current();
        constexpr Block::Atomic modes[] = {Block::Atomic::none, Block::Atomic::add, Block::Atomic::max,
                                           Block::Atomic::min};
        const auto before = block.atomic;
        if (atomic != 0) block.atomic = modes[atomic % 4];
        constexpr int blocked = ONE_BLK_SIZE / sizeof(DstT);
        constexpr int c0 = blocked < 16 && !detail::splits_channels(MM_CFG) ? 16 : blocked;
        const uint64_t high = uint64_t((org_m_ + 15) / 16 * 16);
        std::vector<DstT> run(n);
        for (int i = 0; i < m; ++i) {
            results(size_t(i) * n, run.data(), n);
            const int step = C_TYPE::format == CubeFormat::NZ ? c0 : n;
            for (int j = 0; j < n; j += step) {
                const int count = std::min(step, n - j);
                const uint64_t at = C_TYPE::format == CubeFormat::NZ
                                        ? uint64_t((column + j) / c0) * high * c0 + uint64_t(row + i) * c0
                                        : uint64_t(row + i) * row_length + column + j;
                detail::store<DstT>(
                    block, reinterpret_cast<const uint8_t*>(run.data() + j),
                    gm.use_bytes(at * sizeof(DstT), count * sizeof(DstT), "Matmul", "C", where),
                    count * sizeof(DstT));
            }
        }
        block.atomic = before;
    }
    void write_local(const LocalTensor<DstT>& local, int row_length, int m, int n, const Where& where) {
        const uint64_t high = uint64_t((m + 15) / 16 * 16);
        constexpr int c0 = detail::splits_channels(MM_CFG) ? ONE_BLK_SIZE / sizeof(DstT) : 16;
        constexpr int step = C_TYPE::format == CubeFormat::NZ ? c0 : std::numeric_limits<int>::max();
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n;) {
                const int count = std::min(step, n - j);
                const uint64_t at = C_TYPE::format == CubeFormat::NZ ? (uint64_t(j / c0) * high + i) * c0
                                                                     : uint64_t(i) * row_length + j;
                results(size_t(i) * n + j, local.use(at + count, "Matmul", "C", where) + at, count);
                j += count;
            }
        }
    }
    using Block = ascendc_host::Block;

    TCubeTiling tiling_;
    detail::MatrixView<SrcAT> a_;
    detail::MatrixView<SrcBT> b_;
    detail::MatrixView<BiasT> bias_;
    std::vector<W> c_;
    int org_m_ = 0, org_n_ = 0, org_ka_ = 0, org_kb_ = 0, org_kc_ = 0;
    int single_m_ = 0, single_n_ = 0, single_k_ = 0;
    int step_ = -1, m_at_ = 0, n_at_ = 0;
    bool use_bias_ = false, initialised_ = false;
    bool is_taken_ = false;  // the base block that was computed last
    int columns_ = 1;        // of c_
    QuantMode_t quant_mode_ = NoQuant;
    uint64_t quant_scale_ = 0;
    detail::MatrixView<uint64_t> quant_scales_;
    std::vector<uint64_t> scales_;  // of the columns of c_
};
template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class CallBack = MatmulCallBackFunc<>>
using Matmul = MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, CallBack>;

namespace detail {
inline void register_objects(TPipe*) {}
template <typename Object>
void register_objects(TPipe*, Object&) {}  // initialised later, with Init
template <typename Object, typename Tiling, typename... Rest>
void register_objects(TPipe* pipe, Object& object, Tiling* tiling, Rest&&... rest) {
    if (tiling != nullptr || Object::has_whole_tiling) object.Init(tiling, pipe);
    register_objects(pipe, std::forward<Rest>(rest)...);
}
}  // namespace detail

}  // namespace AscendC

namespace matmul {
using namespace AscendC;
}
using AscendC::CFG_IBSHARE_NORM;
using AscendC::CFG_MDL;
using AscendC::CFG_NORM;
using AscendC::GetBasicConfig;
using AscendC::GetIBShareNormConfig;
using AscendC::GetMatmulApiTiling;
using AscendC::GetMDLConfig;
using AscendC::GetMMConfig;
using AscendC::GetNormalConfig;
using AscendC::GetSpecialMDLConfig;
using AscendC::MatmulApiStaticTiling;
using AscendC::MatmulBatchParams;
using AscendC::MatmulConfig;
using AscendC::MatmulConfigMode;
using AscendC::MatmulFuncParams;
using AscendC::MatmulQuantParams;
using AscendC::MatmulShapeParams;
using AscendC::MM_CFG_BB;

// Names objects and their tilings in turn. With vector cores, the cube core leaves the kernel here.
#ifdef ASCENDC_CUBE_ONLY
#define REGIST_MATMUL_OBJ(pipe, workspace, ...) ::AscendC::detail::register_objects(pipe, __VA_ARGS__)
#else
#define REGIST_MATMUL_OBJ(pipe, workspace, ...)                          \
    if (::ascendc_host::ask_core() == ::ascendc_host::Core::aic) return; \
    ::AscendC::detail::register_objects(pipe, __VA_ARGS__)
#endif
#define REGIST_CUBE_OBJ REGIST_MATMUL_OBJ

#endif  // LIB_MATMUL_INTF_H
