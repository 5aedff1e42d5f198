// Where the matrices of Matmul's batches lie, by the layouts of their types and the axes of the tiling, and
// what the documents ask of them.
#ifndef ASCENDC_HOST_ADV_API_MATMUL_BATCH_H
#define ASCENDC_HOST_ADV_API_MATMUL_BATCH_H

#include <algorithm>
#include <cstdint>

#include "../../../kernel_tiling/kernel_tiling.h"
#include "ascendc_host/adv_api/matmul/config.h"
#include "ascendc_host/basic_api/enums.h"
#include "ascendc_host/internal/runtime.h"

namespace AscendC {
namespace detail {

// The axes of A, B or C: a matrix has s rows of d elements, and there is one for each of b, n and g.
struct BatchAxes {
    int32_t b, s, n, g, d;
    int32_t groups() const { return n * g; }
    int32_t matrices() const { return b * n * g; }
};
inline BatchAxes axes_of_a(const TCubeTiling& tiling) {
    return {tiling.ALayoutInfoB, tiling.ALayoutInfoS, tiling.ALayoutInfoN, tiling.ALayoutInfoG,
            tiling.ALayoutInfoD};
}
inline BatchAxes axes_of_b(const TCubeTiling& tiling) {
    return {tiling.BLayoutInfoB, tiling.BLayoutInfoS, tiling.BLayoutInfoN, tiling.BLayoutInfoG,
            tiling.BLayoutInfoD};
}
inline BatchAxes axes_of_c(const TCubeTiling& tiling) {
    return {tiling.CLayoutInfoB, tiling.CLayoutInfoS1, tiling.CLayoutInfoN, tiling.CLayoutInfoG,
            tiling.CLayoutInfoS2};
}

// Whether rows of different matrices alternate; otherwise the matrices lie one after the other.
constexpr bool alternates(LayoutMode layout) {
    return layout == LayoutMode::BSNGD || layout == LayoutMode::SBNGD;
}
// Elements from one row of a matrix to the next, where they alternate.
inline uint64_t alternating_row(LayoutMode layout, const BatchAxes& axes) {
    const uint64_t row = uint64_t(axes.groups()) * axes.d;
    return layout == LayoutMode::SBNGD ? row * axes.b : row;
}
// Elements before matrix `batch`.
inline uint64_t place_of(LayoutMode layout, const BatchAxes& axes, uint64_t batch) {
    if (layout == LayoutMode::SBNGD) return batch * axes.d;
    if (layout != LayoutMode::BSNGD) return batch * axes.s * axes.d;
    const uint64_t groups = axes.groups();
    return (batch / groups * axes.s * groups + batch % groups) * axes.d;
}

// One call: how many matrices of A and B, elements between them where they are given, and how many were
// before.
struct BatchCall {
    uint32_t a = 0, b = 0;
    uint32_t stride_a = 0, stride_b = 0;
    bool sequential = false;
    uint64_t first_a = 0, first_b = 0;
    uint32_t count() const { return std::max(a, b); }
};

// What an object knows of its matrices.
struct BatchShape {
    const TCubeTiling& tiling;
    int m, n, k;  // of one product
    int org_m, org_n, org_ka, org_kb;
    int row_of_c;  // elements, where C lies in the matrix of org_m x org_n
    bool a_transposed, b_transposed;
};

// A, B and C of a call. Sizes are of elements.
template <class A_TYPE, class B_TYPE, class C_TYPE>
class Batches {
    using SrcT = typename A_TYPE::T;
    using DstT = typename C_TYPE::T;
    static constexpr LayoutMode layout = A_TYPE::layout;
    static_assert(layout != LayoutMode::NONE && B_TYPE::layout == layout &&
                      C_TYPE::layout != LayoutMode::NONE,
                  "IterateBatch: the MatmulType of A and B has the same layout, that of C has one");
    static_assert(!alternates(layout) ||
                      (A_TYPE::format == CubeFormat::ND && B_TYPE::format == CubeFormat::ND),
                  "IterateBatch: A and B in BSNGD and SBNGD are of the format ND");
    static_assert(!alternates(C_TYPE::layout) || C_TYPE::format != CubeFormat::NZ,
                  "IterateBatch: C in BSNGD and SBNGD is of the format ND or ND_ALIGN");
    static_assert(!(A_TYPE::ibShare && B_TYPE::ibShare), "IterateBatch: A and B are not shared (ibShare)");
    static_assert(sizeof(DstT) >= 2, "IterateBatch: C is of half, bfloat16_t, float or int32_t");

