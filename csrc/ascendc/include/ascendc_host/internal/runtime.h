// What a running block is, and how blocks are launched: the face of the Ascend C runtime library.
//
// A kernel runs as `blockDim` blocks. Each block is a thread of a pool, with its own unified buffer, L1, L0A,
// L0B, L0C, bias and fixpipe buffers. A rule that a kernel breaks is thrown as a Violation, caught at the
// entry of the block, and reported to the caller of the launch as an ACL error: it never leaves the launch as
// an exception or a signal.
#ifndef ASCENDC_HOST_INTERNAL_RUNTIME_H
#define ASCENDC_HOST_INTERNAL_RUNTIME_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "ascendc_host/internal/compiler_names.h"
#include "ascendc_host/internal/processors.h"
#include "ascendc_host/internal/qualifiers.h"
#include "ascendc_host_launch.h"

namespace ascendc_host {

// Where in a kernel's source an API was called. As a default argument it is evaluated at the call.
struct Where {
    const char* file;
    int line;
    constexpr explicit Where(const char* file = __builtin_FILE(), int line = __builtin_LINE())
        : file(file), line(line) {}
};

enum class Memory : uint8_t { ub, l1, l0a, l0b, l0c, bias, fixpipe, count };

// The architecture that a kernel is compiled for.
constexpr int npu_architecture = __NPU_ARCH__;

// What a kernel may use.
constexpr uint32_t memory_bytes(Memory memory, int architecture = npu_architecture) {
    const LocalMemory& local = local_memory_of(architecture);
    switch (memory) {
        case Memory::ub:
            return local.ub;
        case Memory::l1:
            return local.l1;
        case Memory::l0a:
            return local.l0a;
        case Memory::l0b:
            return local.l0b;
        case Memory::l0c:
            return local.l0c;
        case Memory::bias:
            return local.bias;
        case Memory::fixpipe:
            return local.fixpipe;
        default:
            return 0;
    }
}
// What an instruction may read of the unified buffer of dav-3510.
constexpr uint32_t whole_unified_buffer = 256 * 1024;
const char* memory_name(Memory memory);

enum class Core : uint8_t {
    unified,  // cube and vector units in one core: kernels that never ask which they are on
    aic,
    aiv
};

// The kernel types of KERNEL_TASK_TYPE_DEFAULT. `undeclared` runs on unified cores until the kernel asks for
// its core.
enum class KernelType : uint8_t { undeclared, aiv_only, aic_only, mix_1_1, mix_1_2, mix_1_0, mix_0_1 };

// One of the buffers that TPipe::InitBuffer gave to a queue.
struct Buffer {
    enum class State : uint8_t { free, allocated, enqueued, dequeued };
    uint8_t* begin = nullptr;
    uint32_t bytes = 0;
    State state = State::free;
    uint32_t generation = 0;  // counts the frees: a tensor of an older generation has been freed
    int32_t queue = -1;       // index of its queue in the block; -1 for a TBuf
    Where used;               // the last AllocTensor, EnQue or DeQue
};

// A queue as the block sees it. It outlives the kernel's TQue object, so that the balance can be checked at
// the end.
struct Queue {
    const char* position = "";
    int32_t depth = 0;
    std::deque<Buffer> buffers;
    std::deque<Buffer*> enqueued;
    size_t next = 0;  // where the search for a free buffer starts
    bool retired = false;
    Where initialized;
};

// The contexts of a kernel's communicators, where it has any.
using Contexts = std::array<void*, 2>;

// The memory of a tensor that is an argument of a launch. The last one is the workspace.
struct ArgumentMemory {
    const void* data;
    size_t bytes;
};

class PipeOrder;

// The state of one block, alone on its thread.
class Block {
  public:
    const char* kernel = "";
    uint32_t index = 0;  // of the group: what blockDim counts
    uint32_t count = 1;  // blockDim
    Core core = Core::unified;
    uint32_t sub_index = 0;  // which vector core of a group
    uint32_t sub_count = 1;  // vector cores in a group
    KernelType type = KernelType::undeclared;
    uint64_t tiling_key = 0;
    bool tiling_key_given = false;
    std::vector<uint64_t> tiling_keys_asked;  // by TILING_KEY_IS, without success
    // What REGISTER_TILING_FOR_TILINGKEY says of this key, or may say: the texts are the kernel's.
    const char* tiling_of_key = nullptr;
    const char* tiling_of_key_when = nullptr;
    bool tiling_of_key_is_sure = false;
    uint8_t* workspace = nullptr;  // of SetSysWorkspace
    Contexts contexts{};
    const ArgumentMemory* arguments = nullptr;
    size_t argument_count = 0;
    Where where;  // the API called last

