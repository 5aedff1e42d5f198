// gert::RuntimeAttrs: the attrs of a node by their position in the definition.
#ifndef ASCEND_GRAPH_GERT_RUNTIME_ATTRS_H
#define ASCEND_GRAPH_GERT_RUNTIME_ATTRS_H

#include <deque>
#include <string>
#include <type_traits>

#include "exe_graph/runtime/continuous_vector.h"
#include "graph/types.h"

namespace gert {

class RuntimeAttrs {
  public:
    // Null for an index beyond the attrs, and for a type that the attr does not have: an integer attr is read
    // as any integer, a float attr as float.
    template <typename T>
    const T* GetAttrPointer(size_t index) const {
        return static_cast<const T*>(find(index, kinds_of<T>()));
    }
    const int64_t* GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
    const float* GetFloat(size_t index) const { return GetAttrPointer<float>(index); }
    const bool* GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
    const char* GetStr(size_t index) const { return GetAttrPointer<char>(index); }
    const TypedContinuousVector<int64_t>* GetListInt(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
    }
    const TypedContinuousVector<float>* GetListFloat(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<float>>(index);
    }
    const TypedContinuousVector<bool>* GetListBool(size_t index) const {
        return GetAttrPointer<TypedContinuousVector<bool>>(index);
    }
    const ContinuousVectorVector* GetListListInt(size_t index) const {
        return GetAttrPointer<ContinuousVectorVector>(index);
    }
    size_t GetAttrNum() const { return attrs_.size(); }

    // How the host runtime fills it; addresses of what is in it stay as they are.
    void add_absent() { attrs_.emplace_back(kAbsent); }
    void add(int64_t value) { attrs_.emplace_back().integer = value; }
    void add(float value) { attrs_.emplace_back(kFloat).number = value; }
    void add(bool value) { attrs_.emplace_back(kBool).flag = value; }
    void add(std::string value) { attrs_.emplace_back(kText).text = std::move(value); }
    void add(TypedContinuousVector<int64_t> value) { attrs_.emplace_back(kInts).list = value; }
    void add(TypedContinuousVector<float> value) { attrs_.emplace_back(kFloats).list = value; }
    void add(TypedContinuousVector<bool> value) { attrs_.emplace_back(kBools).list = value; }

  private:
    enum Kind : unsigned {
        kAbsent = 0,
        kInt = 1,
        kFloat = 2,
        kBool = 4,
        kText = 8,
        kInts = 16,
        kFloats = 32,
        kBools = 64
    };

    struct Attr {
        explicit Attr(Kind kind = kInt) : kind(kind) {}
        Kind kind;
        int64_t integer = 0;
        float number = 0;
        bool flag = false;
        std::string text;
        ContinuousVector list{nullptr, 0};
    };

    template <typename T>
    static constexpr unsigned kinds_of() {
        if constexpr (std::is_same_v<T, bool>)
            return kBool;
        else if constexpr (std::is_same_v<T, char>)
            return kText;
        else if constexpr (std::is_same_v<T, float>)
            return kFloat;
        else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
            return kInt;
        else if constexpr (std::is_same_v<T, TypedContinuousVector<int64_t>>)
            return kInts;
        else if constexpr (std::is_same_v<T, TypedContinuousVector<float>>)
            return kFloats;
        else if constexpr (std::is_same_v<T, TypedContinuousVector<bool>>)
            return kBools;
        else if constexpr (std::is_same_v<T, ContinuousVector>)
            return kInts | kFloats | kBools;
        else
            return 0;
    }

    const void* find(size_t index, unsigned kinds) const {
        if (index >= attrs_.size() || (attrs_[index].kind & kinds) == 0) return nullptr;
        const Attr& attr = attrs_[index];
        switch (attr.kind) {
            case kInt:
                return &attr.integer;
            case kFloat:
                return &attr.number;
            case kBool:
                return &attr.flag;
            case kText:
                return attr.text.c_str();
            default:
                return &attr.list;
        }
    }

    std::deque<Attr> attrs_;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_RUNTIME_ATTRS_H
