// Data sets: the lists of buffers that programs hand to models, with the description of each.
#include <string>
#include <vector>

#include "acl/runtime.h"

using namespace ascend_graph::host;

struct aclDataBuffer;
struct aclTensorDesc;
struct aclmdlDataset {
    struct Item {
        aclDataBuffer* buffer;
        aclTensorDesc* desc;
    };
    std::vector<Item> items;
};

ACL_EXPORT aclmdlDataset* aclmdlCreateDataset() { return new aclmdlDataset; }
ACL_EXPORT aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) {
    if (dataset == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "aclmdlDestroyDataset: dataset is null");
    delete dataset;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* buffer) {
    if (dataset == nullptr || buffer == nullptr)
        return fail(ACL_ERROR_INVALID_PARAM, "aclmdlAddDatasetBuffer: dataset or dataBuffer is null");
    dataset->items.push_back({buffer, nullptr});
    return ACL_SUCCESS;
}
ACL_EXPORT size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) {
    return dataset == nullptr ? 0 : dataset->items.size();
}
ACL_EXPORT aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
    if (index < aclmdlGetDatasetNumBuffers(dataset)) return dataset->items[index].buffer;
    fail(ACL_ERROR_INVALID_PARAM, "aclmdlGetDatasetBuffer: index " + std::to_string(index) +
                                      ": the dataset has " +
                                      std::to_string(aclmdlGetDatasetNumBuffers(dataset)) + " buffers");
    return nullptr;
}
ACL_EXPORT aclError aclmdlSetDatasetTensorDesc(aclmdlDataset* dataset, aclTensorDesc* desc, size_t index) {
    if (index >= aclmdlGetDatasetNumBuffers(dataset)) {
        return fail(ACL_ERROR_INVALID_PARAM,
                    "aclmdlSetDatasetTensorDesc: index " + std::to_string(index) + ": the dataset has " +
                        std::to_string(aclmdlGetDatasetNumBuffers(dataset)) + " buffers");
    }
    dataset->items[index].desc = desc;
    return ACL_SUCCESS;
}
ACL_EXPORT aclTensorDesc* aclmdlGetDatasetTensorDesc(const aclmdlDataset* dataset, size_t index) {
    return index < aclmdlGetDatasetNumBuffers(dataset) ? dataset->items[index].desc : nullptr;
}
