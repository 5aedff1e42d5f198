// A number with its type: what an output's memory holds before its kernel starts (OpParamDef::InitValue).
#ifndef ASCEND_GRAPH_REGISTER_SCALAR_VAR_H
#define ASCEND_GRAPH_REGISTER_SCALAR_VAR_H

#include <cstdint>
#include <cstring>
#include <string>

#include "op_common/op_host/util/fp16.h"

namespace ops {

enum class ScalarType : uint32_t {
    UINT64 = 0,
    INT64 = 1,
    UINT32 = 2,
    INT32 = 3,
    UINT16 = 4,
    INT16 = 5,
    UINT8 = 6,
    INT8 = 7,
    FLOAT32 = 8,
    FLOAT16 = 9,
    INVALID_DTYPE = static_cast<uint32_t>(-1),
};

union ScalarNum {
    uint64_t value_u64;
    int64_t value_i64;
    float value_f32;
    ScalarNum() : value_u64(0) {}
    explicit ScalarNum(uint64_t value) : value_u64(value) {}
    explicit ScalarNum(int64_t value) : value_i64(value) {}
    explicit ScalarNum(float value) : value_f32(value) {}
};

struct ScalarVar {
    ScalarType scalar_type = ScalarType::INVALID_DTYPE;
    ScalarNum scalar_num;

    ScalarVar() = default;
    ScalarVar(ScalarType type, uint64_t num) : ScalarVar(type, num, 0) {}
    ScalarVar(ScalarType type, int64_t num) : ScalarVar(type, num, 0) {}
    ScalarVar(ScalarType type, int num) : ScalarVar(type, num, 0) {}
    ScalarVar(ScalarType type, unsigned int num) : ScalarVar(type, num, 0) {}
    ScalarVar(ScalarType type, float num) : ScalarVar(type, num, 0) {}
    ScalarVar(ScalarType type, double num) : ScalarVar(type, num, 0) {}
    bool operator==(const ScalarVar& other) const {
        return scalar_type == other.scalar_type && bytes() == other.bytes();
    }
    bool operator!=(const ScalarVar& other) const { return !(*this == other); }

    // The number as an element of memory; empty where the type is none of those.
    std::string bytes() const {
        switch (scalar_type) {
            case ScalarType::UINT64:
                return of(scalar_num.value_u64);
            case ScalarType::INT64:
                return of(scalar_num.value_i64);
            case ScalarType::UINT32:
                return of(static_cast<uint32_t>(scalar_num.value_u64));
            case ScalarType::INT32:
                return of(static_cast<int32_t>(scalar_num.value_i64));
            case ScalarType::UINT16:
                return of(static_cast<uint16_t>(scalar_num.value_u64));
            case ScalarType::INT16:
                return of(static_cast<int16_t>(scalar_num.value_i64));
            case ScalarType::UINT8:
                return of(static_cast<uint8_t>(scalar_num.value_u64));
            case ScalarType::INT8:
                return of(static_cast<int8_t>(scalar_num.value_i64));
            case ScalarType::FLOAT32:
                return of(scalar_num.value_f32);
            case ScalarType::FLOAT16:
                return of(Ops::Base::fp16_t(scalar_num.value_f32).val);
            default:
                return "";
        }
    }

  private:
    // The number is kept as its type has it, whatever it is written as: {FLOAT32, 1} is 1.0f.
    template <typename T>
    ScalarVar(ScalarType type, T num, int) : scalar_type(type) {
        if (type == ScalarType::FLOAT32 || type == ScalarType::FLOAT16)
            scalar_num = ScalarNum(static_cast<float>(num));
        else if (static_cast<uint32_t>(type) % 2 == 0)
            scalar_num = ScalarNum(static_cast<uint64_t>(num));
        else
            scalar_num = ScalarNum(static_cast<int64_t>(num));
    }
    template <typename T>
    static std::string of(T value) {
        return {reinterpret_cast<const char*>(&value), sizeof(T)};
    }
};

}  // namespace ops

#endif  // ASCEND_GRAPH_REGISTER_SCALAR_VAR_H
