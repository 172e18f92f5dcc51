// Writes small GGUF v3 files for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace quern::test {

class GgufWriter {
 public:
  void add(const std::string& key, std::uint32_t value) { add_value(key, 4, raw(value)); }
  void add(const std::string& key, float value) { add_value(key, 6, raw(value)); }
  void add(const std::string& key, const std::string& value) { add_value(key, 8, text(value)); }

  // type: GGUF's number; shape outermost first.
  void add_tensor(const std::string& name, std::uint32_t type, std::vector<std::uint64_t> shape,
                  std::string bytes) {
    infos_ += text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto n = shape.rbegin(); n != shape.rend(); ++n) infos_ += raw(*n);
    infos_ += raw(type) + raw(static_cast<std::uint64_t>(data_.size()));
    data_ += bytes;
    data_.resize((data_.size() + 31) / 32 * 32);
    ++n_tensors_;
  }

  void write(const std::filesystem::path& path) const {
    std::string head =
        "GGUF" + raw(std::uint32_t{3}) + raw(n_tensors_) + raw(n_values_) + values_ + infos_;
    head.resize((head.size() + 31) / 32 * 32);
    std::ofstream file(path, std::ios::binary);
    file << head << data_;
  }

 private:
  template <class T>
  static std::string raw(const T& value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string text(const std::string& value) {
    return raw(static_cast<std::uint64_t>(value.size())) + value;
  }
  void add_value(const std::string& key, std::uint32_t type, const std::string& bytes) {
    values_ += text(key) + raw(type) + bytes;
    ++n_values_;
  }

  std::string values_, infos_, data_;
  std::uint64_t n_tensors_ = 0, n_values_ = 0;
};

}  // namespace quern::test
