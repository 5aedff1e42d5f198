// TPipe, TQue, TBuf, TBufPool: who owns which part of local memory, and in which order it is handed on.
#ifndef ASCENDC_HOST_BASIC_API_PIPE_H
#define ASCENDC_HOST_BASIC_API_PIPE_H

#include <array>

#include "ascendc_host/basic_api/tensor.h"
#include "ascendc_host/internal/pipes.h"

namespace AscendC {

using TBufHandle = uint8_t*;
struct DataCopyParams;

struct TQueConfig {
    bool nd2nz = false;
    bool nz2nd = false;
    bool scmBlockGroup = false;
    uint32_t bufferLen = 0;
    uint32_t bufferNumber = 0;
    uint32_t consumerSize = 0;
    TPosition consumer[8] = {};
    bool enableStaticEvtId = false;
    bool enableLoopQueue = false;
};

// Where the buffer of a queue lies: a queue of CO1 -> CO2 keeps its data where the source is.
constexpr TPosition buffer_position(TPosition source, TPosition destination) {
    switch (source) {
        case TPosition::GM:
            return destination;
        case TPosition::VECIN:
        case TPosition::VECOUT:
        case TPosition::VECCALC:
            return destination == TPosition::A1 || destination == TPosition::B1 ? destination : source;
        default:
            return source;
    }
}

namespace detail {

// The pipe that fills the buffer of a queue between two positions, and the one that takes it.
constexpr ascendc_host::QueuePipes queue_pipes(TPosition source, TPosition destination) {
    using ascendc_host::Memory;
    using ascendc_host::Pipe;
    const bool to_global = destination == TPosition::GM || destination == TPosition::VECOUT;
    switch (memory_of(buffer_position(source, destination))) {
        case Memory::l1: {
            const bool from_global = source == TPosition::GM || memory_of(source) != Memory::ub;
            return {from_global ? Pipe::mte2 : Pipe::mte3, Pipe::mte1};
        }
        case Memory::l0c:
            return {Pipe::cube, Pipe::fixpipe};
        case Memory::l0a:
        case Memory::l0b:
        case Memory::bias:
            return {Pipe::mte1, Pipe::cube};
        case Memory::fixpipe:
            return {Pipe::fixpipe, Pipe::fixpipe};
        default:
            if (source == TPosition::VECIN) return {Pipe::mte2, to_global ? Pipe::mte3 : Pipe::vector};
            if (source == TPosition::GM) return {Pipe::mte2, Pipe::vector};
            return {Pipe::vector, to_global ? Pipe::mte3 : Pipe::vector};
    }
}

inline TBuffAddr address_of(TPosition position, const uint8_t* begin, uint32_t bytes, TBufHandle handle) {
    const uint8_t* const start = ascendc_host::current().memory(memory_of(position));
    return {bytes, static_cast<uint32_t>(begin - start), handle, static_cast<uint8_t>(position)};
}

}  // namespace detail

// A queue between two positions: AllocTensor, EnQue, DeQue, FreeTensor, in this order for every tensor.
template <TPosition source, TPosition destination, int32_t depth, auto mask = 0>
class TQueBind {
  public:
    static constexpr bool is_queue = true;
    static constexpr TPosition position = buffer_position(source, destination);
    static constexpr TPosition srcPosition = source;
    static constexpr TPosition dstPosition = destination;