    // Registers of the vector unit.
    bool counter_mode = false;
    uint64_t mask_high = ~uint64_t{0};
    uint64_t mask_low = ~uint64_t{0};
    uint64_t compare_mask[4] = {};
    // What the last reduction leaves to be read back.
    struct Reduced {
        double value = 0;
        uint32_t bits = 0;   // of the value, as the element type has it
        uint32_t index = 0;  // of the extreme
        const char* missing = "no reduction ran";
    };
    Reduced sum, extreme;
    uint16_t sorted[4] = {};
    // What SetDeqScale set last: the scale of int32_t to half, or the parameters of int16_t to 8 bits, one
    // word of them or the address of sixteen.
    struct Dequantizer {
        enum class Kind { none, half, word, words };
        Kind kind = Kind::none;
        float scale = 1.0f;
        uint64_t word = 0;
        const uint8_t* words = nullptr;
    };
    Dequantizer deq;
    uint64_t gathered = 0;
    uint64_t addresses[8][8] = {};  // of the operands of scatter_vnchwconv
    int64_t control = 0;
    // The address register, which counts the bytes that Squeeze left: in all, and by the last one.
    uint64_t squeezed = 0;
    uint64_t squeezed_last = 0;
    bool squeezed_waits = false;  // for the StoreUnAlign that stores them
    bool in_threads = false;      // of a vector function in SIMT form
    bool vector_code = false;     // the kernel's source has nothing for cube cores

    // Registers of the fixpipe.
    struct Fixpipe {
        uint16_t matrices = 1, source = 0, destination = 0;
        uint64_t scale = 0;
        const uint8_t* scales = nullptr;
        uint32_t scales_bytes = 0;
    };
    Fixpipe fixpipe;

    // Feature maps that LoadData takes patches of, and what lies around them, where its parameters do not
    // say.
    struct FeatureMap {
        uint16_t height = 0, width = 0;
        uint8_t pads[4] = {};  // left, right, top, bottom
    };
    FeatureMap feature_maps[2];  // of the left and the right matrix
    uint32_t feature_pad = 0;
    uint32_t feature_boundary = 0;  // bytes of L1 behind which they go on at its start; 0 is none
    uint8_t feature_repeats = 1;
    uint16_t feature_stride = 0;  // fractals from one along k to the next in L0A or L0B; 0 is without gaps

    // Of the fractals in L0B that LoadDataWithSparse put there, a quarter of their bytes; 0xff elsewhere.
    std::vector<uint8_t> kept_indices;

    // What DataCopyPad fills a row with when its parameters do not say: nothing, until SetPadValue.
    bool pad_set = false;
    uint64_t pad_bits = 0;

    // The loops around copies from local to global memory, and the other way; strides in bytes.
    struct CopyLoops {
        bool set = false;
        uint32_t inner = 0, outer = 0;
        uint64_t inner_source = 0, inner_target = 0, outer_source = 0, outer_target = 0;
    };
    CopyLoops copy_loops[2];

    // What a copy from local to global memory does with what is there.
    enum class Atomic : uint8_t { none, add, max, min };
    Atomic atomic = Atomic::none;
    // Accumulates elements of the type that was set; copies that know only sizes call it.
    void (*accumulate)(Atomic, const uint8_t* from, uint8_t* to, uint64_t bytes) = nullptr;

    uint8_t* memory(Memory which) const { return memories_[static_cast<size_t>(which)]; }
    std::deque<Queue> queues;
    std::deque<Buffer> scratch;                 // buffers of TBuf
    std::string beyond;                         // the last TBuf that InitBuffer had no memory for
    std::vector<std::shared_ptr<void>> shapes;  // of tensors that were given one
    std::shared_ptr<PipeOrder> pipes;           // where their order is checked
    uint8_t flags[7][7][8] = {};                // that SetFlag set between two pipes, by number
    bool syncs_by_hand = false;                 // --cce-auto-sync=off: the compiler adds no waits

    // GetBlockIdx: on a vector core of a group the vector cores are counted.
    int64_t block_idx() const { return core == Core::aiv ? int64_t(index) * sub_count + sub_index : index; }

    void check_balance();
    bool is_tiling_key(uint64_t key);
    // A tiling key that was given and that the kernel asked for in vain is not one of its keys.
    void check_tiling_key();
    void register_tiling(const char* expression, const char* structure);
    void require_default_tiling(const Where& where) const;

