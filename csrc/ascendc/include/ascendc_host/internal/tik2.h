// The names under which the first releases offered the API.
#ifndef ASCENDC_HOST_INTERNAL_TIK2_H
#define ASCENDC_HOST_INTERNAL_TIK2_H

#include "ascendc_host/basic_api/sync.h"

namespace tik2 {

using namespace AscendC;

// This block's part of a buffer that holds `length` elements of T for each block.
template <typename T>
GM_ADDR ParamOffset(GM_ADDR buffer, uint64_t length) {
    return buffer + static_cast<uint64_t>(GetBlockIdx()) * length * sizeof(T);
}

}  // namespace tik2

#endif  // ASCENDC_HOST_INTERNAL_TIK2_H