    template <typename T>
    LocalTensor<T> AllocTensor(Where where = Where()) {
        return view<T>(take("AllocTensor", where));
    }
    template <typename T>
    void AllocTensor(LocalTensor<T>& tensor, Where where = Where()) {
        tensor = AllocTensor<T>(where);
    }
    template <typename T>
    bool EnQue(const LocalTensor<T>& tensor, Where where = Where()) {
        ascendc_host::enter(where);
        return put(own(tensor, "EnQue", where), where);
    }
    template <TPosition, TPosition, typename T>
    bool EnQue(const LocalTensor<T>& tensor, Where where = Where()) {
        return EnQue(tensor, where);
    }
    template <typename T>
    LocalTensor<T> DeQue(Where where = Where()) {
        return view<T>(next(where));
    }
    template <typename T>
    void DeQue(LocalTensor<T>& tensor, Where where = Where()) {
        tensor = DeQue<T>(where);
    }
    template <TPosition, TPosition, typename T>
    LocalTensor<T> DeQue(Where where = Where()) {
        return DeQue<T>(where);
    }
    template <typename T>
    void FreeTensor(LocalTensor<T>& tensor, Where where = Where()) {
        ascendc_host::enter(where);
        release(own(tensor, "FreeTensor", where), "FreeTensor", where);
    }
    template <typename T>
    void FreeTensor(LocalTensor<T>&& tensor, Where where = Where()) {
        FreeTensor(tensor, where);
    }
    // The same of a buffer without a tensor.
    TBufHandle AllocBuffer(Where where = Where()) { return handle_of(take("AllocBuffer", where)); }
    bool EnQue(TBufHandle buffer, Where where = Where()) {
        ascendc_host::enter(where);
        return put(own(buffer, "EnQue", where), where);
    }
    TBufHandle DeQue(Where where = Where()) { return handle_of(next(where)); }
    void FreeBuffer(TBufHandle buffer, Where where = Where()) {
        ascendc_host::enter(where);
        release(own(buffer, "FreeBuffer", where), "FreeBuffer", where);
    }
    // Where a buffer lies, for LocalTensor::SetAddr.
    TBuffAddr GetBufferAddr(TBufHandle buf, Where where = Where()) {
        ascendc_host::enter(where);
        const ascendc_host::Buffer& buffer = own(buf, "GetBufferAddr", where);
        return detail::address_of(position, buffer.begin, buffer.bytes, buf);
    }
    bool VacantInQue() {
        return state("VacantInQue", Where("", 0)).enqueued.size() < size_t(std::max(depth, 1));
    }
    bool HasTensorInQue() { return !state("HasTensorInQue", Where("", 0)).enqueued.empty(); }
    int32_t GetTensorCountInQue() {
        return static_cast<int32_t>(state("GetTensorCountInQue", Where("", 0)).enqueued.size());
    }
    bool HasIdleBuffer() {
        for (const auto& buffer : state("HasIdleBuffer", Where("", 0)).buffers) {
            if (buffer.state == ascendc_host::Buffer::State::free) return true;
        }
        return false;
    }
    void FreeAllEvent() {}
    template <typename T>
    TBufState GetState(const LocalTensor<T>& tensor) const {
        return tensor.buffer() == nullptr || tensor.stale() ? TBufState::FREE
                                                            : static_cast<TBufState>(tensor.buffer()->state);
    }

