
// Runs InferShape and InferDataType of many operators: a line per call, a line of JSON per answer.
#include <iostream>
#include <map>
#include <sstream>
#include <string>

namespace {

struct Case {
    size_t inputs, outputs;
    ge::graphStatus (*shape)(gert::InferShapeContext*);
    ge::graphStatus (*dtype)(gert::InferDataTypeContext*);
};
const std::map<int, Case> kCases = {
    // @CASES@
};

void Read(std::istream& in, gert::ComputeNodeInfo& node, const Case& op,
          std::deque<std::vector<int64_t>>& kept) {
    for (size_t n = 0; n < op.inputs; ++n) {
        int present = 0, type = 0;
        size_t rank = 0;
        in >> present >> type >> rank;
        gert::Tensor tensor;
        tensor.SetDataType(static_cast<ge::DataType>(type));
        for (size_t d = 0; d < rank; ++d) {
            int64_t size = 0;
            in >> size;
            tensor.MutableOriginShape().AppendDim(size);
        }
        node.inputs.begin_parameter(present);
        if (present) node.inputs.add(tensor);
    }
    char kind = 0;
    while (in >> kind) {
        if (kind == 's') {
            std::string text;
            in >> text;
            node.attrs.add(text);
        } else if (kind == 'f') {
            float number = 0;
            in >> number;
            node.attrs.add(number);
        } else {
            int64_t number = 0;
            in >> number;
            if (kind == 'i') node.attrs.add(number);
            if (kind == 'b') node.attrs.add(number != 0);
            if (kind != 'l') continue;
            auto& items = kept.emplace_back(static_cast<size_t>(number));
            for (int64_t& item : items) in >> item;
            node.attrs.add(gert::TypedContinuousVector<int64_t>(items.data(), items.size()));
        }
    }
    for (size_t n = 0; n < op.outputs; ++n) {
        node.outputs.begin_parameter(1);
        node.outputs.add(gert::Tensor());
    }
}

}  // namespace

int main() {
    std::string line;
    std::freopen("/dev/null", "w", stderr);
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        int number = 0;
        in >> number;
        const Case& op = kCases.at(number);
        gert::ComputeNodeInfo node("Op", "op");
        std::deque<std::vector<int64_t>> kept;
        Read(in, node, op, kept);
        gert::InferShapeContext context(node);
        gert::InferDataTypeContext types(node);
        if (op.shape(&context) != ge::GRAPH_SUCCESS || op.dtype(&types) != ge::GRAPH_SUCCESS) {
            std::cout << "null\n";
            continue;
        }
        std::cout << "[";
        for (size_t n = 0; n < op.outputs; ++n) {
            const gert::Shape& found = *context.GetOutputShape(n);
            std::cout << (n ? ", " : "") << "[[";
            for (size_t d = 0; d < found.GetDimNum(); ++d) std::cout << (d ? ", " : "") << found[d];
            std::cout << "], " << static_cast<int>(types.GetOutputDataType(n)) << "]";
        }
        std::cout << "]\n";
    }
}
