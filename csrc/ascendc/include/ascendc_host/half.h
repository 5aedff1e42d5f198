// The compiler's type of IEEE half precision: _Float16, which g++ has in C++ from 12 on for x86-64, from 13
// on for AArch64.
#ifndef ASCENDC_HOST_HALF_H
#define ASCENDC_HOST_HALF_H

namespace ascendc_host {

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
using Float16 = __fp16;  // the same bits; it is computed on in float, and rounded where it is stored
#else
using Float16 = _Float16;
#endif

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_HALF_H
