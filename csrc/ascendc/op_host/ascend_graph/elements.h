// Elements of tensors from one dtype into another.
#ifndef ASCEND_GRAPH_ELEMENTS_H
#define ASCEND_GRAPH_ELEMENTS_H

#include <complex>
#include <cstring>
#include <type_traits>

#include "graph/types.h"
#include "op_common/op_host/util/bfloat16.h"
#include "op_common/op_host/util/fp16.h"

namespace ascend_graph::host {

// One element of a dtype as another C++ type.
template <typename To>
To convert_element(const void* value, int32_t dtype) {
    const auto as = [value](auto zero) {
        std::memcpy(&zero, value, sizeof zero);
        return zero;
    };
    const auto real = [](auto number) {
        if constexpr (std::is_constructible_v<To, decltype(number)>) {
            return static_cast<To>(number);
        } else {
            return static_cast<To>(static_cast<float>(number));
        }
    };
    switch (dtype) {
        case ge::DT_FLOAT:
            return real(as(float{}));
        case ge::DT_FLOAT16:
            return real(as(Ops::Base::fp16_t{}).toFloat());
        case ge::DT_BF16:
            return real(static_cast<float>(as(Ops::Base::bfloat16{})));
        case ge::DT_DOUBLE:
            return real(as(double{}));
        case ge::DT_INT8:
            return real(as(int8_t{}));
        case ge::DT_INT16:
            return real(as(int16_t{}));
        case ge::DT_INT32:
            return real(as(int32_t{}));
        case ge::DT_INT64:
            return real(as(int64_t{}));
        case ge::DT_UINT8:
            return real(as(uint8_t{}));
        case ge::DT_UINT16:
            return real(as(uint16_t{}));
        case ge::DT_UINT32:
            return real(as(uint32_t{}));
        case ge::DT_UINT64:
            return real(as(uint64_t{}));
        case ge::DT_BOOL:
            return real(as(uint8_t{}) != 0);
        case ge::DT_COMPLEX64:
            return real(as(std::complex<float>{}).real());
        case ge::DT_COMPLEX128:
            return real(as(std::complex<double>{}).real());
        default:
            return To();
    }
}
// The same into memory of a dtype; false for a dtype that has no elements of whole bytes.
inline bool store_element(void* to, int32_t to_dtype, const void* from, int32_t from_dtype) {
    const auto put = [&](auto zero) {
        const auto value = convert_element<decltype(zero)>(from, from_dtype);
        std::memcpy(to, &value, sizeof value);
        return true;
    };
    if (to_dtype == from_dtype) {
        const int size = ge::GetSizeByDataType(static_cast<ge::DataType>(to_dtype));
        if (size <= 0 || size > static_cast<int>(sizeof(std::complex<double>)))
            return false;  // bits, or none
        std::memcpy(to, from, static_cast<size_t>(size));
        return true;
    }
    switch (to_dtype) {
        case ge::DT_FLOAT:
            return put(float{});
        case ge::DT_FLOAT16:
            return put(Ops::Base::fp16_t{});
        case ge::DT_BF16:
            return put(Ops::Base::bfloat16{});
        case ge::DT_DOUBLE:
            return put(double{});
        case ge::DT_INT8:
            return put(int8_t{});
        case ge::DT_INT16:
            return put(int16_t{});
        case ge::DT_INT32:
            return put(int32_t{});
        case ge::DT_INT64:
            return put(int64_t{});
        case ge::DT_UINT8:
            return put(uint8_t{});
        case ge::DT_UINT16:
            return put(uint16_t{});
        case ge::DT_UINT32:
            return put(uint32_t{});
        case ge::DT_UINT64:
            return put(uint64_t{});
        case ge::DT_BOOL:
            *static_cast<uint8_t*>(to) = convert_element<double>(from, from_dtype) != 0;
            return true;
        case ge::DT_COMPLEX64: {
            const std::complex<float> value(convert_element<float>(from, from_dtype));
            std::memcpy(to, &value, sizeof value);
            return true;
        }
        case ge::DT_COMPLEX128: {
            const std::complex<double> value(convert_element<double>(from, from_dtype));
            std::memcpy(to, &value, sizeof value);
            return true;
        }
        default:
            return false;
    }
}

}  // namespace ascend_graph::host

#endif  // ASCEND_GRAPH_ELEMENTS_H