    // For pools that EXTERN_IMPL_BUFPOOL makes: so many buffers, and then the memory of each, counted from
    // the start of its kind.
    void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t len, Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (num == 0 || len == 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitStartBufHandle: %u buffers of %u bytes; both must be above 0",
                                     unsigned(num), len));
        }
        queue_ = static_cast<int32_t>(block.queues.size());
        ascendc_host::Queue made;
        made.position = position_name(position);
        made.depth = depth;
        made.initialized = where;
        made.buffers.resize(num);
        for (ascendc_host::Buffer& buffer : made.buffers) buffer.queue = queue_;
        block.queues.push_back(std::move(made));
    }
    template <typename Pool>
    void InitBufHandle(Pool* bufPool, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t len,
                       Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        ascendc_host::Queue& queue = state("InitBufHandle", where);
        if (index >= queue.buffers.size()) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitBufHandle: index %u; InitStartBufHandle made %zu buffers", index,
                                     queue.buffers.size()));
        }
        ascendc_host::Buffer& buffer = queue.buffers[index];
        buffer.begin = bufPool->custom_pool().place(memory_of(position), curPoolAddr, len, where);
        buffer.bytes = len;
        bufPool->custom_pool().adopt(queue_);
    }

    // For TPipe and TBufPool.
    void attach(int32_t queue) { queue_ = queue; }
    static constexpr int32_t queue_depth = depth;

  private:
    ascendc_host::Queue& state(const char* api, const Where& where) const {
        ascendc_host::Block& block = ascendc_host::current();
        if (queue_ < 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("%s: the queue %s has no buffers; call TPipe::InitBuffer first", api,
                                     position_name(position)));
        }
        return block.queues[static_cast<size_t>(queue_)];
    }
    // A free buffer, the first after the one that was taken last.
    ascendc_host::Buffer& take(const char* api, const Where& where) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        ascendc_host::Queue& queue = state(api, where);
        for (size_t i = 0; i < queue.buffers.size(); ++i) {
            ascendc_host::Buffer& buffer = queue.buffers[(queue.next + i) % queue.buffers.size()];
            if (buffer.state != ascendc_host::Buffer::State::free) continue;
            queue.next = (queue.next + i + 1) % queue.buffers.size();
            buffer.state = ascendc_host::Buffer::State::allocated;
            buffer.used = where;
            pipes.take(buffer, where);
            return buffer;
        }
        ascendc_host::fail_waiting(
            block, where,
            ascendc_host::format("%s: all %zu buffers of queue %s are in use (on the device this waits for "
                                 "ever); free one with FreeTensor first",
                                 api, queue.buffers.size(), queue.position));
    }
    bool put(ascendc_host::Buffer& buffer, const Where& where) {
        ascendc_host::Block& block = ascendc_host::current();
        ascendc_host::Queue& queue = state("EnQue", where);
        if (buffer.state == ascendc_host::Buffer::State::enqueued) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("EnQue: the tensor is in queue %s already", queue.position));
        }
        const size_t limit = static_cast<size_t>(std::max(depth, 1));
        if (queue.enqueued.size() >= limit) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "EnQue: queue %s has depth %zu and holds %zu tensors; DeQue one first, or give "
                    "the queue a larger depth",
                    queue.position, limit, queue.enqueued.size()));
        }
        buffer.state = ascendc_host::Buffer::State::enqueued;
        buffer.used = where;
        queue.enqueued.push_back(&buffer);
        pipes.enqueue(buffer, where);
        return true;
    }
    // The buffer that was enqueued first.
    ascendc_host::Buffer& next(const Where& where) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        ascendc_host::Queue& queue = state("DeQue", where);
        if (queue.enqueued.empty()) {
            ascendc_host::fail_waiting(
                block, where,
                ascendc_host::format(
                    "DeQue: queue %s is empty (on the device this waits for ever); EnQue a tensor first",
                    queue.position));
        }
        ascendc_host::Buffer& buffer = *queue.enqueued.front();
        queue.enqueued.pop_front();
        buffer.state = ascendc_host::Buffer::State::dequeued;
        buffer.used = where;
        pipes.dequeue(buffer, where);
        return buffer;
    }
    void release(ascendc_host::Buffer& buffer, const char* api, const Where& where) {
        if (buffer.state == ascendc_host::Buffer::State::enqueued) {
            ascendc_host::fail(ascendc_host::current(), where,
                               ascendc_host::format("%s: the tensor is still in queue %s; DeQue it first",
                                                    api, state(api, where).position));
        }
        buffer.state = ascendc_host::Buffer::State::free;
        ++buffer.generation;
        pipes.release(buffer, where);
    }
    static TBufHandle handle_of(ascendc_host::Buffer& buffer) {
        return reinterpret_cast<TBufHandle>(&buffer);
    }
    ascendc_host::Buffer& own(TBufHandle handle, const char* api, const Where& where) const {
        for (ascendc_host::Buffer& buffer : state(api, where).buffers) {
            if (handle_of(buffer) == handle) return buffer;
        }
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format("%s: the buffer is not from this queue %s", api, position_name(position)));
    }
    template <typename T>
    ascendc_host::Buffer& own(const LocalTensor<T>& tensor, const char* api, const Where& where) const {
        if (tensor.stale())
            ascendc_host::fail(
                ascendc_host::current(), where,
                ascendc_host::format("%s: the tensor was given back with FreeTensor already", api));
        tensor.use_bytes(0, api, "the tensor", where);
        if (tensor.buffer() == nullptr || tensor.buffer()->queue != queue_) {
            ascendc_host::fail(ascendc_host::current(), where,
                               ascendc_host::format("%s: the tensor does not come from this queue %s", api,
                                                    position_name(position)));
        }
        return *tensor.buffer();
    }
    template <typename T>
    static LocalTensor<T> view(ascendc_host::Buffer& buffer) {
        return LocalTensor<T>(position, buffer.begin, buffer.bytes, &buffer);
    }

    static constexpr ascendc_host::QueuePipes pipes = detail::queue_pipes(source, destination);
    int32_t queue_ = -1;
};

// The source and destination of a queue named by one position.
constexpr TPosition queue_source(TPosition position) {
    switch (position) {
        case TPosition::VECIN:
        case TPosition::A1:
        case TPosition::B1:
        case TPosition::C1:
            return TPosition::GM;
        case TPosition::A2:
            return TPosition::A2;
        case TPosition::B2:
            return TPosition::B2;
        case TPosition::C2:
            return TPosition::C2;
        default:
            return position;
    }
}
constexpr TPosition queue_destination(TPosition position) {
    return position == TPosition::VECOUT || position == TPosition::CO2 ? TPosition::GM : position;
}

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<queue_source(pos), queue_destination(pos), depth, mask> {};

template <TPosition pos, int32_t depth = 1, auto mask = 0>
using TSCM = TQueBind<pos, TPosition::TSCM, depth, mask>;

// Memory that is held for the whole kernel. The queue functions exist for code written for both, and do
// nothing.
template <TPosition pos = TPosition::LCM>
class TBuf {
  public:
    static constexpr bool is_queue = false;
    static constexpr TPosition position = pos;

