// AscendC::Std is the standard library on the host.
#ifndef ASCEND_GRAPH_UTILS_STD_UTILITY_H
#define ASCEND_GRAPH_UTILS_STD_UTILITY_H

#include <utility>

namespace AscendC {
namespace Std = ::std;
}

#endif  // ASCEND_GRAPH_UTILS_STD_UTILITY_H
