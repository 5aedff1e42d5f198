// How MultiCoreMatmulTiling divides M and N among cores, where the caller has not fixed the part of one core.
//
// Kernels address their parts by what this answers, and many assume one of the two directions, so the
// division has to be CANN's. It goes by whole blocks of 16 rows or columns: divisors of M, N and the number
// of cores are tried one after the other, and a candidate takes the place of the best so far by what it must
// load into L1, by how often it loads L0, and by whether the rows that it copies stay long.
#ifndef ASCENDC_HOST_MATMUL_CORES_H
#define ASCENDC_HOST_MATMUL_CORES_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

namespace ascendc_host {

class MatmulCores {
  public:
    // A product of M x K and K x N elements; k_block is the number of elements in 32 bytes of A.
    struct Shape {
        int32_t m, n, k;
        int32_t k_block;
        bool a_transposed, b_transposed;
    };
    // The number of parts of M and of N.
    struct Parts {
        int32_t m = 1, n = 1;
    };

    MatmulCores(const Shape& shape, int32_t cores)
        : shape_(shape),
          cores_(cores),
          m_(ceil(shape.m, kBlock)),
          n_(ceil(shape.n, kBlock)),
          k_(ceil(shape.k, shape.k_block)) {}

    Parts divide() const {
        if (cores_ <= 1) return {};
        // Small products that fit the buffers next to the cube unit are divided into parts of 512 at most.
        if (int64_t(m_) * n_ <= cores_ && m_ * k_ <= kSmall && n_ * k_ <= kSmall && m_ * n_ <= kSmall)
            return {ceil(m_, 32), ceil(n_, 32)};
        const Parts best = best_factors();
        Parts blocks{divisible(m_, best.m), divisible(n_, best.n)};
        if (int64_t(ceil(m_, blocks.m)) * ceil(n_, blocks.n) > cores_)
            blocks = {ceil(m_, best.m), ceil(n_, best.n)};
        return {std::min(ceil(m_, blocks.m), cores_), std::min(ceil(n_, blocks.n), cores_)};
    }

    // What one of `parts` parts of a side has: an equal share of its whole blocks.
    static int32_t share(int32_t size, int32_t parts) { return ceil(ceil(size, kBlock) * kBlock, parts); }

  private:
    static constexpr int32_t kBlock = 16;
    static constexpr int32_t kSmall = 128;  // blocks that L0A, L0B and L0C have room for
    static constexpr int64_t kL1 = 512 * 1024;
    static constexpr int64_t kFractal = 512;
    // Rows of fewer blocks are copied slowly.
    static constexpr int32_t kLongRow = 16;

    struct Cost {
        int32_t parts = 1;
        int64_t load = std::numeric_limits<int64_t>::max();
        int64_t loops = std::numeric_limits<int64_t>::max();
        bool long_rows = false;
    };

    static int32_t ceil(int32_t value, int32_t by) { return (value + by - 1) / by; }
    static int64_t ceil64(int64_t value, int64_t by) { return (value + by - 1) / by; }

    Parts best_factors() const {
        std::set<int32_t> of_m = factors(m_), of_n = factors(n_);
        const float square = std::sqrt(static_cast<float>(m_) / n_ * cores_);
        const auto across = static_cast<int32_t>(std::ceil(square));
        const auto along = static_cast<int32_t>(std::ceil(cores_ / square));
        of_m.insert({across, along == 0 ? 1 : cores_ / along});
        of_n.insert({along, across == 0 ? 1 : cores_ / across});

        Parts best;
        Cost least;
        for (const int32_t n : of_n)
            for (const int32_t m : of_m)
                if (m > 0 && n > 0 && m * n <= cores_) consider({m, n}, best, least);
        return best;
    }

    // Divisors of a side, of the power of two above it and of the number of cores.
    std::set<int32_t> factors(int32_t blocks) const {
        std::set<int32_t> found;
        const int32_t above = power_above(blocks);
        for (int32_t i = 1; i <= std::min(cores_, blocks); ++i)
            if (blocks % i == 0 || above % i == 0 || cores_ % i == 0) found.insert(i);
        return found;
    }
    static int32_t power_above(int32_t blocks) {
        if (blocks < 16) return blocks;
        int32_t power = 32;
        while (power < 2048 && !(power / 2 < blocks && blocks <= power)) power *= 2;
        return power;
    }

