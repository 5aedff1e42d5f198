// gert::TilingContext: what a tiling function reads about its node, and what it decides for the launch.
#ifndef ASCEND_GRAPH_GERT_TILING_CONTEXT_H
#define ASCEND_GRAPH_GERT_TILING_CONTEXT_H

#include <map>
#include <set>
#include <vector>

#include "ascend_graph/platform_infos.h"
#include "exe_graph/runtime/extended_kernel_context.h"
#include "exe_graph/runtime/stride.h"
#include "exe_graph/runtime/tiling_data.h"

namespace gert {

class TilingContext : public ExtendedKernelContext {
  public:
    TilingContext(ComputeNodeInfo& node, size_t tiling_capacity, const void* compile_info)
        : ExtendedKernelContext(node), tiling_data_(tiling_capacity), compile_info_(compile_info) {}

    const StorageShape* GetInputShape(size_t index) const { return shape_of(node_.inputs.at(index)); }
    const StorageShape* GetOptionalInputShape(size_t ir_index) const {
        return GetDynamicInputShape(ir_index, 0);
    }
    const StorageShape* GetRequiredInputShape(size_t ir_index) const {
        return GetDynamicInputShape(ir_index, 0);
    }
    const StorageShape* GetDynamicInputShape(size_t ir_index, size_t relative) const {
        return shape_of(dynamic_input(ir_index, relative));
    }
    const Tensor* GetInputTensor(size_t index) const { return node_.inputs.at(index); }
    const Tensor* GetOptionalInputTensor(size_t ir_index) const { return dynamic_input(ir_index, 0); }
    const Tensor* GetRequiredInputTensor(size_t ir_index) const { return dynamic_input(ir_index, 0); }
    const Tensor* GetDynamicInputTensor(size_t ir_index, size_t relative) const {
        return dynamic_input(ir_index, relative);
    }
    const StorageShape* GetOutputShape(size_t index) const { return shape_of(node_.outputs.at(index)); }

    // A kernel is called with contiguous tensors: none carries a description of strides.
    const Stride* GetInputStride(size_t) const { return nullptr; }
    const Stride* GetOptionalInputStride(size_t) const { return nullptr; }
    const Stride* GetRequiredInputStride(size_t) const { return nullptr; }
    const Stride* GetDynamicInputStride(size_t, size_t) const { return nullptr; }
    const Stride* GetOutputStride(size_t) const { return nullptr; }
    bool InputIsView(size_t) const { return false; }
    bool OptionalInputIsView(size_t) const { return false; }
    bool RequiredInputIsView(size_t) const { return false; }
    bool DynamicInputIsView(size_t, size_t) const { return false; }

    ge::graphStatus SetTilingKey(uint64_t key) {
        tiling_key_ = key;
        return ge::GRAPH_SUCCESS;
    }
    uint64_t GetTilingKey() const { return tiling_key_; }
    ge::graphStatus SetBlockDim(uint32_t blocks) {
        blocks_ = blocks;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetBlockDim() const { return blocks_; }
    // How many cores of the AI CPU serve a kernel's communication; the host has no such cores.
    ge::graphStatus SetAicpuBlockDim(uint32_t blocks) {
        aicpu_blocks_ = blocks;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetAicpuBlockDim() const { return aicpu_blocks_; }
    ge::graphStatus SetScheduleMode(uint32_t mode) {
        schedule_mode_ = mode;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetScheduleMode() const { return schedule_mode_; }
    ge::graphStatus SetTilingCond(int32_t condition) {
        condition_ = condition;
        return ge::GRAPH_SUCCESS;
    }
    int32_t GetTilingCond() const { return condition_; }
    // Whether outputs are zeroed before the kernel starts.
    ge::graphStatus SetNeedAtomic(bool atomic) {
        atomic_ = atomic;
        return ge::GRAPH_SUCCESS;
    }
    bool NeedAtomic() const { return atomic_; }
    ge::graphStatus SetLocalMemorySize(uint32_t size) {
        local_memory_ = size;
        return ge::GRAPH_SUCCESS;
    }
    uint32_t GetLocalMemorySize() const { return local_memory_; }

    TilingData* GetRawTilingData() { return &tiling_data_; }
    // The buffer as a structure; null where it is too small for one.
    template <typename T>
    T* GetTilingData() {
        if (sizeof(T) > tiling_data_.GetCapacity()) return nullptr;
        tiling_data_.SetDataSize(sizeof(T));
        return static_cast<T*>(tiling_data_.GetData());
    }
    // An array of `count` sizes to write, one for each workspace.
    size_t* GetWorkspaceSizes(size_t count) {
        if (count > most_workspaces) return nullptr;
        workspaces_.resize(count);
        return workspaces_.data();
    }
    size_t GetWorkspaceNum() const { return workspaces_.size(); }
    // The workspaces lie one after the other; the kernel gets the address of the first.
    size_t workspace_bytes() const {
        size_t bytes = 0;
        for (size_t size : workspaces_) bytes += size;
        return bytes;
    }

    const void* GetCompileInfo() const { return compile_info_; }
    template <typename T>
    const T* GetCompileInfo() const {
        return static_cast<const T*>(compile_info_);
    }
    fe::PlatFormInfos* GetPlatformInfo() const { return fe::PlatFormInfos::get(); }
    int32_t GetDeterministic() const { return 0; }
    int32_t GetDeterministicLevel() const { return 0; }

  private:
    static constexpr size_t most_workspaces = 16;

    static const StorageShape* shape_of(const Tensor* tensor) {
        return tensor == nullptr ? nullptr : &tensor->GetShape();
    }

    TilingData tiling_data_;
    const void* compile_info_;
    std::vector<size_t> workspaces_;
    uint64_t tiling_key_ = 0;
    uint32_t blocks_ = 0;
    uint32_t aicpu_blocks_ = 0;
    uint32_t schedule_mode_ = 0;
    int32_t condition_ = 0;
    uint32_t local_memory_ = 0;
    bool atomic_ = false;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_TILING_CONTEXT_H
