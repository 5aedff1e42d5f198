// Tilings that a tuner finds and records in a bank, and the bank as it is asked.
//
// The host has no records: what asks gets "no such key", as with a CANN that ships none for the call, and
// computes its tiling.
// The guards of these headers are those of CANN's: repositories have stand-ins of theirs.
#ifndef __INC_REGISTER_TUNING_TILING_REGISTRY_HEADER__
#define __INC_REGISTER_TUNING_TILING_REGISTRY_HEADER__

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>  // for those who include this
#include <string>
#include <vector>

#include "graph/ascend_string.h"
#include "tuning_tiling_reflection_utils.h"

namespace tuningtiling {

struct TilingItem {
    ge::AscendString dtype_;
    ge::AscendString name_;
};

// The base of what BEGIN_TUNING_TILING_DEF begins.
class TuningTilingDef {
  public:
    virtual ~TuningTilingDef() = default;
#if ASCEND_GRAPH_TUNING_JSON
    virtual void FromJson(const nlohmann::json& json) = 0;
    virtual void ToJson(nlohmann::json& json) = 0;
#endif
    ge::AscendString GetClassName() const { return class_name_; }
    virtual std::vector<TilingItem> GetItemInfo() const = 0;

  protected:
    // Notes a field in the class that it is a member of.
    struct FieldHandler {
        FieldHandler(TuningTilingDef* tiling, const char* type, const char* name) {
            tiling->field_info_.push_back({type, name});
        }
    };

    std::vector<TilingItem> field_info_;
    ge::AscendString class_name_;
};
using TuningTilingDefPtr = std::shared_ptr<TuningTilingDef>;
using TuningTilingDefConstructor = TuningTilingDefPtr (*)();

// By operator type.
class TuningTilingClassFactory {
  public:
    static std::map<ge::AscendString, TuningTilingDefConstructor>& RegisterInfo() {
        static std::map<ge::AscendString, TuningTilingDefConstructor> constructors;
        return constructors;
    }
    static void RegisterTilingData(const ge::AscendString& op_type, TuningTilingDefConstructor constructor) {
        RegisterInfo()[op_type] = constructor;
    }
    // An empty pointer where nothing is registered for the operator.
    static TuningTilingDefPtr CreateTilingDataInstance(const ge::AscendString& op_type) {
        const auto found = RegisterInfo().find(op_type);
        return found == RegisterInfo().end() ? nullptr : found->second();
    }
};

}  // namespace tuningtiling

namespace RuntimeKb {

// Asks for the tiling that is recorded for a key: 0 and the tiling, or 1 for a key that is not there.
// Repositories declare this function themselves, and may define it; the runtime of kernels has it otherwise.
__attribute__((visibility("default"))) uint32_t QueryBank(const void* src, size_t src_len,
                                                          const std::string& op_type,
                                                          const std::string& soc_version, uint32_t core_num,
                                                          tuningtiling::TuningTilingDefPtr& tiling);

}  // namespace RuntimeKb

#if ASCEND_GRAPH_TUNING_JSON
#define ASCEND_GRAPH_TUNING_TILING_JSON                                                             \
    void FromJson(const nlohmann::json& json) override { ::tuningtiling::ReadFields(*this, json); } \
    void ToJson(nlohmann::json& json) override { ::tuningtiling::WriteFields(*this, json); }
#else
#define ASCEND_GRAPH_TUNING_TILING_JSON
#endif

#define BEGIN_TUNING_TILING_DEF(class_name)                                                          \
    class class_name : public ::tuningtiling::TuningTilingDef {                                      \
      public:                                                                                        \
        class_name() { class_name_ = #class_name; }                                                  \
        std::vector<::tuningtiling::TilingItem> GetItemInfo() const override { return field_info_; } \
        ASCEND_GRAPH_TUNING_TILING_JSON

#define TUNING_TILING_DATA_FIELD_DEF(data_type, field_name) \
  public:                                                   \
    data_type field_name{};                                 \
    FieldHandler field_name##_handler_ = FieldHandler(this, #data_type, #field_name);

#define END_TUNING_TILING_DEF \
    }                         \
    ;

#define REGISTER_TUNING_TILING_CLASS(op_type, class_name)                                            \
    [[maybe_unused]] static const bool g_tuning_tiling_##op_type =                                   \
        (::tuningtiling::TuningTilingClassFactory::RegisterTilingData(                               \
             #op_type,                                                                               \
             []() -> ::tuningtiling::TuningTilingDefPtr { return std::make_shared<class_name>(); }), \
         true);

#endif  // __INC_REGISTER_TUNING_TILING_REGISTRY_HEADER__
