// The Matmul object of kernels, and its registration.
//
// On split cores the object belongs to the vector cores, which send their requests to the cube core; here the
// vector core computes them itself, and the cube core has nothing to do.
#ifndef ASCENDC_HOST_ADV_API_MATMUL_MATMUL_H
#define ASCENDC_HOST_ADV_API_MATMUL_MATMUL_H

#include "ascendc_host/adv_api/matmul/client.h"

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto& MM_CFG = CFG_NORM,
          class CallBack = MatmulCallBackFunc<>,
          template <const auto&, typename...> class POLICY = Impl::Detail::MatmulPolicy>
#ifdef ASCENDC_CUBE_ONLY
using Matmul = MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, CallBack, POLICY>;
#else
using Matmul = MatmulClient<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, CallBack, POLICY>;
#endif

namespace detail {
// On dav-2201 requests to the cube core go through the system's part of the workspace.
inline void require_system_workspace(const char* api) {
    const auto& block = ascendc_host::current();
    if (__NPU_ARCH__ == 3510 || block.argument_count == 0) return;
    if (block.arguments[block.argument_count - 1].bytes >= ascendc_host::system_workspace) return;
    ascendc_host::fail(block, block.where,
                       std::string(api) + ": the system's part of the workspace is missing" +
                           ascendc_host::workspace_hint(ascendc_host::user_workspace(nullptr, 0)));
}
inline void register_objects(TPipe*) {}
template <typename Object>
void register_objects(TPipe*, Object&) {}  // initialized later, with Init
template <typename Object, typename Tiling, typename... Rest>
void register_objects(TPipe* pipe, Object& object, Tiling* tiling, Rest&&... rest) {
    if (tiling != nullptr || Object::has_whole_tiling) {
        if constexpr (std::is_void<Tiling>::value) {
            object.Init(static_cast<const TCubeTiling*>(tiling), pipe);
        } else {
            object.Init(tiling, pipe);
        }
    }
    register_objects(pipe, std::forward<Rest>(rest)...);
}
}  // namespace detail

}  // namespace AscendC

namespace matmul {
using namespace AscendC;
}
using AscendC::CFG_IBSHARE_NORM;
using AscendC::CFG_MDL;
using AscendC::CFG_NORM;
using AscendC::GetBasicConfig;
using AscendC::GetIBShareNormConfig;
using AscendC::GetMatmulApiTiling;
using AscendC::GetMDLConfig;
using AscendC::GetMMConfig;
using AscendC::GetNormalConfig;
using AscendC::GetSpecialMDLConfig;
using AscendC::MatmulApiStaticTiling;
using AscendC::MatmulBatchParams;
using AscendC::MatmulConfig;
using AscendC::MatmulConfigMode;
using AscendC::MatmulFuncParams;
using AscendC::MatmulQuantParams;
using AscendC::MatmulShapeParams;
using AscendC::MM_CFG_BB;

// Names objects and their tilings in turn. With vector cores, the cube core leaves the kernel here.
#ifdef ASCENDC_CUBE_ONLY
#define REGIST_MATMUL_OBJ(pipe, workspace, ...) ::AscendC::detail::register_objects(pipe, __VA_ARGS__)
#else
#define REGIST_MATMUL_OBJ(pipe, workspace, ...)                          \
    ::AscendC::detail::require_system_workspace("REGIST_MATMUL_OBJ");    \
    if (::ascendc_host::ask_core() == ::ascendc_host::Core::aic) return; \
    ::AscendC::detail::register_objects(pipe, __VA_ARGS__)
#endif
#define REGIST_CUBE_OBJ REGIST_MATMUL_OBJ

#endif  // ASCENDC_HOST_ADV_API_MATMUL_MATMUL_H
