// GGUF v3: metadata and tensor directory from bytes. Rejects what docs/FILE_FORMAT.md's reliability rows
// name; accepts nothing that it has not compared with the bytes that are left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

struct GgufValue {
  GgufType type;
  GgufType element{};                  // of an array
  std::uint64_t count = 0;             // elements of an array
  std::variant<std::uint64_t, std::int64_t, double, std::string_view> scalar;  // bool as u64 0 or 1
  base::Bytes array;                   // the array's bytes as they lie (strings: u64 length + text each)
};

struct GgufFile {
  std::vector<std::pair<std::string, GgufValue>> metadata;  // file order, keys unique
  std::vector<SourceTensor> tensors;
  std::uint64_t alignment = 32;

  const GgufValue* find(std::string_view key) const;
  // Arrays, checked for element type: an input error names the key.
  std::vector<std::string_view> strings(std::string_view key, std::string_view where) const;
  std::vector<float> floats(std::string_view key, std::string_view where) const;
  std::vector<std::int64_t> integers(std::string_view key, std::string_view where) const;
};

GgufFile parse_gguf(base::Bytes bytes, std::string_view where);

// The GGUF behind a checkpoint (tokenizer arrays are read from it), nullptr for Hugging Face ones.
const GgufFile* gguf_of(const Checkpoint& checkpoint);

}  // namespace quern::checkpoint
