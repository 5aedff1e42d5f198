// CANN's library for transformers as torch_npu's wheel was compiled against it: the order of virtual
// functions, what tensors lie in, and the parameters of those operations that it creates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace atb {

using Status = int32_t;
enum : Status {
    kInvalidParam = 1,
    kInvalidTensorCount = 5,
    kInvalidTensorAddress = 14,
};

struct Dims {
    int64_t dims[8];
    uint64_t dimNum = 0;
};

struct TensorDesc {
    int32_t dtype = -1;
    int32_t format = -1;
    Dims shape;
};

struct Tensor {
    TensorDesc desc;
    void* deviceData = nullptr;
    void* hostData = nullptr;
    uint64_t dataSize = 0;
};

// Of at most 64 elements, in place.
template <typename T>
class SVector {
  public:
    size_t size() const { return size_; }
    const T& operator[](size_t n) const { return (heap_ != nullptr ? heap_ : storage_)[n]; }

  private:
    size_t capacity_ = 0;
    size_t size_ = 0;
    T storage_[65];
    T* heap_ = nullptr;
};

struct VariantPack {
    SVector<Tensor> inTensors;
    SVector<Tensor> outTensors;
};

class Context {
  public:
    virtual ~Context() = default;
    virtual Status SetExecuteStream(void* stream) = 0;
    virtual void* GetExecuteStream() const = 0;
    virtual Status SetAsyncTilingCopyStatus(bool enable) = 0;
    virtual bool GetAsyncTilingCopyStatus() const = 0;
};

class Operation {
  public:
    virtual ~Operation() = default;
    virtual std::string GetName() const = 0;
    virtual Status InferShape(const SVector<TensorDesc>& inputs, SVector<TensorDesc>& outputs) const = 0;
    virtual uint32_t GetInputNum() const = 0;
    virtual uint32_t GetOutputNum() const = 0;
    virtual Status Setup(const VariantPack& pack, uint64_t& workspace_size, Context* context) = 0;
    virtual Status Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspace_size,
                           Context* context) = 0;
};

template <typename Param>
Status CreateOperation(const Param& param, Operation** operation);
Status DestroyOperation(Operation* operation);
Status CreateContext(Context** context);
Status DestroyContext(Context* context);

class Utils {
  public:
    static uint64_t GetTensorSize(const Tensor& tensor);
};

namespace infer {

struct GroupTopkParam {
    int32_t groupNum;
    int32_t k;
    uint16_t groupMultiFlag;  // 0: a group counts by its largest; 1: by the sum of its n largest
    uint16_t n;
    uint8_t rsv[12];
};

struct LinearParam {
    bool transposeA;
    bool transposeB;
    bool hasBias;
    int32_t outDataType;
    bool enAccum;
    uint8_t rsv[23];
};

struct ElewiseParam {
    int32_t elewiseType;
    struct {
        float inputScale;
        bool asymmetric;
        int32_t inputOffset;
        uint8_t rsv[20];
    } quantParam;
    struct {
        float varAttr;
        uint8_t rsv[12];
    } mulsParam;
    int32_t outTensorType;
    uint8_t rsv[8];
};

struct RmsNormParam {
    struct Norm {
        int32_t quantType;
        float epsilon;
        double layerNormEps;
        bool rstd;
        int32_t precisionMode;
        int32_t modelType;
        int32_t dynamicQuantType;
        uint8_t rsv[32];
    };
    struct Other {
        int32_t quantType;
        float epsilon;
        bool hasBias;
        uint8_t rsv[23];
    };
    int32_t layerType;
    Norm normParam;
    Other preNormParam;
    Other postNormParam;
    uint8_t rsv[8];
};

struct RopeParam {
    int32_t rotaryCoeff;
    int32_t cosFormat;
    uint8_t rsv[8];
};

struct ReshapeAndCacheParam {
    int32_t compressType;
    int32_t kvCacheCfg;
    uint8_t rsv[16];
};

struct PagedAttentionParam {
    int32_t headNum;
    float qkScale;
    int32_t kvHeadNum;
    int32_t maskType;
    bool batchRunStatusEnable;
    int32_t quantType;
    int32_t outDataType;
    bool hasQuantOffset;
    int32_t compressType;
    int32_t calcType;
    int32_t scaleType;
    int32_t inputLayout;
    uint32_t mlaVHeadSize;
    uint8_t rsv[68];
};

struct SelfAttentionParam {
    int32_t quantType;
    int32_t outDataType;
    int32_t headNum;
    int32_t kvHeadNum;
    float qScale;
    float qkScale;
    bool batchRunStatusEnable;
    uint32_t isTriuMask;
    int32_t calcType;
    int32_t kernelType;
    int32_t clampType;
    float clampMin;
    float clampMax;
    int32_t maskType;
    int32_t kvcacheCfg;
    int32_t scaleType;
    int32_t inputLayout;
    uint32_t mlaVHeadSize;
    int8_t cacheType;
    uint32_t windowSize;
    uint8_t rsv[64];
};

}  // namespace infer
}  // namespace atb
