// What differs between versions of torch and torch_npu. Functions that some export and others do not are
// found when the library is loaded, each with what is done without it. ascend_graph/versions.py says which
// versions there are.
#ifndef ASCEND_GRAPH_EAGER_VERSIONS_H
#define ASCEND_GRAPH_EAGER_VERSIONS_H

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace c10_npu {
// 2.7.1.post11, 2.9.0.post9, 2.10.0.post7, 2.11.0.post3, and from 2.12.0.post3 on.
__attribute__((weak)) uint32_t GetDeterministicLevel();
// Limits of cores.
__attribute__((weak)) bool is_core_control_enabled();
__attribute__((weak)) uint32_t GetResInCurrentThread(int type);
}  // namespace c10_npu
namespace at_npu::native {
// Where GetDeterministicLevel is.
__attribute__((weak)) void ApplyDeterministicLevel(int64_t level, bool enabled, bool is_opapi);
#ifndef __PULGIN_NATIVE_NPU_UTILS_OP_PREPARATION__  // torch_npu/csrc/framework/utils/OpPreparation.h
class OpPreparation {
  public:
    // Not in 2.7.1, 2.8.0 and 2.9.0 without a post release.
    __attribute__((weak)) static at::Tensor apply_tensor_without_format(c10::IntArrayRef sizes,
                                                                        const c10::TensorOptions& options);
};
#endif
}  // namespace at_npu::native
extern "C" __attribute__((weak)) const char* aclGetRecentErrMsg();

namespace ascend_graph::eager {

namespace detail {
// By a name of ours, for the header that declares it is not the same one in all versions.
__attribute__((weak)) int set_system_option(int option, int64_t value) __asm__("aclrtCtxSetSysParamOpt");
inline constexpr int kDeterministic = 0;
}  // namespace detail

// How a call has to be computed again: part of what it is.
struct Determinism {
    bool wanted;
    int64_t level;
};

// Tells the device whether what follows must be deterministic, as torch_npu does before an operator of its
// own. Where its function is not exported, CANN's is called, and only to ask for it: torch_npu takes that
// back itself.
inline Determinism apply_determinism() {
    const bool wanted = at::globalContext().deterministicAlgorithms();
    if (c10_npu::GetDeterministicLevel != nullptr && at_npu::native::ApplyDeterministicLevel != nullptr) {
        const int64_t level = c10_npu::GetDeterministicLevel();
        at_npu::native::ApplyDeterministicLevel(level, wanted, true);
        return {wanted, level};
    }
    if (wanted && detail::set_system_option != nullptr) detail::set_system_option(detail::kDeterministic, 1);
    return {wanted, wanted};
}

// An output on an NPU: allocated as op-plugin does it, without the dispatcher's detour, where that is
// exported.
inline at::Tensor allocate_on_npu(at::IntArrayRef sizes, const at::TensorOptions& options) {
    using Function = at::Tensor (*)(at::IntArrayRef, const at::TensorOptions&);
    const auto direct = static_cast<Function>(&at_npu::native::OpPreparation::apply_tensor_without_format);
    return direct != nullptr ? direct(sizes, options) : at::empty(sizes, options);
}

// A node of a backward graph, held as this torch holds them: by a std::shared_ptr before 2.13.
template <typename Made, typename Pointer = decltype(torch::autograd::Edge::function), typename... Arguments>
Pointer make_node(Arguments&&... arguments) {
    if constexpr (std::is_same_v<Pointer, std::shared_ptr<torch::autograd::Node>>) {
        const auto remove = [](auto* node) { deleteNode(node); };  // long graphs one node after the other
        return Pointer(new Made(std::forward<Arguments>(arguments)...), remove);
    } else {
        return c10::make_intrusive<Made>(std::forward<Arguments>(arguments)...);
    }
}

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_VERSIONS_H
