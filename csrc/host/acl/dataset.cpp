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
    if (dataset == nullptr) return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlDestroyDataset", "dataset");
    delete dataset;
    return ACL_SUCCESS;
}
ACL_EXPORT aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* buffer) {
    if (dataset == nullptr || buffer == nullptr)
        return fail_null(ACL_ERROR_INVALID_PARAM, "aclmdlAddDatasetBuffer", "dataset or dataBuffer");
    dataset->items.push_back({buffer, nullptr});
    return ACL_SUCCESS;
}
ACL_EXPORT size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) {
    return dataset == nullptr ? 0 : dataset->items.size();
}
static aclError beyond(const aclmdlDataset* dataset, const char* function, size_t index) {
    return fail(ACL_ERROR_INVALID_PARAM, std::string(function) + ": index " + std::to_string(index) +
                                             " is out of range; expected less than the number of buffers, " +
                                             std::to_string(aclmdlGetDatasetNumBuffers(dataset)));
}
ACL_EXPORT aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
    if (index < aclmdlGetDatasetNumBuffers(dataset)) return dataset->items[index].buffer;
    beyond(dataset, "aclmdlGetDatasetBuffer", index);
    return nullptr;
}
ACL_EXPORT aclError aclmdlSetDatasetTensorDesc(aclmdlDataset* dataset, aclTensorDesc* desc, size_t index) {
    if (index >= aclmdlGetDatasetNumBuffers(dataset)) {
        return beyond(dataset, "aclmdlSetDatasetTensorDesc", index);
    }
    dataset->items[index].desc = desc;
    return ACL_SUCCESS;
}
ACL_EXPORT aclTensorDesc* aclmdlGetDatasetTensorDesc(const aclmdlDataset* dataset, size_t index) {
    return index < aclmdlGetDatasetNumBuffers(dataset) ? dataset->items[index].desc : nullptr;
}
