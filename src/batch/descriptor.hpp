// A file descriptor and its end.
#pragma once

#include <unistd.h>

#include <utility>

namespace quern::batch {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool valid() const { return fd_ >= 0; }
  operator int() const { return fd_; }  // NOLINT: as system calls take it

 private:
  int fd_ = -1;
};

}  // namespace quern::batch
