#include "checkpoint/lora.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/strings.hpp"
#include "checkpoint/lora_files.hpp"
#include "checkpoint/packed_tensor.hpp"
#include "checkpoint/tensor_list.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::printable;
using base::reject;

// The change of a stored matrix [rows, columns]: scale * left [rows, rank] right [rank, columns].
struct Change {
  SourceTensor left, right;
  bool turned;  // the factors are stored as left^T [rank, rows] and right^T [columns, rank]
  std::uint64_t rank;
  float scale;
};

struct Factors {
  std::vector<float> left, right;
};

std::vector<float> floats_of(const SourceTensor& tensor, bool turned) {
  std::vector<float> values(tensor.values);
  to_float(tensor, 0, tensor.values, values.data());
  if (!turned) return values;
  const std::uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
  std::vector<float> other(values.size());
  for (std::uint64_t r = 0; r < rows; ++r)
    for (std::uint64_t c = 0; c < columns; ++c) other[c * rows + r] = values[r * columns + c];
  return other;
}

class MergedReader : public TensorReader {
 public:
  explicit MergedReader(SourceTensor base) : base_(std::move(base)) {}
  void add(Change change) { changes_.push_back(std::move(change)); }

  void read(std::uint64_t first, std::uint64_t count, float* out) const override {
    to_float(base_, first, count, out);
    const auto factors = loaded();
    const std::uint64_t columns = base_.shape[1];
    std::vector<float> sum;
    for (std::uint64_t at = first; at < first + count;) {
      const std::uint64_t row = at / columns, begin = at % columns;
      const std::uint64_t n = std::min(columns - begin, first + count - at);
      for (std::size_t i = 0; i < changes_.size(); ++i) {
        product(changes_[i], (*factors)[i], row, begin, n, sum);
        for (std::uint64_t k = 0; k < n; ++k) out[at - first + k] += changes_[i].scale * sum[k];
      }
      at += n;
    }
  }
  // The factors are not needed for now.
  void drop() const {
    const std::lock_guard lock(mutex_);
    factors_.reset();
  }
  const SourceTensor& base() const { return base_; }

 private:
  void product(const Change& change, const Factors& factors, std::uint64_t row,
               std::uint64_t begin, std::uint64_t n, std::vector<float>& sum) const {
    sum.assign(n, 0.0F);
    for (std::uint64_t r = 0; r < change.rank; ++r) {
      const float left = factors.left[row * change.rank + r];
      const float* right = factors.right.data() + r * base_.shape[1] + begin;
      for (std::uint64_t k = 0; k < n; ++k) sum[k] += left * right[k];
    }
  }
  std::shared_ptr<const std::vector<Factors>> loaded() const {
    const std::lock_guard lock(mutex_);
    if (factors_ == nullptr) {
      auto all = std::make_shared<std::vector<Factors>>();
      for (const Change& change : changes_)
        all->push_back(
            {floats_of(change.left, change.turned), floats_of(change.right, change.turned)});
      factors_ = std::move(all);
    }
    return factors_;
  }
  SourceTensor base_;
  std::vector<Change> changes_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const std::vector<Factors>> factors_;
};

// A tensor of an adapter in the place of the checkpoint's.
class SavedReader : public TensorReader {
 public:
  explicit SavedReader(SourceTensor tensor) : tensor_(std::move(tensor)) {}
  void read(std::uint64_t first, std::uint64_t count, float* out) const override { to_float(tensor_, first, count, out); }
  DType type() const { return tensor_.type; }

 private:
  SourceTensor tensor_;
};

std::string shape_text(const std::vector<std::uint64_t>& sizes) {
  std::string all;
  for (const std::uint64_t n : sizes) all += cat(all.empty() ? "" : " x ", n);
  return all;
}

class AdaptedCheckpoint : public Checkpoint {
 public:
  AdaptedCheckpoint(std::unique_ptr<Checkpoint> base, const std::vector<LoraAdapter>& adapters);

  SourceKind kind() const override { return base_->kind(); }
  const std::string& config_json() const override { return base_->config_json(); }
  std::string_view where() const override { return base_->where(); }
  const std::vector<SourceTensor>& tensors() const override { return tensors_.all(); }
  const SourceTensor* find(std::string_view name) const override { return tensors_.find(name); }
  const std::vector<std::string>& notices() const override { return notices_; }
  std::string side_file(std::string_view name) const override { return base_->side_file(name); }
  void check_unchanged() const override {
    base_->check_unchanged();
    for (const LoraFiles& lora : lora_)
      for (const SourceFile& file : lora.files) file.check_unchanged();
  }
  void release(const SourceTensor& tensor) const override {
    base_->release(tensor);
    if (const auto found = merged_.find(tensor.name); found != merged_.end()) found->second->drop();
  }

 private:
  const SourceTensor& target(const LoraFiles& lora, const std::string& name) const;
  void merge(const LoraFiles& lora, const LoraPair& pair, double user_scale);
  void replace(const LoraFiles& lora, const SourceTensor& tensor, double user_scale);
  void check_saved(const LoraFiles& lora) const;

  std::unique_ptr<Checkpoint> base_;
  std::vector<LoraFiles> lora_;
  std::map<std::string, std::shared_ptr<MergedReader>, std::less<>> merged_;
  std::map<std::string, std::shared_ptr<const SavedReader>, std::less<>> saved_;
  TensorList tensors_;
  std::vector<std::string> notices_;
};