    // Without memory the tensor is empty: kernels take what one of their ways alone gave memory to, and use
    // it there.
    template <typename T>
    LocalTensor<T> Get(Where where = Where()) {
        return GetWithOffset<T>(static_cast<uint32_t>(ascendc_host::elements_of<T>(GetBufLen())), 0, where);
    }
    template <typename T>
    LocalTensor<T> Get(uint32_t size, Where where = Where()) {
        if (!has_memory()) return LocalTensor<T>(pos, nullptr, 0, nullptr);
        LocalTensor<T> view = Get<T>(where);
        view.use_bytes(ascendc_host::bytes_of<T>(size), "TBuf::Get", "the view", where);
        view.SetSize(size);
        return view;
    }
    template <typename T>
    LocalTensor<T> GetWithOffset(uint32_t size, uint32_t offset, Where where = Where()) {
        ascendc_host::enter(where);
        if (!has_memory()) return LocalTensor<T>(pos, nullptr, 0, nullptr);
        const uint32_t whole = buffer_->bytes;
        if (offset > whole || ascendc_host::bytes_of<T>(size) > whole - offset) {
            ascendc_host::fail(
                ascendc_host::current(), where,
                ascendc_host::format(
                    "TBuf::GetWithOffset: %u elements of %g bytes from byte %u; the buffer has %u bytes",
                    size, static_cast<double>(SizeOfBits<T>::value) / 8, offset, whole));
        }
        LocalTensor<T> view(pos, buffer_->begin + offset, whole - offset, nullptr);
        view.SetSize(size);
        return view;
    }
    template <typename T>
    void EnQue(const LocalTensor<T>&) {}
    template <typename T>
    LocalTensor<T> DeQue(Where where = Where()) {
        return Get<T>(where);
    }
    template <typename T>
    LocalTensor<T> AllocTensor(Where where = Where()) {
        return Get<T>(where);
    }
    template <typename T>
    void FreeTensor(LocalTensor<T>&) {}
    template <typename T>
    TBufState GetState(const LocalTensor<T>&) const {
        return buffer_ == nullptr ? TBufState::FREE : TBufState::OCCUPIED;
    }
    uint32_t GetBufLen() const { return buffer_ == nullptr ? 0 : buffer_->bytes; }
    // Its one buffer, whichever of its tensors the handle is of.
    TBuffAddr GetBufferAddr(TBufHandle buf, Where where = Where()) {
        const auto& block = ascendc_host::enter(where);
        if (!has_memory())
            ascendc_host::fail(block, where, "GetBufferAddr: the TBuf has no memory; call InitBuffer first");
        return detail::address_of(pos, buffer_->begin, buffer_->bytes, buf);
    }

    // For pools that EXTERN_IMPL_BUFPOOL makes.
    void InitStartBufHandle(TBufHandle, uint8_t num, uint32_t len, Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (num != 1 || len == 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "InitStartBufHandle: %u buffers of %u bytes for a TBuf; it has 1, of more than 0 bytes",
                    unsigned(num), len));
        }
        block.scratch.emplace_back();
        buffer_ = &block.scratch.back();
    }
    template <typename Pool>
    void InitBufHandle(Pool* bufPool, uint32_t index, TBufHandle, uint32_t curPoolAddr, uint32_t len,
                       Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (index != 0 || buffer_ == nullptr) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitBufHandle: index %u of a TBuf; call InitStartBufHandle "
                                     "first, and give index 0",
                                     index));
        }
        buffer_->begin = bufPool->custom_pool().place(memory_of(pos), curPoolAddr, len, where);
        buffer_->bytes = len;
    }

    // For TPipe and TBufPool.
    void attach(ascendc_host::Buffer* buffer) { buffer_ = buffer; }

  private:
    bool has_memory() const { return buffer_ != nullptr && buffer_->begin != nullptr; }
    ascendc_host::Buffer* buffer_ = nullptr;
};

namespace detail {

// A range of each local memory, given out from the start.
class Allocator {
  public:
    struct Range {
        uint8_t* begin = nullptr;
        uint32_t bytes = 0;
        uint32_t used = 0;
    };

