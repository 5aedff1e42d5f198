// AscendC::Std is the standard library on the host.
#ifndef ASCENDC_HOST_UTILS_STD_H
#define ASCENDC_HOST_UTILS_STD_H

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

namespace AscendC {
namespace Std = ::std;
}

#endif  // ASCENDC_HOST_UTILS_STD_H
