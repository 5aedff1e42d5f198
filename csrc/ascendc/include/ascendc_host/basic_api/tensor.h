// LocalTensor and GlobalTensor: views of local and global memory that know how far they may be read and
// written.
#ifndef ASCENDC_HOST_BASIC_API_TENSOR_H
#define ASCENDC_HOST_BASIC_API_TENSOR_H

#include <cstdio>
#include <cstring>

#include "ascendc_host/basic_api/enums.h"
#include "ascendc_host/internal/pipes.h"

namespace AscendC {

using ascendc_host::Where;

struct ShapeInfo {
    ShapeInfo() = default;
    ShapeInfo(uint8_t dims, const uint32_t sizes[], uint8_t original_dims, const uint32_t original[],
              DataFormat format)
        : shapeDim(dims), originalShapeDim(original_dims), dataFormat(format) {
        if (dims > K_MAX_SHAPE_DIM || original_dims > K_MAX_SHAPE_DIM) {
            ascendc_host::fail(ascendc_host::format("ShapeInfo: %u dimensions; at most %d",
                                                    unsigned(std::max(dims, original_dims)),
                                                    K_MAX_SHAPE_DIM));
        }
        std::copy_n(sizes, dims, shape);
        std::copy_n(original, original_dims, originalShape);
    }
    ShapeInfo(uint8_t dims, const uint32_t sizes[], DataFormat format = DataFormat::ND)
        : ShapeInfo(dims, sizes, dims, sizes, format) {}

    uint8_t shapeDim = 0;
    uint8_t originalShapeDim = 0;
    uint32_t shape[K_MAX_SHAPE_DIM] = {};
    uint32_t originalShape[K_MAX_SHAPE_DIM] = {};
    DataFormat dataFormat = DataFormat::ND;
};
// The shape of a tensor, kept by the block: most tensors have none, and all are copied often.
class ShapeOf {
  public:
    void set(const ShapeInfo& info) {
        auto& shapes = ascendc_host::current().shapes;
        shapes.push_back(std::make_shared<ShapeInfo>(info));
        info_ = static_cast<const ShapeInfo*>(shapes.back().get());
    }
    ShapeInfo get() const { return info_ == nullptr ? ShapeInfo() : *info_; }

  private:
    const ShapeInfo* info_ = nullptr;
};

inline uint64_t GetShapeSize(const ShapeInfo& info) {
    uint64_t size = 1;
    for (int i = 0; i < info.shapeDim; ++i) size *= info.shape[i];
    return size;
}

struct TBuffAddr {
    uint32_t dataLen = 0;
    uint32_t bufferAddr = 0;
    uint8_t* bufferHandle = nullptr;
    uint8_t logicPos = 0;
};

// dst = src0 + src1: an operation over the whole of a tensor, made when it is assigned.
struct WholeTensorOperation {};

// What a tensor shows of its address: the memory in which its offset counts. Code that manages local memory
// without a TPipe assigns it; from then on the same offset is meant, in the memory of that position.
struct LocalAddress {
    uint8_t logicPos = static_cast<uint8_t>(TPosition::VECCALC);
    // The offset itself, in bytes, where code assigns it; it cannot be asked for.
    struct Offset {
        Offset& operator=(uint32_t bytes) {
            value = bytes;
            given = true;
            return *this;
        }
        uint32_t value = 0;
        bool given = false;
    } bufferAddr{};
};

// Bytes from the start of a tensor to an element of it that an address can point to.
template <typename T>
uint64_t bytes_to(uint64_t offset, const char* subject) {
    if (ascendc_host::is_packed<T> && offset % 2 != 0) {
        ascendc_host::fail(ascendc_host::format(
            "%s[%llu]: two elements of int4b_t share a byte, an address begins with the first of them; "
            "valid: even offsets",
            subject, static_cast<unsigned long long>(offset)));
    }
    // A negative offset is a number near 2^64, and it stays negative in bytes. None is further than any
    // memory.
    constexpr int64_t most = int64_t{1} << 56;
    const auto given = static_cast<int64_t>(offset);
    if (__builtin_expect(given > most || given < -most, 0))
        ascendc_host::fail(ascendc_host::format("%s[%lld]: no memory goes that far", subject,
                                                static_cast<long long>(given)));
    return ascendc_host::bytes_of<T>(offset);
}

// A view of `size` elements of local memory. `rest_` is what may be touched from here on: the view's buffer
// to its end.
template <typename T>
class LocalTensor {
  public:
    using PrimType = T;