    template <typename Que>
    void queue(Range& range, Que& que, uint8_t count, uint32_t bytes, const Where& where) {
        static_assert(
            Que::is_queue,
            "InitBuffer(queue, number, length) is for queues; a TBuf takes InitBuffer(buffer, length)");
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (count == 0 || bytes == 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitBuffer: %u buffers of %u bytes for queue %s; both must be above 0",
                                     unsigned(count), bytes, position_name(Que::position)));
        }
        count_buffers(block, count, where);
        ascendc_host::Queue made;
        made.position = position_name(Que::position);
        made.depth = Que::queue_depth;
        made.initialized = where;
        const auto index = static_cast<int32_t>(block.queues.size());
        for (uint8_t i = 0; i < count; ++i) {
            ascendc_host::Buffer buffer;
            buffer.begin = take(range, memory_of(Que::position), bytes, where);
            buffer.bytes = rounded(bytes);
            buffer.queue = index;
            made.buffers.push_back(buffer);
        }
        block.queues.push_back(std::move(made));
        queues_.push_back(index);
        que.attach(index);
    }
    template <TPosition pos>
    void buffer(Range& range, TBuf<pos>& buf, uint32_t bytes, const Where& where) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (bytes == 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitBuffer: 0 bytes for a TBuf of %s; the length must be above 0",
                                     position_name(pos)));
        }
        count_buffers(block, 1, where);
        ascendc_host::Buffer made;
        made.bytes = rounded(bytes);
        if (fits(range, memory_of(pos), bytes, where)) {
            made.begin = take(range, memory_of(pos), bytes, where);
        } else {
            // A device only counts: a buffer that lies after the end of its memory stops what uses it.
            block.beyond = overflow(range, memory_of(pos), bytes);
            ascendc_host::warn_once(ascendc_host::format("kernel %s: %s; a device ends a kernel that uses it",
                                                         block.kernel, block.beyond.c_str()));
            range.used += made.bytes;
        }
        block.scratch.push_back(made);
        buf.attach(&block.scratch.back());
    }
    uint8_t* take(Range& range, ascendc_host::Memory memory, uint32_t bytes, const Where& where) {
        if (!fits(range, memory, bytes, where))
            ascendc_host::fail(ascendc_host::current(), where, overflow(range, memory, bytes));
        uint8_t* begin = range.begin + range.used;
        range.used += rounded(bytes);
        return begin;
    }
    // The queues are initialized anew or not at all: what was in them no longer counts.
    void retire() {
        if (!ascendc_host::inside_kernel()) return;
        for (int32_t index : queues_)
            ascendc_host::current().queues[static_cast<size_t>(index)].retired = true;
        queues_.clear();
        buffers_ = 0;
    }

  private:
    static constexpr uint32_t most_buffers = 64;
    static uint32_t rounded(uint32_t bytes) { return (bytes + 31) / 32 * 32; }
    static bool fits(Range& range, ascendc_host::Memory memory, uint32_t bytes, const Where& where) {
        ascendc_host::Block& block = ascendc_host::current();
        if (memory == ascendc_host::Memory::count)
            ascendc_host::fail(block, where, "InitBuffer: position GM has no local memory");
        if (range.begin == nullptr) range = {block.memory(memory), memory_bytes(memory), 0};
        return uint64_t(range.used) + bytes <= range.bytes;
    }
    static std::string overflow(const Range& range, ascendc_host::Memory memory, uint32_t bytes) {
        return ascendc_host::format("InitBuffer: %u bytes more overflow the %s: %u of %u bytes are in use",
                                    bytes, ascendc_host::memory_name(memory), range.used, range.bytes);
    }
    void count_buffers(const ascendc_host::Block& block, uint32_t count, const Where& where) {
        if ((buffers_ += count) > most_buffers) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitBuffer: more than %u buffers in one TPipe", most_buffers));
        }
    }
    std::vector<int32_t> queues_;
    uint32_t buffers_ = 0;
};

inline void check_share(const Allocator::Range& range, uint32_t bytes, const Where& where) {
    if (bytes <= range.bytes) return;
    ascendc_host::fail(
        ascendc_host::current(), where,
        ascendc_host::format("InitBufPool: %u bytes shared with a pool of %u", bytes, range.bytes));
}

}  // namespace detail

// A part of a TPipe's memory that is divided anew, several times in a kernel.
template <TPosition pos, uint32_t bufIDSize = 4>
class TBufPool {
  public:
    static constexpr TPosition position = pos;
    template <typename Que>
    bool InitBuffer(Que& que, uint8_t count, uint32_t bytes, Where where = Where()) {
        allocator_.queue(range_, que, count, bytes, where);
        return true;
    }
    template <TPosition buf_pos>
    bool InitBuffer(TBuf<buf_pos>& buf, uint32_t bytes, Where where = Where()) {
        allocator_.buffer(range_, buf, bytes, where);
        return true;
    }
    template <typename Pool>
    bool InitBufPool(Pool& pool, uint32_t bytes, Where where = Where()) {
        pool.attach(allocator_.take(range_, memory_of(pos), bytes, where), bytes);
        return true;
    }
    template <typename Pool, typename Other>
    bool InitBufPool(Pool& pool, uint32_t bytes, Other& shared, Where where = Where()) {
        pool.share(shared, bytes, where);
        return true;
    }
    void Reset() {
        allocator_.retire();
        range_.used = 0;
        if (__builtin_expect(ascendc_host::pipes_are_checked, 0)) ascendc_host::wait_for_all_pipes();
    }

    // For TPipe and TBufPool.
    void attach(uint8_t* begin, uint32_t bytes) { range_ = {begin, bytes, 0}; }
    template <typename Other>
    void share(Other& other, uint32_t bytes, const Where& where) {
        detail::check_share(other.range(), bytes, where);
        attach(other.range().begin, bytes);
    }
    const detail::Allocator::Range& range() const { return range_; }

  private:
    detail::Allocator::Range range_;
    detail::Allocator allocator_;
};

