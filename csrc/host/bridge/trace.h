// Ranges of PyTorch's record functions for what the host runtime runs.
#pragma once

namespace ascend_graph::host {

// Whether a profiler listens on this thread.
bool is_traced();
// From now on it is told of what streams run.
void trace_streams();

}  // namespace ascend_graph::host
