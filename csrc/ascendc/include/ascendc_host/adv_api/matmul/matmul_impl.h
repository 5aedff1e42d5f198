// The Matmul object: C = A * B + bias over a core's part of a matrix, by the tiling that the host computed.
#ifndef ASCENDC_HOST_ADV_API_MATMUL_MATMUL_IMPL_H
#define ASCENDC_HOST_ADV_API_MATMUL_MATMUL_IMPL_H

#include "../../../kernel_operator.h"
#include "../../../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/adv_api/matmul/batch.h"
#include "ascendc_host/adv_api/matmul/config.h"

namespace AscendC {

// As narrow as the device's.
inline uint16_t CeilDiv(uint16_t a, uint16_t b) { return static_cast<uint16_t>((a + b - 1) / b); }
inline uint16_t CeilAlign(uint16_t a, uint16_t b) { return static_cast<uint16_t>(CeilDiv(a, b) * b); }
template <typename T>
T CeilAlign(T a, T b) {
    return (a + b - 1) / b * b;
}

template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
T Ceil(T a, T b) {
    return static_cast<T>((a + b - 1) / b);
}

// Of a divisor 0 they make 0.
template <typename T>
constexpr T CeilNoLog(T a, T b) {
    return b == 0 ? T(0) : static_cast<T>((a + b - 1) / b);
}
template <typename T>
constexpr T Align(T a, T b) {
    return static_cast<T>(CeilNoLog(a, b) * b);
}
template <typename T>
constexpr T AlignDown(T a, T b) {
    return b == 0 ? T(0) : static_cast<T>(a / b * b);
}
template <typename T, typename... Same>
constexpr T MaxValue(T first, Same... rest) {
    ((first = rest > first ? rest : first), ...);
    return first;
}
template <typename T, typename... Same>
constexpr T MinValue(T first, Same... rest) {
    ((first = rest < first ? rest : first), ...);
    return first;
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

// A B of which two in every four elements along K are kept.
template <TPosition POSITION, TPosition INDEX_POSITION, CubeFormat FORMAT, typename TYPE,
          bool ISTRANS = false, LayoutMode LAYOUT = LayoutMode::NONE, bool IBSHARE = false>
struct SparseMatmulType : MatmulType<POSITION, FORMAT, TYPE, ISTRANS, LAYOUT, IBSHARE> {
    static_assert(POSITION == TPosition::GM && INDEX_POSITION == TPosition::GM,
                  "SparseMatmulType: B and its indices are in global memory");
    static_assert(FORMAT == CubeFormat::ND || FORMAT == CubeFormat::NZ,
                  "SparseMatmulType: B is of the format ND or NZ");
    static_assert(std::is_same<TYPE, int8_t>::value, "SparseMatmulType: B is of int8_t");
    static_assert(ISTRANS, "SparseMatmulType: B is transposed");
    static_assert(LAYOUT == LayoutMode::NONE && !IBSHARE, "SparseMatmulType: without batches and ibShare");
#if __NPU_ARCH__ == 3510
    static_assert(!ISTRANS, "SparseMatmulType: dav-3510 has no such products");
#endif
};

namespace detail {

template <typename Type>
struct IsSparse : std::false_type {};
template <TPosition POSITION, TPosition INDEX_POSITION, CubeFormat FORMAT, typename TYPE, bool ISTRANS,
          LayoutMode LAYOUT, bool IBSHARE>
struct IsSparse<SparseMatmulType<POSITION, INDEX_POSITION, FORMAT, TYPE, ISTRANS, LAYOUT, IBSHARE>>
    : std::true_type {};

// A matrix in global or local memory, by rows or in fractals of 16 rows and 32 bytes, seen as rows x columns.
template <typename T>
class MatrixView {
  public:
    using Element = T;
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
    // The matrix that begins `elements` further on.
    MatrixView from(uint64_t elements) const {
        MatrixView view = *this;
        if (is_local()) {
            view.local_ = local_[elements];
        } else {
            view.global_ = global_[elements];
        }
        return view;
    }

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
    // `count` elements from `at` on, in the type they are multiplied in.
    template <typename W>
    void run(uint64_t at, uint64_t count, const char* name, const Where& where, W* to) const {
        const uint64_t begin = at * SizeOfBits<T>::value / 8, bytes = ascendc_host::bytes_of<T>(count);
        const uint8_t* from = is_local() ? local_.use_bytes(begin + bytes, "Matmul", name, where) + begin
                                         : global_.use_bytes(begin, bytes, "Matmul", name, where);
        unpack_run<T>(from, 0, count, to);
    }
    template <typename W>
    void read_stored(W* to, uint64_t row, uint64_t column, uint64_t rows, uint64_t columns, CubeFormat format,
                     uint64_t stored_rows, uint64_t stored_columns, const char* name,
                     const Where& where) const {
        constexpr uint64_t c0 = ascendc_host::elements_of<T>(32);
        const bool fractals = format == CubeFormat::NZ;
        if (ascendc_host::is_packed<T> && ((!fractals && stored_columns % 2 != 0) || column % 2 != 0)) {
            ascendc_host::fail(
                ascendc_host::current(), where,
                ascendc_host::format("Matmul: %s of int4b_t, rows of %llu elements read from %llu on; a byte "
                                     "has two of them, both are even",
                                     name, static_cast<unsigned long long>(stored_columns),
                                     static_cast<unsigned long long>(column)));
        }
        const uint64_t high = (stored_rows + 15) / 16 * 16;
        const uint64_t step = fractals ? c0 : columns;
        for (uint64_t i = 0; i < rows; ++i) {
            for (uint64_t j = 0; j < columns;) {
                const uint64_t at_column = column + j;
                const uint64_t count = fractals ? std::min(step - at_column % c0, columns - j) : columns;
                const uint64_t at = fractals ? at_column / c0 * high * c0 + (row + i) * c0 + at_column % c0
                                             : (row + i) * stored_columns + at_column;
                run(at, count, name, where, to + i * columns + j);
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
constexpr const MatmulConfig& config_of(const MatmulConfig& config) { return config; }
constexpr const MatmulConfig& config_of(const MatmulApiStaticTiling& constants) { return constants.cfg; }
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

namespace detail {
// Which base blocks of C are computed: all, or those that lie on one side of the diagonal or on it.
enum class Blocks { all, upper, lower };
}  // namespace detail
namespace Impl {
namespace Detail {
// How the device goes about a product; on the host it matters which blocks it computes.
template <const auto& MM_CFG, typename...>
struct MatmulPolicy {
    static constexpr auto blocks = detail::Blocks::all;
    static constexpr bool keeps_a = false;
};
template <const auto& MM_CFG, typename...>
struct TrianUpperMatmulPolicy {
    static constexpr auto blocks = detail::Blocks::upper;
    static constexpr bool keeps_a = false;
};
template <const auto& MM_CFG, typename...>
struct TrianLowerMatmulPolicy {
    static constexpr auto blocks = detail::Blocks::lower;
    static constexpr bool keeps_a = false;
};
// The whole of A, three blocks high and wide at most, stays in L1.
template <const auto& MM_CFG, typename...>
struct NBuffer33MatmulPolicy {
    static constexpr auto blocks = detail::Blocks::all;
    static constexpr bool keeps_a = true;
};

// Whether a policy of an author's own replaces one of CANN's modules, which are not there on the host.
#define ASCENDC_HOST_MODULE(name)          \
    template <typename, typename = void>   \
    constexpr bool has_own_##name = false; \
    template <typename P>                  \
    constexpr bool has_own_##name<P, std::void_t<typename P::name>> = true;
ASCENDC_HOST_MODULE(CopyCubeInA)
ASCENDC_HOST_MODULE(CopyCubeInB)
ASCENDC_HOST_MODULE(CubeInBufferA)
ASCENDC_HOST_MODULE(CubeInBufferB)
ASCENDC_HOST_MODULE(CubeOutBuffer)
ASCENDC_HOST_MODULE(CopyCubeOut)
ASCENDC_HOST_MODULE(Scheduler)
#undef ASCENDC_HOST_MODULE
template <typename P>
constexpr bool has_own_module =
    has_own_CopyCubeInA<P> || has_own_CopyCubeInB<P> || has_own_CubeInBufferA<P> ||
    has_own_CubeInBufferB<P> || has_own_CubeOutBuffer<P> || has_own_CopyCubeOut<P> || has_own_Scheduler<P>;
}  // namespace Detail
}  // namespace Impl

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class CallBack = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
class MatmulImpl {
    using Policy = POLICY<MM_CFG, MatmulImpl, A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE>;
    static_assert(
        !Impl::Detail::has_own_module<Policy>,
        "the policy replaces a module of Matmul (CopyCubeInA, CubeOutBuffer, Scheduler, ...), which the "
        "host does not run; use MatmulPolicy, NBuffer33MatmulPolicy or a triangle's");
    static constexpr bool has_triangle = Policy::blocks != detail::Blocks::all;
    static_assert(!has_triangle || detail::config_of(MM_CFG).doNorm ||
                      detail::config_of(MM_CFG).doMultiDataLoad,
                  "TrianUpperMatmulPolicy and TrianLowerMatmulPolicy: the configuration is one of "
                  "GetNormalConfig or GetMDLConfig");
    static constexpr bool is_sparse = detail::IsSparse<B_TYPE>::value;
    static_assert(!is_sparse ||
                      (detail::config_of(MM_CFG).doMultiDataLoad && sizeof(typename A_TYPE::T) == 1),
                  "SparseMatmulType: the configuration is one of GetMDLConfig, A is of int8_t");
    static_assert(
        !Policy::keeps_a || (detail::config_of(MM_CFG).doMultiDataLoad && A_TYPE::pos == TPosition::GM &&
                             B_TYPE::pos == TPosition::GM),
        "NBuffer33MatmulPolicy: the configuration is one of GetMDLConfig, and A and B are in global "
        "memory");
    using SrcAT = typename A_TYPE::T;
    using SrcBT = typename B_TYPE::T;
    using DstT = typename C_TYPE::T;
    using BiasT = typename BIAS_TYPE::T;
    using W = detail::Sum<SrcAT>;
    static constexpr bool is_packed = ascendc_host::is_packed<SrcAT>;
    static_assert(is_packed == ascendc_host::is_packed<SrcBT>, "Matmul: A and B are both of int4b_t or none");
    static_assert(!is_packed ||
                      (detail::is_one_of<DstT, int32_t, half> && detail::is_one_of<BiasT, int32_t, DstT>),
                  "Matmul: of int4b_t C is of int32_t or half, the bias of int32_t");
    static_assert(!detail::multiplies_float8<SrcAT, SrcBT>() ||
                      (detail::is_one_of<DstT, float, half, bfloat16_t> &&
                       detail::is_one_of<BiasT, float, half, bfloat16_t>),
                  "Matmul: of 8-bit floats C and the bias are of float, half or bfloat16_t");
    static_assert(!is_packed || ascendc_host::npu_architecture != 3510,
                  "Matmul: dav-3510 does not have int4b_t; cast it to int8_t");
    static_assert(!is_packed || !detail::config_of(MM_CFG).doBasicBlock,
                  "Matmul: doBasicBlock is not for int4b_t");

  public:
    // Whether REGIST_MATMUL_OBJ initializes the object without a tiling.
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
        if (Policy::keeps_a) check_steps(block, where);
        SetOrgShape(tiling_.M, tiling_.N, tiling_.Ka, tiling_.Kb);
        SetSingleShape(tiling_.singleCoreM, tiling_.singleCoreN, tiling_.singleCoreK);
        use_bias_ = false;
        initialized_ = true;
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
    void SetTensorA(const GlobalTensor<SrcAT>& gm, bool isTransposeA = false) {
        check_transposed(isTransposeA);
        bind(a_, gm, isTransposeA);
    }
    void SetTensorA(const LocalTensor<SrcAT>& local, bool isTransposeA = false) {
        check_transposed(isTransposeA);
        bind(a_, local, isTransposeA);
    }
    void SetTensorB(const GlobalTensor<SrcBT>& gm, bool isTransposeB = false) { bind(b_, gm, isTransposeB); }
    void SetTensorB(const LocalTensor<SrcBT>& local, bool isTransposeB = false) {
        bind(b_, local, isTransposeB);
    }
    void SetBias(const GlobalTensor<BiasT>& gm) { bind_bias(gm); }
    void SetBias(const LocalTensor<BiasT>& local) { bind_bias(local); }
    // Where the elements of B were, two bits for each, in fractals of 16 columns and 8 bytes.
    void SetSparseIndex(const GlobalTensor<uint8_t>& indexGlobal) {
        static_assert(is_sparse, "SetSparseIndex: B is of a SparseMatmulType");
#ifndef ASCENDC_CUBE_ONLY
        static_assert(!is_sparse, "SetSparseIndex: on cube cores alone, define ASCENDC_CUBE_ONLY");
#endif
        indices_ = indexGlobal;
        has_indices_ = true;
    }
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
    // Where IterateNBatch puts what it computes; Iterate needs no such space here.
    template <typename T>
    void SetWorkspace(const GlobalTensor<T>& addr) {
        workspace_ = addr.template ReinterpretCast<DstT>();
    }
    template <typename T>
    void SetWorkspace(const T* addr, int size) {
        workspace_.SetGlobalBuffer(reinterpret_cast<DstT*>(const_cast<T*>(addr)),
                                   uint64_t(size) * sizeof(T) / sizeof(DstT));
    }
    void SetLocalWorkspace(const LocalTensor<uint8_t>&) {}
    void SetHF32(bool = false, int32_t = 0) {}
    void SetSubBlockIdx(uint8_t) {}
    void SetUserDefInfo(uint64_t) {}
    // How many results of a batch the device keeps in L0C before it writes them.
    void SetNBatchOutNum(int32_t) {}
    template <typename T>
    void SetSelfDefineData(T) {}
    void End() { initialized_ = false; }

    // The whole part of this core.
    template <bool sync = true>
    void IterateAll(const GlobalTensor<DstT>& gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                    bool = false, bool = false, Where where = Where()) {
        check(where);
        const int row_length = enSequentialWrite ? whole_row(single_n_) : row_of_c();
        if constexpr (has_triangle) {
            write_triangle(gm, enAtomic, row_length, where);
        } else {
            compute(0, 0, single_m_, single_n_, where);
            write(gm, enAtomic, row_length, 0, 0, single_m_, single_n_, where);
        }
        restart();
    }
    template <bool sync = true>
    void IterateAll(const LocalTensor<DstT>& local, uint8_t = 0, Where where = Where()) {
        static_assert(!has_triangle, "Matmul: triangles go to global memory");
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
        static_assert(!has_triangle && !Policy::keeps_a,
                      "Matmul: IterateAll is for TrianUpperMatmulPolicy, TrianLowerMatmulPolicy and "
                      "NBuffer33MatmulPolicy");
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

    // To both; what else is asked for is about global memory.
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

    // Several matrices of C at once, from as many matrices of A and B, of which one side may have fewer: each
    // of those meets the next ones of the other side. matrixStrideC is not used. Matmul on
    // vector cores has other forms: see MatmulClient.
    void SetBatchNum(int32_t batchA, int32_t batchB) {
        batches_.a = static_cast<uint32_t>(batchA);
        batches_.b = static_cast<uint32_t>(batchB);
    }
    template <typename Tensor>
    void IterateBatch(const Tensor& c, bool enPartialSum, uint8_t enAtomic, bool enSequentialWrite,
                      const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0, const uint32_t = 0,
                      Where where = Where()) {
        iterate_batch(c, {batches_.a, batches_.b, matrixStrideA, matrixStrideB, enSequentialWrite},
                      enPartialSum, enAtomic, where);
    }

  protected:
    void restart() { step_ = -1; }
    static void check_transposed(bool transposed) {
        if (is_packed && transposed)
            ascendc_host::fail("Matmul: SetTensorA of int4b_t with isTransposeA; valid: false");
    }
    void check_steps(const ascendc_host::Block& block, const Where& where) const {
        const int steps = tiling_.baseK <= 0 ? 0 : (tiling_.singleCoreK + tiling_.baseK - 1) / tiling_.baseK;
        if (tiling_.stepM <= 3 && steps <= 3 && tiling_.stepKa == steps && tiling_.stepKb == steps) return;
        ascendc_host::fail(block, where,
                           ascendc_host::format(
                               "Matmul: NBuffer33MatmulPolicy with stepM %d, stepKa %d and stepKb %d, where "
                               "singleCoreK / baseK is %d; they are at most 3, the latter are the same; call "
                               "SetMatmulConfigParams of the tiling with ScheduleType::N_BUFFER_33",
                               tiling_.stepM, tiling_.stepKa, tiling_.stepKb, steps));
    }
    // The base blocks of the policy; the others of C stay as they are.
    void write_triangle(const GlobalTensor<DstT>& gm, uint8_t atomic, int row_length, const Where& where) {
        for (int i = 0; i * tiling_.baseM < single_m_; ++i) {
            for (int j = 0; j * tiling_.baseN < single_n_; ++j) {
                if (Policy::blocks == detail::Blocks::upper ? i > j : i < j) continue;
                m_at_ = i;
                n_at_ = j;
                compute(i * tiling_.baseM, j * tiling_.baseN, block_m(), block_n(), where);
                write(gm, atomic, row_length, i * tiling_.baseM, j * tiling_.baseN, block_m(), block_n(),
                      where);
            }
        }
    }
    int block_m() const { return std::min(tiling_.baseM, single_m_ - m_at_ * tiling_.baseM); }
    int block_n() const { return std::min(tiling_.baseN, single_n_ - n_at_ * tiling_.baseN); }
    template <typename T>
    static uint64_t in_blocks(uint64_t columns) {
        constexpr uint64_t block = ONE_BLK_SIZE / sizeof(T);
        return (columns + block - 1) / block * block;
    }
    // Rows of C in ND_ALIGN are whole blocks of 32 bytes.
    static int whole_row(int columns) {
        return C_TYPE::format == CubeFormat::ND_ALIGN ? static_cast<int>(in_blocks<DstT>(columns)) : columns;
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
        if (!initialized_)
            ascendc_host::fail(block, where,
                               "Matmul: not initialized; call REGIST_MATMUL_OBJ with its tiling, or Init");
        if (!a_.bound() || !b_.bound())
            ascendc_host::fail(block, where, "Matmul: call SetTensorA and SetTensorB first");
        if (org_m_ <= 0 || org_n_ <= 0)
            ascendc_host::fail(
                block, where,
                "Matmul: the sizes of the matrices are not known; without a tiling call SetOrgShape first");
    }

    // c_[m, n] = A[row.., :] * B[:, column..] + bias.
    void compute(int row, int column, int m, int n, const Where& where) {
        const auto operand = [](const auto& view, int rows, int columns) {
            using T = typename std::decay_t<decltype(view)>::Element;
            const bool turned = view.transposed();
            return Operand<T>{view, uint64_t(turned ? columns : rows), uint64_t(turned ? rows : columns)};
        };
        auto left = operand(a_, a_.is_local() ? single_m_ : org_m_, a_.is_local() ? single_k_ : org_ka_);
        auto right = operand(b_, (b_.is_local() ? single_k_ : org_kb_) / (is_sparse ? 2 : 1),
                             b_.is_local() ? single_n_ : org_n_);
#if __NPU_ARCH__ == 3510
        // Rows that the vector core has are whole blocks of 32 bytes.
        if (a_.is_local() && A_TYPE::format == CubeFormat::ND) left.columns = in_blocks<SrcAT>(left.columns);
        if (b_.is_local() && B_TYPE::format == CubeFormat::ND)
            right.columns = in_blocks<SrcBT>(right.columns);
#endif
        multiply(left, right, bias_, row, column, m, n, where);
    }
    // A matrix with its sizes as it lies in memory.
    template <typename T>
    struct Operand {
        detail::MatrixView<T> view;
        uint64_t rows, columns;
    };
    // In panels that stay in the processor's cache.
    void multiply(const Operand<SrcAT>& left, const Operand<SrcBT>& right,
                  const detail::MatrixView<BiasT>& bias_view, int row, int column, int m, int n,
                  const Where& where) {
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
            bias_view.read(bias.data(), 0, column, 1, n, CubeFormat::ND, 1, org_n_, "bias", where);
            for (int i = 0; i < m; ++i) std::copy(bias.begin(), bias.end(), c_.begin() + size_t(i) * n);
        }
        static thread_local std::vector<W> a, b;
        for (int first = 0; first < single_k_; first += panel) {
            const int k = std::min(panel, single_k_ - first);
            a.resize(size_t(m) * k);
            b.resize(size_t(k) * n);
            left.view.read(a.data(), row, first, m, k, A_TYPE::format, left.rows, left.columns, "A", where);
            if constexpr (is_sparse) {
                read_sparse(right, b, first, column, k, n, where);
            } else
                right.view.read(b.data(), first, column, k, n, B_TYPE::format, right.rows, right.columns, "B",
                                where);
            ascendc_host::multiply_add(a.data(), b.data(), c_.data(), m, n, k);
        }
    }
    // b[k, n] from row `first` and `column` of B on.
    void read_sparse(const Operand<SrcBT>& right, std::vector<W>& b, int first, int column, int k, int n,
                     const Where& where) {
        if (!has_indices_)
            ascendc_host::fail(ascendc_host::current(), where,
                               "Matmul: B of a SparseMatmulType without indices; call SetSparseIndex");
        if (single_k_ % 8 != 0 || org_kb_ % 8 != 0)
            ascendc_host::fail(ascendc_host::current(), where,
                               ascendc_host::format("Matmul: K is %d of %d with a SparseMatmulType; they are "
                                                    "multiples of 8, for a byte has the indices of so many",
                                                    single_k_, org_kb_));
        std::vector<W> kept(size_t(k) / 2 * n);
        right.view.read(kept.data(), first / 2, column, k / 2, n, B_TYPE::format, right.rows, right.columns,
                        "B", where);
        const uint64_t high = uint64_t(org_n_ + 15) / 16 * 16;
        detail::spread(kept.data(), k, n, b, "Matmul", where, [&](uint32_t row, uint32_t j) -> uint32_t {
            const uint64_t at = first / 2 + row, byte = at / 4;
            const uint8_t* from = indices_.use_bytes((byte / 8 * high + column + j) * 8 + byte % 8, 1,
                                                     "Matmul", "the index matrix", where);
            return *from >> (at % 4 * 2) & 3;
        });
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
        const auto accumulate = block.accumulate;
        if (atomic != 0) {
            block.atomic = modes[atomic % 4];
            if constexpr (detail::accumulates_in_memory<DstT>) block.accumulate = detail::store_atomic<DstT>;
        }
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
        block.accumulate = accumulate;
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
    // Of the types and the configuration; the rest of the rules are Batches'.
    static constexpr bool check_types_of_batches() {
        constexpr const MatmulConfig& config = detail::config_of(MM_CFG);
        static_assert(!is_packed, "IterateBatch: not for int4b_t");
        static_assert(config.doNorm, "IterateBatch: the configuration is one of GetNormalConfig");
        static_assert(!config.enableMixDualMaster, "IterateBatch: not with enableMixDualMaster");
        static_assert(
            config.batchMode != BatchMode::NONE,
            "IterateBatch: batchMode is BATCH_LESS_THAN_L1, BATCH_LARGE_THAN_L1 or SINGLE_LARGE_THAN_L1");
        static_assert(config.isBiasBatch || config.batchMode != BatchMode::SINGLE_LARGE_THAN_L1,
                      "IterateBatch: with SINGLE_LARGE_THAN_L1 a bias has batches, isBiasBatch is true");
        return true;
    }
    detail::BatchShape batch_shape() const {
        return {tiling_, single_m_, single_n_,  single_k_,       org_m_,         org_n_,
                org_ka_, org_kb_,   row_of_c(), a_.transposed(), b_.transposed()};
    }
    template <typename Tensor>
    void iterate_batch(const Tensor& c, const detail::BatchCall& call, bool adds, uint8_t atomic,
                       const Where& where) {
        static_assert(check_types_of_batches());
        static_assert(!has_triangle && !Policy::keeps_a, "IterateBatch: the policy is MatmulPolicy");
        check(where);
        constexpr bool is_local = std::is_same<Tensor, LocalTensor<DstT>>::value;
        const auto& block = ascendc_host::current();
        if (a_.is_local() || b_.is_local())
            ascendc_host::fail(
                block, where,
                "IterateBatch: A or B in local memory; how batches lie there is not documented, "
                "give SetTensorA and SetTensorB global memory");
        if (quant_mode_ != NoQuant)
            ascendc_host::fail(block, where,
                               "IterateBatch: SetQuantScalar and SetQuantVector are not for batches");
        if (adds)
            ascendc_host::fail(
                block, where,
                "IterateBatch: enPartialSum = true; to which matrix of a batch is added is not "
                "documented, use enAtomic = 1");
        if (atomic > 3)
            ascendc_host::fail(block, where,
                               ascendc_host::format("IterateBatch: enAtomic = %d; it is 0 to 3", atomic));
        const detail::Batches<A_TYPE, B_TYPE, C_TYPE> batches(batch_shape(), call);
        batches.check(detail::config_of(MM_CFG), use_bias_, block, where);
        batches.check_output(is_local, atomic != 0, block, where);
        if (batches.sums_groups() && atomic > 1)
            ascendc_host::fail(block, where,
                               "IterateBatch: products of groups are added up, enAtomic is 0 or 1");
        for (uint32_t i = 0; i < call.count(); ++i) {
            const Operand<SrcAT> a{a_.from(batches.place_a(i)), batches.rows_of_a(), batches.row_of_a()};
            const Operand<SrcBT> b{b_.from(batches.place_b(i)), batches.rows_of_b(), batches.row_of_b()};
            const bool shares_bias = !use_bias_ || !detail::config_of(MM_CFG).isBiasBatch;
            multiply(a, b, shares_bias ? bias_ : bias_.from(batches.place_of_bias(i)), 0, 0, single_m_,
                     single_n_, where);
            const auto to = c[batches.place_c(i)];
            if constexpr (is_local) {
                write_local(to, batches.row_of_c(), single_m_, single_n_, where);
            } else {
                write(to, batches.sums_groups() ? 1 : atomic, batches.row_of_c(), 0, 0, single_m_, single_n_,
                      where);
            }
        }
        restart();
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
    bool use_bias_ = false, initialized_ = false;
    bool is_taken_ = false;  // the base block that was computed last
    int columns_ = 1;        // of c_
    QuantMode_t quant_mode_ = NoQuant;
    uint64_t quant_scale_ = 0;
    detail::MatrixView<uint64_t> quant_scales_;
    std::vector<uint64_t> scales_;  // of the columns of c_
    GlobalTensor<DstT> workspace_;
    GlobalTensor<uint8_t> indices_;  // of a sparse B
    bool has_indices_ = false;
    detail::BatchCall batches_;  // of SetBatchNum
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_MATMUL_MATMUL_IMPL_H