    LocalAddress address_;

    LocalTensor() = default;
    template <typename Operation,
              typename = std::enable_if_t<std::is_base_of<WholeTensorOperation, Operation>::value>>
    LocalTensor& operator=(const Operation& operation) {
        operation.store(*this);
        return *this;
    }
    // An address counted from the start of the memory of `position`, as used without a TPipe: the size is a
    // declaration, and what follows in that memory may belong to the tensor too.
    LocalTensor(TPosition position, uint32_t address, uint32_t size, Where where = Where()) {
        ascendc_host::Block& block = ascendc_host::enter(where);
        const auto memory = memory_of(position);
        // Its end is checked where it is used: a size may be set after this.
        if (memory == ascendc_host::Memory::count || address >= memory_bytes(memory)) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("LocalTensor: it begins at byte %u of the %s, which has %u", address,
                                     ascendc_host::memory_name(memory), memory_bytes(memory)));
        }
        *this =
            LocalTensor(position, block.memory(memory) + address, memory_bytes(memory) - address, nullptr);
        size_ = size;
    }
    LocalTensor(TPosition position, uint8_t* data, uint32_t bytes, ascendc_host::Buffer* buffer)
        : address_{static_cast<uint8_t>(position), {}},
          data_(data),
          size_(static_cast<uint32_t>(ascendc_host::elements_of<T>(bytes))),
          rest_(bytes),
          buffer_(buffer),
          generation_(buffer == nullptr ? 0 : buffer->generation),
          position_(position) {}

    // `size` elements from byte `offset` on of the memory that address_.logicPos says when they are used.
    void InitBuffer(uint32_t offset, uint32_t size) {
        *this = LocalTensor(TPosition::VECCALC, nullptr, 0, nullptr);
        size_ = size;
        begin_ = offset;
        position_ = undecided;
    }
    uint64_t GetPhyAddr(uint32_t offset = 0) const {
        if (__builtin_expect(moved(), 0)) return settled().GetPhyAddr(offset);
        return reinterpret_cast<uint64_t>(data_) + bytes_to<T>(offset, "LocalTensor");
    }
    T GetValue(uint32_t offset, Where where = Where()) const {
        return ascendc_host::element<T>(use_to(offset, "GetValue", where), offset);
    }
    template <typename S>
    void SetValue(uint32_t offset, S value, Where where = Where()) const {
        ascendc_host::set_element(use_to(offset, "SetValue", where), offset, static_cast<T>(value));
    }
    T& operator()(uint32_t offset) const {
        ascendc_host::require_whole_bytes<T>();
        return reinterpret_cast<T*>(use_to(offset, "operator()", ascendc_host::current().where))[offset];
    }

    LocalTensor operator[](uint32_t offset) const {
        if (__builtin_expect(moved(), 0)) return settled()[offset];
        if (data_ == nullptr) return *this;  // refused where it is used
        const uint64_t bytes = bytes_to<T>(offset, "LocalTensor");
        if (__builtin_expect(bytes > rest_ && !overruns(bytes), 0)) {
            ascendc_host::fail(ascendc_host::format(
                "LocalTensor[%u]: the offset is beyond its buffer of %s, which has %u more elements%s",
                offset, position_name(position()), unsigned(ascendc_host::elements_of<T>(rest_)),
                remedy(bytes)));
        }
        LocalTensor view = *this;
        view.data_ += bytes;
        view.rest_ -= std::min(rest_, static_cast<uint32_t>(bytes));
        view.size_ = size_ > offset ? size_ - offset : 0;
        return view;
    }
    template <typename U>
    LocalTensor<U> ReinterpretCast() const {
        LocalTensor<U> view;
        view.address_ = address_;
        view.begin_ = begin_;
        view.data_ = data_;
        view.size_ =
            static_cast<uint32_t>(ascendc_host::elements_of<U>(uint64_t(size_) * SizeOfBits<T>::value / 8));
        view.rest_ = rest_;
        view.buffer_ = buffer_;
        view.generation_ = generation_;
        view.position_ = position_;
        view.tag_ = tag_;
        view.shape_ = shape_;
        return view;
    }
    template <typename S>
    void SetAddrWithOffset(LocalTensor<S>& source, uint32_t offset) {
        *this = source[offset].template ReinterpretCast<T>();
    }

    // bufferAddr counts bytes from the start of the memory of logicPos, dataLen is the size in bytes.
    void SetAddr(const TBuffAddr& address, Where where = Where()) {
        *this = LocalTensor(static_cast<TPosition>(address.logicPos), address.bufferAddr,
                            static_cast<uint32_t>(ascendc_host::elements_of<T>(address.dataLen)), where);
    }

    // The buffer of a queue that the tensor lies in; null for memory of a TBuf, which is one buffer.
    uint8_t* GetBufferHandle() const { return reinterpret_cast<uint8_t*>(buffer_); }
    int32_t GetPosition() const { return address_.logicPos; }
    void SetSize(uint32_t size) { size_ = size; }
    uint32_t GetSize() const { return size_; }
    uint32_t GetLength() const { return static_cast<uint32_t>(ascendc_host::bytes_of<T>(size_)); }
    void SetBufferLen(uint32_t size) { size_ = size; }
    void SetUserTag(TTagType tag) { tag_ = tag; }
    TTagType GetUserTag() const { return tag_; }
    void SetShapeInfo(const ShapeInfo& info) { shape_.set(info); }
    ShapeInfo GetShapeInfo() const { return shape_.get(); }
    void Print(uint32_t length = UINT32_MAX) const {
        for (uint32_t i = 0; i < std::min(length, size_); ++i)
            std::printf("%g ", static_cast<double>(GetValue(i, Where("", 0))));
        std::printf("\n");
    }

    // For the API functions: `count` elements from here may be touched. `name` is the argument's name in the
    // API.
    T* use(uint64_t count, const char* api, const char* name, const Where& where) const {
        ascendc_host::require_whole_bytes<T>();
        return reinterpret_cast<T*>(use_bytes(count * sizeof(T), api, name, where));
    }
    uint8_t* use_bytes(uint64_t bytes, const char* api, const char* name, const Where& where) const {
        uint8_t* const begin = reach(bytes, api, name, where);
        if (__builtin_expect(ascendc_host::pipes_are_checked, 0))
            ascendc_host::touch(begin, bytes, api, name, where);
        return begin;
    }
    // The same for code that says itself what of them is used.
    uint8_t* reach(uint64_t bytes, const char* api, const char* name, const Where& where) const {
        if (__builtin_expect(data_ == nullptr || bytes > rest_ || stale() || moved(), 0)) {
            if (moved()) return settled(where).reach(bytes, api, name, where);
            if (data_ != nullptr && (!stale() || lingers()) && (bytes <= rest_ || overruns(bytes))) {
                warn(bytes, api, name, where);
                return data_;
            }
            explain(bytes, api, name, where);
        }
        return data_;
    }
    uint8_t* bytes() const { return moved() ? settled().data_ : data_; }
    uint32_t rest() const { return moved() ? settled().rest_ : rest_; }
    TPosition position() const { return static_cast<TPosition>(address_.logicPos); }
    ascendc_host::Buffer* buffer() const { return buffer_; }
    // Whether it was given back with FreeTensor.
    bool stale() const { return buffer_ != nullptr && buffer_->generation != generation_; }
    // Whether nobody has been given its memory since.
    bool lingers() const {
        return stale() && buffer_->state == ascendc_host::Buffer::State::free &&
               buffer_->generation == generation_ + 1;
    }

  private:
    template <typename U>
    friend class LocalTensor;

    // The position of a tensor that has an offset so far and no memory.
    static constexpr TPosition undecided = static_cast<TPosition>(UINT8_MAX);
    // Whether address_ names another memory than data_ lies in.
    bool moved() const {
        return address_.logicPos != static_cast<uint8_t>(position_) || address_.bufferAddr.given;
    }
    // Whether the kernel may touch `bytes` from here on, which are beyond the buffer.
    bool overruns(uint64_t bytes) const { return ascendc_host::overruns_are_allowed && is_in_memory(bytes); }
    // Whether `bytes` from here on lie in local memory, in this buffer or not.
    bool is_in_memory(uint64_t bytes) const {
        const auto memory = memory_of(position_);
        if (memory == ascendc_host::Memory::count) return false;
        const uint8_t* const start = ascendc_host::current().memory(memory);
        const auto from = static_cast<uint64_t>(data_ - start);
        return from <= memory_bytes(memory) && bytes <= memory_bytes(memory) - from;
    }
    const char* remedy(uint64_t bytes) const {
        return is_in_memory(bytes)
                   ? "; give it more in InitBuffer, or let it go on with --overruns as on a device"
                   : "";
    }
    // Names a use that a device does not refuse.
    void warn(uint64_t bytes, const char* api, const char* name, const Where& where) const {
        const char* const kernel = ascendc_host::current().kernel;
        if (stale()) {
            ascendc_host::warn_once(ascendc_host::format(
                "kernel %s: %s uses %s after FreeTensor; the next AllocTensor of its queue may overwrite it",
                kernel, api, name));
        }
        if (bytes > rest_) {
            ascendc_host::warn_once(ascendc_host::format(
                "kernel %s: %s: %s goes on beyond its buffer of %s, in the memory that lies next to it; give "
                "the buffer more bytes in InitBuffer [%s:%d]",
                kernel, api, name, position_name(position_), where.file, where.line));
        }
    }
    // This tensor in the memory that address_ names, at the same offset or the one that it gives.
    LocalTensor settled(Where where = Where("", 0)) const {
        const TPosition position = this->position();
        uint64_t offset = begin_;
        if (address_.bufferAddr.given) {
            offset = address_.bufferAddr.value;
        } else if (position_ != undecided) {
            // An empty tensor has no offset.
            if (data_ == nullptr) return LocalTensor(position, nullptr, 0, nullptr);
            ascendc_host::Block& block = ascendc_host::enter(where);
            offset = static_cast<uint64_t>(data_ - block.memory(memory_of(position_)));
        }
        return LocalTensor(position, static_cast<uint32_t>(offset), size_, where);
    }
    // The elements up to and including one.
    uint8_t* use_to(uint32_t offset, const char* api, const Where& where) const {
        const uint64_t bytes = ascendc_host::bytes_of<T>(uint64_t(offset) + 1);
        uint8_t* const begin = reach(bytes, api, "the tensor", where);
        if (__builtin_expect(ascendc_host::pipes_are_checked, 0))
            ascendc_host::touch(begin + bytes - sizeof(T), sizeof(T), api, "the tensor", where);
        return begin;
    }
    [[noreturn]] void explain(uint64_t bytes, const char* api, const char* name, const Where& where) const {
        const auto& block = ascendc_host::current();
        if (data_ == nullptr && !block.beyond.empty()) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("%s: %s is an empty LocalTensor; %s", api, name, block.beyond.c_str()));
        }
        if (data_ == nullptr) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "%s: %s is an empty LocalTensor; take it from AllocTensor, DeQue, or TBuf::Get of a "
                    "buffer that TPipe::InitBuffer gave memory to",
                    api, name));
        }
        if (stale()) {
            ascendc_host::fail(block, where,
                               ascendc_host::format("%s: %s was given back with FreeTensor, and its memory "
                                                    "may be another tensor's since",
                                                    api, name));
        }
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: %s needs %llu bytes, but its buffer of %s has %u from there%s", api,
                                 name, static_cast<unsigned long long>(bytes), position_name(position_),
                                 rest_, remedy(bytes)));
    }

    uint8_t* data_ = nullptr;
    uint32_t size_ = 0;
    uint32_t rest_ = 0;
    ascendc_host::Buffer* buffer_ = nullptr;
    uint32_t generation_ = 0;
    uint32_t begin_ = 0;  // bytes into the memory of address_.logicPos, while position_ is undecided
    TPosition position_ = TPosition::VECCALC;  // that of the memory in which data_ lies
    TTagType tag_ = 0;
    ShapeOf shape_;
};

