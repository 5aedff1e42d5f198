// Processors of the table that the host stands for: the one of this process, and the one that a package is
// built for.
#ifndef ASCENDC_HOST_INTERNAL_PROCESSORS_H
#define ASCENDC_HOST_INTERNAL_PROCESSORS_H

#include <cstdlib>
#include <cstring>

#include "ascendc_host/internal/processor_table.h"

namespace ascendc_host {

// nullptr for a name that the table does not have.
inline const Processor* find_processor(const char* name) {
    for (const Processor& one : processors) {
        if (std::strcmp(one.name, name) == 0) return &one;
    }
    return nullptr;
}

// The processor that ASCEND_GRAPH_HOST_SOC names, the default without the variable, nullptr for another name.
inline const Processor* processor_of_process() {
    const char* name = std::getenv("ASCEND_GRAPH_HOST_SOC");
    return name == nullptr || *name == '\0' ? &processors[0] : find_processor(name);
}

// What code for kernels of `architecture` runs on: the processor of the process where it runs such kernels,
// otherwise the first that does.
inline const Processor& processor_for(int architecture) {
    const Processor* found = processor_of_process();
    if (found != nullptr && found->kernels == architecture) return *found;
    for (const Processor& one : processors) {
        if (one.kernels == architecture) return one;
    }
    return processors[0];
}

constexpr const LocalMemory& local_memory_of(int architecture) {
    for (const LocalMemory& one : local_memories) {
        if (one.architecture == architecture) return one;
    }
    return local_memories[0];
}

// Whether its AI cores have cube and vector units; what it calls vector cores are others.
inline bool is_coupled(const Processor& processor) { return processor.npu_arch == 2002; }

inline bool is_named(const Processor* processor, const char* short_name) {
    return processor != nullptr && std::strcmp(processor->short_name, short_name) == 0;
}

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_PROCESSORS_H
