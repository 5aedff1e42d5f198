// Runs the shape programs of eager operators: a line per call, a line of JSON per answer, "meta" where a
// program leaves the decision to the meta function.
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "shape_program.cpp"

namespace {

using namespace ascend_graph::eager;

const std::map<int, std::string> kCases = {
    // @CASES@
};

int64_t next(std::istream& in) {
    int64_t value = 0;
    in >> value;
    return value;
}
std::vector<int64_t> numbers(std::istream& in) {
    std::vector<int64_t> found(static_cast<size_t>(next(in)));
    for (int64_t& value : found) in >> value;
    return found;
}
std::vector<ShapeItem> items(std::istream& in) {
    std::vector<ShapeItem> found;
    for (int64_t left = next(in); left > 0; --left) {
        const auto kind = static_cast<ItemKind>(next(in));
        found.push_back({kind, next(in)});
    }
    return found;
}

// In the order in which relations._Programs writes it.
ShapeProgram read(const std::string& text) {
    std::istringstream in(text);
    ShapeProgram program;
    program.slots = static_cast<size_t>(next(in));
    for (int64_t left = next(in); left > 0; --left) {
        const int64_t argument = next(in);
        const bool any = next(in) != 0;
        program.inputs.push_back({argument, any, items(in)});
    }
    for (int64_t left = next(in); left > 0; --left) {
        const auto same = numbers(in);
        const int64_t argument = next(in);
        program.checks.push_back({same, argument, numbers(in)});
    }
    for (int64_t left = next(in); left > 0; --left) {
        const int64_t slot = next(in);
        program.clauses.push_back({slot, next(in)});
    }
    for (int64_t left = next(in); left > 0; --left) {
        const auto kind = static_cast<NodeKind>(next(in));
        const int64_t a = next(in), b = next(in);
        program.nodes.push_back({kind, a, b, next(in)});
    }
    for (int64_t left = next(in); left > 0; --left) {
        auto& branches = program.outputs.emplace_back();
        for (int64_t branch = next(in); branch > 0; --branch) {
            const int64_t condition = next(in);
            const auto kind = static_cast<OutputKind>(next(in));
            const int64_t like = next(in);
            const auto sizes = items(in);
            const auto rule = static_cast<DtypeKind>(next(in));
            branches.push_back({condition, kind, like, sizes, {rule, numbers(in)}});
        }
    }
    return program;
}

// As output_dtype in kernel.cpp, but for promotion, which is torch's; -1 for the meta function.
int64_t dtype(const DtypeRule& rule, const std::vector<ShapeArgument>& arguments) {
    if (rule.kind == DtypeKind::kFixed) return rule.values[0];
    if (rule.kind == DtypeKind::kArgument) return arguments[rule.values[0]].value;
    for (const int64_t n : rule.values) {
        if (rule.kind == DtypeKind::kFirstPresent && arguments[n].present) return arguments[n].dtype;
        if (rule.kind == DtypeKind::kPromote && !arguments[n].present) return -1;
    }
    return rule.kind == DtypeKind::kPromote ? 1000 : -1;
}

}  // namespace

int main() {
    std::map<int, ShapeProgram> programs;
    for (const auto& [number, text] : kCases) programs[number] = read(text);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        const int number = static_cast<int>(next(in));
        const int64_t tensors = next(in);
        std::vector<std::vector<int64_t>> sizes(static_cast<size_t>(tensors));
        std::vector<ShapeArgument> arguments;
        for (auto& shape : sizes) {
            const bool present = next(in) != 0;
            const int type = static_cast<int>(next(in));
            shape = numbers(in);
            arguments.push_back({present, static_cast<int>(shape.size()), type, shape.data(), 0});
        }
        int64_t value = 0;
        while (in >> value) arguments.push_back({true, 0, 0, nullptr, value});
        std::vector<OutputShape> results;
        std::ostringstream out;
        bool known = programs.at(number).run(arguments.data(), results);
        out << "[";
        for (size_t n = 0; known && n < results.size(); ++n) {
            out << (n ? ", " : "");
            const OutputBranch& branch = *results[n].branch;
            if (branch.kind == OutputKind::kAbsent) {
                out << "null";
                continue;
            }
            const auto& shape =
                branch.kind == OutputKind::kLike ? sizes[static_cast<size_t>(branch.like)] : results[n].sizes;
            out << "[[";
            for (size_t d = 0; d < shape.size(); ++d) out << (d ? ", " : "") << shape[d];
            const int64_t type = dtype(branch.dtype, arguments);
            known = type >= 0;
            out << "], " << type << "]";
        }
        std::cout << (known ? out.str() + "]" : "\"meta\"") << "\n";
    }
}
