// How a bank of tuned tilings makes its keys: from the call that a tiling function sees, and to and from
// JSON.
//
// The functions are registered as they are with CANN. The host's bank has no records and calls none of them;
// sources do.
#ifndef __INC_REGISTER_TUNING_BANK_KEY_REGISTRY_HEADER__
#define __INC_REGISTER_TUNING_BANK_KEY_REGISTRY_HEADER__

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "exe_graph/runtime/tiling_context.h"
#include "graph/ascend_string.h"
#include "register/register_types.h"
#include "tuning_tiling_reflection_utils.h"

namespace tuningtiling {

using OpBankKeyConvertFunV2 =
    std::function<bool(const gert::TilingContext*, std::shared_ptr<void>&, size_t&)>;
using OpBankParseFunV2 = std::function<bool(const std::shared_ptr<void>&, size_t, ge::AscendString&)>;
using OpBankLoadFunV2 = std::function<bool(std::shared_ptr<void>&, size_t&, const ge::AscendString&)>;

// What is registered for one operator; functions that are not are empty.
class OpBankKeyFuncInfoV2 {
  public:
    OpBankKeyFuncInfoV2() = default;
    explicit OpBankKeyFuncInfoV2(const ge::AscendString& op_type) : op_type_(op_type) {}
    void SetOpConvertFuncV2(const OpBankKeyConvertFunV2& function) { convert_ = function; }
    void SetOpParseFuncV2(const OpBankParseFunV2& function) { parse_ = function; }
    void SetOpLoadFuncV2(const OpBankLoadFunV2& function) { load_ = function; }
    const OpBankKeyConvertFunV2& GetBankKeyConvertFuncV2() const { return convert_; }
    const OpBankParseFunV2& GetBankKeyParseFuncV2() const { return parse_; }
    const OpBankLoadFunV2& GetBankKeyLoadFuncV2() const { return load_; }
    const ge::AscendString& GetOpTypeV2() const { return op_type_; }

  private:
    ge::AscendString op_type_;
    OpBankKeyConvertFunV2 convert_;
    OpBankParseFunV2 parse_;
    OpBankLoadFunV2 load_;
};

class OpBankKeyFuncRegistryV2 {
  public:
    OpBankKeyFuncRegistryV2(const ge::AscendString& op_type, const OpBankKeyConvertFunV2& convert) {
        of(op_type).SetOpConvertFuncV2(convert);
    }
    OpBankKeyFuncRegistryV2(const ge::AscendString& op_type, const OpBankParseFunV2& parse,
                            const OpBankLoadFunV2& load) {
        of(op_type).SetOpParseFuncV2(parse);
        of(op_type).SetOpLoadFuncV2(load);
    }
    static std::unordered_map<ge::AscendString, OpBankKeyFuncInfoV2>& RegisteredOpFuncInfoV2() {
        static std::unordered_map<ge::AscendString, OpBankKeyFuncInfoV2> functions;
        return functions;
    }

  private:
    static OpBankKeyFuncInfoV2& of(const ge::AscendString& op_type) {
        return RegisteredOpFuncInfoV2().try_emplace(op_type, op_type).first->second;
    }
};

}  // namespace tuningtiling

#define REGISTER_OP_BANK_KEY_CONVERT_FUN_V2(op, convert) \
    static ::tuningtiling::OpBankKeyFuncRegistryV2 g_##op##BankKeyRegistryInterf(#op, (convert))
#define REGISTER_OP_BANK_KEY_PARSE_FUN_V2(op, parse, load) \
    static ::tuningtiling::OpBankKeyFuncRegistryV2 g_##op##BankParseInterf(#op, (parse), (load))

// A key's structure, the names of its fields after it.
#if ASCEND_GRAPH_TUNING_JSON
#define DECLARE_STRUCT_RELATE_WITH_OP_V2(op, bank_key, ...)                                                \
    NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(bank_key, __VA_ARGS__);                                             \
    REGISTER_OP_BANK_KEY_PARSE_FUN_V2(                                                                     \
        op,                                                                                                \
        [](const std::shared_ptr<void>& key, size_t size, ge::AscendString& text) {                        \
            if (key == nullptr || size != sizeof(bank_key)) return false;                                  \
            text = nlohmann::json(*std::static_pointer_cast<bank_key>(key)).dump().c_str();                \
            return true;                                                                                   \
        },                                                                                                 \
        [](std::shared_ptr<void>& key, size_t& size, const ge::AscendString& text) {                       \
            try {                                                                                          \
                key = std::make_shared<bank_key>(nlohmann::json::parse(text.GetString()).get<bank_key>()); \
            } catch (const std::exception&) {                                                              \
                return false;                                                                              \
            }                                                                                              \
            size = sizeof(bank_key);                                                                       \
            return true;                                                                                   \
        });
#else
// Without the library neither way can be gone.
#define DECLARE_STRUCT_RELATE_WITH_OP_V2(op, bank_key, ...)                                \
    REGISTER_OP_BANK_KEY_PARSE_FUN_V2(                                                     \
        op, [](const std::shared_ptr<void>&, size_t, ge::AscendString&) { return false; }, \
        [](std::shared_ptr<void>&, size_t&, const ge::AscendString&) { return false; });
#endif

// The first version of the same differs in what JSON is passed as, which no caller on the host sees.
#define REGISTER_OP_BANK_KEY_CONVERT_FUN(op, convert) REGISTER_OP_BANK_KEY_CONVERT_FUN_V2(op, convert)
#define DECLARE_STRUCT_RELATE_WITH_OP(op, bank_key, ...) \
    DECLARE_STRUCT_RELATE_WITH_OP_V2(op, bank_key, __VA_ARGS__)

#endif  // __INC_REGISTER_TUNING_BANK_KEY_REGISTRY_HEADER__
