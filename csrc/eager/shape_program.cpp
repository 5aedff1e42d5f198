#include "shape_program.h"

#include <algorithm>

namespace ascend_graph::eager {
namespace {

// The state of one run. Groups and `...` are borrowed from the inputs, unless broadcasting made new sizes.
class Run {
  public:
    Run(const ShapeProgram& program, const ShapeArgument* arguments)
        : program_(program), arguments_(arguments) {
        std::fill_n(bound_.begin(), program.slots, false);
        std::fill_n(groups_.begin(), program.slots, Group{nullptr, -1});
    }

    bool match(const InputPattern& pattern) {
        const ShapeArgument& tensor = arguments_[pattern.argument];
        if (!tensor.present || pattern.any_shape) return true;
        const auto& items = pattern.items;
        const auto open = std::find_if(items.begin(), items.end(), [](const ShapeItem& item) {
            return item.kind == ItemKind::kEllipsis || item.kind == ItemKind::kGroup;
        });
        const bool has_open = open != items.end();
        const int64_t fixed = static_cast<int64_t>(items.size()) - (has_open ? 1 : 0);
        if (tensor.rank > ShapeProgram::kMaxRank || (has_open ? tensor.rank < fixed : tensor.rank != fixed))
            return false;
        const int64_t* size = tensor.sizes;
        for (auto item = items.begin(); item != items.end(); ++item) {
            if (item == open) {
                const int64_t length = tensor.rank - fixed;
                if (item->kind == ItemKind::kEllipsis ? !broadcast(size, length)
                                                      : !group(item->value, size, length))
                    return false;
                size += length;
            } else if (!dimension(*item, *size++)) {
                return false;
            }
        }
        return true;
    }

    bool check(const DtypeCheck& check) const {
        if (!check.among.empty()) {
            const ShapeArgument& tensor = arguments_[check.argument];
            return !tensor.present ||
                   std::find(check.among.begin(), check.among.end(), tensor.dtype) != check.among.end();
        }
        const ShapeArgument* first = nullptr;
        for (const int64_t position : check.same) {
            const ShapeArgument& tensor = arguments_[position];
            if (!tensor.present) continue;
            if (first != nullptr && first->dtype != tensor.dtype) return false;
            first = &tensor;
        }
        return true;
    }

    bool clause(const Clause& clause) {
        int64_t value;
        if (!evaluate(clause.node, value)) return false;
        if (clause.slot < 0) return value != 0;
        slots_[clause.slot] = value;
        bound_[clause.slot] = true;
        return true;
    }

    bool output(const std::vector<OutputBranch>& branches, OutputShape& result) const {
        for (const OutputBranch& branch : branches) {
            int64_t holds = 1;
            if (branch.condition >= 0 && !evaluate(branch.condition, holds)) return false;
            if (holds == 0) continue;
            result.branch = &branch;
            result.sizes.clear();
            if (branch.kind == OutputKind::kLike) return arguments_[branch.like].present;
            return branch.kind == OutputKind::kAbsent || sizes(branch.items, result.sizes);
        }
        return false;
    }

  private:
    struct Group {
        const int64_t* sizes;
        int64_t length;  // -1 until it is known
    };

    bool dimension(const ShapeItem& item, int64_t size) {
        switch (item.kind) {
            case ItemKind::kAny:
                return true;
            case ItemKind::kLiteral:
                return item.value == size;
            case ItemKind::kArgument:
                return arguments_[item.value].present && arguments_[item.value].value == size;
            case ItemKind::kDimension:
                if (bound_[item.value]) return slots_[item.value] == size;
                bound_[item.value] = true;
                slots_[item.value] = size;
                return true;
            default:
                return false;
        }
    }

    bool group(int64_t slot, const int64_t* sizes, int64_t length) {
        Group& known = groups_[slot];
        if (known.length < 0) {
            known = {sizes, length};
            return true;
        }
        return known.length == length && std::equal(sizes, sizes + length, known.sizes);
    }

    bool broadcast(const int64_t* sizes, int64_t length) {
        if (ellipsis_.length < 0) {
            ellipsis_ = {sizes, length};
            return true;
        }
        if (ellipsis_.length == length && std::equal(sizes, sizes + length, ellipsis_.sizes)) return true;
        std::array<int64_t, ShapeProgram::kMaxRank> result;
        const int64_t rank = std::max(length, ellipsis_.length);
        for (int64_t d = 1; d <= rank; ++d) {
            const int64_t a = d <= ellipsis_.length ? ellipsis_.sizes[ellipsis_.length - d] : 1;
            const int64_t b = d <= length ? sizes[length - d] : 1;
            if (a != b && a != 1 && b != 1) return false;
            result[rank - d] = a == 1 ? b : a;
        }
        broadcast_ = result;
        ellipsis_ = {broadcast_.data(), rank};
        return true;
    }

    bool sizes(const std::vector<ShapeItem>& items, std::vector<int64_t>& result) const {
        for (const ShapeItem& item : items) {
            if (item.kind == ItemKind::kEllipsis || item.kind == ItemKind::kGroup) {
                const Group& known = item.kind == ItemKind::kEllipsis ? ellipsis_ : groups_[item.value];
                if (known.length < 0) return false;
                result.insert(result.end(), known.sizes, known.sizes + known.length);
                continue;
            }
            int64_t size;
            if (!evaluate(item.value, size) || size < 0) return false;
            result.push_back(size);
        }
        return true;
    }

