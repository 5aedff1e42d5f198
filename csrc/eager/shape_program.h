// Output shapes and dtypes from a compiled shape relation.
//
// ascend_graph/eager/shape_code.py writes the program from a relation. It is a shortcut for what eager calls
// meet every day: whatever it does not know or finds violated, it leaves to the operator's meta function,
// which decides and explains. Nothing here knows PyTorch.
#ifndef ASCEND_GRAPH_EAGER_SHAPE_PROGRAM_H
#define ASCEND_GRAPH_EAGER_SHAPE_PROGRAM_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ascend_graph::eager {

// What the program sees of an argument: a tensor's sizes, or the value of an integer or boolean.
struct ShapeArgument {
    bool present = false;
    int rank = 0;
    int dtype = 0;
    const int64_t* sizes = nullptr;
    int64_t value = 0;
};

enum class ItemKind : int64_t { kDimension, kLiteral, kAny, kEllipsis, kGroup, kArgument, kExpression };

// One item of a shape: a slot, an integer, an argument or an expression, by kind.
struct ShapeItem {
    ItemKind kind;
    int64_t value;
};

enum class NodeKind : int64_t {
    kInteger,
    kSlot,
    kArgument,
    kPresent,
    kRank,
    kElements,
    kNegate,
    kNot,
    kAdd,
    kSubtract,
    kMultiply,
    kFloorDivide,
    kModulo,
    kCeilDivide,
    kMinimum,
    kMaximum,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kAnd,
    kOr,
    kConditional,
};

// An expression; `a`, `b` and `c` are values or further nodes, by kind.
struct ShapeNode {
    NodeKind kind;
    int64_t a, b, c;
};

enum class DtypeKind : int64_t { kFirstPresent, kFixed, kArgument, kPromote };

struct DtypeRule {
    DtypeKind kind;
    std::vector<int64_t> values;  // arguments, or one dtype
};

struct InputPattern {
    int64_t argument;
    bool any_shape;
    std::vector<ShapeItem> items;
};

// Either some inputs have one dtype, or one input has one of some dtypes.
struct DtypeCheck {
    std::vector<int64_t> same;
    int64_t argument;
    std::vector<int64_t> among;
};

// A definition, or with `slot` -1 a condition that must hold.
struct Clause {
    int64_t slot;
    int64_t node;
};

enum class OutputKind : int64_t { kFresh, kLike, kAbsent };

struct OutputBranch {
    int64_t condition;  // a node, or -1
    OutputKind kind;
    int64_t like;
    std::vector<ShapeItem> items;
    DtypeRule dtype;
};

struct OutputShape {
    const OutputBranch* branch = nullptr;
    std::vector<int64_t> sizes;
};

struct ShapeProgram {
    static constexpr size_t kSlots = 64;
    static constexpr int kMaxRank = 64;

    size_t slots = 0;  // at most kSlots
    std::vector<InputPattern> inputs;
    std::vector<DtypeCheck> checks;
    std::vector<Clause> clauses;
    std::vector<ShapeNode> nodes;
    std::vector<std::vector<OutputBranch>> outputs;

    // False where the meta function has to decide. `arguments` are those of the schema, in order.
    bool run(const ShapeArgument* arguments, std::vector<OutputShape>& results) const;
};

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_SHAPE_PROGRAM_H