namespace detail {
// A pool whose author gives out its memory: where it lies, and what its author notes of it.
class CustomPool {
  public:
    void reset() {
        for (int32_t index : queues_)
            if (ascendc_host::inside_kernel())
                ascendc_host::current().queues[static_cast<size_t>(index)].retired = true;
        queues_.clear();
        address = first_;
        count = 0;
    }
    void attach(ascendc_host::Memory memory, uint8_t* begin, uint32_t bytes) {
        range_ = {begin, bytes, 0};
        first_ = static_cast<uint32_t>(begin - ascendc_host::current().memory(memory));
        reset();
    }
    const Allocator::Range& range() const { return range_; }
    void adopt(int32_t queue) {
        if (queues_.empty() || queues_.back() != queue) queues_.push_back(queue);
    }
    uint8_t* place(ascendc_host::Memory memory, uint32_t at, uint32_t bytes, const Where& where) const {
        ascendc_host::Block& block = ascendc_host::current();
        uint8_t* begin = block.memory(memory) + at;
        if (begin < range_.begin || bytes > range_.bytes || begin + bytes > range_.begin + range_.bytes ||
            at % ONE_BLK_SIZE != 0 || bytes % ONE_BLK_SIZE != 0) {
            ascendc_host::fail(block, where,
                               ascendc_host::format(
                                   "InitBufHandle: %u bytes from byte %u of the %s; valid: multiples of 32, "
                                   "within the pool's %u bytes from GetCurAddr() = %u on",
                                   bytes, at, ascendc_host::memory_name(memory), range_.bytes, first_));
        }
        return begin;
    }
    TBufHandle handle(uint8_t index, uint32_t most, const Where& where) {
        if (index >= most) {
            ascendc_host::fail(ascendc_host::current(), where,
                               ascendc_host::format("GetBufHandle: buffer %u; EXTERN_IMPL_BUFPOOL has %u",
                                                    unsigned(index), most));
        }
        return handles_.data() + index;
    }
    uint32_t address = 0;
    uint8_t count = 0;

  private:
    Allocator::Range range_;
    uint32_t first_ = 0;
    std::vector<int32_t> queues_;
    std::array<uint8_t, 256> handles_{};  // their addresses tell buffers apart, and there is nothing in them
};
}  // namespace detail

// The members of a pool whose author writes InitBuffer: it is given memory by InitBufPool, and addresses
// count from the start of that kind of memory.
#define EXTERN_IMPL_BUFPOOL(EXT_BUFPOOL, POSITION, BUFID_SIZE)                                        \
  public:                                                                                             \
    static constexpr ::AscendC::TPosition position = POSITION;                                        \
    void Init() { host_pool_.reset(); }                                                               \
    void Reset() { host_pool_.reset(); }                                                              \
    ::AscendC::TBufHandle GetBufHandle(uint8_t offset, ::AscendC::Where where = ::AscendC::Where()) { \
        return host_pool_.handle(offset, BUFID_SIZE, where);                                          \
    }                                                                                                 \
    void SetCurAddr(uint32_t curAddr) { host_pool_.address = curAddr; }                               \
    uint32_t GetCurAddr() { return host_pool_.address; }                                              \
    void SetCurBufSize(uint8_t curBufSize) { host_pool_.count = curBufSize; }                         \
    uint8_t GetCurBufSize() { return host_pool_.count; }                                              \
    void attach(uint8_t* begin, uint32_t bytes) {                                                     \
        host_pool_.attach(::AscendC::memory_of(position), begin, bytes);                              \
    }                                                                                                 \
    template <typename Other>                                                                         \
    void share(Other& other, uint32_t bytes, const ::AscendC::Where& where) {                         \
        ::AscendC::detail::check_share(other.range(), bytes, where);                                  \
        attach(other.range().begin, bytes);                                                           \
    }                                                                                                 \
    const ::AscendC::detail::Allocator::Range& range() const { return host_pool_.range(); }           \
    ::AscendC::detail::CustomPool& custom_pool() { return host_pool_; }                               \
                                                                                                      \
  private:                                                                                            \
    ::AscendC::detail::CustomPool host_pool_;                                                         \
                                                                                                      \
  public:

// Gives local memory to queues and buffers.
class TPipe {
  public:
    TPipe() { activate(); }
    ~TPipe() = default;
    // A copy gives the same memory again, as on the device.
    TPipe(const TPipe&) = default;
    TPipe& operator=(const TPipe&) = default;

