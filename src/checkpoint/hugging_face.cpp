#include "checkpoint/hugging_face.hpp"

#include <algorithm>

#include "base/json_reader.hpp"
#include "checkpoint/join_packed.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/shard_index.hpp"
#include "checkpoint/source_files.hpp"
#include "checkpoint/tensor_list.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::printable;
using base::reject;

constexpr std::string_view kConfig = "config.json";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kModules = "modules.json";  // of a sentence-transformers directory
constexpr std::size_t kMaxModules = 64;
constexpr std::size_t kMaxConfigBytes = std::size_t{4} << 20;  // the largest on the hub are 100 KiB
constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20;  // 100,000 tensors take 10 MiB
constexpr std::size_t kMaxSideFileBytes = std::size_t{256} << 20;  // tokenizer.json reaches 35 MiB

class HuggingFaceCheckpoint : public Checkpoint {
 public:
  explicit HuggingFaceCheckpoint(const std::filesystem::path& path);

  SourceKind kind() const override { return SourceKind::hugging_face; }
  const std::string& config_json() const override { return config_; }
  std::string_view where() const override { return where_; }
  const std::vector<SourceTensor>& tensors() const override { return tensors_.all(); }
  const SourceTensor* find(std::string_view name) const override { return tensors_.find(name); }
  const std::vector<std::string>& notices() const override { return notices_; }
  std::string side_file(std::string_view name) const override;
  void release(const SourceTensor& tensor) const override {
    files_[tensor.file].release(tensor.bytes);
    for (const TensorPart& part : tensor.parts) files_[part.file].release(part.bytes);
  }
  void check_unchanged() const override;

 private:
  [[noreturn]] void reject_without_weights(const std::vector<std::string>& names) const;
  void read_config(const std::vector<std::string>& names);
  void open_single();
  void open_shards();
  void open_modules();
  std::vector<SourceTensor> read_shard(std::string_view name);
  void check_against(const ShardIndex& index, const TensorList& found) const;
  std::vector<SourceTensor> without_unnamed(std::vector<SourceTensor> found,
                                            const ShardIndex& index);

  SourceDirectory directory_;
  std::string where_;
  std::string config_;
  std::vector<SourceFile> files_;  // weights, in the order of SourceTensor::file
  std::vector<std::string> file_names_;
  std::vector<SourceFile> side_files_;  // config.json and the index
  TensorList tensors_;
  std::vector<std::string> notices_;
};

HuggingFaceCheckpoint::HuggingFaceCheckpoint(const std::filesystem::path& path)
    : directory_(path), where_(printable(path.string())) {
  const std::vector<std::string> names = directory_.names();
  const bool single = directory_.has(kSingle);
  if (!single && !directory_.has(kIndex)) reject_without_weights(names);
  if (!directory_.has(kConfig)) reject(where_, "config.json is missing");
  read_config(names);
  if (single && directory_.has(kIndex))
    notices_.push_back(cat(kIndex, " is ignored beside ", kSingle));
  if (single) {
    open_single();
  } else {
    open_shards();
  }
  open_modules();
  tensors_ = TensorList(join_packed(tensors_.all(), config_, directory_.where(kConfig), notices_));
  if (const SourceTensor* again = tensors_.duplicate())
    reject(where_, cat("tensor \"", printable(again->name, 100),
                       "\" is stored twice: as floats and quantized"));
}

