// Inside of parse_gguf: the tensor directory, checked against the file's length.
#pragma once

#include "checkpoint/gguf.hpp"

namespace quern::checkpoint {

struct GgufTensorSource {
  base::Bytes bytes;  // the whole file
  std::string_view where;
  std::uint64_t n_tensors;
};

// reader: at the first tensor's entry. Fills file.tensors and file.trailing_bytes.
void read_gguf_tensors(base::ByteReader& reader, const GgufTensorSource& source, GgufFile& file);

// Valid UTF-8 without control characters: keys and tensor names, which go into JSON and error
// lines.
bool is_printable_name(std::string_view text);

}  // namespace quern::checkpoint
