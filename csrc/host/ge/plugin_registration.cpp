// What libraries of packages register for GE's compiler when they are loaded: parsers of other frameworks'
// models, and shape functions over ge::Operator. The host reads no such models, and infers shapes by the
// functions over contexts, so that what is registered here is never called.
#include <functional>
#include <memory>
#include <vector>

#include "ge/abi.h"
#include "graph/dtype_table.h"

namespace domi {

enum class ImplyType : unsigned int {};
enum FrameworkType : int {};
class OpRegistrationDataImpl {};

class GE_EXPORT OpRegistrationData {
  public:
    using Parse = std::function<uint32_t(const ge::Operator&, ge::Operator&)>;
    OpRegistrationData(const char* type);
    ~OpRegistrationData();
    OpRegistrationData& FrameworkType(const domi::FrameworkType& framework);
    OpRegistrationData& OriginOpType(const std::vector<ge::AscendString>& types);
    OpRegistrationData& OriginOpType(const char* type);
    OpRegistrationData& ParseParamsByOperatorFn(const Parse& parse);
    OpRegistrationData& ImplyType(const domi::ImplyType& type);

  private:
    std::shared_ptr<OpRegistrationDataImpl> impl_;
};
OpRegistrationData::OpRegistrationData(const char*) {}
OpRegistrationData::~OpRegistrationData() = default;
OpRegistrationData& OpRegistrationData::FrameworkType(const domi::FrameworkType&) { return *this; }
OpRegistrationData& OpRegistrationData::OriginOpType(const std::vector<ge::AscendString>&) { return *this; }
OpRegistrationData& OpRegistrationData::OriginOpType(const char*) { return *this; }
OpRegistrationData& OpRegistrationData::ParseParamsByOperatorFn(const Parse&) { return *this; }
OpRegistrationData& OpRegistrationData::ImplyType(const domi::ImplyType&) { return *this; }

class GE_EXPORT OpReceiver {
  public:
    OpReceiver(OpRegistrationData& data);
};
OpReceiver::OpReceiver(OpRegistrationData&) {}

}  // namespace domi

namespace ge {

class GE_EXPORT InferShapeFuncRegister {
  public:
    InferShapeFuncRegister(const char* type, const std::function<graphStatus(Operator&)>& infer);
};
InferShapeFuncRegister::InferShapeFuncRegister(const char*, const std::function<graphStatus(Operator&)>&) {}

class GE_EXPORT VerifyFuncRegister {
  public:
    VerifyFuncRegister(const char* type, const std::function<graphStatus(Operator&)>& verify);
};
VerifyFuncRegister::VerifyFuncRegister(const char*, const std::function<graphStatus(Operator&)>&) {}

// Such a function's node has no tensors.
size_t Operator::GetInputsSize() const { return 0; }
size_t Operator::GetOutputsSize() const { return 0; }
TensorDesc Operator::GetInputDescByName(const char*) const { return {}; }
TensorDesc Operator::GetOutputDescByName(const char*) const { return {}; }
graphStatus Operator::UpdateOutputDesc(const char*, const TensorDesc&) { return kFailed; }

// The bytes of so many elements; -1 for a type without a size.
GE_EXPORT int64_t GetSizeInBytes(int64_t count, DataType dtype) {
    int64_t bits = 0;
    switch (static_cast<int>(dtype)) {
#define ASCEND_GRAPH_BITS(name, number, size, torch) \
    case number:                                     \
        bits = size;                                 \
        break;
        ASCEND_GRAPH_DTYPES(ASCEND_GRAPH_BITS)
#undef ASCEND_GRAPH_BITS
        default:
            break;
    }
    return count < 0 || bits == 0 ? -1 : (count * bits + 7) / 8;
}

}  // namespace ge
