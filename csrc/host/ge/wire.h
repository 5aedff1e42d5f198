// As much of the protobuf wire format as the graph library needs to look into a ge.proto.ModelDef.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ascend_graph::host {

// Whether `bytes` is well-formed at its outermost level.
bool is_message(std::string_view bytes);

// The types of all nodes of all graphs of a serialized ModelDef.
std::vector<std::string> node_types(std::string_view model);

}  // namespace ascend_graph::host
