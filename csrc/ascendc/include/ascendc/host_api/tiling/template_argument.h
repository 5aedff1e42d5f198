// Kernels that are templates: a header that tiling function and kernel share declares the parameters and the
// combinations of them to compile; the tiling function chooses one by ASCENDC_TPL_SEL_PARAM, as a tiling key.
//
// The host keeps both as a table, from which the build of an operator package makes the kernel's instances.
// In a kernel the declarations mean nothing.
#ifndef ASCENDC_HOST_TEMPLATE_ARGUMENT_H
#define ASCENDC_HOST_TEMPLATE_ARGUMENT_H

#define ASCENDC_TPL_1_BW 1
#define ASCENDC_TPL_2_BW 2
#define ASCENDC_TPL_3_BW 3
#define ASCENDC_TPL_4_BW 4
#define ASCENDC_TPL_8_BW 8

#ifdef __CCE_AICORE__

#define ASCENDC_TPL_ARGS_DECL(...)
#define ASCENDC_TPL_SEL(...)

#else

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/types.h"

namespace AscendC {}  // namespace AscendC

namespace ascendc_host {

struct TemplateParameter {
    enum class Kind { dtype, format, number, flag, other };

    std::string name;
    Kind kind;
    unsigned bits;
    std::vector<uint64_t> values;
    // The input or output whose dtype it is, as ASCENDC_TPL_INPUT and ASCENDC_TPL_OUTPUT have it; 0 for none.
    uint64_t bound = 0;

    static constexpr uint64_t input = uint64_t{1} << 32, output = uint64_t{2} << 32;
    // What a name becomes that nothing defines; selections leave it out.
    static constexpr uint64_t no_number = ~uint64_t{0};

    // One of the values named; where several say whose dtype it is, the first counts.
    static TemplateParameter choice(std::string name, Kind kind, unsigned bits,
                                    const std::vector<uint64_t>& named) {
        TemplateParameter made{std::move(name), kind, bits, {}};
        for (uint64_t value : named) {
            if (value == no_number) continue;
            if (value < input)
                made.values.push_back(value);
            else if (made.bound == 0)
                made.bound = value;
        }
        return made;
    }

    // The numbers that a range (0), a mixture (1) or a list (2) stands for: first the number of ranges, then
    // their ends.
    static TemplateParameter number(std::string name, unsigned bits, const std::vector<uint64_t>& form) {
        TemplateParameter made{std::move(name), Kind::number, bits, {}};
        size_t at = 1;
        if (form.at(0) != 2) {
            for (uint64_t ranges = form.at(at++); ranges > 0; --ranges, at += 2) {
                for (uint64_t value = form.at(at); value <= form.at(at + 1); ++value)
                    made.values.push_back(value);
            }
        }
        made.values.insert(made.values.end(), form.begin() + static_cast<std::ptrdiff_t>(at), form.end());
        made.values.erase(std::remove(made.values.begin(), made.values.end(), no_number), made.values.end());
        return made;
    }
};

class TemplateTable {
  public:
    struct Instance {
        uint64_t key;
        std::vector<uint64_t> arguments;
    };

    TemplateTable(const char* op, const char* file, std::vector<TemplateParameter> parameters)
        : op(op), file(file), parameters(std::move(parameters)), next(first()) {
        first() = this;
    }
    // Further combinations: of each parameter any of the values named.
    bool select(const std::vector<std::vector<TemplateParameter>>& selections) {
        for (const auto& chosen : selections) {
            std::vector<std::vector<uint64_t>> rows{{}};
            for (const TemplateParameter& parameter : parameters) {
                std::vector<std::vector<uint64_t>> wider;
                for (const TemplateParameter& one : chosen) {
                    if (one.name != parameter.name) continue;
                    for (const auto& row : rows) {
                        for (uint64_t value : one.values) {
                            wider.push_back(row);
                            wider.back().push_back(value);
                        }
                    }
                }
                rows = std::move(wider);
            }
            for (auto& row : rows) instances.push_back({key_of(row), row});
        }
        return true;
    }
    // A value of any type; what follows the last comma may be empty.
    struct Value {
        uint64_t value;
        template <typename T>
        Value(T value) : value(static_cast<uint64_t>(value)) {}
    };
    uint64_t key(std::initializer_list<Value> values) const {
        std::vector<uint64_t> numbers;
        for (const Value& one : values) numbers.push_back(one.value);
        return key_of(numbers);
    }

    static TemplateTable*& first() {
        static TemplateTable* table = nullptr;
        return table;
    }

    const std::string op;
    const char* const file;  // where it is declared
    const std::vector<TemplateParameter> parameters;
    std::vector<Instance> instances;
    TemplateTable* const next;

