#include "ge/wire.h"

#include <cstdint>
#include <functional>

namespace ascend_graph::host {
namespace {

bool read_varint(std::string_view& bytes, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
        const auto byte = static_cast<uint8_t>(bytes.front());
        bytes.remove_prefix(1);
        value |= uint64_t{byte & 0x7Fu} << shift;
        if ((byte & 0x80u) == 0) return true;
    }
    return false;
}

// Calls `on_field` for every length-delimited field; false where the bytes are no message.
bool walk(std::string_view bytes,
          const std::function<void(uint64_t field, std::string_view payload)>& on_field) {
    while (!bytes.empty()) {
        uint64_t tag = 0, length = 0;
        if (!read_varint(bytes, tag)) return false;
        switch (tag & 7) {
            case 0:
                if (!read_varint(bytes, length)) return false;
                continue;
            case 1:
                length = 8;
                break;
            case 5:
                length = 4;
                break;
            case 2:
                if (!read_varint(bytes, length)) return false;
                break;
            default:
                return false;
        }
        if (length > bytes.size()) return false;
        if ((tag & 7) == 2) on_field(tag >> 3, bytes.substr(0, length));
        bytes.remove_prefix(length);
    }
    return true;
}

// Field numbers of ge_ir.proto.
constexpr uint64_t kModelGraph = 7, kGraphOp = 6, kOpType = 2;

}  // namespace

bool is_message(std::string_view bytes) {
    return walk(bytes, [](uint64_t, std::string_view) {});
}

std::vector<std::string> node_types(std::string_view model) {
    std::vector<std::string> types;
    walk(model, [&](uint64_t field, std::string_view graph) {
        if (field != kModelGraph) return;
        walk(graph, [&](uint64_t graph_field, std::string_view op) {
            if (graph_field != kGraphOp) return;
            walk(op, [&](uint64_t op_field, std::string_view type) {
                if (op_field == kOpType) types.emplace_back(type);
            });
        });
    });
    return types;
}

}  // namespace ascend_graph::host