    void Init() { activate(); }
    template <typename Que>
    bool InitBuffer(Que& que, uint8_t count, uint32_t bytes, Where where = Where()) {
        allocator_.queue(range(Que::position), que, count, bytes, where);
        return true;
    }
    template <TPosition pos>
    bool InitBuffer(TBuf<pos>& buf, uint32_t bytes, Where where = Where()) {
        allocator_.buffer(range(pos), buf, bytes, where);
        return true;
    }
    template <typename Pool>
    bool InitBufPool(Pool& pool, uint32_t bytes, Where where = Where()) {
        ascendc_host::enter(where);
        pool.attach(allocator_.take(range(Pool::position), memory_of(Pool::position), bytes, where), bytes);
        return true;
    }
    template <typename Pool, typename Other>
    bool InitBufPool(Pool& pool, uint32_t bytes, Other& shared, Where where = Where()) {
        ascendc_host::enter(where);
        pool.share(shared, bytes, where);
        return true;
    }
    void Reset() {
        allocator_.retire();
        for (auto& range : ranges_) range.used = 0;
        events_in_use_.fill(0);
        if (__builtin_expect(ascendc_host::pipes_are_checked, 0)) ascendc_host::wait_for_all_pipes();
    }
    void Destroy() { Reset(); }
    // On a device without waiting for the pipes; here there is nothing to wait for.
    void DestroyWithoutPipeAll() { Reset(); }

    // A part of global memory where data waits that the unified buffer has no room for; offsets are in bytes.
    template <typename T>
    void InitSpmBuffer(const GlobalTensor<T>& workspace, const int32_t bufferSize, Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        if (bufferSize <= 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("InitSpmBuffer: %d bytes; it must be above 0", bufferSize));
        }
        const auto bytes = static_cast<uint64_t>(bufferSize);
        spill_.SetGlobalBuffer(workspace.use_bytes(0, bytes, "InitSpmBuffer", "workspace", where), bytes);
    }
    template <typename T>
    void WriteSpmBuffer(const LocalTensor<T>& writeBuffer, const DataCopyParams& copyParams,
                        int32_t writeOffset = 0, Where where = Where()) {
        DataCopy(spilled<T>("WriteSpmBuffer", writeOffset, where), writeBuffer, copyParams, where);
    }
    template <typename T>
    void WriteSpmBuffer(const LocalTensor<T>& writeBuffer, const int32_t writeSize, int32_t writeOffset = 0,
                        Where where = Where()) {
        DataCopy(spilled<T>("WriteSpmBuffer", writeOffset, where), writeBuffer,
                 static_cast<uint32_t>(writeSize), where);
    }
    template <typename T>
    void ReadSpmBuffer(const LocalTensor<T>& readBuffer, const DataCopyParams& copyParams,
                       int32_t readOffset = 0, Where where = Where()) {
        DataCopy(readBuffer, spilled<T>("ReadSpmBuffer", readOffset, where), copyParams, where);
    }
    template <typename T>
    void ReadSpmBuffer(const LocalTensor<T>& readBuffer, const int32_t readSize, int32_t readOffset = 0,
                       Where where = Where()) {
        DataCopy(readBuffer, spilled<T>("ReadSpmBuffer", readOffset, where), static_cast<uint32_t>(readSize),
                 where);
    }

    // The numbers of an event that are free; FetchEventID leaves the number free.
    template <HardEvent event>
    TEventID AllocEventID(Where where = Where()) {
        const TEventID id = free_event(event, "AllocEventID", where);
        events_in_use_[static_cast<size_t>(event)] |= 1u << id;
        return id;
    }
    template <HardEvent event>
    void ReleaseEventID(TEventID id) {
        events_in_use_[static_cast<size_t>(event)] &= ~(1u << id);
    }
    template <HardEvent event>
    TEventID FetchEventID(Where where = Where()) {
        return free_event(event, "FetchEventID", where);
    }
    TEventID FetchEventID(HardEvent event, Where where = Where()) {
        return free_event(event, "FetchEventID", where);
    }

    template <TPosition pos, typename T>
    LocalTensor<T> GetAbsAddr(int32_t offset, int32_t size, Where where = Where()) const {
        return LocalTensor<T>(pos, static_cast<uint32_t>(offset), static_cast<uint32_t>(size), where);
    }

    // What InitBuffer has left of a memory.
    template <typename T, TPosition pos>
    LocalTensor<T> rest() {
        const uint32_t whole = memory_bytes(memory_of(pos)), used = std::min(range(pos).used, whole);
        return LocalTensor<T>(pos, ascendc_host::current().memory(memory_of(pos)) + used, whole - used,
                              nullptr);
    }

    static TPipe*& active() {
        static thread_local TPipe* pipe = nullptr;
        return pipe;
    }

  private:
    void activate() {
        active() = this;
        Reset();
    }
    TEventID free_event(HardEvent event, const char* api, const Where& where) const {
        const uint32_t in_use = events_in_use_.at(static_cast<size_t>(event));
        for (TEventID id = 0; id < ascendc_host::most_events; ++id)
            if ((in_use >> id & 1) == 0) return id;
        ascendc_host::fail(
            ascendc_host::current(), where,
            ascendc_host::format(
                "%s: all %d numbers of the event are in use; call ReleaseEventID for one first", api,
                ascendc_host::most_events));
    }
    template <typename T>
    GlobalTensor<T> spilled(const char* api, int32_t offset, const Where& where) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        const uint64_t size = spill_.GetSize();
        if (size == 0)
            ascendc_host::fail(block, where,
                               ascendc_host::format("%s: call TPipe::InitSpmBuffer first", api));
        if (offset < 0 || static_cast<uint64_t>(offset) >= size || offset % sizeof(T) != 0) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("%s: offset %d of %llu bytes, in elements of %zu bytes", api, offset,
                                     static_cast<unsigned long long>(size), sizeof(T)));
        }
        return spill_[static_cast<uint64_t>(offset)].template ReinterpretCast<T>();
    }
    detail::Allocator::Range& range(TPosition position) {
        return ranges_[static_cast<size_t>(memory_of(position)) % ranges_.size()];
    }
    std::array<detail::Allocator::Range, static_cast<size_t>(ascendc_host::Memory::count)> ranges_;
    detail::Allocator allocator_;
    std::array<uint32_t, static_cast<size_t>(HardEvent::MAX)> events_in_use_{};
    GlobalTensor<uint8_t> spill_;
};

