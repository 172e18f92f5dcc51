#include "checkpoint/safetensors.hpp"

#include <algorithm>

#include "checkpoint/dequant.hpp"
#include "checkpoint/magic.hpp"
#include "checkpoint/safetensors_header.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::reject;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

// A file of another kind deserves a better word than "header length".
void reject_other_kinds(base::Bytes bytes, std::string_view where) {
  const FileMagic magic = magic_of(bytes);
  if (magic == FileMagic::pickle)
    reject(where, "pickle is not read (a pickle can run code; save the model as safetensors)");
  if (magic == FileMagic::gguf) reject(where, "this is a GGUF file under a safetensors name");
}

std::string_view header_of(base::Bytes bytes, std::string_view where) {
  base::ByteReader reader(bytes, where);
  if (bytes.size() < kLengthBytes) reject_other_kinds(bytes, where);
  const auto length = reader.read<std::uint64_t>("header length");
  if (length < 2 || length > kMaxHeaderBytes || length > reader.remaining()) {
    reject_other_kinds(bytes, where);
    const std::uint64_t most = std::min<std::uint64_t>(kMaxHeaderBytes, reader.remaining());
    reject(cat(where, ":0"), "header length is wrong", cat(length), cat("2 to ", most));
  }
  const std::string_view text = base::as_text(reader.take(length, "header"));
  if (text.front() != '{')
    reject(cat(where, ":", kLengthBytes), "header does not start with \"{\"");
  return text;
}

std::string place_of(const HeaderEntry& entry, std::string_view where) {
  return cat(where, ": tensor \"", base::printable(entry.name, 100), "\"");
}

// The number of values of one entry, after its shape, type and range agree and its range begins at
// `expected_begin`: tensors lie in order, each where the one before ends.
std::uint64_t check_entry(const HeaderEntry& entry, std::uint64_t data_bytes,
                          std::uint64_t expected_begin, std::string_view where) {
  if (entry.begin > entry.end || entry.end > data_bytes)
    reject(place_of(entry, where), "data lies outside the file",
           cat("[", entry.begin, ", ", entry.end, ")"), cat("within ", data_bytes, " bytes"));
  std::uint64_t values = 1, bytes = 0;
  bool overflow = false;
  for (const std::uint64_t size : entry.shape)
    overflow = __builtin_mul_overflow(values, size, &values) || overflow;
  overflow = __builtin_mul_overflow(values, dtype_block_bytes(entry.type), &bytes) || overflow;
  if (overflow) reject(place_of(entry, where), "shape overflows 64 bits");
  if (entry.end - entry.begin != bytes)
    reject(place_of(entry, where), "shape and data_offsets disagree",
           cat(entry.end - entry.begin, " bytes"), cat(bytes, " bytes"));
  if (entry.begin != expected_begin)
    reject(place_of(entry, where),
           entry.begin < expected_begin ? "data overlaps another tensor's"
                                        : "hole before the tensor's data",
           cat("offset ", entry.begin), cat(expected_begin));
  return values;
}

}  // namespace

std::vector<SourceTensor> parse_safetensors(base::Bytes bytes, std::string_view where) {
  const std::string_view header = header_of(bytes, where);
  const base::Bytes data = bytes.subspan(kLengthBytes + header.size());
  std::vector<HeaderEntry> entries = parse_safetensors_header(header, kLengthBytes, where);
  std::stable_sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::vector<SourceTensor> tensors;
  tensors.reserve(entries.size());
  std::uint64_t at = 0;
  for (HeaderEntry& entry : entries) {
    const std::uint64_t values = check_entry(entry, data.size(), at, where);
    at = entry.end;
    tensors.push_back({std::move(entry.name), entry.type, std::move(entry.shape), values, 0,
                       data.subspan(entry.begin, entry.end - entry.begin)});
  }
  if (at != data.size())
    reject(where, "bytes after the last tensor", cat(data.size(), " bytes of data"), cat(at));
  return tensors;
}

}  // namespace quern::checkpoint
