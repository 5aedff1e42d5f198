// Functions that libraries of kernels name and the host does not have: what names one compiles, what calls
// one does not, and is told why.
#ifndef ASCENDC_HOST_INTERNAL_UNSUPPORTED_H
#define ASCENDC_HOST_INTERNAL_UNSUPPORTED_H

#include "ascendc_host/basic_api/cube.h"

namespace AscendC {

#if __NPU_ARCH__ == 3510
// B of a product in which two of four elements along k are there, with their places.
template <typename T, typename U>
void LoadDataWithSparse(const LocalTensor<T>&, const LocalTensor<T>&, const LocalTensor<U>&,
                        const LoadData2DParams&) {
    static_assert(sizeof(T) == 0,
                  "LoadDataWithSparse: dav-3510 has no sparse products; write B with its zeros");
}
#else
// To places that a tensor says: of other processors than this.
template <typename T, typename... Arguments>
void Scatter(const LocalTensor<T>&, const LocalTensor<T>&, const LocalTensor<uint32_t>&, Arguments&&...) {
    static_assert(sizeof(T) == 0,
                  "Scatter: dav-2201 does not have it; write the elements one by one with SetValue, or "
                  "GatherMask and Gather from where they go");
}
#endif

}  // namespace AscendC

#endif  // ASCENDC_HOST_INTERNAL_UNSUPPORTED_H