  private:
    friend class Runner;
    uint8_t* memories_[static_cast<size_t>(Memory::count)] = {};
};

// What a kernel and this library must agree on. A library of kernels that was compiled when a block was laid
// out otherwise does not load: it asks for a symbol that is not there.
template <size_t... sizes>
struct __attribute__((visibility("default"))) LaidOut {
    static const char so;
};
using Layout =
    LaidOut<sizeof(Block), sizeof(Block::Fixpipe), sizeof(Block::FeatureMap), sizeof(Block::CopyLoops),
            sizeof(Block::Reduced), sizeof(Queue), sizeof(Buffer), sizeof(Where)>;
template <>
const char Layout::so;
__attribute__((used)) inline const char* const laid_out = &Layout::so;

// The block of this thread. Outside a kernel there is none, and calling an Ascend C API is a Violation.
Block& current();
bool inside_kernel();

// A broken rule: unwinds the block. `what` already names kernel, block, rule and source line.
struct Violation {
    std::string what;
    int code;
};

[[noreturn]] void fail(const Block& block, const Where& where, const std::string& rule);
[[noreturn]] void fail(const std::string& rule);
// The same of a wait that nothing ends: the error is that of a time limit.
[[noreturn]] void fail_waiting(const Block& block, const Where& where, const std::string& rule);
std::string format(const char* text, ...) __attribute__((format(printf, 1, 2)));
// Says something on the error stream, once in a process.
void warn_once(const std::string& text);

// Whether this process lets operations go on beyond their buffer, as a device does: it does not know where a
// buffer ends. ASCEND_GRAPH_KERNEL_OVERRUNS=1 says so.
extern bool overruns_are_allowed;

inline Block& enter(const Where& where) {
    Block& block = current();
    block.where = where;
    return block;
}

// Which core a kernel runs on. The first question of an undeclared kernel restarts it on split cores, or on
// vector cores alone where its source has nothing for others.
Core ask_core();
void declare_kernel_type(KernelType type);

// Runs `body(state)` and returns 0, or the signal's number when a fault of the processor, the time limit or
// Ctrl-C ended it: see ascendgraphGuard.
int catch_faults(void (*body)(void* state), void* state);

// Points where blocks wait for one another. A wait that can never end is a Violation in every waiting block.
void barrier(bool vector_only, const Where& where);
void set_cross_flag(int mode, int flag, const Where& where);
void wait_cross_flag(int flag, const Where& where);
void set_block_event(int64_t block, int event, const Where& where);
void wait_block_event(int64_t block, int event, const Where& where);
void poll();  // the kernel reads what another block may write: let every block make progress

// A pointer into the unified buffer: a number is a byte of it, which no address of the host is.
template <typename T, typename U>
T ubuf_cast(U value) {
    if constexpr (std::is_integral<U>::value) {
        const auto number = static_cast<uint64_t>(value);
        if (number < memory_bytes(Memory::ub) && inside_kernel())
            return reinterpret_cast<T>(current().memory(Memory::ub) + number);
        return reinterpret_cast<T>(number);
    } else {
        return reinterpret_cast<T>(value);
    }
}

// Serializes atomic accumulation on one page of global memory.
constexpr size_t lock_page = 4096;
class GlobalLock {
  public:
    explicit GlobalLock(const void* address);
    ~GlobalLock();
    GlobalLock(const GlobalLock&) = delete;
    GlobalLock& operator=(const GlobalLock&) = delete;

