// Zero-filled memory of a trivial type whose pages cost nothing until they are touched: scratch for
// the longest chunk, logits of every position, the pool of the KV cache. Reserved once, never
// grown.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace quern::model {

// An anonymous private mapping without reserved swap; environment error when the system refuses.
class LazyMemory {
 public:
  LazyMemory() = default;
  explicit LazyMemory(std::size_t bytes);
  LazyMemory(LazyMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  LazyMemory& operator=(LazyMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~LazyMemory();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LazyArray() = default;
  explicit LazyArray(std::size_t size) : memory_(size * sizeof(T)), size_(size) {}

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  LazyMemory memory_;
  std::size_t size_ = 0;
};

}  // namespace quern::model
