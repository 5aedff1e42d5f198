// ge::Operator, as SetCheckSupport functions read it. They are compiled and not called, so there is no
// operator to read: it has no inputs, outputs or attrs.
#ifndef INC_EXTERNAL_GRAPH_OPERATOR_H_
#define INC_EXTERNAL_GRAPH_OPERATOR_H_

#include <functional>
#include <memory>
#include <string>

#include "graph/ascend_string.h"
#include "graph/ge_error_codes.h"
#include "graph/tensor.h"

namespace ge {

// Names that CANN's header has in this namespace, too; sources with a using-directive write them so.
using std::function;
using std::shared_ptr;
using std::string;

class Operator {
  public:
    graphStatus GetName(AscendString&) const { return GRAPH_FAILED; }
    graphStatus GetOpType(AscendString&) const { return GRAPH_FAILED; }
    size_t GetInputsSize() const { return 0; }
    size_t GetOutputsSize() const { return 0; }
    TensorDesc GetInputDesc(uint32_t) const { return {}; }
    TensorDesc GetOutputDesc(uint32_t) const { return {}; }
    TensorDesc GetInputDesc(const string&) const { return {}; }
    TensorDesc GetOutputDesc(const string&) const { return {}; }
    TensorDesc GetInputDescByName(const char_t*) const { return {}; }
    TensorDesc GetOutputDescByName(const char_t*) const { return {}; }
    template <typename T>
    graphStatus GetAttr(const char_t*, T&) const {
        return GRAPH_FAILED;
    }
    template <typename T>
    graphStatus GetAttr(const string&, T&) const {
        return GRAPH_FAILED;
    }
};

}  // namespace ge

#endif  // INC_EXTERNAL_GRAPH_OPERATOR_H_
