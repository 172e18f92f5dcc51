#include "convert/tensor_plan.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "convert/made_tensor.hpp"
#include "convert/transform.hpp"

namespace quern::convert {

namespace {

using base::cat;

constexpr std::string_view kHead = "head.weight";
constexpr std::string_view kTokens = "embedding.tokens";

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t n : shape) text += cat(text.size() > 1 ? ", " : "", n);
  return text + "]";
}

bool same_bytes(base::Bytes a, base::Bytes b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool same_values(const checkpoint::SourceTensor& a, const checkpoint::SourceTensor& b) {
  if ((a.reader != nullptr && a.packed() == nullptr) || (b.reader != nullptr && b.packed() == nullptr))
    return false;  // values of their own
  if (a.type != b.type || a.shape != b.shape || a.parts.size() != b.parts.size() ||
      !same_bytes(a.bytes, b.bytes))
    return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i)
    if (!same_bytes(a.parts[i].bytes, b.parts[i].bytes)) return false;
  return true;
}

void check_shape(const contract::TensorSpec& spec, const checkpoint::SourceTensor& tensor,
                 const TensorSource& source, std::string_view where) {
  const std::string place = cat(where, ": tensor ", base::printable(tensor.name));
  const RowView view(tensor, source.transforms, place);
  const bool vector = spec.rows == 1 && view.columns() == 1;
  const bool same = vector ? view.rows() == spec.columns
                           : view.rows() == spec.rows && view.columns() == spec.columns;
  if (same) return;
  base::reject(place, cat("shape for ", spec.name), shape_text(tensor.shape),
               source.transforms.empty() ? shape_text({spec.rows, spec.columns})
                                         : cat(shape_text({spec.rows, spec.columns}), " after ",
                                               source.transforms.size(), " transforms"));
}

[[noreturn]] void reject_missing(const contract::TensorSpec& spec, const TensorSource& source,
                                 const checkpoint::Checkpoint& checkpoint) {
  std::vector<std::string_view> tried(source.from.begin(), source.from.end()), known;
  for (const checkpoint::SourceTensor& tensor : checkpoint.tensors()) known.push_back(tensor.name);
  const std::string near = base::nearest(source.from.front(), known);
  base::reject(checkpoint.where(),
               cat("missing tensor for ", spec.name, ": no ", base::join(tried, " and no "),
                   near.empty() ? "" : cat(" (nearest: ", base::printable(near), ")")));
}

}  // namespace

std::optional<bool> tied_by_tensors(const NameMap& names, const Environment& values) {
  if (!names.has_rule(kHead) || !names.has_rule(kTokens)) return std::nullopt;
  const checkpoint::SourceTensor* head = names.find_first(names.source_of(kHead, values).from);
  const checkpoint::SourceTensor* tokens = names.find_first(names.source_of(kTokens, values).from);
  return head == nullptr || tokens == nullptr || same_values(*head, *tokens);
}

namespace {

using Names = std::set<std::string, std::less<>>;

std::unique_ptr<MadeTensor> stack_of(const NameMap& names, const contract::TensorSpec& spec,
                                     const TensorSource& source,
                                     const checkpoint::Checkpoint& checkpoint, Names& used) {
  std::vector<const checkpoint::SourceTensor*> tensors;
  for (std::size_t i = 0; i < source.stack; ++i) {
    TensorSource element = source;
    element.from = element_names(source.from, i);
    tensors.push_back(names.find_first(element.from));
    if (tensors.back() == nullptr) reject_missing(spec, element, checkpoint);
    used.insert(tensors.back()->name);
  }
  return stacked_rows(tensors, checkpoint.where());
}

// The recipe says where a tensor lies, but for the layers behind a pooling: they are no family's.
TensorSource source_of(const NameMap& names, const std::string& canonical, const Environment& values,
                       const Resolved& resolved) {
  for (const TensorSource& source : resolved.pooling)
    if (source.canonical == canonical) return source;
  return names.source_of(canonical, values);
}

}  // namespace

void plan_tensors(const NameMap& names, const Environment& values,
                  const checkpoint::Checkpoint& checkpoint, Resolved& resolved) {
  Names used;
  for (const contract::TensorSpec& spec : contract::expected_tensors(resolved.contract)) {
    if (spec.computed) {
      resolved.tensors.push_back({.canonical = spec.name});
      continue;
    }
    TensorSource source = source_of(names, spec.name, values, resolved);
    if (source.stack > 0) {
      resolved.made.push_back(stack_of(names, spec, source, checkpoint, used));
      source.tensor = &resolved.made.back()->tensor;
    } else if (const auto* table = names.find_first(source.from);
               table != nullptr && !source.times.empty()) {
      const checkpoint::SourceTensor& matrix = *names.find_first(source.times);
      resolved.made.push_back(projected_rows(*table, matrix, checkpoint.where()));
      source.tensor = &resolved.made.back()->tensor;
      used.insert({table->name, matrix.name});
    } else {
      source.tensor = names.find_first(source.from);
    }
    if (source.tensor == nullptr) reject_missing(spec, source, checkpoint);
    check_shape(spec, *source.tensor, source, checkpoint.where());
    used.insert(source.tensor->name);
    source.from = {source.tensor->name};
    resolved.tensors.push_back(std::move(source));
  }
  // A stored copy of a tied head is the embedding once more.
  if (resolved.contract.head.tied && names.has_rule(kHead))
    if (const auto* copy = names.find_first(names.source_of(kHead, values).from);
        copy != nullptr && used.insert(copy->name).second)
      resolved.notices.push_back(cat(copy->name, " equals the token embedding: stored once"));
  std::vector<std::string> surplus;
  for (const checkpoint::SourceTensor& tensor : checkpoint.tensors()) {
    if (used.count(tensor.name) != 0) continue;
    if (names.ignored(tensor, values))
      resolved.ignored.push_back(tensor.name);
    else
      surplus.push_back(base::printable(tensor.name, 100));
  }
  if (surplus.empty()) return;
  const std::size_t count = surplus.size();
  surplus.resize(std::min<std::size_t>(count, 5));
  base::reject(checkpoint.where(),
               cat(count, count == 1 ? " tensor is" : " tensors are",
                   " neither used nor on the recipe's ignore list: ",
                   base::join({surplus.begin(), surplus.end()}), count > 5 ? ", ..." : ""));
}

}  // namespace quern::convert
