// gert::StorageFormat: a tensor's format as the network sees it and in memory.
#ifndef ASCEND_GRAPH_GERT_STORAGE_FORMAT_H
#define ASCEND_GRAPH_GERT_STORAGE_FORMAT_H

#include "graph/types.h"

namespace gert {

// Which dimensions of size 1 a format adds to a shape; the host has formats that add none.
struct ExpandDimsType {};

class StorageFormat {
  public:
    StorageFormat() = default;
    StorageFormat(ge::Format origin, ge::Format storage, const ExpandDimsType& = {})
        : origin_(origin), storage_(storage) {}

    ge::Format GetOriginFormat() const { return origin_; }
    ge::Format GetStorageFormat() const { return storage_; }
    void SetOriginFormat(ge::Format format) { origin_ = format; }
    void SetStorageFormat(ge::Format format) { storage_ = format; }

  private:
    ge::Format origin_ = ge::FORMAT_ND;
    ge::Format storage_ = ge::FORMAT_ND;
};

}  // namespace gert

#endif  // ASCEND_GRAPH_GERT_STORAGE_FORMAT_H
