// The base of tiling classes: the steps of a tiling function, in their order.
#ifndef ASCEND_GRAPH_OP_HOST_TILING_BASE_CLASS_H
#define ASCEND_GRAPH_OP_HOST_TILING_BASE_CLASS_H

#include <memory>
#include <sstream>
#include <string>

#include "exe_graph/runtime/tiling_context.h"
#include "graph/utils/type_utils.h"
#include "op_common/log/log.h"
#include "platform/soc_spec.h"
#include "tiling/platform/platform_ascendc.h"

#ifndef ASCENDC_EXTERN_C
#define ASCENDC_EXTERN_C
#endif

namespace Ops::Base {

struct AiCoreParams {
    uint64_t ubSize = 0;
    uint64_t numBlocks = 0;
    uint64_t aicNum = 0;
    uint64_t l1Size = 0;
    uint64_t l0aSize = 0;
    uint64_t l0bSize = 0;
    uint64_t l0cSize = 0;
};

struct CompileInfoCommon {
    uint32_t aivNum;
    uint32_t aicNum;
    uint64_t ubSize;
    uint64_t l1Size;
    uint64_t l0aSize;
    uint64_t l0bSize;
    uint64_t l0cSize;
    uint64_t l2CacheSize;
    int64_t coreNum;
    int32_t socVersion;
    uint32_t rsvd;
};

class TilingBaseClass {
  public:
    explicit TilingBaseClass(gert::TilingContext* context) : context_(context) {}
    virtual ~TilingBaseClass() = default;

    // GRAPH_SUCCESS: tiling is done. GRAPH_PARAM_INVALID: another class may take the case. Any other status
    // ends the tiling.
    ge::graphStatus DoTiling() {
        using Step = ge::graphStatus (TilingBaseClass::*)();
        if (context_ == nullptr) return ge::GRAPH_FAILED;
        const auto failed = [this](std::initializer_list<Step> steps, ge::graphStatus& status) {
            for (Step step : steps) {
                status = (this->*step)();
                if (status != ge::GRAPH_SUCCESS) return true;
            }
            return false;
        };
        ge::graphStatus status = ge::GRAPH_SUCCESS;
        if (failed({&TilingBaseClass::GetShapeAttrsInfo, &TilingBaseClass::GetPlatformInfo}, status))
            return status;
        if (!IsCapable()) return ge::GRAPH_PARAM_INVALID;
        if (failed({&TilingBaseClass::DoOpTiling, &TilingBaseClass::DoLibApiTiling,
                    &TilingBaseClass::GetWorkspaceSize, &TilingBaseClass::PostTiling},
                   status))
            return status;
        context_->SetTilingKey(GetTilingKey());
        DumpTilingInfo();
        return ge::GRAPH_SUCCESS;
    }

    virtual void Reset(gert::TilingContext* context) { context_ = context; }

  protected:
    virtual bool IsCapable() = 0;
    virtual ge::graphStatus GetPlatformInfo() = 0;
    virtual ge::graphStatus GetShapeAttrsInfo() = 0;
    virtual ge::graphStatus DoOpTiling() = 0;
    virtual ge::graphStatus DoLibApiTiling() = 0;
    [[nodiscard]] virtual uint64_t GetTilingKey() const = 0;
    virtual ge::graphStatus GetWorkspaceSize() = 0;
    virtual ge::graphStatus PostTiling() = 0;
    virtual void DumpTilingInfo() { OP_LOGD(context_, "%s", GetTilingDataDebugStr().c_str()); }

    // Blocks of one cube and several vector cores that `sliceNum` vector slices need.
    static uint32_t CalcTschBlockDim(uint32_t sliceNum, uint32_t aicCoreNum, uint32_t aivCoreNum) {
        return platform_ascendc::PlatformAscendC().CalcTschBlockDim(sliceNum, aicCoreNum, aivCoreNum);
    }

    template <typename T>
    [[nodiscard]] std::string GetShapeDebugStr(const T& shape) const {
        std::string text;
        for (size_t i = 0; i < shape.GetDimNum(); ++i)
            text += (i == 0 ? "" : ", ") + std::to_string(shape.GetDim(i));
        return "[" + text + "]";
    }
    [[nodiscard]] std::string GetTensorDebugStr(const gert::StorageShape* shape,
                                                const gert::CompileTimeTensorDesc* tensor) {
        if (shape == nullptr || tensor == nullptr) return "nil";
        return ToString(tensor->GetDataType()) + GetShapeDebugStr(shape->GetStorageShape());
    }
    [[nodiscard]] std::string GetTilingContextDebugStr() {
        std::string text;
        for (size_t i = 0; i < context_->GetComputeNodeInfo()->GetInputsNum(); ++i)
            text += " input " + GetTensorDebugStr(context_->GetInputShape(i), context_->GetInputDesc(i));
        for (size_t i = 0; i < context_->GetComputeNodeInfo()->GetOutputsNum(); ++i)
            text += " output " + GetTensorDebugStr(context_->GetOutputShape(i), context_->GetOutputDesc(i));
        return text;
    }
    [[nodiscard]] std::string GetTilingDataDebugStr() const {
        const auto* data = context_->GetRawTilingData();
        if (data == nullptr) return "nil";
        std::ostringstream text;
        const auto* words = static_cast<const int32_t*>(data->GetData());
        for (size_t i = 0; i < data->GetDataSize() / sizeof(int32_t); ++i) text << words[i] << ", ";
        return text.str();
    }

    gert::TilingContext* context_ = nullptr;
    std::unique_ptr<platform_ascendc::PlatformAscendC> ascendcPlatform_{nullptr};
    uint32_t blockDim_{0};
    uint64_t workspaceSize_{0};
    uint64_t tilingKey_{0};
    AiCoreParams aicoreParams_;
};

}  // namespace Ops::Base

#endif  // ASCEND_GRAPH_OP_HOST_TILING_BASE_CLASS_H
