// Complex numbers: copies everywhere, and arithmetic on the first elements of tensors on dav-3510.
#ifndef ASCENDC_HOST_INTERNAL_COMPLEX_H
#define ASCENDC_HOST_INTERNAL_COMPLEX_H

#include "ascendc_host/internal/numbers.h"

namespace AscendC {

template <typename T>
struct Complex {
    static_assert(std::is_same<T, half>::value || std::is_same<T, float>::value,
                  "Complex: the parts are half or float");
    using EleType = T;

    Complex() : real(0), imag(0) {}
    Complex(T real_part, T imag_part) : real(real_part), imag(imag_part) {}
    template <typename U, typename = std::enable_if_t<std::is_constructible<T, U>::value>>
    Complex(const U real_part) : real(T(real_part)), imag(0) {}

    bool operator==(const Complex& other) const { return real == other.real && imag == other.imag; }

    T real;
    T imag;
};

using complex32 = Complex<half>;
using complex64 = Complex<float>;

namespace detail {

template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<Complex<T>> = true;

// The parts in the type in which they are computed: a device rounds in between, which is not documented.
template <typename T>
double wide_real(const Complex<T>& value) {
    return static_cast<double>(static_cast<float>(value.real));
}
template <typename T>
double wide_imag(const Complex<T>& value) {
    return static_cast<double>(static_cast<float>(value.imag));
}
template <typename T>
Complex<T> rounded(double real, double imag) {
    return {static_cast<T>(static_cast<float>(real)), static_cast<T>(static_cast<float>(imag))};
}

template <typename T>
Complex<T> add(const Complex<T>& a, const Complex<T>& b) {
    return rounded<T>(wide_real(a) + wide_real(b), wide_imag(a) + wide_imag(b));
}
template <typename T>
Complex<T> subtract(const Complex<T>& a, const Complex<T>& b) {
    return rounded<T>(wide_real(a) - wide_real(b), wide_imag(a) - wide_imag(b));
}
template <typename T>
Complex<T> multiply(const Complex<T>& a, const Complex<T>& b) {
    return rounded<T>(wide_real(a) * wide_real(b) - wide_imag(a) * wide_imag(b),
                      wide_real(a) * wide_imag(b) + wide_imag(a) * wide_real(b));
}
template <typename T>
Complex<T> divide(const Complex<T>& a, const Complex<T>& b) {
    const double length = wide_real(b) * wide_real(b) + wide_imag(b) * wide_imag(b);
    return rounded<T>((wide_real(a) * wide_real(b) + wide_imag(a) * wide_imag(b)) / length,
                      (wide_imag(a) * wide_real(b) - wide_real(a) * wide_imag(b)) / length);
}

}  // namespace detail

}  // namespace AscendC

using AscendC::complex32;
using AscendC::complex64;

#endif  // ASCENDC_HOST_INTERNAL_COMPLEX_H
