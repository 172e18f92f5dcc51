#include "convert/transform.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::size_t number_of(std::string_view word, std::string_view where) {
  std::size_t value = 0;
  const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || at != word.data() + word.size())
    base::reject(where, "not a number in a transform", base::printable(word, 40));
  return value;
}

}  // namespace

RowView::RowView(const checkpoint::SourceTensor& source, const std::vector<std::string>& transforms,
                 std::string_view where)
    : source_(&source) {
  std::vector<std::uint64_t> shape = source.shape;
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  if (shape.empty() || shape.size() > 3)
    base::reject(where, "number of dimensions", cat(source.shape.size()), "1, 2 or 3");
  if (source.values == 0) base::reject(where, "the tensor is empty");
  columns_ = shape.size() == 1 ? 1 : shape.back();
  rows_ = source.values / columns_;
  if (columns_ % checkpoint::dtype_block_values(source.type) != 0)
    base::reject(where, "row length of a quantized tensor", cat(columns_),
                 cat("a multiple of ", checkpoint::dtype_block_values(source.type)));
  for (const std::string& text : transforms) apply(text, where);
}

void RowView::transpose(std::string_view where) {
  if (columns_ == 1) return;  // a vector
  if (source_->packed() != nullptr) return;  // always [out, in], whatever the float weights are
  if (transposed_) base::reject(where, "transpose stands twice");
  if (checkpoint::dtype_block_values(source_->type) != 1)
    base::reject(where, "a quantized tensor cannot be transposed",
                 checkpoint::dtype_name(source_->type), "a float type");
  first_row_ = source_row(0);
  if (source_row(rows_ - 1) != first_row_ + rows_ - 1)
    base::reject(where, "transpose stands after rows were picked; only `part` may come before it");
  selections_.clear();
  std::swap(rows_, columns_);
  transposed_ = true;
}

void RowView::transpose_each(std::size_t groups, std::string_view where) {
  if (transposed_ || groups_ > 0 || !selections_.empty())
    base::reject(where, "transpose_each stands alone");
  if (groups == 0 || rows_ % groups != 0)
    base::reject(where, cat("cannot transpose ", groups, " groups of ", rows_, " rows"));
  groups_ = groups;
  const std::size_t height = rows_ / groups;
  rows_ = groups * columns_;
  columns_ = height;
}

void RowView::apply(std::string_view text, std::string_view where) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() == 2 && words[0] == "transpose_each") return transpose_each(number_of(words[1], where), where);
  if (groups_ > 0) base::reject(where, "transpose_each stands alone");
  if (words.size() == 1 && words[0] == "transpose") return transpose(where);
  GroupRows selection{};
  if (words.size() == 4 && words[0] == "part" && words[2] == "of") {
    const std::size_t index = number_of(words[1], where), parts = number_of(words[3], where);
    if (parts == 0 || index >= parts || rows_ % parts != 0)
      base::reject(where, cat("cannot take ", base::printable(text), " of ", rows_, " rows"));
    const std::size_t size = rows_ / parts;
    selection = {rows_, index * size, (index + 1) * size};
  } else if (words.size() == 4 && words[0] == "every" && words[2] == "from") {
    const std::size_t step = number_of(words[1], where), first = number_of(words[3], where);
    if (step == 0 || first >= step || rows_ % step != 0)
      base::reject(where, cat("cannot take ", base::printable(text), " of ", rows_, " rows"));
    selection = {step, first, first + 1};
  } else if (words.size() == 4 && words[0] == "group_rows") {
    const std::size_t groups = number_of(words[1], where);
    if (groups == 0 || rows_ % groups != 0)
      base::reject(where, cat("cannot take ", base::printable(text), " of ", rows_, " rows"));
    selection = {rows_ / groups, number_of(words[2], where), number_of(words[3], where)};
    if (selection.begin >= selection.end || selection.end > selection.group_size)
      base::reject(where, cat("cannot take ", base::printable(text), " of groups of ",
                              selection.group_size));
  } else {
    base::reject(where, "unknown transform", base::printable(text),
                 "transpose, transpose_each N, part I of N, every N from I, group_rows N A B");
  }
  rows_ = rows_ / selection.group_size * (selection.end - selection.begin);
  selections_.push_back(selection);
}

void RowView::as_one_row() {
  QUERN_ASSERT(columns_ == 1 && !transposed());
  std::swap(rows_, columns_);
  one_row_ = true;
}

std::size_t RowView::source_row(std::size_t row) const {
  for (auto step = selections_.rbegin(); step != selections_.rend(); ++step) {
    const std::size_t kept = step->end - step->begin;
    row = row / kept * step->group_size + step->begin + row % kept;
  }
  return row;
}

void RowView::read(std::size_t first, std::size_t count, float* out, std::size_t stride) const {
  if (groups_ > 0) return read_each(first, count, out, stride);
  if (transposed_) return read_transposed(first, count, out, stride);
  if (one_row_) {
    for (std::size_t c = 0; count > 0 && c < columns_; ++c) checkpoint::to_float(*source_, source_row(c), 1, out + c);
    return;
  }
  for (std::size_t i = 0; i < count; ++i)
    checkpoint::to_float(*source_, std::uint64_t{source_row(first + i)} * columns_, columns_,
                         out + i * stride);
}

// Row j of group g holds column j of the group's `columns_` source rows: read the block that has it.
void RowView::read_each(std::size_t first, std::size_t count, float* out, std::size_t stride) const {
  const std::size_t width = rows_ / groups_;
  const std::uint64_t block = checkpoint::dtype_block_values(source_->type);
  std::vector<float> values(block);
  for (std::size_t c = 0; c < columns_; ++c) {
    std::uint64_t held = UINT64_MAX;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t group = (first + i) / width, column = (first + i) % width;
      const std::uint64_t at = (std::uint64_t{group} * columns_ + c) * width + column, begin = at / block * block;
      if (begin != held) checkpoint::to_float(*source_, begin, block, values.data());
      held = begin;
      out[i * stride + c] = values[at - begin];
    }
  }
}

// Source row c holds column c of the view: read the needed runs of it and scatter.
void RowView::read_transposed(std::size_t first, std::size_t count, float* out,
                              std::size_t stride) const {
  const std::size_t source_columns = source_->shape.back();
  const std::size_t begin = source_row(first), end = source_row(first + count - 1) + 1;
  const bool dense = end - begin == count;
  std::vector<float> run(dense ? count : end - begin);
  for (std::size_t c = 0; c < columns_; ++c) {
    checkpoint::to_float(*source_, std::uint64_t{first_row_ + c} * source_columns + begin,
                         run.size(), run.data());
    for (std::size_t i = 0; i < count; ++i)
      out[i * stride + c] = run[dense ? i : source_row(first + i) - begin];
  }
}

std::uint64_t RowView::stored_row(std::size_t row) const {
  QUERN_ASSERT(!transposed_);
  return source_row(row);
}

base::Bytes RowView::row_bytes(std::size_t row) const {
  QUERN_ASSERT(!transposed());
  const std::uint64_t bytes = columns_ / checkpoint::dtype_block_values(source_->type) *
                              checkpoint::dtype_block_bytes(source_->type);
  return base::checked_slice(source_->bytes, source_row(row) * bytes, bytes, source_->name);
}

}  // namespace quern::convert
