#include "random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "torch_npu/csrc/aten/NPUGeneratorImpl.h"
#include "torch_npu/csrc/core/npu/NPUGraphsUtils.h"

namespace ascend_graph::host {
namespace {

// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

// The operators that torch_npu has kernels of that read seed and offset from device memory
// (aclnnInplaceUniformTensor, …), besides dropout, which is made of the first here.
constexpr std::array<std::string_view, 4> kCaptured{"aten::uniform_", "aten::normal_", "aten::random_",
                                                    "aten::multinomial"};

}  // namespace

void check_captured(const c10::OperatorHandle& op) {
    if (c10_npu::currentStreamCaptureStatusMayInitCtx() == c10_npu::CaptureStatus::None) return;
    TORCH_CHECK(std::find(kCaptured.begin(), kCaptured.end(), op.operator_name().name) != kCaptured.end(),
                op.operator_name(),
                " cannot be captured: torch_npu's kernel takes seed and offset from the host, where a replay "
                "could not draw anew; use uniform_, normal_ with "
                "numbers for mean and std, random_, multinomial, those made of them (rand, randn, randint) "
                "or dropout");
}

const at::Generator& default_generator(c10::Device device) {
    return at_npu::detail::getDefaultNPUGenerator(device.index());
}

Draw draw(const at::Generator& device) {
    // What op-plugin's kernels take for a call, whatever its size.
    constexpr uint64_t kIncrement = 10;
    auto* generator = at::check_generator<at_npu::NPUGeneratorImpl>(device);
    std::lock_guard<std::mutex> lock(generator->mutex_);
    const at_npu::PhiloxNpuState state = generator->philox_npu_state(kIncrement);
    if (!state.captured_) return {state.seed_.val, state.offset_.val, {}, {}};
    return {0, state.offset_intragraph_, *state.seed_.ptr, *state.offset_.ptr};
}

at::Generator cpu_generator(const Draw& draw) {
    uint64_t seed = draw.seed;
    uint64_t offset = draw.offset;
    if (draw.replayed_seed.defined()) {
        seed = static_cast<uint64_t>(*static_cast<const int64_t*>(draw.replayed_seed.const_data_ptr()));
        offset += static_cast<uint64_t>(*static_cast<const int64_t*>(draw.replayed_offset.const_data_ptr()));
    }
    // The engine's whole state is filled: its own seeding would keep 32 bits of the pair.
    at::mt19937_data_pod data{};
    data.seed_ = seed;
    data.left_ = 1;
    data.seeded_ = true;
    uint64_t counter = mixed(mixed(seed + kGolden) + offset);
    for (size_t i = 0; i < data.state_.size(); i += 2) {
        const uint64_t bits = mixed(counter += kGolden);
        data.state_[i] = static_cast<uint32_t>(bits);
        data.state_[i + 1] = static_cast<uint32_t>(bits >> 32);
    }
    at::mt19937 engine;
    engine.set_data(data);
    auto generator = at::make_generator<at::CPUGeneratorImpl>();
    generator.get<at::CPUGeneratorImpl>()->set_engine(engine);
    return generator;
}

}  // namespace ascend_graph::host
