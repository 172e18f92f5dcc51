// XXH3 (xxHash) checksums: 64-bit over a span, and streaming.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.hpp"

namespace quern::base {

std::uint64_t xxh3(Bytes bytes);

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void update(Bytes bytes);
  std::uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::base