// The checkpoint's tensor of that name ("q_proj.weight"), which may have more or fewer parts in front than in the
// adapter.
const SourceTensor& AdaptedCheckpoint::target(const LoraFiles& lora, const std::string& name) const {
  const std::string_view module = std::string_view(name).substr(0, name.rfind('.'));
  for (std::string_view rest = name;;) {
    if (const SourceTensor* tensor = base_->find(rest)) return *tensor;
    const std::size_t dot = rest.find('.');
    if (dot == rest.rfind('.')) break;
    rest.remove_prefix(dot + 1);
  }
  const SourceTensor* found = nullptr;
  for (const SourceTensor& tensor : base_->tensors()) {
    if (!tensor.name.ends_with("." + name)) continue;
    if (found != nullptr)
      reject(lora.where, cat("module ", printable(module, 120), " may be ", printable(found->name, 120),
                             " or ", printable(tensor.name, 120)));
    found = &tensor;
  }
  if (found == nullptr)
    reject(lora.where, cat("module ", printable(module, 120), " is not in ", base_->where()));
  return *found;
}

void AdaptedCheckpoint::merge(const LoraFiles& lora, const LoraPair& pair, double user_scale) {
  const SourceTensor& base = target(lora, pair.module + ".weight");
  const bool turned = pair.embedding || (lora.fan_in_fan_out && base.packed() == nullptr);
  const std::uint64_t out = pair.b.shape[0], in = pair.a.shape[1];
  const std::vector<std::uint64_t> shape =
      turned ? std::vector<std::uint64_t>{in, out} : std::vector<std::uint64_t>{out, in};
  if (base.shape != shape)
    reject(lora.where, cat("shape of module ", printable(pair.module, 120), " against ",
                           printable(base.name, 120)),
           shape_text(shape), shape_text(base.shape));
  std::shared_ptr<MergedReader>& reader = merged_[base.name];
  if (reader == nullptr) reader = std::make_shared<MergedReader>(base);
  reader->add({.left = turned ? pair.a : pair.b,
               .right = turned ? pair.b : pair.a,
               .turned = turned,
               .rank = pair.a.shape[0],
               .scale = static_cast<float>(pair.scale * user_scale)});
}

void AdaptedCheckpoint::replace(const LoraFiles& lora, const SourceTensor& tensor, double user_scale) {
  const std::string shown = printable(tensor.name, 120);
  if (user_scale != 1) reject(lora.where, cat(shown, " is saved whole and has no scale"), cat(user_scale), "1");
  const SourceTensor& base = target(lora, tensor.name);
  if (base.shape != tensor.shape)
    reject(lora.where, cat("shape of ", shown, " against ", printable(base.name, 120)), shape_text(tensor.shape),
           shape_text(base.shape));
  if (!saved_.emplace(base.name, std::make_shared<SavedReader>(tensor)).second)
    reject(lora.where, cat(shown, " is saved twice"));
}

// A module that the configuration calls saved may be one that the model does not have ("classifier" and "score" are both
// named for every classifier), but one that it has must be there.
void AdaptedCheckpoint::check_saved(const LoraFiles& lora) const {
  for (const std::string& module : lora.not_saved)
    for (const SourceTensor& tensor : base_->tensors())
      if (is_of_module(tensor.name, module))
        reject(lora.where, cat("modules_to_save names ", printable(module, 80), ", but no tensor of it is there"));
}

// The last part of the path, also of "adapters/one/".
std::string label_of(const std::filesystem::path& directory) {
  const std::filesystem::path last = directory.has_filename() ? directory : directory.parent_path();
  return printable(last.filename().string(), 80);
}

AdaptedCheckpoint::AdaptedCheckpoint(std::unique_ptr<Checkpoint> base,
                                     const std::vector<LoraAdapter>& adapters)
    : base_(std::move(base)), notices_(base_->notices()) {
  if (base_->kind() != SourceKind::hugging_face)
    reject(base_->where(), "adapters are merged into Hugging Face directories only", "a GGUF file");
  for (const LoraAdapter& adapter : adapters) {
    lora_.push_back(read_lora(adapter.directory));
    const LoraFiles& lora = lora_.back();
    for (const LoraPair& pair : lora.pairs) merge(lora, pair, adapter.scale);
    for (const SourceTensor& tensor : lora.saved) replace(lora, tensor, adapter.scale);
    check_saved(lora);
    for (const auto& [name, reader] : saved_)
      if (merged_.contains(name)) reject(lora.where, cat(printable(name, 120), " is both changed and saved whole"));
    notices_.push_back(cat("adapter ", label_of(adapter.directory), ": ",
                           lora.pairs.size(), " matrices changed",
                           lora.saved.empty() ? "" : cat(", ", lora.saved.size(), " tensors replaced")));
  }
  std::vector<SourceTensor> all = base_->tensors();
  for (SourceTensor& tensor : all) {
    if (const auto found = merged_.find(tensor.name); found != merged_.end()) tensor.reader = found->second;
    if (const auto found = saved_.find(tensor.name); found != saved_.end()) {
      tensor.reader = found->second;
      tensor.type = found->second->type();
    }
  }
  tensors_ = TensorList(std::move(all));
}

}  // namespace

std::unique_ptr<Checkpoint> with_adapters(std::unique_ptr<Checkpoint> checkpoint,
                                          const std::vector<LoraAdapter>& adapters) {
  if (adapters.empty()) return checkpoint;
  return std::make_unique<AdaptedCheckpoint>(std::move(checkpoint), adapters);
}

}  // namespace quern::checkpoint