void HuggingFaceCheckpoint::reject_without_weights(const std::vector<std::string>& names) const {
  const auto any = [&](std::initializer_list<std::string_view> endings) -> const std::string* {
    for (const std::string& name : names)
      for (const std::string_view ending : endings)
        if (name.ends_with(ending)) return &name;
    return nullptr;
  };
  for (const std::string& name : names)
    if (directory_.has(kModules) && directory_.has(cat(name, "/", kConfig)) && directory_.has(cat(name, "/", kSingle)))
      reject(where_, cat("no ", kSingle, " here; the model lies in the folder of its first module: give ",
                         printable(name, 80), " (and `quern embed --pooling`)"));
  if (const std::string* name = any({".safetensors"}))
    reject(where_, cat("no ", kSingle, " and no ", kIndex), printable(*name, 80));
  if (const std::string* name = any({".gguf"}))
    reject(where_, cat("no safetensors here; give the GGUF file itself: ", printable(*name, 80)));
  if (const std::string* name = any({".bin", ".pt", ".pth", ".ckpt"}))
    reject(where_, cat("pickle is not read (", printable(*name, 80),
                       " can run code; save the model as safetensors)"));
  if (any({".quern"})) reject(where_, "is a model of quern already; it is made from the original checkpoint");
  reject(where_, cat("no ", kSingle, ", ", kIndex, " or GGUF file"));
}

void HuggingFaceCheckpoint::read_config(const std::vector<std::string>& names) {
  const std::filesystem::path path = directory_.resolve(kConfig);
  side_files_.emplace_back(path);
  if (side_files_.back().bytes().size() > kMaxConfigBytes)
    reject(directory_.where(kConfig), "file is too large",
           cat(side_files_.back().bytes().size(), " bytes"), cat("at most ", kMaxConfigBytes));
  config_ = base::as_text(side_files_.back().bytes());
  if (config_.find('\0') != std::string::npos) reject(directory_.where(kConfig), "NUL in the text");
  const base::Json config = base::parse_json(config_, directory_.where(kConfig));
  if (!config.is_object())
    reject(directory_.where(kConfig), "wrong kind of value", config.type_name(), "an object");
  for (const std::string_view key : {"auto_map", "trust_remote_code"})
    if (config.contains(key))
      notices_.push_back(cat(kConfig, ": ", key, " is ignored: no code is run"));
  const auto is_code = [](const std::string& name) { return name.ends_with(".py"); };
  const auto n_code = std::count_if(names.begin(), names.end(), is_code);
  if (n_code == 0) return;
  const std::string& first = *std::find_if(names.begin(), names.end(), is_code);
  notices_.push_back(cat(printable(first, 80), n_code > 1 ? cat(" and ", n_code - 1, " more") : "",
                         ": code files are ignored"));
}

std::vector<SourceTensor> HuggingFaceCheckpoint::read_shard(std::string_view name) {
  files_.emplace_back(directory_.resolve(name));
  file_names_.emplace_back(name);
  std::vector<SourceTensor> tensors =
      parse_safetensors(files_.back().bytes(), directory_.where(name));
  for (SourceTensor& tensor : tensors) tensor.file = files_.size() - 1;
  return tensors;
}

void HuggingFaceCheckpoint::open_single() {
  tensors_ = TensorList(read_shard(kSingle));
  if (tensors_.all().empty()) reject(directory_.where(kSingle), "no tensors");
}

void HuggingFaceCheckpoint::open_shards() {
  const std::string place = directory_.where(kIndex);
  side_files_.emplace_back(directory_.resolve(kIndex));
  const base::Bytes text = side_files_.back().bytes();
  if (text.size() > kMaxIndexBytes)
    reject(place, "file is too large", cat(text.size(), " bytes"), cat("at most ", kMaxIndexBytes));
  const ShardIndex index = parse_shard_index(base::as_text(text), place);
  for (const std::string& shard : index.shards)
    if (!directory_.has(shard))
      reject(directory_.where(shard), "shard named by the index is missing");
  std::vector<SourceTensor> found;
  for (const std::string& shard : index.shards) {
    std::vector<SourceTensor> some = read_shard(shard);
    found.insert(found.end(), std::move_iterator(some.begin()), std::move_iterator(some.end()));
  }
  TensorList list(std::move(found));
  check_against(index, list);
  tensors_ = TensorList(without_unnamed(list.all(), index));
}

