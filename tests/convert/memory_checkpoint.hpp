// A checkpoint in memory, for tests: a configuration and zero-filled tensors, changed at will.
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "checkpoint/checkpoint.hpp"

namespace quern::test {

class MemoryCheckpoint : public checkpoint::Checkpoint {
 public:
  MemoryCheckpoint(checkpoint::SourceKind kind, std::string config)
      : kind_(kind), config_(std::move(config)) {}

  checkpoint::SourceKind kind() const override { return kind_; }
  const std::string& config_json() const override { return config_; }
  std::string_view where() const override { return "memory"; }
  const std::vector<checkpoint::SourceTensor>& tensors() const override { return tensors_; }
  const checkpoint::SourceTensor* find(std::string_view name) const override {
    for (const checkpoint::SourceTensor& tensor : tensors_)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  const std::vector<std::string>& notices() const override { return notices_; }
  std::string side_file(std::string_view name) const override {
    const auto found = side_files.find(std::string(name));
    return found == side_files.end() ? "" : found->second;
  }
  void check_unchanged() const override {}

  void set_config(std::string config) { config_ = std::move(config); }
  // A float32 tensor with every value `value`.
  void add(const std::string& name, std::vector<std::uint64_t> shape, float value = 0) {
    std::uint64_t count = 1;
    for (const std::uint64_t n : shape) count *= n;
    std::vector<float> values(count, value);
    add(name, checkpoint::DType::f32, std::move(shape),
        std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  }
  void add(const std::string& name, checkpoint::DType type, std::vector<std::uint64_t> shape,
           std::string bytes) {
    storage_.push_back(std::make_unique<std::string>(std::move(bytes)));
    checkpoint::SourceTensor tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.values = 1;
    for (const std::uint64_t n : shape) tensor.values *= n;
    tensor.shape = std::move(shape);
    tensor.bytes = base::as_bytes(*storage_.back());
    tensors_.push_back(std::move(tensor));
  }
  void remove(const std::string& name) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].name == name) {
        tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
    throw std::logic_error("no tensor " + name);
  }
  // Every tensor under a new name.
  template <class Rename>
  void rename(Rename rename_one) {
    for (checkpoint::SourceTensor& tensor : tensors_) tensor.name = rename_one(tensor.name);
  }

  std::map<std::string, std::string> side_files;

 private:
  checkpoint::SourceKind kind_;
  std::string config_;
  std::vector<checkpoint::SourceTensor> tensors_;
  std::vector<std::string> notices_;
  std::vector<std::unique_ptr<std::string>> storage_;
};

inline std::string fixture_path(const std::string& name) {
  return std::string(QUERN_SOURCE_DIR) + "/tests/data/fixtures/" + name;
}

// Tensors of a fixture copied into memory, its configuration as text.
inline std::unique_ptr<MemoryCheckpoint> copy_of_fixture(const std::string& name) {
  const auto original = checkpoint::open_checkpoint(fixture_path(name));
  auto copy = std::make_unique<MemoryCheckpoint>(checkpoint::SourceKind::hugging_face,
                                                 original->config_json());
  for (const checkpoint::SourceTensor& tensor : original->tensors())
    copy->add(tensor.name, tensor.type, tensor.shape, std::string(base::as_text(tensor.bytes)));
  return copy;
}

}  // namespace quern::test