// A view of global memory, as far as SetGlobalBuffer and the allocation behind it say.
template <typename T>
class GlobalTensor {
  public:
    using PrimType = T;

    void SetGlobalBuffer(__gm__ T* buffer, uint64_t size) {
        SetGlobalBuffer(buffer);
        size_ = size;
        // A device does not keep to the size that is given here. It bounds what the kernel does all the same
        // where the kernel's own argument is not known.
        if (size == 0) return;
        const uint64_t given = ascendc_host::bytes_of<T>(size);
        copied_ = std::min(copied_, is_argument_ ? std::max(limit_, given) : given);
        if (!is_argument_) limit_ = copied_;
    }
    void SetGlobalBuffer(__gm__ T* buffer) {
        data_ = buffer;
        size_ = 0;
        at_ = 0;
        allocation_ = buffer == nullptr ? 0 : ascendc_host::allocation_rest(buffer);
        // What lies behind a tensor that the kernel was given is another one's, in the same allocation or
        // not. A device reads it, as of a last tile that is copied whole.
        copied_ = allocation_;
        const uint64_t argument = buffer == nullptr ? 0 : ascendc_host::argument_rest(buffer);
        is_argument_ = argument != 0;
        limit_ = is_argument_ ? std::min(allocation_, argument) : allocation_;
    }
    const __gm__ T* GetPhyAddr() const { return here(); }
    __gm__ T* GetPhyAddr(uint64_t offset) const {
        return reinterpret_cast<T*>(reinterpret_cast<uint8_t*>(here()) + bytes_to<T>(offset, "GlobalTensor"));
    }
    T GetValue(uint64_t offset, Where where = Where()) const {
        return ascendc_host::element<T>(use_at(offset, "GetValue", where), within_byte(offset));
    }
    void SetValue(uint64_t offset, T value, Where where = Where()) {
        ascendc_host::set_element(use_at(offset, "SetValue", where), within_byte(offset), value);
    }
    T& operator()(uint64_t offset) const {
        ascendc_host::require_whole_bytes<T>();
        return *reinterpret_cast<T*>(use_at(offset, "operator()", ascendc_host::current().where));
    }
    uint64_t GetSize() const { return size_; }
    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor view = *this;
        view.at_ += bytes_to<T>(offset, "GlobalTensor");
        return view;
    }
    template <typename U>
    GlobalTensor<U> ReinterpretCast() const {
        GlobalTensor<U> view;
        view.data_ = reinterpret_cast<U*>(data_);
        view.size_ = ascendc_host::elements_of<U>(size_ * SizeOfBits<T>::value / 8);
        view.at_ = at_;
        view.limit_ = limit_;
        view.allocation_ = allocation_;
        view.copied_ = copied_;
        view.is_argument_ = is_argument_;
        view.shape_ = shape_;
        return view;
    }
    void SetShapeInfo(const ShapeInfo& info) { shape_.set(info); }
    ShapeInfo GetShapeInfo() const { return shape_.get(); }
    template <CacheRwMode mode = CacheRwMode::RW>
    void SetL2CacheHint(CacheMode) {}

    // For the API functions: bytes [from, from + bytes) counted from here may be touched.
    uint8_t* use_bytes(uint64_t from, uint64_t bytes, const char* api, const char* name,
                       const Where& where) const {
        const uint64_t begin = at_ + from;
        if (__builtin_expect(data_ == nullptr || begin > limit_ || bytes > limit_ - begin, 0)) {
            const bool is_copied = std::strcmp(name, "src") == 0 && begin <= copied_;
            if (data_ == nullptr || !is_copied || bytes > copied_ - begin)
                explain(begin, bytes, api, name, where);
        }
        uint8_t* const at = reinterpret_cast<uint8_t*>(data_) + begin;
        if (__builtin_expect(ascendc_host::pipes_are_checked, 0))
            ascendc_host::touch(at, bytes, api, name, where);
        return at;
    }

    // For copies of whole blocks of 32 bytes, of which the last one may end after the tensor: memory goes on
    // there, as aclrtMalloc says. Returns how many of the bytes are the tensor's, all where it is no such
    // copy.
    uint64_t within(uint64_t bytes) const {
        const uint64_t own = at_ < limit_ ? std::min(bytes, limit_ - at_) : 0;
        return own != 0 && bytes - own < ONE_BLK_SIZE ? own : bytes;
    }
    // Whether it is known that the allocation has so many bytes from here on. Tensors of graphs, whose memory
    // is the engine's, go on to the end of their last block.
    bool has_memory(uint64_t bytes) const {
        if (allocation_ == SIZE_MAX) return is_argument_;
        return at_ <= allocation_ && bytes <= allocation_ - at_;
    }

  private:
    template <typename U>
    friend class GlobalTensor;

    T* here() const { return reinterpret_cast<T*>(reinterpret_cast<uint8_t*>(data_) + at_); }
    // The bytes that have an element, and where among them it begins, in elements.
    uint8_t* use_at(uint64_t offset, const char* api, const Where& where) const {
        const uint64_t whole = ascendc_host::is_packed<T> ? offset & ~uint64_t{1} : offset;
        return use_bytes(bytes_to<T>(whole, "GlobalTensor"), sizeof(T), api, "the tensor", where);
    }
    static uint64_t within_byte(uint64_t offset) { return ascendc_host::is_packed<T> ? offset % 2 : 0; }
    [[noreturn]] void explain(uint64_t begin, uint64_t bytes, const char* api, const char* name,
                              const Where& where) const {
        const auto& block = ascendc_host::current();
        if (data_ == nullptr && !block.beyond.empty()) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format("%s: %s is an empty LocalTensor; %s", api, name, block.beyond.c_str()));
        }
        if (data_ == nullptr) {
            ascendc_host::fail(
                block, where,
                ascendc_host::format(
                    "%s: %s is a GlobalTensor without memory; call SetGlobalBuffer with an address "
                    "that is not null",
                    api, name));
        }
        const bool by_allocation = limit_ == allocation_;
        ascendc_host::fail(
            block, where,
            ascendc_host::format("%s: out of bounds: bytes %lld to %lld of %s, whose %s ends at byte %llu",
                                 api, static_cast<long long>(begin), static_cast<long long>(begin + bytes),
                                 name, by_allocation ? "allocation" : "global buffer",
                                 static_cast<unsigned long long>(limit_)) +
                ascendc_host::workspace_hint(data_));
    }

    T* data_ = nullptr;
    uint64_t size_ = 0;
    uint64_t at_ = 0;          // bytes from data_
    uint64_t limit_ = 0;       // bytes from data_ that may be touched
    uint64_t copied_ = 0;      // bytes from data_ that copies may read
    uint64_t allocation_ = 0;  // bytes from data_ to the end of the allocation
    bool is_argument_ = false;
    ShapeOf shape_;
};

}  // namespace AscendC

#endif  // ASCENDC_HOST_BASIC_API_TENSOR_H