  public:
    Batches(const BatchShape& shape, const BatchCall& call)
        : shape_(shape),
          call_(call),
          a_(axes_of_a(shape.tiling)),
          b_(axes_of_b(shape.tiling)),
          c_(axes_of_c(shape.tiling)) {
        c_.d = in_blocks(c_.d, C_TYPE::format == CubeFormat::ND_ALIGN);
    }

    // The matrix that operand A or B has for product i, from where the call begins.
    uint64_t place_a(uint32_t i) const {
        return place_of(layout, a_, call_.first_a) +
               step<A_TYPE>(a_, call_.stride_a, a_rows(), a_columns()) * (i / times(call_.a));
    }
    uint64_t place_b(uint32_t i) const {
        return place_of(layout, b_, call_.first_b) +
               step<B_TYPE>(b_, call_.stride_b, b_rows(), b_columns()) * (i / times(call_.b));
    }
    uint64_t place_c(uint32_t i) const {
        return first_of_c() + step_of_c() * (i / (sums_groups() ? most_groups() : 1));
    }
    uint64_t place_of_bias(uint32_t i) const {
        return (std::max(call_.first_a, call_.first_b) + i) * shape_.tiling.singleCoreN;
    }
    // Elements from one row in memory to the next.
    uint64_t rows_of_a() const { return a_rows(); }
    uint64_t rows_of_b() const { return b_rows(); }
    uint64_t row_of_a() const { return alternates(layout) ? alternating_row(layout, a_) : a_columns(); }
    uint64_t row_of_b() const { return alternates(layout) ? alternating_row(layout, b_) : b_columns(); }
    uint64_t row_of_c() const {
        if (alternates(C_TYPE::layout)) return alternating_row(C_TYPE::layout, c_);
        return call_.sequential ? in_blocks(shape_.n, C_TYPE::format == CubeFormat::ND_ALIGN)
                                : shape_.row_of_c;
    }
    uint64_t step_of_c() const {
        if (alternates(C_TYPE::layout)) return c_.d;
        const int n = C_TYPE::format == CubeFormat::NZ
                          ? up(shape_.tiling.singleCoreN, BLOCK_CUBE)
                          : in_blocks(shape_.tiling.singleCoreN, C_TYPE::pos != TPosition::GM);
        return uint64_t(shape_.tiling.singleCoreM) * n;
    }
    uint64_t first_of_c() const {
        return place_of(C_TYPE::layout, c_,
                        std::max(call_.first_a, call_.first_b) / (sums_groups() ? most_groups() : 1));
    }
    uint32_t matrices_of_c() const {
        return sums_groups() ? std::max(1u, call_.count() / most_groups()) : call_.count();
    }
    // Whether the products of the groups are added up.
    bool sums_groups() const { return layout != LayoutMode::NORMAL && c_.g == 1 && most_groups() != 1; }

