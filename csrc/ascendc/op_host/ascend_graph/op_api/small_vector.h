// op::FVector: a vector whose first elements lie in the object. Its members stand where CANN's has them, for
// libraries of packages that CANN built read it inline.
#ifndef ASCEND_GRAPH_OP_API_SMALL_VECTOR_H
#define ASCEND_GRAPH_OP_API_SMALL_VECTOR_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace op {
namespace internal {

inline void* MallocPtr(size_t size) { return std::malloc(size); }
inline void FreePtr(void* memory) { std::free(memory); }

template <typename T>
struct PoolAllocator {
    using value_type = T;

    PoolAllocator() = default;
    template <typename U>
    constexpr PoolAllocator(const PoolAllocator<U>&) noexcept {}

    T* allocate(size_t count) {
        void* const memory = MallocPtr(count * sizeof(T));
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, size_t) noexcept { FreePtr(memory); }
};

template <typename T, size_t N, typename Alloc = std::allocator<T>>
class SmallVector {
    template <typename Iterator>
    using IfInput =
        std::enable_if_t<std::is_convertible_v<typename std::iterator_traits<Iterator>::iterator_category,
                                               std::input_iterator_tag>>;

  public:
    using value_type = T;
    using size_type = size_t;
    using difference_type = std::ptrdiff_t;
    using reference = T&;
    using const_reference = const T&;
    using iterator = T*;
    using const_iterator = const T*;
    using reverse_iterator = std::reverse_iterator<iterator>;
    using const_reverse_iterator = std::reverse_iterator<const_iterator>;

    SmallVector() = default;
    explicit SmallVector(size_t count, const T& value = T()) { resize(count, value); }
    template <typename Iterator, typename = IfInput<Iterator>>
    SmallVector(Iterator first, Iterator last) {
        append(first, last);
    }
    SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
    SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
    SmallVector(SmallVector&& other) noexcept { take(other); }
    ~SmallVector() { clear(); }
    SmallVector& operator=(const SmallVector& other) {
        if (this != &other) assign(other.begin(), other.end());
        return *this;
    }
    SmallVector& operator=(SmallVector&& other) noexcept {
        if (this != &other) clear(), take(other);
        return *this;
    }
    SmallVector& operator=(std::initializer_list<T> values) {
        assign(values.begin(), values.end());
        return *this;
    }

    void assign(size_t count, const T& value) { assign_copy(SmallVector(count, value)); }
    template <typename Iterator, typename = IfInput<Iterator>>
    void assign(Iterator first, Iterator last) {
        assign_copy(SmallVector(first, last));
    }
    void assign(std::initializer_list<T> values) { assign(values.begin(), values.end()); }

    T* data() { return heap_ == nullptr ? reinterpret_cast<T*>(&inline_) : heap_; }
    const T* data() const { return const_cast<SmallVector*>(this)->data(); }
    iterator begin() { return data(); }
    iterator end() { return data() + size_; }
    const_iterator begin() const { return data(); }
    const_iterator end() const { return data() + size_; }
    const_iterator cbegin() const { return begin(); }
    const_iterator cend() const { return end(); }
    reverse_iterator rbegin() { return reverse_iterator(end()); }
    reverse_iterator rend() { return reverse_iterator(begin()); }
    const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
    const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }

    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    T& operator[](size_t i) { return data()[i]; }
    const T& operator[](size_t i) const { return data()[i]; }
    T& at(size_t i) { return i < size_ ? data()[i] : throw std::out_of_range("SmallVector::at"); }
    const T& at(size_t i) const { return const_cast<SmallVector*>(this)->at(i); }
    T& front() { return data()[0]; }
    const T& front() const { return data()[0]; }
    T& back() { return data()[size_ - 1]; }
    const T& back() const { return data()[size_ - 1]; }

    void reserve(size_t count) {
        if (count <= capacity_) return;
        T* const grown = allocator_.allocate(count);
        std::uninitialized_move(begin(), end(), grown);
        std::destroy(begin(), end());
        if (heap_ != nullptr) allocator_.deallocate(heap_, capacity_);
        heap_ = grown;
        capacity_ = count;
    }
    template <typename... A>
    void emplace_back(A&&... arguments) {
        if (size_ == capacity_) {
            T made(std::forward<A>(arguments)...);  // the arguments may lie in this vector
            reserve(std::max<size_t>(2 * capacity_, 1));
            new (end()) T(std::move(made));
        } else {
            new (end()) T(std::forward<A>(arguments)...);
        }
        ++size_;
    }
    void push_back(const T& value) { emplace_back(value); }
    void push_back(T&& value) { emplace_back(std::move(value)); }
    void pop_back() { erase(end() - 1); }
    void resize(size_t count, const T& value = T()) {
        if (count < size_) erase(begin() + count, end());
        while (size_ < count) emplace_back(value);
    }
    iterator insert(const_iterator position, const T& value) {
        const T copied = value;
        return insert(position, &copied, &copied + 1);
    }
    template <typename Iterator, typename = IfInput<Iterator>>
    iterator insert(const_iterator position, Iterator first, Iterator last) {
        const auto at = position - begin();
        const size_t before = size_;
        append(first, last);
        std::rotate(begin() + at, begin() + before, end());
        return begin() + at;
    }
    iterator erase(const_iterator position) { return erase(position, position + 1); }
    iterator erase(const_iterator first, const_iterator last) {
        const auto at = first - begin();
        T* const kept = std::move(begin() + (last - begin()), end(), begin() + at);
        std::destroy(kept, end());
        size_ = static_cast<size_t>(kept - begin());
        return begin() + at;
    }
    void clear() {
        std::destroy(begin(), end());
        if (heap_ != nullptr) allocator_.deallocate(heap_, capacity_);
        forget();
    }
    void swap(SmallVector& other) { std::swap(*this, other); }

    bool operator==(const SmallVector& other) const {
        return std::equal(begin(), end(), other.begin(), other.end());
    }
    bool operator!=(const SmallVector& other) const { return !(*this == other); }

  private:
    template <typename Iterator>
    void append(Iterator first, Iterator last) {
        for (; first != last; ++first) emplace_back(*first);
    }
    void assign_copy(SmallVector&& copied) { *this = std::move(copied); }
    void forget() {
        heap_ = nullptr;
        size_ = 0;
        capacity_ = N;
    }
    // Of an empty vector.
    void take(SmallVector& other) {
        if (other.heap_ == nullptr) {
            std::uninitialized_move(other.begin(), other.end(), begin());
            size_ = other.size_;
            return other.clear();
        }
        heap_ = other.heap_;
        size_ = other.size_;
        capacity_ = other.capacity_;
        other.forget();
    }

    typename std::aligned_storage<sizeof(T[N])>::type inline_;
    size_t size_ = 0, capacity_ = N;
    T* heap_ = nullptr;
    Alloc allocator_;
};

}  // namespace internal

template <typename T, size_t N = 8>
using FVector = internal::SmallVector<T, N, internal::PoolAllocator<T>>;
static_assert(sizeof(FVector<int64_t, 25>) == 240);

}  // namespace op

#endif  // ASCEND_GRAPH_OP_API_SMALL_VECTOR_H
