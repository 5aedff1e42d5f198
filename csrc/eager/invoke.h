// Calls of C functions whose parameters are known at run time only.
//
// aclnn functions take integers, booleans and pointers ("integers" here), and doubles and floats. On the
// System V ABI of x86-64 and on AAPCS64 the two classes fill registers of their own, in order: six or eight
// for integers, eight for doubles. What does not fit goes to the stack in the order of the parameters, one
// slot of eight bytes each, and the caller removes it. So a call through the signature f(integer registers…,
// double registers…, stack slots…) puts every argument where the callee of the true signature looks for it,
// and a register or slot that the callee does not have is never read. This is the portable subset of what
// libffi does, without its dependency and without preparing a call description.
#ifndef ASCEND_GRAPH_EAGER_INVOKE_H
#define ASCEND_GRAPH_EAGER_INVOKE_H

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace ascend_graph::eager {

#if defined(__x86_64__)
inline constexpr size_t kIntegerRegisters = 6;
#elif defined(__aarch64__) && !defined(__APPLE__)
inline constexpr size_t kIntegerRegisters = 8;
#else
#error "ascend_graph knows the calling conventions of x86-64 and AArch64 Linux only"
#endif
inline constexpr size_t kDoubleRegisters = 8;
inline constexpr size_t kStackSlots = 256;

// The arguments of one call, already where the calling convention wants them.
class Invocation {
  public:
    void add(int64_t value) {
        if (integers_ < kIntegerRegisters) {
            integer_registers_[integers_++] = value;
        } else {
            push(value);
        }
    }
    void add(bool value) { add(static_cast<int64_t>(value)); }
    void add(const void* value) { add(static_cast<int64_t>(reinterpret_cast<intptr_t>(value))); }
    void add(double value) {
        if (doubles_ < kDoubleRegisters) {
            double_registers_[doubles_++] = value;
        } else {
            int64_t bits;
            std::memcpy(&bits, &value, sizeof(bits));
            push(bits);
        }
    }

    // A float has the low half of a double's register or slot.
    void add(float value) {
        int32_t low;
        std::memcpy(&low, &value, sizeof(low));
        const auto bits = static_cast<int64_t>(low);
        double wide;
        std::memcpy(&wide, &bits, sizeof(wide));
        add(wide);
    }

    int call(void* function) const {
        // Surplus slots are not read, so a few sizes serve all calls.
        if (slots_ == 0) return call(function, std::make_index_sequence<0>());
        if (slots_ <= 16) return call(function, std::make_index_sequence<16>());
        if (slots_ <= 64) return call(function, std::make_index_sequence<64>());
        return call(function, std::make_index_sequence<kStackSlots>());
    }

  private:
    template <size_t>
    using Integer = int64_t;
    template <size_t>
    using Double = double;

    template <size_t... S>
    int call(void* function, std::index_sequence<S...> slots) const {
        return call(function, std::make_index_sequence<kIntegerRegisters>(),
                    std::make_index_sequence<kDoubleRegisters>(), slots);
    }

    template <size_t... I, size_t... D, size_t... S>
    int call(void* function, std::index_sequence<I...>, std::index_sequence<D...>,
             std::index_sequence<S...>) const {
        using Uniform = int(Integer<I>..., Double<D>..., Integer<S>...);
        return reinterpret_cast<Uniform*>(function)(integer_registers_[I]..., double_registers_[D]...,
                                                    stack_[S]...);
    }

    void push(int64_t bits) {
        if (slots_ == kStackSlots)
            throw std::length_error(
                "an aclnn function has too many parameters; expected at most 256 beyond the registers");
        stack_[slots_++] = bits;
    }

    std::array<int64_t, kIntegerRegisters> integer_registers_{};
    std::array<double, kDoubleRegisters> double_registers_{};
    // Not initialized: only a few slots are used, and surplus ones are never read.
    std::array<int64_t, kStackSlots> stack_;
    size_t integers_ = 0;
    size_t doubles_ = 0;
    size_t slots_ = 0;
};

}  // namespace ascend_graph::eager

#endif  // ASCEND_GRAPH_EAGER_INVOKE_H
