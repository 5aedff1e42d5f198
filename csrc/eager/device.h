// The outputs of an operator on an NPU, and its device, without the dispatcher's detours. Header only.
#ifndef ASCEND_GRAPH_EAGER_DEVICE_H
#define ASCEND_GRAPH_EAGER_DEVICE_H

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <optional>

#include "versions.h"

namespace c10_npu {
c10::DeviceIndex current_device();
}  // namespace c10_npu

namespace ascend_graph::eager {

// An output of an operator: on an NPU allocated as op-plugin does it, without the dispatcher's detour.
inline at::Tensor allocate(at::IntArrayRef sizes, const at::TensorOptions& options) {
    return options.device().is_privateuseone() ? allocate_on_npu(sizes, options) : at::empty(sizes, options);
}
inline at::Tensor allocate(c10::SymIntArrayRef sizes, const at::TensorOptions& options) {
    return options.device().is_privateuseone() ? allocate(C10_AS_INTARRAYREF_SLOW(sizes), options)
                                               : at::empty_symint(sizes, options);
}

// Makes a device the current one while it lives. To ask first spares nearly all calls the guard.
class OnDevice {
  public:
    explicit OnDevice(const std::optional<at::Device>& device) {
        if (device && (!device->is_privateuseone() || device->index() != c10_npu::current_device()))
            guard_.reset_device(*device);
    }

  private:
    c10::OptionalDeviceGuard guard_;
};

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_DEVICE_H