    void consider(Parts parts, Parts& best, Cost& least) const {
        const int32_t m = ceil(m_, parts.m);
        const int32_t n = ceil(n_, parts.n);
        const bool is_short = (!shape_.b_transposed && n_ >= kLongRow && n < kLongRow) ||
                              (shape_.a_transposed && m_ >= kLongRow && m < kLongRow);
        const bool rows_matter = !shape_.b_transposed || shape_.a_transposed;
        if (rows_matter && least.long_rows && is_short) return;
        const bool is_first_long = rows_matter && !least.long_rows && !is_short;

        const Cost cost{parts.m * parts.n, load(parts, m, n), loops(m, n),
                        (shape_.b_transposed || n >= kLongRow) && (!shape_.a_transposed || m >= kLongRow) &&
                            parts.m * parts.n > 1};
        const bool is_better = cost.loops < least.loops ||
                               (cost.loops == least.loops && cost.parts > least.parts) ||
                               (cost.parts == least.parts && cost.load < least.load);
        if (!is_first_long && !is_better) return;
        best = parts;
        least = cost;
    }

    // Blocks of A and B that all cores load into L1, over their whole K: by how much of a part fits.
    int64_t load(Parts parts, int32_t m, int32_t n) const {
        const int64_t a = m_, b = n_;
        const int64_t bytes = int64_t(k_) * kFractal;  // of a block's whole K
        const int64_t n0 = std::min(16, n);
        const int64_t m0 = std::min({int64_t(16), int64_t(m), 128 / n0});
        const int64_t k0 = std::min({64 / m0, 64 / n0, int64_t(k_)});
        if ((m + n) * bytes <= kL1 || (m + 2 * n0) * bytes <= kL1 || (n + 2 * m0) * bytes <= kL1)
            return a * parts.n + b * parts.m;
        const int64_t piece_a = m0 * k0 * kFractal, piece_b = n0 * k0 * kFractal;
        if (2 * (n0 * bytes + piece_a) > kL1 && 2 * (m0 * bytes + piece_b) > kL1)
            return a * ceil64(b, n0) + b * ceil64(a, m0);
        if (2 * (m0 + n0) * bytes <= kL1) {
            const int64_t m1 = ceil64(kL1 - 2 * n0 * bytes, 2 * m0 * bytes) * m0;
            const int64_t n1 = ceil64(kL1 - 2 * m0 * bytes, 2 * n0 * bytes) * n0;
            return std::min(a * parts.n + b * ceil64(a, m1), b * parts.m + a * ceil64(b, n1));
        }
        int64_t least = std::numeric_limits<int32_t>::max();
        if (m * bytes + 2 * piece_b <= kL1 || 2 * (m0 * bytes + piece_b) <= kL1)
            least = std::min(least, a * parts.n + b * ceil64(a, m0));
        if (n * bytes + 2 * piece_a <= kL1 || 2 * (n0 * bytes + piece_a) <= kL1)
            least = std::min(least, b * parts.m + a * ceil64(b, n0));
        return least;
    }

    // How often a core fills L0A and L0B.
    int64_t loops(int32_t m, int32_t n) const {
        int32_t n0 = std::min(16, n);
        int32_t m0 = std::min({m, 128 / n0, 64});
        n0 = std::min({n, 128 / m0, 64});
        m0 = std::min({m, 128 / n0, 64});
        const int32_t k0 = std::min({64 / m0, 64 / n0, k_});
        return int64_t(ceil(m, m0)) * ceil(n, n0) * ceil(k_, k0);
    }

    // Blocks of one of `parts` parts; a number with few divisors, which L0 cannot divide well, goes toward
    // the one that the power of two above would have.
    static int32_t divisible(int32_t blocks, int32_t parts) {
        int32_t part = ceil(blocks, parts);
        const int32_t end = ceil(power_above(blocks), parts);
        if (parts == 1 && has_divisors(part)) return part;
        while (part != end && !has_divisors(part)) part += part < end ? 1 : -1;
        return part;
    }
    static bool has_divisors(int32_t blocks) {
        if (blocks <= 8) return true;
        const int32_t near = most_divisors(blocks, 1, 64);
        const int32_t far = blocks > 128 ? most_divisors(blocks, 65, 128) : 0;
        return near > 2 && (blocks <= 128 || near + far > 4);
    }
    // The most divisors that a factor between first and last has.
    static int32_t most_divisors(int32_t blocks, int32_t first, int32_t last) {
        int32_t most = 0;
        for (int32_t factor = first; factor <= last; ++factor) {
            if (blocks % factor != 0) continue;
            int32_t count = 0;
            for (int32_t i = 1; i <= factor; ++i) count += factor % i == 0;
            most = std::max(most, count);
        }
        return most;
    }

    Shape shape_;
    int32_t cores_;
    int32_t m_, n_, k_;  // in blocks
};

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_MATMUL_CORES_H
