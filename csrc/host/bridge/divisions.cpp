#include "divisions.h"

#include <atomic>

#include "ascend_graph/host_runtime.h"

namespace ascend_graph::host {
namespace {

std::atomic<uint64_t> by_zero{0};

bool goes_on(void* info, void* context) {
    bool zero = false;
    if (!ascendgraphPassDivision(info, context, &zero)) return false;
    if (zero) by_zero.fetch_add(1, std::memory_order_relaxed);
    return true;
}

}  // namespace

void survive_divisions() { ascendgraphHandleDivisions(goes_on); }

uint64_t divisions_by_zero() { return by_zero.load(std::memory_order_relaxed); }

}  // namespace ascend_graph::host
