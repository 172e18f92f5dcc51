// For tests of foreign files: writers that can be told to write nonsense, directories that remove
// themselves, and the shape every rejection must have.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "catch.hpp"

namespace quern::test {

// The error line of `action`, "" when it succeeds. Fails the test when the error is not one short
// printable line of kind "input".
template <class Action>
std::string rejection(Action&& action) {
  try {
    action();
  } catch (const base::Error& error) {
    const std::string line = error.what();
    CHECK(error.code() == base::ExitCode::input);
    CHECK(line.size() <= 500);
    CHECK(base::printable(line, 10'000) == line);
    return line;
  }
  return {};
}

inline bool mentions(const std::string& line, std::string_view word) {
  INFO("error line: " << line << "; expected in it: " << word);
  CHECK(line.find(word) != std::string::npos);
  return line.find(word) != std::string::npos;
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "quern-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

template <class T>
std::string raw(T value) {
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &value, sizeof(T));
  return text;
}

// A safetensors file from header text and data, the length prefix as given or right.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return raw(static_cast<std::uint64_t>(header.size())) + std::string(header) + std::string(data);
}

// One F32 vector of `n` values under each name.
inline std::string vectors_file(const std::vector<std::string>& names, std::size_t n = 2) {
  std::string header = "{", data;
  for (const std::string& name : names) {
    if (header.size() > 1) header += ",";
    header += base::cat("\"", name, "\":{\"dtype\":\"F32\",\"shape\":[", n, "],\"data_offsets\":[",
                        data.size(), ",", data.size() + 4 * n, "]}");
    for (std::size_t i = 0; i < n; ++i) data += raw(static_cast<float>(i) + 0.5F);
  }
  return safetensors_file(header + "}", data);
}

// Value type numbers of GGUF metadata.
enum : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

inline std::string gguf_string(std::string_view text) {
  return raw(static_cast<std::uint64_t>(text.size())) + std::string(text);
}

// GGUF bytes piece by piece; every count and offset can be overridden.
struct GgufMaker {
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of what is written, not a key
  std::string magic = "GGUF";
  std::string metadata, infos, data;
  std::uint64_t n_metadata = 0, n_tensors = 0;

  GgufMaker& value(std::string_view key, std::uint32_t type, const std::string& bytes) {
    metadata += gguf_string(key) + raw(type) + bytes;
    ++n_metadata;
    return *this;
  }
  GgufMaker& text(std::string_view key, std::string_view value_text) {
    return value(key, kString, gguf_string(value_text));
  }
  GgufMaker& u32(std::string_view key, std::uint32_t number) {
    return value(key, kU32, raw(number));
  }
  GgufMaker& array(std::string_view key, std::uint32_t element, std::uint64_t count,
                   const std::string& bytes) {
    return value(key, kArray, raw(element) + raw(count) + bytes);
  }
  // dims innermost first
  GgufMaker& info(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                  std::uint64_t offset) {
    infos += gguf_string(name) + raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) infos += raw(dim);
    infos += raw(type) + raw(offset);
    ++n_tensors;
    return *this;
  }
  // An F32 vector with its data behind what is there.
  GgufMaker& vector(std::string_view name, std::size_t n = 8) {
    info(name, {n}, 0, data.size());
    for (std::size_t i = 0; i < n; ++i) data += raw(static_cast<float>(i));
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  std::string bytes() const {
    std::string out = magic + raw(version) + raw(n_tensors) + raw(n_metadata) + metadata + infos;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data;
  }
};

}  // namespace quern::test