    bool evaluate(int64_t index, int64_t& value) const {
        const ShapeNode& node = program_.nodes[index];
        int64_t a = 0;
        int64_t b = 0;
        switch (node.kind) {
            case NodeKind::kInteger:
                value = node.a;
                return true;
            case NodeKind::kSlot:
                value = slots_[node.a];
                return bound_[node.a];
            case NodeKind::kArgument:
                value = arguments_[node.a].value;
                return arguments_[node.a].present;
            case NodeKind::kPresent:
                value = arguments_[node.a].present;
                return true;
            case NodeKind::kRank:
                value = arguments_[node.a].rank;
                return arguments_[node.a].present;
            case NodeKind::kElements:
                return elements(arguments_[node.a], value);
            case NodeKind::kConditional:
                return evaluate(node.a, a) && evaluate(a != 0 ? node.b : node.c, value);
            case NodeKind::kAnd:
            case NodeKind::kOr:
                if (!evaluate(node.a, value)) return false;
                return (value != 0) == (node.kind == NodeKind::kOr) || evaluate(node.b, value);
            case NodeKind::kNegate:
                return evaluate(node.a, a) && within(__builtin_sub_overflow(int64_t{0}, a, &value), value);
            case NodeKind::kNot:
                if (!evaluate(node.a, a)) return false;
                value = a == 0;
                return true;
            default:
                break;
        }
        if (!evaluate(node.a, a) || !evaluate(node.b, b)) return false;
        switch (node.kind) {
            case NodeKind::kAdd:
                return within(__builtin_add_overflow(a, b, &value), value);
            case NodeKind::kSubtract:
                return within(__builtin_sub_overflow(a, b, &value), value);
            case NodeKind::kMultiply:
                return within(__builtin_mul_overflow(a, b, &value), value);
            case NodeKind::kFloorDivide:
            case NodeKind::kCeilDivide:
            case NodeKind::kModulo:
                return divide(node.kind, a, b, value);
            case NodeKind::kMinimum:
                value = std::min(a, b);
                return true;
            case NodeKind::kMaximum:
                value = std::max(a, b);
                return true;
            case NodeKind::kEqual:
                value = a == b;
                return true;
            case NodeKind::kNotEqual:
                value = a != b;
                return true;
            case NodeKind::kLess:
                value = a < b;
                return true;
            case NodeKind::kLessEqual:
                value = a <= b;
                return true;
            case NodeKind::kGreater:
                value = a > b;
                return true;
            case NodeKind::kGreaterEqual:
                value = a >= b;
                return true;
            default:
                return false;
        }
    }

    // Numbers have 63 bits and a sign. By reference: which argument is evaluated first is the compiler's
    // affair.
    static bool within(bool overflow, const int64_t& value) { return !overflow && value != INT64_MIN; }

    // Rounds as Python does: down, whatever the signs.
    static bool divide(NodeKind kind, int64_t a, int64_t b, int64_t& value) {
        if (b == 0 || (b == -1 && a == INT64_MIN)) return false;
        const int64_t quotient = a / b;
        const int64_t rest = a % b;
        const bool below = rest != 0 && (rest < 0) != (b < 0);
        if (kind == NodeKind::kModulo) value = below ? rest + b : rest;
        if (kind == NodeKind::kFloorDivide) value = below ? quotient - 1 : quotient;
        if (kind == NodeKind::kCeilDivide) value = rest != 0 && !below ? quotient + 1 : quotient;
        return true;
    }

    static bool elements(const ShapeArgument& tensor, int64_t& value) {
        value = 1;
        for (int d = 0; d < tensor.rank; ++d) {
            if (!within(__builtin_mul_overflow(value, tensor.sizes[d], &value), value)) return false;
        }
        return tensor.present;
    }

    const ShapeProgram& program_;
    const ShapeArgument* arguments_;
    // Only the program's slots are initialized.
    std::array<int64_t, ShapeProgram::kSlots> slots_;
    std::array<bool, ShapeProgram::kSlots> bound_;
    std::array<Group, ShapeProgram::kSlots> groups_;
    std::array<int64_t, ShapeProgram::kMaxRank> broadcast_;
    Group ellipsis_{nullptr, -1};
};

}  // namespace

bool ShapeProgram::run(const ShapeArgument* arguments, std::vector<OutputShape>& results) const {
    Run run(*this, arguments);
    for (const InputPattern& pattern : inputs) {
        if (!run.match(pattern)) return false;
    }
    for (const DtypeCheck& check : checks) {
        if (!run.check(check)) return false;
    }
    for (const Clause& clause : clauses) {
        if (!run.clause(clause)) return false;
    }
    results.resize(outputs.size());
    for (size_t n = 0; n < outputs.size(); ++n) {
        if (!run.output(outputs[n], results[n])) return false;
    }
    return true;
}

}  // namespace ascend_graph::eager