  private:
    size_t slot_;
};

// The bytes from `p` to the end of its allocation, SIZE_MAX when the runtime does not know it.
size_t allocation_rest(const void* p);
// The same to the end of the tensor that was given to the kernel, 0 when it lies in none that the runtime
// knows.
size_t argument_rest(const void* p);
// Of a workspace the first part is the system's, and the kernel's own part begins behind it: where there is
// nothing behind it, at an address without memory.
constexpr size_t system_workspace = 16 * 1024 * 1024;
uint8_t* user_workspace(void* workspace, size_t bytes);
bool lacks_workspace(const void* p);
// What to say of an access that goes beyond the workspace, nothing of other memory.
std::string workspace_hint(const void* p);

// --- launching
// -------------------------------------------------------------------------------------------------------

using Body = void (*)(const void* arguments);

#ifdef ASCENDC_HOST_VECTOR_ENTRIES
// The vector cores' code of a source, by the types of its entries; the driver of the compiler writes the
// table.
struct NamedEntry {
    const char* type;
    Body code;
};
extern "C" __attribute__((visibility("hidden"))) const NamedEntry ASCENDC_HOST_VECTOR_ENTRIES[];
inline Body find_entry(const NamedEntry* entry, const char* type) {
    while (entry->type != nullptr && std::strcmp(entry->type, type) != 0) ++entry;
    if (entry->type == nullptr) fail(std::string("the vector cores have no code for ") + type);
    return entry->code;
}
#endif

// Queues `block_count` blocks of `body(copy of arguments)` on `stream`. Returns an ACL error code, 0 for
// none. A kernel for another architecture than the one that this process stands for is refused.
uint32_t launch_bytes(const char* kernel, int architecture, uint32_t block_count, void* stream, Body body,
                      const void* arguments, size_t bytes);

// The tiling key of the next launch by this thread; a launch without one runs with key 0, as the device does.
// A kernel that asks TILING_KEY_IS must know a key that was given.
extern "C" void ascendcHostSetTilingKey(uint64_t key);
// Its communicators', and its tensors' memory.
void set_contexts(const Contexts& contexts);
void set_arguments(const std::vector<ArgumentMemory>& arguments);

// Kernel arguments as the device receives them: values, copied at the launch.
template <typename... Ts>
struct Arguments {
    template <typename F, typename... Head>
    void apply(const F& f, const Head&... head) const {
        f(head...);
    }
};
template <typename T, typename... Ts>
struct Arguments<T, Ts...> {
    static_assert(std::is_trivially_copyable<T>::value, "a kernel argument is copied as bytes");
    T first;
    Arguments<Ts...> rest;
    template <typename F, typename... Head>
    void apply(const F& f, const Head&... head) const {
        rest.apply(f, head..., first);
    }
};
inline Arguments<> pack() { return {}; }
template <typename T, typename... Ts>
Arguments<T, Ts...> pack(T first, Ts... rest) {
    return {first, pack(rest...)};
}

// One kernel of one launch expression, as the code that a block runs. `Kernel` is a captureless function
// object; one is made for every launch expression.
template <typename Kernel, typename Packed>
struct Entry {
    static void here(const void* bytes) {
        // An empty class has no state to construct, and a lambda has no default constructor before C++20.
        alignas(Kernel) char nothing[sizeof(Kernel)] = {};
#ifdef ASCENDC_HOST_MANUAL_SYNC
        current().syncs_by_hand = true;
#endif
        static_cast<const Packed*>(bytes)->apply(*std::launder(reinterpret_cast<const Kernel*>(nothing)));
    }
#ifdef ASCENDC_HOST_VECTOR_ENTRIES
    // The source was compiled once for each kind of core: this is the cube cores' code.
    static void run(const void* bytes) {
        if (ask_core() != Core::aiv) return here(bytes);
        static const Body vector = find_entry(ASCENDC_HOST_VECTOR_ENTRIES, typeid(Entry).name());
        vector(bytes);
    }
#else
    static void run(const void* bytes) { here(bytes); }
#endif
};

template <typename Kernel, typename... Ts>
uint32_t launch(const char* name, uint32_t block_count, void* stream, Kernel, Ts... values) {
    static_assert(std::is_empty<Kernel>::value, "a kernel captures nothing: its arguments carry everything");
    const auto arguments = pack(values...);
    using Packed = std::remove_const_t<decltype(arguments)>;
    return launch_bytes(name, npu_architecture, block_count, stream, Entry<Kernel, Packed>::run, &arguments,
                        sizeof(arguments));
}

// kernel<<<blocks, l2ctrl, stream>>>(arguments...), as the compiler driver writes it:
// chevrons("name", [](const auto&... a) { kernel(a...); }, blocks, l2ctrl, stream)(arguments...).
template <typename Stream>
auto raw_stream(const Stream& stream, int) -> decltype(stream.stream()) {
    return stream.stream();  // c10_npu::NPUStream: its queue is drained, as the device's launch does
}
inline void* raw_stream(void* stream, long) { return stream; }

// The argument of a launch that takes void* for every pointer of its kernel; other values as they are.
template <typename T>
const T& pointer(const T& value) {
    return value;
}
struct AnyPointer {
    void* value;
    template <typename T>
    operator T*() const {
        return static_cast<T*>(value);
    }
};
inline AnyPointer pointer(void* const& value) { return {value}; }

template <typename Kernel>
struct Chevrons {
    const char* name;
    Kernel kernel;
    uint32_t blocks;
    void* stream;
    template <typename... Ts>
    void operator()(Ts... values) const {
        launch(name, blocks, stream, kernel, values...);
    }
};
template <typename Kernel, typename L2, typename Stream>
Chevrons<Kernel> chevrons(const char* name, Kernel kernel, uint32_t blocks, L2, const Stream& stream) {
    return {name, kernel, blocks, raw_stream(stream, 0)};
}
template <typename Kernel, typename L2>
Chevrons<Kernel> chevrons(const char* name, Kernel kernel, uint32_t blocks, L2, std::nullptr_t) {
    return {name, kernel, blocks, nullptr};
}
template <typename Kernel>
Chevrons<Kernel> chevrons(const char* name, Kernel kernel, uint32_t blocks) {
    return {name, kernel, blocks, nullptr};
}
template <typename Kernel, typename L2>
Chevrons<Kernel> chevrons(const char* name, Kernel kernel, uint32_t blocks, L2) {
    return {name, kernel, blocks, nullptr};
}

}  // namespace ascendc_host

#endif  // ASCENDC_HOST_INTERNAL_RUNTIME_H
