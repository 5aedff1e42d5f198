// AscendC::Std is the standard library on the host.
#ifndef ASCEND_GRAPH_UTILS_STD_TUPLE_H
#define ASCEND_GRAPH_UTILS_STD_TUPLE_H

#include <tuple>

namespace AscendC {
namespace Std = ::std;
}

#endif  // ASCEND_GRAPH_UTILS_STD_TUPLE_H
