#include "checkpoint/gguf_checkpoint.hpp"

#include <array>
#include <cstdio>
#include <optional>

#include "checkpoint/gguf.hpp"
#include "checkpoint/tensor_list.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::printable;
using base::reject;

constexpr std::uint64_t kMaxParts = 65'535;  // split.count is a u16

// A metadata integer of any integer type; nothing when the key is absent.
std::optional<std::uint64_t> find_count(const GgufFile& file, std::string_view key,
                                        std::string_view where) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<std::uint64_t>(&value->scalar);
      number != nullptr && value->type != GgufType::boolean && value->type != GgufType::array)
    return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value->scalar);
      number != nullptr && *number >= 0)
    return static_cast<std::uint64_t>(*number);
  reject(cat(where, ": ", key), "wrong value", "", "a count");
}

// "-00002-of-00005.gguf"
std::string part_ending(std::uint64_t number, std::uint64_t count) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "-%05llu-of-%05llu.gguf",
                static_cast<unsigned long long>(number), static_cast<unsigned long long>(count));
  return text.data();
}

class GgufCheckpoint : public Checkpoint {
 public:
  GgufCheckpoint(const std::filesystem::path& path, SourceFile file);

  SourceKind kind() const override { return SourceKind::gguf; }
  const std::string& config_json() const override { return config_; }
  std::string_view where() const override { return where_; }
  const std::vector<SourceTensor>& tensors() const override { return tensors_.all(); }
  const SourceTensor* find(std::string_view name) const override { return tensors_.find(name); }
  const std::vector<std::string>& notices() const override { return notices_; }
  std::string side_file(std::string_view) const override { return {}; }
  void release(const SourceTensor& tensor) const override { files_[tensor.file].release(tensor.bytes); }
  void check_unchanged() const override {
    for (const SourceFile& file : files_) file.check_unchanged();
  }
  const GgufFile& metadata() const { return first_; }

 private:
  std::vector<SourceTensor> take_tensors(GgufFile& part);
  void open_parts(const std::filesystem::path& path, std::uint64_t count,
                  std::vector<SourceTensor>& tensors);
  void check_part(const GgufFile& part, std::uint64_t number, std::uint64_t count,
                  std::string_view place) const;

  std::string where_;
  std::vector<SourceFile> files_;  // in the order of SourceTensor::file
  GgufFile first_;                 // its tensors lie in tensors_
  std::string config_;
  TensorList tensors_;
  std::vector<std::string> notices_;
};

GgufCheckpoint::GgufCheckpoint(const std::filesystem::path& path, SourceFile file)
    : where_(printable(path.string())) {
  files_.push_back(std::move(file));
  first_ = parse_gguf(files_.back().bytes(), where_);
  config_ = gguf_metadata_json(first_);
  const std::uint64_t count = find_count(first_, "split.count", where_).value_or(1);
  std::vector<SourceTensor> tensors = take_tensors(first_);
  if (count != 1) open_parts(path, count, tensors);
  tensors_ = TensorList(std::move(tensors));
  if (const SourceTensor* again = tensors_.duplicate())
    reject(where_, cat("tensor \"", printable(again->name), "\" lies in two parts of the split"));
  const auto total = find_count(first_, "split.tensors.count", where_);
  if (count != 1 && total.has_value() && *total != tensors_.all().size())
    reject(where_, "the parts do not hold the tensors that split.tensors.count names",
           cat(tensors_.all().size()), cat(*total));
}

// The tensors of the file opened last.
std::vector<SourceTensor> GgufCheckpoint::take_tensors(GgufFile& part) {
  std::vector<SourceTensor> tensors = std::move(part.tensors);
  part.tensors.clear();
  for (SourceTensor& tensor : tensors) tensor.file = files_.size() - 1;
  if (part.trailing_bytes != 0)
    notices_.push_back(cat(part.trailing_bytes, " bytes after the last tensor are ignored"));
  return tensors;
}

void GgufCheckpoint::check_part(const GgufFile& part, std::uint64_t number, std::uint64_t count,
                                std::string_view place) const {
  const auto part_count = find_count(part, "split.count", place);
  if (part_count != count)
    reject(cat(place, ": split.count"), "wrong value", part_count ? cat(*part_count) : "none",
           cat(count));
  const auto part_number = find_count(part, "split.no", place);
  if (part_number != number)
    reject(cat(place, ": split.no"), "wrong value", part_number ? cat(*part_number) : "none",
           cat(number));
}

// Names follow from the first part's own name; nothing in a file names another one.
void GgufCheckpoint::open_parts(const std::filesystem::path& path, std::uint64_t count,
                                std::vector<SourceTensor>& tensors) {
  if (count == 0 || count > kMaxParts)
    reject(cat(where_, ": split.count"), "out of range", cat(count), cat("1 to ", kMaxParts));
  const std::string name = path.filename().string();
  const std::uint64_t number = find_count(first_, "split.no", where_).value_or(count);
  if (number != 0 && number < count)
    reject(where_, cat("this is part ", number + 1, " of ", count,
                       " of a split GGUF; give the first part"));
  check_part(first_, 0, count, where_);
  const std::string ending = part_ending(1, count);
  if (!name.ends_with(ending))
    reject(where_, "name does not fit a split GGUF's first part", printable(name, 100),
           cat("NAME", ending));
  const std::string stem = name.substr(0, name.size() - ending.size());
  const SourceDirectory directory(path.parent_path());
  for (std::uint64_t i = 1; i < count; ++i) {
    const std::string part_name = stem + part_ending(i + 1, count);
    if (!directory.has(part_name))
      reject(directory.where(part_name), "part of the split is missing");
  }
  for (std::uint64_t i = 1; i < count; ++i) {
    const std::string part_name = stem + part_ending(i + 1, count);
    files_.emplace_back(directory.resolve(part_name));
    GgufFile part = parse_gguf(files_.back().bytes(), directory.where(part_name));
    check_part(part, i, count, directory.where(part_name));
    std::vector<SourceTensor> some = take_tensors(part);
    tensors.insert(tensors.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
  }
}

}  // namespace

std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path, SourceFile file) {
  return std::make_unique<GgufCheckpoint>(path, std::move(file));
}

const GgufFile* gguf_of(const Checkpoint& checkpoint) {
  const auto* gguf = dynamic_cast<const GgufCheckpoint*>(&checkpoint);
  return gguf == nullptr ? nullptr : &gguf->metadata();
}

}  // namespace quern::checkpoint
