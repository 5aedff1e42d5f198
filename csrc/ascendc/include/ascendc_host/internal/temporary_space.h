// Temporary space of mathematical functions and activations on dav-2201, as kernels must give it and tiling
// functions are told it. The host does not use it.
#ifndef ASCENDC_HOST_INTERNAL_TEMPORARY_SPACE_H
#define ASCENDC_HOST_INTERNAL_TEMPORARY_SPACE_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ascendc_host {

// How many tensors of temporary results a function has: the least space is 256 bytes for each, the most that
// a function uses the operand's size. With isReuseSource there may be one less.
struct TemporarySpace {
    std::string_view function;
    uint8_t of_half, of_float, of_reused_float;
};
inline constexpr TemporarySpace temporary_spaces[] = {
    {"Acos", 6, 2, 2},  {"Acosh", 2, 1, 1},   {"Asin", 6, 2, 2},  {"Asinh", 3, 3, 3}, {"Atan", 12, 5, 5},
    {"Atanh", 4, 1, 1}, {"Ceil", 2, 1, 1},    {"Cos", 8, 3, 2},   {"Cosh", 6, 2, 2},  {"Digamma", 16, 7, 6},
    {"Erf", 8, 3, 3},   {"Erfc", 16, 7, 7},   {"Floor", 2, 0, 0}, {"Frac", 4, 0, 0},  {"Gelu", 3, 3, 3},
    {"Round", 1, 0, 0}, {"Sigmoid", 1, 1, 1}, {"Sign", 3, 3, 3},  {"Sin", 8, 3, 2},   {"Sinh", 4, 1, 1},
    {"Tan", 10, 4, 4},  {"Tanh", 4, 1, 1},    {"Trunc", 2, 1, 1}, {"Xor", 1, 1, 1},
};
constexpr uint32_t temporary_tensors(std::string_view function, size_t element, bool reuses) {
    for (const TemporarySpace& one : temporary_spaces) {
        if (one.function == function)
            return element < sizeof(float) ? one.of_half : reuses ? one.of_reused_float : one.of_float;
    }
    return 0;
}
constexpr uint32_t bytes_of_temporary = 256;

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_TEMPORARY_SPACE_H
