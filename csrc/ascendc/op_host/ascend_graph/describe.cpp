// Writes what the sources of an operator project define as JSON: linked with them, run once by the package's
// build.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "ascend_graph/definition.h"
#include "ascendc/host_api/tiling/template_argument.h"

namespace {

using ascend_graph::host::Definition;

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (unsigned char c : text) {
        if (c == '"' || c == '\\' || c < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
            result += escaped;
        } else {
            result += static_cast<char>(c);
        }
    }
    return result + '"';
}
std::string json(const std::string& value) { return quoted(value); }
std::string json(bool value) { return value ? "true" : "false"; }
std::string json(int64_t value) { return std::to_string(value); }
std::string json(float value) {
    if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
    char digits[64];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}
template <typename List, typename F>
std::string list(const List& items, F&& text) {
    std::string result;
    for (const auto& item : items) result += (result.empty() ? "" : ", ") + text(item);
    return "[" + result + "]";
}
template <typename T>
std::string json(const std::vector<T>& values) {
    return list(values, [](const auto& value) { return json(static_cast<T>(value)); });
}

std::string parameter(const ops::OpParamDef& one) {
    static const char* const kinds[] = {"ignored", "optional", "required", "dynamic", "virtual"};
    static const char* const passed_as[] = {"tensor", "values", "scalar", "scalar list"};
    return "{\"name\": " + json(one.name) + ", \"kind\": " + json(std::string(kinds[one.kind])) +
           ", \"passed_as\": " + json(std::string(passed_as[static_cast<int>(one.passed_as)])) +
           ", \"shape_by_kernel\": " + json(one.shape_by_kernel) + "}";
}

std::string attr(const ops::OpAttrDef& one) {
    return "{\"name\": " + json(one.name) + ", \"type\": " + json(one.type) +
           ", \"required\": " + json(one.kind == ops::REQUIRED) +
           ", \"default\": " + std::visit([](const auto& value) { return json(value); }, one.value) + "}";
}

std::string operation(const ops::OpDef& op) {
    const Definition definition(op);
    const gert::OpFunctions& functions = gert::OpFunctions::all()[op.type];
    std::vector<std::string> socs;
    for (const auto& [soc, config] : op.ai_core.configs) socs.push_back(soc);
    const auto& configs = op.ai_core.configs;
    const ops::OpAICoreConfig* const own = ascend_graph::host::own_config(op);
    const auto named = [&](const char* key) {
        std::string found;
        for (const auto& [soc, config] : configs) {
            const auto value = config.extended.find(key);
            if (value != config.extended.end() && (own != nullptr ? &config == own : found.empty()))
                found = value->second;
        }
        return found;
    };
    return "{\"type\": " + json(op.type) + ", \"inputs\": " + list(definition.inputs, parameter) +
           ", \"outputs\": " + list(definition.outputs, parameter) + ", \"attrs\": " + list(op.attrs, attr) +
           ", \"combinations\": " +
           list(definition.combinations,
                [](const auto& one) {
                    return list(one, [](const auto& kind) { return json(static_cast<int64_t>(kind.dtype)); });
                }) +
           ", \"formats\": " +
           list(definition.combinations,
                [](const auto& one) {
                    return list(one,
                                [](const auto& kind) { return json(static_cast<int64_t>(kind.format)); });
                }) +
           ", \"socs\": " + json(socs) + ", \"kernel_file\": " + json(named("opFile.value")) +
           ", \"kernel\": " + json(named("opInterface.value")) +
           ", \"groups\": " + list(op.mc2.groups, [](const auto& one) { return json(one); }) +
           ", \"infer_shape\": " + json(functions.infer_shape != nullptr) + ", \"data_inputs\": " +
           list(functions.data_inputs, [](size_t input) { return std::to_string(input); }) + "}";
}

std::string tiling_class(const ascendc_host::TilingClass& one) {
    std::vector<ascendc_host::TilingField> fields;
    for (int i = 1; i <= one.field_count; ++i) {
        if (one.field(i).name != nullptr) fields.push_back(one.field(i));
    }
    return "{\"op\": " + json(std::string(one.op_type)) + ", \"name\": " + json(std::string(one.name)) +
           ", \"size\": " + json(static_cast<int64_t>(one.size)) + ", \"fields\": " +
           list(fields,
                [](const auto& field) {
                    return "{\"type\": " + json(std::string(field.type)) +
                           ", \"name\": " + json(std::string(field.name)) +
                           ", \"count\": " + json(static_cast<int64_t>(field.count)) + "}";
                }) +
           "}";
}

std::string template_table(const ascendc_host::TemplateTable& table) {
    return "{\"op\": " + json(table.op) + ", \"file\": " + json(std::string(table.file)) + ", \"dtypes\": " +
           list(table.parameters,
                [](const auto& one) {
                    return json(one.kind == ascendc_host::TemplateParameter::Kind::dtype);
                }) +
           ", \"bounds\": " +
           list(table.parameters,
                [](const auto& one) {
                    const bool is_output = one.bound >= one.output;
                    const uint64_t index = one.bound - (is_output        ? one.output
                                                        : one.bound == 0 ? 0
                                                                         : one.input);
                    return one.bound == 0 ? std::string("null")
                                          : "[" + json(is_output) + ", " + std::to_string(index) + "]";
                }) +
           ", \"instances\": " +
           list(table.instances,
                [](const auto& one) {
                    return "{\"key\": " + std::to_string(one.key) + ", \"arguments\": " +
                           list(one.arguments, [](uint64_t value) { return std::to_string(value); }) + "}";
                }) +
           "}";
}

}  // namespace

// Returns 0, or 1 with a message on the standard error stream.
extern "C" __attribute__((visibility("default"))) int ascendgraphDescribe(const char* path) {
    try {
        std::vector<const ascendc_host::TilingClass*> classes;
        for (const auto* one = ascendc_host::tiling_classes(); one != nullptr; one = one->next)
            classes.push_back(one);
        std::reverse(classes.begin(), classes.end());  // in the order of their registration
        std::vector<const ascendc_host::TemplateTable*> templates;
        for (const auto* one = ascendc_host::TemplateTable::first(); one != nullptr; one = one->next)
            templates.push_back(one);
        std::ofstream file(path);
        file << "{\"operators\": "
             << list(ops::OpDef::all(), [](const auto& entry) { return operation(*entry.second); })
             << ", \"tiling_classes\": " << list(classes, [](const auto* one) { return tiling_class(*one); })
             << ", \"templates\": " << list(templates, [](const auto* one) { return template_table(*one); })
             << "}\n";
        file.close();
        if (file) return 0;
        std::fprintf(stderr, "%s cannot be written\n", path);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    return 1;
}
