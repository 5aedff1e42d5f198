// ge::AscendString: the string that functions of operator projects return text in.
#ifndef INC_EXTERNAL_GRAPH_ASCEND_STRING_H_
#define INC_EXTERNAL_GRAPH_ASCEND_STRING_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "graph/types.h"

namespace ge {

class AscendString {
  public:
    AscendString() = default;
    AscendString(const char_t* text) : text_(std::make_shared<std::string>(text == nullptr ? "" : text)) {}
    AscendString(const char_t* text, size_t length) : text_(std::make_shared<std::string>(text, length)) {}

    const char_t* GetString() const { return text_ == nullptr ? "" : text_->c_str(); }
    size_t GetLength() const { return text_ == nullptr ? 0 : text_->size(); }

    bool operator==(const AscendString& other) const { return view() == other.view(); }
    bool operator!=(const AscendString& other) const { return view() != other.view(); }
    bool operator<(const AscendString& other) const { return view() < other.view(); }

  private:
    std::string_view view() const { return {GetString(), GetLength()}; }

    std::shared_ptr<std::string> text_;  // CANN's layout
};

}  // namespace ge

template <>
struct std::hash<ge::AscendString> {
    size_t operator()(const ge::AscendString& text) const {
        return std::hash<std::string_view>()({text.GetString(), text.GetLength()});
    }
};

#endif  // INC_EXTERNAL_GRAPH_ASCEND_STRING_H_
