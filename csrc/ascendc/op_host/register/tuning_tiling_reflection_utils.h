// The fields of a structure by name, as DECLARE_SCHEMA(Structure, FIELD(Structure, field), …) lists them.
#ifndef __INC_REGISTER_TUNING_TILING_REFLECTION_UTILS_HEADER__
#define __INC_REGISTER_TUNING_TILING_REFLECTION_UTILS_HEADER__

#include <string>
#include <tuple>
#include <type_traits>

// Fields become JSON with nlohmann's library. Nothing on the host reads or writes any, so sources that only
// declare their fields do without it.
#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#define ASCEND_GRAPH_TUNING_JSON 1
#else
#define ASCEND_GRAPH_TUNING_JSON 0
#endif

namespace tuningtiling {

// Pairs of a field's name and the pointer to it; none where nothing is declared.
template <typename Structure>
struct StructInfo {
    static std::tuple<> Info() { return {}; }
};

template <typename Structure>
constexpr bool kHasSchema = std::tuple_size_v<decltype(StructInfo<Structure>::Info())> != 0;

// Calls visit(name, field) for each declared field of a structure.
template <typename Structure, typename Visit>
void ForEachField(Structure&& structure, Visit&& visit) {
    std::apply([&](const auto&... field) { (visit(std::get<0>(field), structure.*std::get<1>(field)), ...); },
               StructInfo<std::decay_t<Structure>>::Info());
}

// The fields of a structure as members of a JSON object, those of structures in it as objects of their own.
template <typename Structure, typename Json>
void WriteFields(const Structure& structure, Json& json) {
    ForEachField(structure, [&json](const std::string& name, const auto& field) {
        if constexpr (kHasSchema<std::decay_t<decltype(field)>>)
            WriteFields(field, json[name]);
        else
            json[name] = field;
    });
}

// The other way round; fields that the JSON object does not have keep what they are.
template <typename Structure, typename Json>
void ReadFields(Structure& structure, const Json& json) {
    ForEachField(structure, [&json](const std::string& name, auto& field) {
        if (!json.contains(name)) return;
        if constexpr (kHasSchema<std::decay_t<decltype(field)>>)
            ReadFields(field, json.at(name));
        else
            json.at(name).get_to(field);
    });
}

}  // namespace tuningtiling

// Both stand in the namespace tuningtiling.
#define DECLARE_SCHEMA(Structure, ...)                              \
    template <>                                                     \
    struct StructInfo<Structure> {                                  \
        static auto Info() { return std::make_tuple(__VA_ARGS__); } \
    };
#define FIELD(Structure, field) std::make_tuple(#field, &Structure::field)

#endif  // __INC_REGISTER_TUNING_TILING_REFLECTION_UTILS_HEADER__
