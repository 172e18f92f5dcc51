// The JSON header of a safetensors file as a flat list of entries. Knows the header's shape;
// whether the offsets fit the file is safetensors.cpp's matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

struct HeaderEntry {
  std::string name;
  DType type{};
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // in the data part
};

// Reads the header event by event, without a document tree: a header of 90 MB with 100,000 entries
// costs its names. header_offset: where the text lies in the file, for error lines.
std::vector<HeaderEntry> parse_safetensors_header(std::string_view text,
                                                  std::uint64_t header_offset,
                                                  std::string_view where);

}  // namespace quern::checkpoint
