// REG_OP among C++ sources: its text is kept, and read as that of a header is. Next to a definition (OpDef),
// which says the same, nobody asks for it.
#ifndef INC_EXTERNAL_GRAPH_OPERATOR_REG_H_
#define INC_EXTERNAL_GRAPH_OPERATOR_REG_H_

#include <map>
#include <string>
#include <vector>

#include "graph/operator.h"
#include "graph/types.h"

namespace ge {
using std::vector;
}

namespace ascend_graph::host {

class Prototype {
  public:
    explicit Prototype(const char* op_type) : op_type_(op_type), text_("REG_OP(" + op_type_ + ")") {}

    Prototype& part(const char* text) {
        text_ += text;
        return *this;
    }
    Prototype& end() {
        all()[op_type_] = text_ + "\n.OP_END_FACTORY_REG(" + op_type_ + ")";
        return *this;
    }
    // Null where no source of the library has it.
    static const char* find(const char* op_type) {
        const auto found = all().find(op_type);
        return found == all().end() ? nullptr : found->second.c_str();
    }

  private:
    static std::map<std::string, std::string>& all() {
        static std::map<std::string, std::string> texts;
        return texts;
    }

    std::string op_type_;
    std::string text_;
};

}  // namespace ascend_graph::host

#define REG_OP(type)                                                                              \
    [[maybe_unused]] static const ::ascend_graph::host::Prototype ascend_graph_prototype_##type = \
        ::ascend_graph::host::Prototype(#type)
#define INPUT(...) part("\n.INPUT(" #__VA_ARGS__ ")")
#define OPTIONAL_INPUT(...) part("\n.OPTIONAL_INPUT(" #__VA_ARGS__ ")")
#define DYNAMIC_INPUT(...) part("\n.DYNAMIC_INPUT(" #__VA_ARGS__ ")")
#define OUTPUT(...) part("\n.OUTPUT(" #__VA_ARGS__ ")")
#define DYNAMIC_OUTPUT(...) part("\n.DYNAMIC_OUTPUT(" #__VA_ARGS__ ")")
#define ATTR(...) part("\n.ATTR(" #__VA_ARGS__ ")")
#define REQUIRED_ATTR(...) part("\n.REQUIRED_ATTR(" #__VA_ARGS__ ")")
#define DATATYPE(...) part("\n.DATATYPE(" #__VA_ARGS__ ")")
#define OP_END_FACTORY_REG(...) end();

#endif  // INC_EXTERNAL_GRAPH_OPERATOR_REG_H_
