// What a kernel says about tiling keys: which structure some of them have.
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "ascendc_host/internal/runtime.h"

namespace ascendc_host {
namespace {

using Value = std::optional<uint64_t>;  // nothing: it depends on what the text does not say

// An expression of C++ over TILING_KEY_VAR and numbers: what a text names else is not known here.
class Expression {
  public:
    Expression(const char* text, uint64_t key) : at_(text), key_(key) {}

    Value value() {
        const Value found = binary(0);
        skip();
        return *at_ == '\0' ? found : std::nullopt;
    }

  private:
    struct Operator {
        std::string_view text;
        int precedence;
    };
    static constexpr int kDeepest = 200;
    // The longer ones first.
    static constexpr Operator kOperators[] = {
        {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8}, {">>", 8}, {"|", 3},
        {"^", 4},  {"&", 5},  {"<", 7},  {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

    void skip() {
        while (std::isspace(static_cast<unsigned char>(*at_)) != 0) ++at_;
    }
    const Operator* next() {
        skip();
        for (const Operator& one : kOperators)
            if (std::string_view(at_).substr(0, one.text.size()) == one.text) return &one;
        return nullptr;
    }
    Value binary(int least) {
        if (++depth_ > kDeepest) return broken();
        Value left = unary();
        for (const Operator* op = next(); op != nullptr && op->precedence > least; op = next()) {
            at_ += op->text.size();
            left = apply(op->text, left, binary(op->precedence));
        }
        --depth_;
        return left;
    }
    Value unary() {
        skip();
        const char sign = *at_;
        if (sign == '!' || sign == '~' || sign == '-' || sign == '+') {
            ++at_;
            if (++depth_ > kDeepest) return broken();
            const Value operand = unary();
            --depth_;
            if (!operand) return operand;
            return sign == '!' ? !*operand : sign == '~' ? ~*operand : sign == '-' ? 0 - *operand : *operand;
        }
        if (sign == '(') {
            ++at_;
            const Value inner = binary(0);
            skip();
            if (*at_ != ')') return broken();
            ++at_;
            return inner;
        }
        if (std::isdigit(static_cast<unsigned char>(sign)) != 0) {
            char* end = nullptr;
            const uint64_t number = std::strtoull(at_, &end, 0);
            at_ = end;
            while (*at_ != '\0' && std::string_view("uUlL").find(*at_) != std::string_view::npos) ++at_;
            return number;
        }
        const char* begin = at_;
        while (std::isalnum(static_cast<unsigned char>(*at_)) != 0 || *at_ == '_' || *at_ == ':') ++at_;
        if (at_ == begin) return broken();
        return std::string_view(begin, static_cast<size_t>(at_ - begin)) == "TILING_KEY_VAR" ? Value(key_)
                                                                                             : std::nullopt;
    }
    static Value apply(std::string_view op, Value left, Value right) {
        // One side may decide alone.
        if (op == "&&") {
            if ((left && *left == 0) || (right && *right == 0)) return 0;
            return left && right ? Value(1) : std::nullopt;
        }
        if (op == "||") {
            if ((left && *left != 0) || (right && *right != 0)) return 1;
            return left && right ? Value(0) : std::nullopt;
        }
        if (!left || !right) return std::nullopt;
        const uint64_t a = *left, b = *right;
        if (op == "==") return a == b;
        if (op == "!=") return a != b;
        if (op == "<=") return a <= b;
        if (op == ">=") return a >= b;
        if (op == "<<") return b < 64 ? Value(a << b) : std::nullopt;
        if (op == ">>") return b < 64 ? Value(a >> b) : std::nullopt;
        if (op == "|") return a | b;
        if (op == "^") return a ^ b;
        if (op == "&") return a & b;
        if (op == "<") return a < b;
        if (op == ">") return a > b;
        if (op == "+") return a + b;
        if (op == "-") return a - b;
        if (op == "*") return a * b;
        if (b == 0) return std::nullopt;
        return op == "/" ? a / b : a % b;
    }
    // The rest is not read.
    Value broken() {
        at_ += std::string_view(at_).size();
        return std::nullopt;
    }

    const char* at_;
    const uint64_t key_;
    int depth_ = 0;
};

}  // namespace

void Block::register_tiling(const char* expression, const char* structure) {
    const Value holds = Expression(expression, tiling_key).value();
    if (holds && *holds == 0) return;
    tiling_of_key = structure;
    tiling_of_key_when = expression;
    tiling_of_key_is_sure = holds.has_value();
}

void Block::require_default_tiling(const Where& where) const {
    if (tiling_of_key == nullptr) return;
    const char* how = tiling_of_key_is_sure ? "has" : "may have";
    fail(*this, where,
         format("GET_TILING_DATA: tiling key %llu %s the structure %s (REGISTER_TILING_FOR_TILINGKEY: %s), "
                "and the host "
                "compiles a kernel for all keys at once; write GET_TILING_DATA_WITH_STRUCT with the "
                "structure's name",
                static_cast<unsigned long long>(tiling_key), how, tiling_of_key, tiling_of_key_when));
}

}  // namespace ascendc_host