    void check(const MatmulConfig& config, bool has_bias, const ascendc_host::Block& block,
               const ascendc_host::Where& where) const {
        const auto fail = [&](const std::string& rule) {
            ascendc_host::fail(block, where, "IterateBatch: " + rule);
        };
        using ascendc_host::format;
        const auto &a = call_.a, &b = call_.b;
        if (a == 0 || b == 0 || (a % b != 0 && b % a != 0))
            fail(format("%u matrices of A and %u of B; both are above 0, and one is a multiple of the other",
                        a, b));
        const int most = shape_.tiling.BatchNum;
        if ((most > 0 || layout != LayoutMode::NORMAL) && call_.count() > static_cast<uint32_t>(most))
            fail(format(
                "%u matrices of A and %u of B, but the tiling's BatchNum is %d; call SetBatchNum of the "
                "tiling with the larger number",
                a, b, most));
        if (layout == LayoutMode::NORMAL) {
            check_rows(fail);
        } else {
            check_axes(fail, has_bias);
        }
        if ((call_.stride_a != 0 && A_TYPE::format == CubeFormat::NZ) ||
            (call_.stride_b != 0 && B_TYPE::format == CubeFormat::NZ))
            fail(
                "matrixStrideA and matrixStrideB are of matrices in the format ND; in NZ they lie without "
                "gaps, "
                "give 0");
        check_l1(fail, config.batchMode);
    }
    void check_output(bool is_local, bool has_atomic, const ascendc_host::Block& block,
                      const ascendc_host::Where& where) const {
        const auto fail = [&](const std::string& rule) {
            ascendc_host::fail(block, where, "IterateBatch: " + rule);
        };
        using ascendc_host::format;
        if (call_.sequential && (alternates(C_TYPE::layout) || !is_local))
            fail("enSequentialWrite = true; it is false for C in global memory, and in BSNGD and SBNGD");
        if (call_.sequential && (shape_.m > shape_.tiling.baseM || shape_.n > shape_.tiling.baseN))
            fail(format(
                "enSequentialWrite = true, so each base block is written where its matrix begins, but a "
                "product of %d x %d has several of %d x %d",
                shape_.m, shape_.n, shape_.tiling.baseM, shape_.tiling.baseN));
        if (is_local && sums_groups()) fail("the products of groups are added up in global memory alone");
        if (is_local && has_atomic) fail("enAtomic is for C in global memory");
        check_local_row(is_local, block, where);
        if (C_TYPE::format == CubeFormat::NZ) {
            if (call_.count() > 1 &&
                (shape_.m % BLOCK_CUBE != 0 || shape_.n % BLOCK_CUBE != 0 || shape_.m != shape_.org_m ||
                 shape_.m != shape_.tiling.singleCoreM || shape_.n != shape_.tiling.singleCoreN))
                fail(format(
                    "products of %d x %d in NZ, of a matrix with %d rows; several of them lie in whole "
                    "fractals of 16 x 16, with all rows of singleCoreM",
                    shape_.m, shape_.n, shape_.org_m));
        } else if (!alternates(C_TYPE::layout) && call_.count() > 1 &&
                   (shape_.m - 1) * row_of_c() + shape_.n > step_of_c()) {
            fail(format(
                "products of %d x %d in rows of %llu elements lie over each other, for each has the "
                "singleCoreM x singleCoreN = %d x %d of the tiling; call SetOrgShape with the N of one",
                shape_.m, shape_.n, static_cast<unsigned long long>(row_of_c()), shape_.tiling.singleCoreM,
                shape_.tiling.singleCoreN));
        }
    }
    void check_local_row(bool is_local, const ascendc_host::Block& block,
                         const ascendc_host::Where& where) const {
        if (is_local && C_TYPE::format == CubeFormat::ND && shape_.n * sizeof(DstT) % ONE_BLK_SIZE != 0)
            ascendc_host::fail(
                block, where,
                ascendc_host::format("IterateBatch: rows of %d elements of %zu bytes in local memory "
                                     "are not whole blocks of 32 bytes; the format of C is ND_ALIGN",
                                     shape_.n, sizeof(DstT)));
    }

  private:
    static int up(int value, int to) { return (value + to - 1) / to * to; }
    static int in_blocks(int elements, bool is_aligned) {
        return is_aligned ? up(elements, ONE_BLK_SIZE / sizeof(DstT)) : elements;
    }
    // A and B as they lie in memory.
    int a_rows() const { return shape_.a_transposed ? shape_.k : shape_.m; }
    int a_columns() const { return shape_.a_transposed ? shape_.m : shape_.k; }
    int b_rows() const { return shape_.b_transposed ? shape_.n : shape_.k; }
    int b_columns() const { return shape_.b_transposed ? shape_.k : shape_.n; }
    int most_groups() const { return std::max(a_.g, b_.g); }
    // Products that share a matrix of the side that has `own`.
    uint32_t times(uint32_t own) const { return call_.count() / own; }
    template <class TYPE>
    static uint64_t step(const BatchAxes& axes, uint32_t stride, int rows, int columns) {
        if (TYPE::format == CubeFormat::NZ)
            return uint64_t(up(rows, BLOCK_CUBE)) * up(columns, ONE_BLK_SIZE / sizeof(typename TYPE::T));
        if (stride != 0) return stride;
        return alternates(layout) ? axes.d : uint64_t(rows) * columns;
    }

