// CANN's library for transformers, libatb: the operations that torch_npu's wheel creates. Each is a call of
// the table of functions (ascend_graph/host/runtime/aclnn_functions/functions.txt), which has them as
// atb::Name.
#include <functional>
#include <memory>
#include <vector>

#include "ascend_graph/host_runtime.h"
#include "atb/abi.h"
#include "opapi/dtype.h"
#include "opapi/function.h"

#define ATB_EXPORT __attribute__((visibility("default")))

extern "C" {
aclTensor* aclCreateTensor(const int64_t* sizes, uint64_t rank, int32_t dtype, const int64_t* strides,
                           int64_t offset, int32_t format, const int64_t* storage_sizes,
                           uint64_t storage_rank, void* data);
int aclDestroyTensor(const aclTensor* tensor);
aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t size);
int aclDestroyIntArray(const aclIntArray* array);
}

namespace atb {
using ascend_graph::host::fail_null;

namespace {

constexpr int32_t kInt32 = 3, kInt64 = 9, kUndefined = -1;
constexpr int32_t kFractalNz = 29;

using TensorPointer = std::unique_ptr<aclTensor, decltype(&aclDestroyTensor)>;
using IntsPointer = std::unique_ptr<aclIntArray, decltype(&aclDestroyIntArray)>;

struct Refused {
    Status status;
    std::string reason;
};

// Null for an input that is not there.
TensorPointer tensor_of(const Tensor& t) {
    if (t.deviceData == nullptr && t.hostData == nullptr) return {nullptr, aclDestroyTensor};
    if (t.desc.format == kFractalNz)
        throw Refused{kInvalidParam, "the format FRACTAL_NZ is not supported on the host"};
    const uint64_t rank = t.desc.shape.dimNum;
    std::vector<int64_t> strides(rank, 1);
    for (size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * t.desc.shape.dims[d];
    void* data = t.deviceData != nullptr ? t.deviceData : t.hostData;
    return {aclCreateTensor(t.desc.shape.dims, rank, t.desc.dtype, strides.data(), 0, t.desc.format,
                            t.desc.shape.dims, rank, data),
            aclDestroyTensor};
}

// Numbers that an operation reads on the host, when it is set up: they are copied.
IntsPointer ints_of(const Tensor& t, const char* name) {
    if (t.hostData == nullptr)
        throw Refused{kInvalidTensorAddress, std::string(name) + " must be a tensor of the CPU"};
    const uint64_t count = Utils::GetTensorSize(t) / ascend_graph::host::item_size(t.desc.dtype);
    std::vector<int64_t> values(count);
    for (size_t i = 0; i < count; ++i) {
        if (t.desc.dtype == kInt32) {
            values[i] = static_cast<const int32_t*>(t.hostData)[i];
        } else if (t.desc.dtype == kInt64) {
            values[i] = static_cast<const int64_t*>(t.hostData)[i];
        } else {
            throw Refused{kInvalidParam, std::string(name) + " must be of int32"};
        }
    }
    return {aclCreateIntArray(values.data(), count), aclDestroyIntArray};
}

const aclTensor* plain(const TensorPointer& pointer) { return pointer.get(); }
const aclIntArray* plain(const IntsPointer& pointer) { return pointer.get(); }
template <typename T>
const T& plain(const T& value) {
    return value;
}

// A call of a function of the table, or only the check of its arguments.
struct Call {
    bool runs;
    void* stream;

    template <typename... T>
    Status operator()(const char* function, const T&... arguments) const {
        uint64_t workspace_size = 0;
        aclOpExecutor* executor = nullptr;
        const aclnnStatus error = prepare(function, &workspace_size, &executor, plain(arguments)...);
        if (error != 0) return error;
        if (runs) return ascendgraphRunExecutor(executor, stream);
        ascendgraphDestroyExecutor(executor);
        return 0;
    }
};

class HostContext final : public Context {
  public:
    Status SetExecuteStream(void* stream) override {
        stream_ = stream;
        return 0;
    }
    void* GetExecuteStream() const override { return stream_; }
    Status SetAsyncTilingCopyStatus(bool enable) override {
        copies_tiling_ = enable;
        return 0;
    }
    bool GetAsyncTilingCopyStatus() const override { return copies_tiling_; }

  private:
    void* stream_ = nullptr;
    bool copies_tiling_ = false;
};

using Tensors = std::vector<TensorPointer>;
using Work = std::function<Status(const VariantPack&, const Call&)>;

class HostOperation final : public Operation {
  public:
    HostOperation(const char* name, uint32_t inputs, uint32_t outputs, Work work)
        : name_(name), inputs_(inputs), outputs_(outputs), work_(std::move(work)) {}

    // Of a failure torch_npu shows the name alone.
    std::string GetName() const override {
        return reason_.empty() ? name_ : std::string(name_) + " (" + reason_ + ")";
    }
    Status InferShape(const SVector<TensorDesc>&, SVector<TensorDesc>&) const override {
        return fail(kInvalidParam, "shapes are not inferred on the host; give tensors for the outputs");
    }
    uint32_t GetInputNum() const override { return inputs_; }
    uint32_t GetOutputNum() const override { return outputs_; }
    Status Setup(const VariantPack& pack, uint64_t& workspace_size, Context* context) override {
        workspace_size = 0;
        return call(pack, false, context);
    }
    Status Execute(const VariantPack& pack, uint8_t*, uint64_t, Context* context) override {
        const Status status = call(pack, true, context);
        if (status != 0)
            ascendgraphSetError(status, ascendgraphRecentError());  // torch_npu does not look at the status
        return status;
    }

  private:
    Status call(const VariantPack& pack, bool runs, Context* context) {
        if (pack.inTensors.size() != inputs_ || pack.outTensors.size() != outputs_)
            return fail(kInvalidTensorCount, std::to_string(pack.inTensors.size()) + " inputs and " +
                                                 std::to_string(pack.outTensors.size()) +
                                                 " outputs; expected " + std::to_string(inputs_) + " and " +
                                                 std::to_string(outputs_));
        reason_.clear();
        try {
            const Status status =
                work_(pack, Call{runs, context == nullptr ? nullptr : context->GetExecuteStream()});
            if (status != 0) reason_ = ascendgraphRecentError();
            return status;
        } catch (const Refused& refused) {
            return fail(refused.status, refused.reason);
        }
    }
    Status fail(Status status, const std::string& reason) const {
        reason_ = reason;
        return ascendgraphFail(status, (std::string("atb::") + name_ + ": " + reason).c_str());
    }

    const char* name_;
    static inline thread_local std::string reason_;  // why the last call of this thread failed
    uint32_t inputs_;
    uint32_t outputs_;
    Work work_;
};

// What a parameter must be, because the host has nothing else.
void only(const char* parameter, int64_t value, int64_t supported) {
    if (value != supported)
        throw Refused{kInvalidParam, std::string(parameter) + " " + std::to_string(value) +
                                         " is not supported on the host; " + std::to_string(supported) +
                                         " is"};
}

template <typename Make>
Status created(const char* name, Operation** operation, Make make) {
    if (operation == nullptr) return fail_null(kInvalidParam, "atb::CreateOperation", "operation");
    try {
        *operation = make();
        return 0;
    } catch (const Refused& refused) {
        *operation = nullptr;
        return ascendgraphFail(refused.status, (std::string("atb::") + name + ": " + refused.reason).c_str());
    }
}

}  // namespace

ATB_EXPORT uint64_t Utils::GetTensorSize(const Tensor& tensor) {
    uint64_t count = tensor.desc.shape.dimNum == 0 ? 0 : ascend_graph::host::item_size(tensor.desc.dtype);
    for (size_t d = 0; d < tensor.desc.shape.dimNum; ++d)
        count *= static_cast<uint64_t>(tensor.desc.shape.dims[d]);
    return count;
}

ATB_EXPORT Status CreateContext(Context** context) {
    if (context == nullptr) return fail_null(kInvalidParam, "atb::CreateContext", "context");
    *context = new HostContext;
    return 0;
}

ATB_EXPORT Status DestroyContext(Context* context) {
    delete context;
    return 0;
}

ATB_EXPORT Status DestroyOperation(Operation* operation) {
    delete operation;
    return 0;
}

template <>
ATB_EXPORT Status CreateOperation(const infer::ReshapeAndCacheParam& param, Operation** operation) {
    return created("ReshapeAndCacheOperation", operation, [&]() -> Operation* {
        constexpr int32_t kKeysAlone = 1;
        only("compressType", param.compressType, 0);
        if (param.kvCacheCfg == kKeysAlone)
            return new HostOperation("ReshapeAndCacheOperation", 3, 1,
                                     [](const VariantPack& pack, const Call& call) {
                                         const auto& in = pack.inTensors;
                                         return call("atb::ReshapeAndCacheKeys", tensor_of(in[0]),
                                                     tensor_of(in[1]), tensor_of(in[2]));
                                     });
        only("kvCacheCfg", param.kvCacheCfg, 0);
        return new HostOperation("ReshapeAndCacheOperation", 5, 2,
                                 [](const VariantPack& pack, const Call& call) {
                                     const auto& in = pack.inTensors;
                                     return call("atb::ReshapeAndCache", tensor_of(in[0]), tensor_of(in[1]),
                                                 tensor_of(in[2]), tensor_of(in[3]), tensor_of(in[4]));
                                 });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::RopeParam& param, Operation** operation) {
    return created("RopeOperation", operation, [&]() -> Operation* {
        only("cosFormat", param.cosFormat, 0);
        return new HostOperation("RopeOperation", 5, 2, [param](const VariantPack& pack, const Call& call) {
            const auto& in =
                pack.inTensors;  // the last are the lengths of sequences: rows have their own angles
            return call("atb::Rope", tensor_of(in[0]), tensor_of(in[1]), tensor_of(in[2]), tensor_of(in[3]),
                        int64_t{param.rotaryCoeff}, tensor_of(pack.outTensors[0]),
                        tensor_of(pack.outTensors[1]));
        });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::SelfAttentionParam& param, Operation** operation) {
    return created("SelfAttentionOperation", operation, [&]() -> Operation* {
        constexpr int32_t kPrompts = 3, kPromptsWithPages = 4;
        constexpr int32_t kAlibi = 2, kCompressed = 3;
        only("quantType", param.quantType, 0);
        only("outDataType", param.outDataType, kUndefined);
        only("batchRunStatusEnable", param.batchRunStatusEnable, 0);
        only("clampType", param.clampType, 0);
        only("kvcacheCfg", param.kvcacheCfg, 0);
        only("scaleType", param.scaleType, 0);
        only("inputLayout", param.inputLayout, 0);
        only("mlaVHeadSize", param.mlaVHeadSize, 0);
        only("cacheType", param.cacheType, 0);
        only("windowSize", param.windowSize, 0);
        if (param.calcType != kPrompts) only("calcType", param.calcType, kPromptsWithPages);
        if (param.maskType > kAlibi) only("maskType", param.maskType, kCompressed);
        const bool masked = param.maskType != 0, pages = param.calcType == kPromptsWithPages;
        const uint32_t inputs = 4 + (masked ? 1 : 0) + (pages ? 2 : 0);
        return new HostOperation(
            "SelfAttentionOperation", inputs, 1,
            [param, masked, pages](const VariantPack& pack, const Call& call) {
                size_t next = 3;
                const auto& in = pack.inTensors;
                const auto table = tensor_of(pages ? in[next++] : Tensor{});
                const auto mask = tensor_of(masked ? in[next++] : Tensor{});
                const auto queries = ints_of(in[next++], "seq_len");
                const auto keys = ints_of(pages ? in[next] : in[next - 1], "context_lens");
                return call("atb::Attention", tensor_of(in[0]), tensor_of(in[1]), tensor_of(in[2]), table,
                            mask, queries, keys, int64_t{param.headNum}, int64_t{param.kvHeadNum},
                            double{param.qScale} * double{param.qkScale}, int64_t{param.maskType}, int64_t{0},
                            tensor_of(pack.outTensors[0]));
            });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::PagedAttentionParam& param, Operation** operation) {
    return created("PagedAttentionOperation", operation, [&]() -> Operation* {
        constexpr int32_t kSeveralQueries = 1;
        constexpr int32_t kOfTokens = 3, kCompressed = 5;
        only("quantType", param.quantType, 0);
        only("outDataType", param.outDataType, kUndefined);
        only("hasQuantOffset", param.hasQuantOffset, 0);
        only("batchRunStatusEnable", param.batchRunStatusEnable, 0);
        only("compressType", param.compressType, 0);
        only("scaleType", param.scaleType, 0);
        only("inputLayout", param.inputLayout, 0);
        if (param.calcType != 0) only("calcType", param.calcType, kSeveralQueries);
        if (param.maskType > kOfTokens) only("maskType", param.maskType, kCompressed);
        const bool masked = param.maskType != 0, several = param.calcType == kSeveralQueries;
        const bool own_values = param.mlaVHeadSize == 0;
        const uint32_t inputs = 4 + (own_values ? 1 : 0) + (masked ? 1 : 0) + (several ? 1 : 0);
        return new HostOperation(
            "PagedAttentionOperation", inputs, 1,
            [param, masked, several, own_values](const VariantPack& pack, const Call& call) {
                const auto& in = pack.inTensors;
                size_t next = 2;
                const auto values = tensor_of(own_values ? in[next++] : Tensor{});
                const auto table = tensor_of(in[next++]);
                const auto keys = ints_of(in[next++], "context_lens");
                const auto mask = tensor_of(masked ? in[next++] : Tensor{});
                const auto queries =
                    several ? ints_of(in[next], "seq_len") : IntsPointer{nullptr, aclDestroyIntArray};
                // The table's numbers of masks are SelfAttention's.
                const int64_t kind = param.maskType == kCompressed ? 3
                                     : param.maskType == kOfTokens ? 4
                                                                   : param.maskType;
                return call("atb::Attention", tensor_of(in[0]), tensor_of(in[1]), values, table, mask,
                            queries, keys, int64_t{param.headNum}, int64_t{param.kvHeadNum},
                            double{param.qkScale}, kind, int64_t{param.mlaVHeadSize},
                            tensor_of(pack.outTensors[0]));
            });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::GroupTopkParam& param, Operation** operation) {
    return created("GroupTopkOperation", operation, [&]() -> Operation* {
        return new HostOperation(
            "GroupTopkOperation", 2, 1, [param](const VariantPack& pack, const Call& call) {
                // The second input are the numbers of the experts.
                return call("atb::GroupTopk", tensor_of(pack.inTensors[0]), int64_t{param.groupNum},
                            int64_t{param.k}, int64_t{param.groupMultiFlag == 0 ? 1 : param.n},
                            tensor_of(pack.outTensors[0]));
            });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::LinearParam& param, Operation** operation) {
    return created("LinearOperation", operation, [&]() -> Operation* {
        only("enAccum", param.enAccum, 1);
        only("hasBias", param.hasBias, 0);
        only("outDataType", param.outDataType, kUndefined);
        return new HostOperation("LinearOperation", 3, 1, [param](const VariantPack& pack, const Call& call) {
            const auto& in = pack.inTensors;
            return call("atb::LinearAccumulated", tensor_of(in[0]), tensor_of(in[1]), tensor_of(in[2]),
                        bool{param.transposeA}, bool{param.transposeB}, tensor_of(pack.outTensors[0]));
        });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::ElewiseParam& param, Operation** operation) {
    return created("ElewiseOperation", operation, [&]() -> Operation* {
        constexpr int32_t kQuantPerChannel = 17;
        only("elewiseType", param.elewiseType, kQuantPerChannel);
        return new HostOperation("ElewiseOperation", 3, 1, [](const VariantPack& pack, const Call& call) {
            const auto& in = pack.inTensors;
            return call("atb::QuantPerChannel", tensor_of(in[0]), tensor_of(in[1]), tensor_of(in[2]),
                        tensor_of(pack.outTensors[0]));
        });
    });
}

template <>
ATB_EXPORT Status CreateOperation(const infer::RmsNormParam& param, Operation** operation) {
    return created("RmsNormOperation", operation, [&]() -> Operation* {
        constexpr int32_t kNorm = 1, kToInt8 = 2;
        only("layerType", param.layerType, kNorm);
        only("quantType", param.normParam.quantType, kToInt8);
        only("modelType", param.normParam.modelType, 0);
        only("dynamicQuantType", param.normParam.dynamicQuantType, 0);
        only("rstd", param.normParam.rstd, 0);
        return new HostOperation(
            "RmsNormOperation", 5, 1, [param](const VariantPack& pack, const Call& call) {
                const auto& in = pack.inTensors;
                return call("atb::RmsNormQuant", tensor_of(in[0]), tensor_of(in[1]), tensor_of(in[2]),
                            tensor_of(in[3]), tensor_of(in[4]), double{param.normParam.epsilon},
                            tensor_of(pack.outTensors[0]));
            });
    });
}

}  // namespace atb