// Weights in the folders of further modules: their tensors are named FOLDER/NAME.
void HuggingFaceCheckpoint::open_modules() {
  const std::string text = side_file(kModules);
  if (text.empty()) return;
  const base::Json modules = base::parse_json(text, directory_.where(kModules));
  if (!modules.is_array() || modules.size() > kMaxModules)
    reject(directory_.where(kModules), "not a list of modules");
  std::vector<SourceTensor> all = tensors_.all();
  std::vector<std::string> seen = {""};  // the model's own
  for (const base::Json& module : modules) {
    const auto path = module.is_object() ? module.find("path") : module.end();
    if (path == module.end() || !path->is_string()) continue;
    const std::string folder = path->get<std::string>();
    const std::string file = cat(folder, "/", kSingle);
    if (std::find(seen.begin(), seen.end(), folder) != seen.end() || !directory_.has(file)) continue;
    seen.push_back(folder);
    for (SourceTensor& tensor : read_shard(file)) {
      tensor.name = cat(folder, "/", tensor.name);
      all.push_back(std::move(tensor));
    }
  }
  if (seen.size() > 1) tensors_ = TensorList(std::move(all));
}

void HuggingFaceCheckpoint::check_against(const ShardIndex& index, const TensorList& found) const {
  if (const SourceTensor* again = found.duplicate())
    reject(directory_.where(file_names_[again->file]),
           cat("tensor \"", printable(again->name, 100), "\" is also in ",
               printable(file_names_[found.find(again->name)->file], 80)));
  // Sorted, so that the same fault gives the same line every time.
  std::vector<std::string_view> missing;
  for (const auto& [name, shard] : index.shard_of) {
    const SourceTensor* tensor = found.find(name);
    if (tensor == nullptr || tensor->file != shard) missing.push_back(name);
  }
  if (missing.empty()) return;
  const std::string_view name = *std::min_element(missing.begin(), missing.end());
  const SourceTensor* tensor = found.find(name);
  reject(directory_.where(index.shards[index.shard_of.at(std::string(name))]),
         cat("tensor \"", printable(name, 100), "\" is named by the index but not in this shard"),
         tensor == nullptr ? "" : cat("it in ", printable(file_names_[tensor->file], 80)));
}

// What the index does not name is left out, with a notice for each shard.
std::vector<SourceTensor> HuggingFaceCheckpoint::without_unnamed(std::vector<SourceTensor> found,
                                                                 const ShardIndex& index) {
  std::vector<SourceTensor> kept;
  std::vector<std::size_t> n_left_out(files_.size());
  std::vector<std::string> first(files_.size());
  for (SourceTensor& tensor : found) {
    if (index.shard_of.contains(tensor.name)) {
      kept.push_back(std::move(tensor));
    } else if (n_left_out[tensor.file]++ == 0) {
      first[tensor.file] = std::move(tensor.name);
    }
  }
  for (std::size_t file = 0; file < files_.size(); ++file)
    if (n_left_out[file] != 0)
      notices_.push_back(cat(printable(file_names_[file], 80), ": ", n_left_out[file],
                             " tensor(s) that the index does not name are ignored (first: ",
                             printable(first[file], 100), ")"));
  return kept;
}

std::string HuggingFaceCheckpoint::side_file(std::string_view name) const {
  if (!directory_.has(name)) return {};
  std::string text = base::read_text_file(directory_.resolve(name), kMaxSideFileBytes);
  // A download that broke off; taken for absent, the model would have lost its tokenizer without a word.
  if (text.empty() && name.ends_with(".json")) reject(directory_.where(name), "the file is empty");
  return text;
}

void HuggingFaceCheckpoint::check_unchanged() const {
  for (const SourceFile& file : files_) file.check_unchanged();
  for (const SourceFile& file : side_files_) file.check_unchanged();
}

}  // namespace

std::unique_ptr<Checkpoint> open_hugging_face(const std::filesystem::path& path) {
  return std::make_unique<HuggingFaceCheckpoint>(path);
}

}  // namespace quern::checkpoint
