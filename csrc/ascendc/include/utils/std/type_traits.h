// AscendC::Std is the standard library on the host.
#ifndef ASCEND_GRAPH_UTILS_STD_TYPE_TRAITS_H
#define ASCEND_GRAPH_UTILS_STD_TYPE_TRAITS_H

#include <type_traits>

namespace AscendC {
namespace Std = ::std;
}

#endif  // ASCEND_GRAPH_UTILS_STD_TYPE_TRAITS_H