    template <typename Fail>
    void check_rows(const Fail& fail) const {
        const int a = shape_.a_transposed ? shape_.org_m : shape_.org_ka;
        const int b = shape_.b_transposed ? shape_.org_kb : shape_.org_n;
        if (a == a_columns() && b == b_columns()) return;
        fail(ascendc_host::format(
            "rows of A and B have %d and %d elements in memory, and %d and %d of them are "
            "multiplied; rows of batches lie without gaps, call SetOrgShape with the sizes of "
            "one product",
            a, b, a_columns(), b_columns()));
    }
    template <typename Fail>
    void check_axes(const Fail& fail, bool has_bias) const {
        using ascendc_host::format;
        for (const auto& axes : {a_, b_, c_}) {
            if (axes.b <= 0 || axes.s <= 0 || axes.n <= 0 || axes.g <= 0 || axes.d <= 0)
                fail(
                    "the tiling has no axes of A, B and C; call SetALayout, SetBLayout and SetCLayout of the "
                    "tiling");
        }
        if (a_.b != b_.b || a_.n != b_.n || c_.b != a_.b || c_.n != a_.n)
            fail(format(
                "axes b and n of A are %d and %d, of B %d and %d, of C %d and %d; they are the same, only g "
                "may differ",
                a_.b, a_.n, b_.b, b_.n, c_.b, c_.n));
        if (a_.g != b_.g && a_.g != 1 && b_.g != 1)
            fail(format("axis g is %d of A and %d of B; they are the same, or one is 1", a_.g, b_.g));
        if (c_.g != 1 && c_.g != most_groups())
            fail(format("axis g of C is %d; it is that of A and B, %d, or 1, which adds groups up", c_.g,
                        most_groups()));
        if (uint64_t(a_.g) * call_.b != uint64_t(b_.g) * call_.a)
            fail(format("%u matrices of A with %d groups and %u of B with %d; their quotients are the same",
                        call_.a, a_.g, call_.b, b_.g));
        if (layout == LayoutMode::BSNGD && (a_.groups() % call_.a != 0 || b_.groups() % call_.b != 0))
            fail(
                format("%u matrices of A and %u of B, where BSNGD has n * g = %d and %d of them in a row; "
                       "the latter "
                       "are multiples of the former",
                       call_.a, call_.b, a_.groups(), b_.groups()));
        if (call_.count() > static_cast<uint32_t>(std::max(a_.matrices(), b_.matrices())))
            fail(format("%u matrices of A and %u of B, but their axes have b * n * g = %d and %d", call_.a,
                        call_.b, a_.matrices(), b_.matrices()));
        check_matrix(fail, "A", a_, call_.stride_a, a_rows(), a_columns());
        check_matrix(fail, "B", b_, call_.stride_b, b_rows(), b_columns());
        if (alternates(C_TYPE::layout) &&
            (shape_.m > c_.s || shape_.n > c_.d || matrices_of_c() > static_cast<uint32_t>(c_.matrices())))
            fail(format("%u products of %d x %d do not fit C with b * n * g = %d matrices of s x d = %d x %d",
                        matrices_of_c(), shape_.m, shape_.n, c_.matrices(), c_.s, c_.d));
        if (!sums_groups()) return;
        const uint32_t groups = most_groups();
        if (call_.count() % groups != 0 && groups % call_.count() != 0)
            fail(format("%u products to be added up in groups of %u; one is a multiple of the other",
                        call_.count(), groups));
        if (has_bias)
            fail(
                "a bias where groups are added up; to which of them it belongs is not documented, add it "
                "afterwards");
    }
    template <typename Fail>
    static void check_matrix(const Fail& fail, const char* name, const BatchAxes& axes, uint32_t stride,
                             int rows, int columns) {
        const bool has_rows = alternates(layout) ? rows <= axes.s : rows == axes.s;
        if (has_rows && (columns == axes.d || (stride != 0 && columns < axes.d))) return;
        fail(ascendc_host::format(
            "%s of a product has %d rows of %d elements in memory, its axes say s x d = %d x %d", name, rows,
            columns, axes.s, axes.d));
    }
    template <typename Fail>
    void check_l1(const Fail& fail, BatchMode mode) const {
        if (layout == LayoutMode::NORMAL && mode == BatchMode::SINGLE_LARGE_THAN_L1) return;
        const bool holds_all = layout != LayoutMode::NORMAL || mode == BatchMode::BATCH_LESS_THAN_L1;
        const auto bytes = [](int rows, int columns) {
            return uint64_t(up(rows, BLOCK_CUBE)) * up(columns, ONE_BLK_SIZE / sizeof(SrcT)) * sizeof(SrcT);
        };
        const uint64_t needed = bytes(a_rows(), a_columns()) * (holds_all ? call_.a : 1) +
                                bytes(b_rows(), b_columns()) * (holds_all ? call_.b : 1);
        if (needed <= uint64_t(TOTAL_L1_SIZE)) return;
        fail(ascendc_host::format("%u matrices of A and %u of B need %llu bytes of L1, which has %d; %s",
                                  holds_all ? call_.a : 1, holds_all ? call_.b : 1,
                                  static_cast<unsigned long long>(needed), TOTAL_L1_SIZE,
                                  layout != LayoutMode::NORMAL ? "multiply fewer at once"
                                  : holds_all                  ? "configure BatchMode::BATCH_LARGE_THAN_L1"
                                              : "configure BatchMode::SINGLE_LARGE_THAN_L1"));
    }

    BatchShape shape_;
    BatchCall call_;
    BatchAxes a_, b_, c_;
};

}  // namespace detail
}  // namespace AscendC

#endif  // ASCENDC_HOST_ADV_API_MATMUL_BATCH_H