// Local memory without a TPipe, given out from the start and never returned.
template <Hardware hard = Hardware::UB>
class LocalMemAllocator {
  public:
    uint32_t GetCurAddr() const { return head_; }
    template <TPosition pos, typename T>
    LocalTensor<T> Alloc(uint32_t size, Where where = Where()) {
        const LocalTensor<T> declared(pos, head_, size, where);
        const auto bytes = static_cast<uint32_t>(ascendc_host::bytes_of<T>(size));
        LocalTensor<T> tensor(pos, declared.bytes(), bytes, nullptr);
        head_ += (bytes + 31) / 32 * 32;
        return tensor;
    }
    template <TPosition pos, typename T, uint32_t size>
    LocalTensor<T> Alloc(Where where = Where()) {
        return Alloc<pos, T>(size, where);
    }
    template <typename T>
    LocalTensor<T> Alloc(uint32_t size, Where where = Where()) {
        return Alloc<own_position(), T>(size, where);
    }
    template <typename T, uint32_t size>
    LocalTensor<T> Alloc(Where where = Where()) {
        return Alloc<own_position(), T>(size, where);
    }

  private:
    static constexpr TPosition own_position() {
        switch (hard) {
            case Hardware::L1:
                return TPosition::A1;
            case Hardware::L0A:
                return TPosition::A2;
            case Hardware::L0B:
                return TPosition::B2;
            case Hardware::L0C:
                return TPosition::CO1;
            case Hardware::BIAS:
                return TPosition::C2;
            case Hardware::FIXBUF:
                return TPosition::C2PIPE2GM;
            default:
                return TPosition::VECCALC;
        }
    }
    uint32_t head_ = 0;
};

namespace detail {
// Functions of dav-2201 without a tensor for temporary results write them into the last 8 KiB of the unified
// buffer, whatever lies there. `values` are repeated until `bytes` are full.
template <typename T>
void use_reserved_space(const char* api, T value, uint64_t bytes) {
    if (__NPU_ARCH__ == 3510) return;
    ascendc_host::Block& block = ascendc_host::current();
    TPipe* const pipe = TPipe::active();
    constexpr uint64_t reserved = TOTAL_UB_SIZE - TOTAL_VEC_LOCAL_SIZE;
    if (pipe != nullptr && pipe->rest<uint8_t, TPosition::VECCALC>().GetSize() < reserved)
        ascendc_host::warn_once(ascendc_host::format(
            "kernel %s: %s writes temporary results into the last 8 KiB of the unified buffer, which "
            "InitBuffer gave "
            "out; what was there is lost, as on a device. Leave 8 KiB of it, as the documents say [%s:%d]",
            block.kernel, api, block.where.file, block.where.line));
    T* const at = reinterpret_cast<T*>(block.memory(ascendc_host::Memory::ub) + TOTAL_VEC_LOCAL_SIZE);
    std::fill_n(at, std::min(bytes, reserved) / sizeof(T), value);
}
}  // namespace detail

// The rest of the unified buffer behind what the active TPipe has given out.
template <typename T, TPosition pos>
bool PopStackBuffer(LocalTensor<T>& tensor, Where where = Where()) {
    const auto& block = ascendc_host::enter(where);
    if (TPipe::active() == nullptr) ascendc_host::fail(block, where, "PopStackBuffer: no TPipe is alive");
    tensor = TPipe::active()->template rest<T, pos>();
    return tensor.GetSize() != 0;
}

}  // namespace AscendC

inline AscendC::TPipe* GetTPipePtr() { return AscendC::TPipe::active(); }

#endif  // ASCENDC_HOST_BASIC_API_PIPE_H
