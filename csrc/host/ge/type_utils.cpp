// ge::TypeUtils for libraries of packages that CANN built: the functions of the header that sources include.
#include <array>

#include "graph/ascend_string.h"
#pragma GCC visibility push(default)
#include "graph/utils/type_utils.h"
#pragma GCC visibility pop

namespace ge {

// Inline functions are emitted where their addresses are taken.
[[gnu::used]] std::string (*const dtype_text)(DataType) = TypeUtils::DataTypeToSerialString;
[[gnu::used]] std::string (*const format_text)(Format) = TypeUtils::FormatToSerialString;
[[gnu::used]] AscendString (*const dtype_name)(const DataType&) = TypeUtils::DataTypeToAscendString;
[[gnu::used]] AscendString (*const format_name)(const Format&) = TypeUtils::FormatToAscendString;

}  // namespace ge
