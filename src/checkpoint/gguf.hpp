// GGUF v2 and v3 (the same layout): metadata and tensor directory from bytes. Rejects what
// docs/FILE_FORMAT.md's reliability rows name; accepts nothing that it has not compared with the
// bytes that are left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "checkpoint/checkpoint.hpp"

namespace quern::checkpoint {

enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
std::string_view gguf_value_type_name(GgufType type);  // "u32", "string"

struct GgufValue {
  GgufType type;
  GgufType element{};       // of an array
  std::uint64_t count = 0;  // elements of an array
  std::variant<std::uint64_t, std::int64_t, double, std::string_view> scalar;  // bool as u64 0 or 1
  base::Bytes array;  // the array's bytes as they lie (strings: u64 length + text each)
};

struct GgufFile {
  std::vector<std::pair<std::string, GgufValue>>
      metadata;                       // file order, keys unique, printable UTF-8
  std::vector<SourceTensor> tensors;  // in the order of their bytes
  std::uint64_t alignment = 32;
  std::uint64_t trailing_bytes = 0;  // after the last tensor; never looked at

  const GgufValue* find(std::string_view key) const;
  // Arrays, checked for element type: an input error names the key (also when it is missing).
  std::vector<std::string_view> strings(std::string_view key, std::string_view where) const;
  std::vector<float> floats(std::string_view key, std::string_view where) const;  // f32, f64
  std::vector<std::int64_t> integers(std::string_view key, std::string_view where) const;
};

GgufFile parse_gguf(base::Bytes bytes, std::string_view where);

// The metadata as one flat JSON object, without arrays longer than 1,024. f32 values with the
// fewest digits that give the same f32; text that is not UTF-8 with U+FFFD; NaN and infinities as
// null.
std::string gguf_metadata_json(const GgufFile& file);

// The GGUF behind a checkpoint (tokenizer arrays are read from it), nullptr for Hugging Face ones.
const GgufFile* gguf_of(const Checkpoint& checkpoint);

}  // namespace quern::checkpoint
