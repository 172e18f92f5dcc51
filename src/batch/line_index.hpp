// All lines of an input by number: their keys, found in one pass before anything is answered (8 bytes a line), and
// which of them are done. Input error for a custom_id that is there twice.
#pragma once

#include <cstdint>
#include <vector>

#include "batch/record.hpp"

namespace quern::batch {

class LineIndex {
 public:
  LineIndex(const InputFile& file, InputFormat format);

  std::size_t size() const { return keys_.size(); }
  std::uint64_t key(std::size_t item) const { return keys_[item]; }
  // Hash of the keys of the first n lines: what a manifest remembers of an input.
  std::uint64_t digest(std::size_t n) const;

  bool done(std::size_t item) const { return done_[item]; }
  void set_done(std::size_t item) { done_[item] = true; }

 private:
  std::vector<std::uint64_t> keys_;
  std::vector<bool> done_;
};

}  // namespace quern::batch
