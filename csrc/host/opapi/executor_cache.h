// Executors of earlier calls, to be used again for equal ones.
//
// A caller says what its call is by a key of bytes (SetPTACacheHashKey) and the storages of its tensors
// (AddTensorAddrToCachedList). The executor that is made on the same thread meanwhile is kept under the key
// when it has run; PTAFindExecCache gives it to the next call of that key, with that call's storages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct aclOpExecutor;

namespace ascend_graph::host {

// The place of one key's executor. Empty while a call uses it.
struct KeptCall;

// The place for the executor that the calling thread makes now; null where none is to be kept.
KeptCall* claim_kept_call();
// An executor that will not be kept, or is gone.
void give_up(KeptCall* place);
// An executor that has run: the place's, unless another is there already.
void keep(KeptCall* place, std::unique_ptr<aclOpExecutor> executor);

}  // namespace ascend_graph::host
