#include "random.h"

#include <ATen/Context.h>

#include <mutex>
#include <unordered_map>

namespace ascend_graph::host {

// Random numbers: a device generator has a seed and a counter; the CPU generator beside it is seeded anew
// whenever the counter is at its start, so that seeding the device generator makes its sequence start again.
at::Generator cpu_generator(at::Generator device) {
    static std::mutex mutex;
    static std::unordered_map<c10::GeneratorImpl*, at::Generator> generators;
    std::lock_guard<std::mutex> lock(mutex);
    std::lock_guard<std::mutex> device_lock(device.mutex());
    auto& generator = generators[device.unsafeGetGeneratorImpl()];
    const uint64_t offset = device.get_offset();
    if (!generator.defined()) generator = at::globalContext().defaultGenerator(c10::kCPU).clone();
    if (offset == 0) generator.set_current_seed(device.current_seed());
    device.set_offset(offset + 4);  // the philox counter counts in steps of four
    return generator;
}

}  // namespace ascend_graph::host
