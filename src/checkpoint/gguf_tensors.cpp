#include "checkpoint/gguf_tensors.hpp"

#include <algorithm>
#include <unordered_set>

#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::printable;
using base::reject;

constexpr std::uint64_t kMaxNameBytes = 64;  // the format's own limit
constexpr std::uint32_t kMaxRank = 4;

struct Entry {
  SourceTensor tensor;
  std::uint64_t offset = 0, size = 0;  // in the data part
};

std::string read_name(base::ByteReader& reader) {
  const std::string place = reader.place();
  const auto length = reader.read<std::uint64_t>("tensor name");
  if (length == 0) reject(place, "tensor name is empty");
  if (length > kMaxNameBytes)
    reject(place, "tensor name is too long", cat(length, " bytes"), cat("at most ", kMaxNameBytes));
  const std::string_view name = base::as_text(reader.take(length, "tensor name"));
  if (!is_printable_name(name))
    reject(place, cat("tensor name is not printable UTF-8: \"", printable(name), "\""));
  return std::string(name);
}

// Sizes come innermost first; whole blocks lie along the innermost one.
Entry read_entry(base::ByteReader& reader, std::string_view where) {
  Entry entry{{read_name(reader), DType::f32, {}, 1, 0, {}}, 0, 0};
  SourceTensor& tensor = entry.tensor;
  const std::string place = cat(where, ": tensor \"", tensor.name, "\"");
  const auto rank = reader.read<std::uint32_t>("tensor rank");
  if (rank > kMaxRank) reject(place, "too many dimensions", cat(rank), cat("at most ", kMaxRank));
  for (std::uint32_t i = 0; i < rank; ++i)
    tensor.shape.push_back(reader.read<std::uint64_t>("tensor shape"));
  const std::uint64_t row = rank == 0 ? 1 : tensor.shape.front();
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  const auto number = reader.read<std::uint32_t>("tensor type");
  const DTypeInfo* info = find_gguf_type(number);
  if (info == nullptr) reject(place, "tensor type is not supported", gguf_type_name(number));
  tensor.type = info->type;
  for (const std::uint64_t size : tensor.shape) {
    if (size > static_cast<std::uint64_t>(INT64_MAX))
      reject(place, "dimension is too large", cat(size));
    tensor.values = base::checked_mul(tensor.values, size, place);
  }
  if (row % info->block_values != 0)
    reject(place, cat("row is not a multiple of the block of ", info->name), cat(row),
           cat("a multiple of ", info->block_values));
  entry.size = base::checked_mul(tensor.values / info->block_values, info->block_bytes, place);
  entry.offset = reader.read<std::uint64_t>("tensor offset");
  return entry;
}

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment, std::string_view place) {
  return base::checked_add(size, alignment - 1, place) / alignment * alignment;
}

}  // namespace

void read_gguf_tensors(base::ByteReader& reader, const GgufTensorSource& source, GgufFile& file) {
  const std::string_view where = source.where;
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < source.n_tensors; ++i) entries.push_back(read_entry(reader, where));
  if (entries.empty()) return;

  std::unordered_set<std::string_view> names;
  for (const Entry& entry : entries)
    if (!names.insert(entry.tensor.name).second)
      reject(where, cat("duplicate tensor \"", entry.tensor.name, "\""));
  names.clear();
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
  });

  const std::uint64_t start = padded(reader.offset(), file.alignment, where);
  const std::uint64_t data_bytes =
      source.bytes.size() - std::min<std::uint64_t>(start, source.bytes.size());
  std::uint64_t at = 0;  // where the next tensor must begin
  for (Entry& entry : entries) {
    const std::string place = cat(where, ": tensor \"", entry.tensor.name, "\"");
    if (entry.offset != at)
      reject(place,
             entry.offset % file.alignment != 0 ? "offset is not aligned"
             : entry.offset < at                ? "data overlaps another tensor's"
                                                : "hole before the tensor's data",
             cat("offset ", entry.offset), cat(at));
    at = padded(base::checked_add(at, entry.size, place), file.alignment, place);
    if (at > data_bytes)
      reject(place, "truncated: data lies beyond the end of the file",
             cat(data_bytes, " bytes of data"), cat("at least ", at));
    entry.tensor.bytes = source.bytes.subspan(start + entry.offset, entry.size);
    file.tensors.push_back(std::move(entry.tensor));
  }
  file.trailing_bytes = data_bytes - at;
}

}  // namespace quern::checkpoint