  private:
    // The place of each value among those declared, in the bits declared.
    uint64_t key_of(const std::vector<uint64_t>& values) const {
        if (values.size() != parameters.size()) {
            throw std::invalid_argument(op + ": " + std::to_string(values.size()) +
                                        " template arguments, declared are " +
                                        std::to_string(parameters.size()));
        }
        uint64_t key = 0;
        unsigned shift = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            const TemplateParameter& parameter = parameters[i];
            uint64_t place = 0;
            while (place < parameter.values.size() && parameter.values[place] != values[i]) ++place;
            if (place == parameter.values.size()) {
                throw std::invalid_argument(op + ": " + std::to_string(values[i]) +
                                            " is not a declared value of the template parameter " +
                                            parameter.name);
            }
            key |= place << shift;
            shift += parameter.bits;
        }
        return key;
    }
};

// The table of a source and the combinations that its headers select, whichever of the two comes first.
class TemplateSelections {
  public:
    bool select(std::vector<std::vector<TemplateParameter>> selections) {
        if (table_ != nullptr) return table_->select(selections);
        waiting_.insert(waiting_.end(), selections.begin(), selections.end());
        return true;
    }
    bool declare(TemplateTable& table) {
        table_ = &table;
        return table.select(waiting_);
    }

  private:
    TemplateTable* table_ = nullptr;
    std::vector<std::vector<TemplateParameter>> waiting_;
};

}  // namespace ascendc_host

[[maybe_unused]] static ::ascendc_host::TemplateSelections ascendc_template_selections;

#define ASCENDC_TPL_PARAMETER(name, kind, bits, ...)                                                      \
    ::ascendc_host::TemplateParameter::choice(#name, ::ascendc_host::TemplateParameter::Kind::kind, bits, \
                                              {__VA_ARGS__})
#define ASCENDC_TPL_NO_NUMBER ::ascendc_host::TemplateParameter::no_number
#define ASCENDC_TPL_INPUT(index) (::ascendc_host::TemplateParameter::input + (index))
#define ASCENDC_TPL_OUTPUT(index) (::ascendc_host::TemplateParameter::output + (index))
#define ASCENDC_TPL_UI_RANGE 0
#define ASCENDC_TPL_UI_MIX 1
#define ASCENDC_TPL_UI_LIST 2

#define ASCENDC_TPL_ARGS_DECL(op, ...)                                                         \
    static ::ascendc_host::TemplateTable ascendc_template_table(#op, __FILE__, {__VA_ARGS__}); \
    [[maybe_unused]] static const bool ascendc_template_declared =                             \
        ascendc_template_selections.declare(ascendc_template_table)
#define ASCENDC_TPL_DATATYPE_DECL(name, ...) ASCENDC_TPL_PARAMETER(name, dtype, 8, __VA_ARGS__)
#define ASCENDC_TPL_DTYPE_DECL(name, ...) ASCENDC_TPL_PARAMETER(name, dtype, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_DECL(name, ...) ASCENDC_TPL_PARAMETER(name, format, 8, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_DECL(name, ...) ASCENDC_TPL_PARAMETER(name, flag, 1, __VA_ARGS__)
#define ASCENDC_TPL_UINT_DECL(name, bits, ...) \
    ::ascendc_host::TemplateParameter::number(#name, bits, {__VA_ARGS__})

#define ASCENDC_TPL_SEL(...)                                       \
    [[maybe_unused]] static const bool ascendc_template_selected = \
        ascendc_template_selections.select({__VA_ARGS__})
#define ASCENDC_TPL_ARGS_SEL(...) \
    std::vector<::ascendc_host::TemplateParameter> { __VA_ARGS__ }
#define ASCENDC_TPL_DATATYPE_SEL(name, ...) ASCENDC_TPL_PARAMETER(name, dtype, 8, __VA_ARGS__)
#define ASCENDC_TPL_DTYPE_SEL(name, ...) ASCENDC_TPL_PARAMETER(name, dtype, 8, __VA_ARGS__)
#define ASCENDC_TPL_FORMAT_SEL(name, ...) ASCENDC_TPL_PARAMETER(name, format, 8, __VA_ARGS__)
#define ASCENDC_TPL_BOOL_SEL(name, ...) ASCENDC_TPL_PARAMETER(name, flag, 1, __VA_ARGS__)
#define ASCENDC_TPL_UINT_SEL(name, ...) ::ascendc_host::TemplateParameter::number(#name, 0, {__VA_ARGS__})
// What concerns the device alone, or is the same for every instance.
#define ASCENDC_TPL_KERNEL_TYPE_SEL(...) ASCENDC_TPL_PARAMETER(, other, 0)
#define ASCENDC_TPL_DETERMINISTIC_SEL(...) ASCENDC_TPL_PARAMETER(, other, 0)
#define ASCENDC_TPL_TILING_STRUCT_SEL(...) ASCENDC_TPL_PARAMETER(, other, 0)

#define GET_TPL_TILING_KEY(...) ascendc_template_table.key({__VA_ARGS__})
#define ASCENDC_TPL_SEL_PARAM(context, ...) (context)->SetTilingKey(GET_TPL_TILING_KEY(__VA_ARGS__))

#endif  // __CCE_AICORE__

#endif  // ASCENDC_HOST_TEMPLATE_ARGUMENT_H
