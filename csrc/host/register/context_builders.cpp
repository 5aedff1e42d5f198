// gert's builders of contexts, and GE's register of operators' functions, as libraries of packages that CANN
// built have them linked: with the tools that run a tiling function apart from any call. The host runs tiling
// functions itself (exe_graph/), so that none of them is built or found here. Whoever asks gets an empty
// context, and the sentence.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ascend_graph/host_runtime.h"
#include "exe_graph/layout.h"
#include "ge/abi.h"

#define EXPORTED __attribute__((visibility("default")))

namespace gert {

class Tensor;
class TilingData;
class ContinuousVector;
class TilingContext;
class KernelContext;

class ContextHolderImpl {};
class EXPORTED ContextHolderVoid {
  public:
    ContextHolderVoid();
    ~ContextHolderVoid();
    ContextHolderVoid(ContextHolderVoid&& other) noexcept;
    ContextHolderVoid& operator=(ContextHolderVoid&& other) noexcept;
    void* GetContext() const;

  private:
    std::unique_ptr<ContextHolderImpl> impl_;
};
ContextHolderVoid::ContextHolderVoid() = default;
ContextHolderVoid::~ContextHolderVoid() = default;
ContextHolderVoid::ContextHolderVoid(ContextHolderVoid&&) noexcept = default;
ContextHolderVoid& ContextHolderVoid::operator=(ContextHolderVoid&&) noexcept = default;
void* ContextHolderVoid::GetContext() const { return nullptr; }

template <typename Context>
struct ContextHolder {
    ContextHolderVoid holder;
};

class ContextBuilderImpl {};
template <typename Builder>
class EXPORTED OpContextBuilderBase {
  public:
    virtual ~OpContextBuilderBase() = default;
    Builder& OpType(const ge::AscendString&) { return self(); }
    Builder& OpName(const ge::AscendString&) { return self(); }
    Builder& IONum(size_t, size_t) { return self(); }
    Builder& IOInstanceNum(const std::vector<uint32_t>&, const std::vector<uint32_t>&) { return self(); }
    Builder& AppendAttr(bool) { return self(); }
    Builder& AppendAttr(int64_t) { return self(); }
    Builder& AppendAttr(float) { return self(); }
    Builder& AppendAttr(const ge::AscendString&) { return self(); }
    Builder& AppendAttr(const std::vector<bool>&) { return self(); }
    Builder& AppendAttr(const std::vector<int64_t>&) { return self(); }
    Builder& AppendAttr(const std::vector<float>&) { return self(); }
    Builder& AppendAttr(const std::vector<ge::AscendString>&) { return self(); }
    Builder& AppendAttr(const std::vector<std::vector<int64_t>>&) { return self(); }

  protected:
    template <typename Context>
    ContextHolder<Context> refused() {
        ascendgraphFail(500000,
                        "a context of a tiling function apart from a call is not supported on the host; call "
                        "the operator's aclnn function");
        return {};
    }

  private:
    Builder& self() { return static_cast<Builder&>(*this); }

    std::unique_ptr<ContextBuilderImpl> impl_;
};

class EXPORTED OpTilingContextBuilder : public OpContextBuilderBase<OpTilingContextBuilder> {
  public:
    OpTilingContextBuilder();
    OpTilingContextBuilder& CompileInfo(const void* info);
    OpTilingContextBuilder& PlatformInfo(const void* info);
    OpTilingContextBuilder& Deterministic(int32_t value);
    OpTilingContextBuilder& TilingData(const gert::TilingData* data, void (*destroy)(void*));
    OpTilingContextBuilder& TilingDataSize(size_t size);
    OpTilingContextBuilder& Workspace(const ContinuousVector* sizes);
    OpTilingContextBuilder& InputTensors(const std::vector<Tensor*>& tensors);
    OpTilingContextBuilder& OutputTensors(const std::vector<Tensor*>& tensors);
    ContextHolder<TilingContext> Build();
};
template class OpContextBuilderBase<OpTilingContextBuilder>;
OpTilingContextBuilder::OpTilingContextBuilder() = default;
OpTilingContextBuilder& OpTilingContextBuilder::CompileInfo(const void*) { return *this; }
OpTilingContextBuilder& OpTilingContextBuilder::PlatformInfo(const void*) { return *this; }
OpTilingContextBuilder& OpTilingContextBuilder::Deterministic(int32_t) { return *this; }
OpTilingContextBuilder& OpTilingContextBuilder::TilingData(const gert::TilingData*, void (*)(void*)) {
    return *this;
}
OpTilingContextBuilder& OpTilingContextBuilder::TilingDataSize(size_t) { return *this; }
OpTilingContextBuilder& OpTilingContextBuilder::Workspace(const ContinuousVector*) { return *this; }
OpTilingContextBuilder& OpTilingContextBuilder::InputTensors(const std::vector<Tensor*>&) { return *this; }
OpTilingContextBuilder& OpTilingContextBuilder::OutputTensors(const std::vector<Tensor*>&) { return *this; }
ContextHolder<TilingContext> OpTilingContextBuilder::Build() { return refused<TilingContext>(); }

class EXPORTED OpKernelContextBuilder : public OpContextBuilderBase<OpKernelContextBuilder> {
  public:
    OpKernelContextBuilder();
    OpKernelContextBuilder& Inputs(std::vector<void*> values);
    OpKernelContextBuilder& Outputs(std::vector<void*> values);
    ContextHolder<KernelContext> Build();
};
template class OpContextBuilderBase<OpKernelContextBuilder>;
OpKernelContextBuilder::OpKernelContextBuilder() = default;
OpKernelContextBuilder& OpKernelContextBuilder::Inputs(std::vector<void*>) { return *this; }
OpKernelContextBuilder& OpKernelContextBuilder::Outputs(std::vector<void*>) { return *this; }
ContextHolder<KernelContext> OpKernelContextBuilder::Build() { return refused<KernelContext>(); }

enum class OppImplVersionTag { kOpp, kOppKernel };
class EXPORTED OpImplSpaceRegistryV2 {
  public:
    const ascend_graph::host::layout::Functions* GetOpImpl(const char* op_type) const;
};
const ascend_graph::host::layout::Functions* OpImplSpaceRegistryV2::GetOpImpl(const char*) const {
    return nullptr;
}

class EXPORTED DefaultOpImplSpaceRegistryV2 {
  public:
    static DefaultOpImplSpaceRegistryV2& GetInstance();
    const std::shared_ptr<OpImplSpaceRegistryV2> GetSpaceRegistry(OppImplVersionTag tag) const;
};
DefaultOpImplSpaceRegistryV2& DefaultOpImplSpaceRegistryV2::GetInstance() {
    static DefaultOpImplSpaceRegistryV2 instance;
    return instance;
}
const std::shared_ptr<OpImplSpaceRegistryV2> DefaultOpImplSpaceRegistryV2::GetSpaceRegistry(
    OppImplVersionTag) const {
    return nullptr;
}

}  // namespace gert
