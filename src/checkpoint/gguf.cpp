// Header and metadata of a GGUF file. Tensors: gguf_tensors.cpp.
#include "checkpoint/gguf.hpp"

#include <array>
#include <bit>
#include <unordered_set>

#include "checkpoint/dequant.hpp"
#include "checkpoint/gguf_tensors.hpp"
#include "checkpoint/magic.hpp"

namespace quern::checkpoint {

namespace {

using base::ByteReader;
using base::cat;
using base::printable;
using base::reject;

constexpr std::uint64_t kMaxKeys = 65'536;             // real files have about 30
constexpr std::uint64_t kMaxTensors = 1'048'576;       // the largest real ones have about 2,000
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;  // length, text, type, value
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // length, text, rank, type, offset
constexpr std::uint64_t kMaxKeyBytes = 65'535;
constexpr std::uint64_t kMaxAlignment = 65'536;

struct TypeRow {
  std::string_view name;
  std::uint64_t bytes;  // 0: no fixed size
};
constexpr std::array<TypeRow, 13> kTypes = {{{"u8", 1},
                                             {"i8", 1},
                                             {"u16", 2},
                                             {"i16", 2},
                                             {"u32", 4},
                                             {"i32", 4},
                                             {"f32", 4},
                                             {"bool", 1},
                                             {"string", 0},
                                             {"array", 0},
                                             {"u64", 8},
                                             {"i64", 8},
                                             {"f64", 8}}};
const TypeRow& row_of(GgufType type) {
  return kTypes[static_cast<std::size_t>(type)];
}

struct Counts {
  std::uint64_t tensors, keys;
};

void check_version(std::uint32_t version, const std::string& place) {
  if (version != 0 && (version & 0xFFFFu) == 0) reject(place, "big-endian GGUF file");
  if (version == 1) reject(place, "GGUF version 1 is too old", "1", "2 or 3");
  if (version < 2 || version > 3) reject(place, "unknown GGUF version", cat(version), "2 or 3");
}

Counts read_header(ByteReader& reader) {
  const std::string_view magic = base::as_text(reader.take(4, "magic"));
  if (magic == "FUGG") reject(reader.place(), "big-endian GGUF file");
  if (magic != "GGUF") reject(reader.place(), "not a GGUF file", printable(magic), "GGUF");
  const std::string place = reader.place();
  check_version(reader.read<std::uint32_t>("version"), place);
  Counts counts{};
  counts.tensors = reader.read<std::uint64_t>("tensor count");
  counts.keys = reader.read<std::uint64_t>("metadata count");
  if (counts.tensors > kMaxTensors || counts.tensors > reader.remaining() / kMinTensorBytes)
    reject(reader.place(), "more tensors than the file can hold", cat(counts.tensors));
  if (counts.keys > kMaxKeys || counts.keys > reader.remaining() / kMinKeyBytes)
    reject(reader.place(), "more metadata than the file can hold", cat(counts.keys));
  return counts;
}

std::string_view read_string(ByteReader& reader, std::string_view what) {
  return base::as_text(reader.take(reader.read<std::uint64_t>(what), what));
}

GgufType read_type(ByteReader& reader, std::string_view key) {
  const std::string place = reader.place();
  const auto number = reader.read<std::uint32_t>("value type");
  if (number >= kTypes.size())
    reject(place, cat("metadata \"", printable(key, 80), "\": unknown value type"), cat(number),
           "0 to 12");
  return static_cast<GgufType>(number);
}

template <class T, class Wide>
void read_scalar(ByteReader& reader, GgufValue& value) {
  value.scalar = static_cast<Wide>(reader.read<T>("metadata value"));
}

void read_array(ByteReader& reader, std::string_view key, GgufValue& value) {
  const std::string place = reader.place();
  value.element = read_type(reader, key);
  if (value.element == GgufType::array)
    reject(place, cat("metadata \"", printable(key, 80), "\": arrays of arrays are not read"));
  value.count = reader.read<std::uint64_t>("array length");
  if (value.element != GgufType::string) {
    const std::uint64_t bytes = base::checked_mul(value.count, row_of(value.element).bytes, place);
    value.array = reader.take(bytes, "array");
    return;
  }
  if (value.count > reader.remaining() / sizeof(std::uint64_t))
    reject(place, cat("metadata \"", printable(key, 80), "\": truncated in array"),
           cat(reader.remaining(), " bytes left"), cat(value.count, " strings"));
  ByteReader begin = reader;
  const std::size_t first = reader.offset();
  for (std::uint64_t i = 0; i < value.count; ++i) read_string(reader, "array string");
  value.array = begin.take(reader.offset() - first, "array");
}

GgufValue read_value(ByteReader& reader, std::string_view key) {
  GgufValue value{read_type(reader, key), {}, 0, {}, {}};
  switch (value.type) {
    case GgufType::u8:
      read_scalar<std::uint8_t, std::uint64_t>(reader, value);
      break;
    case GgufType::i8:
      read_scalar<std::int8_t, std::int64_t>(reader, value);
      break;
    case GgufType::u16:
      read_scalar<std::uint16_t, std::uint64_t>(reader, value);
      break;
    case GgufType::i16:
      read_scalar<std::int16_t, std::int64_t>(reader, value);
      break;
    case GgufType::u32:
      read_scalar<std::uint32_t, std::uint64_t>(reader, value);
      break;
    case GgufType::i32:
      read_scalar<std::int32_t, std::int64_t>(reader, value);
      break;
    case GgufType::f32:
      read_scalar<float, double>(reader, value);
      break;
    case GgufType::boolean:
      value.scalar = std::uint64_t{reader.read<std::uint8_t>("metadata value") != 0 ? 1u : 0u};
      break;
    case GgufType::string:
      value.scalar = read_string(reader, "metadata string");
      break;
    case GgufType::array:
      read_array(reader, key, value);
      break;
    case GgufType::u64:
      read_scalar<std::uint64_t, std::uint64_t>(reader, value);
      break;
    case GgufType::i64:
      read_scalar<std::int64_t, std::int64_t>(reader, value);
      break;
    case GgufType::f64:
      read_scalar<double, double>(reader, value);
      break;
  }
  return value;
}

void read_metadata(ByteReader& reader, std::uint64_t count, GgufFile& file) {
  std::unordered_set<std::string_view> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string place = reader.place();
    const std::string_view key = read_string(reader, "metadata key");
    if (key.empty()) reject(place, "metadata key is empty");
    if (key.size() > kMaxKeyBytes)
      reject(place, "metadata key is too long", cat(key.size(), " bytes"));
    if (!is_printable_name(key))
      reject(place, cat("metadata key is not printable UTF-8: \"", printable(key, 80), "\""));
    if (!keys.insert(key).second) reject(place, cat("duplicate key \"", printable(key, 80), "\""));
    file.metadata.emplace_back(std::string(key), read_value(reader, key));
  }
}

void read_alignment(GgufFile& file, std::string_view where) {
  const GgufValue* value = file.find("general.alignment");
  if (value == nullptr) return;
  const std::string place = cat(where, ": general.alignment");
  if (value->type != GgufType::u32)
    reject(place, "wrong type", gguf_value_type_name(value->type), "u32");
  file.alignment = std::get<std::uint64_t>(value->scalar);
  if (!std::has_single_bit(file.alignment) || file.alignment > kMaxAlignment)
    reject(place, "wrong alignment", cat(file.alignment),
           cat("a power of two, at most ", kMaxAlignment));
}

const GgufValue& array_of(const GgufFile& file, std::string_view key, std::string_view where) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) reject(cat(where, ": ", key), "key is missing");
  if (value->type != GgufType::array)
    reject(cat(where, ": ", key), "wrong type", gguf_value_type_name(value->type), "an array");
  return *value;
}

template <class T, class Out>
std::vector<Out> copy_array(const GgufValue& value) {
  std::vector<Out> out(value.count);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<Out>(load<T>(value.array.data() + i * sizeof(T)));
  return out;
}

[[noreturn]] void wrong_element(const GgufValue& value, std::string_view key,
                                std::string_view where, std::string_view expected) {
  reject(cat(where, ": ", key), "wrong element type", gguf_value_type_name(value.element),
         expected);
}

}  // namespace

bool is_printable_name(std::string_view text) {
  return base::printable(text, 4 * text.size() + 1) == text;
}

std::string_view gguf_value_type_name(GgufType type) {
  return row_of(type).name;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  for (const auto& [name, value] : metadata)
    if (name == key) return &value;
  return nullptr;
}

std::vector<std::string_view> GgufFile::strings(std::string_view key,
                                                std::string_view where) const {
  const GgufValue& value = array_of(*this, key, where);
  if (value.element != GgufType::string) wrong_element(value, key, where, "string");
  ByteReader reader(value.array, where);
  std::vector<std::string_view> out(value.count);
  for (std::string_view& text : out) text = read_string(reader, "array string");
  return out;
}

std::vector<float> GgufFile::floats(std::string_view key, std::string_view where) const {
  const GgufValue& value = array_of(*this, key, where);
  if (value.element == GgufType::f32) return copy_array<float, float>(value);
  if (value.element == GgufType::f64) return copy_array<double, float>(value);
  wrong_element(value, key, where, "f32 or f64");
}

std::vector<std::int64_t> GgufFile::integers(std::string_view key, std::string_view where) const {
  const GgufValue& value = array_of(*this, key, where);
  switch (value.element) {
    case GgufType::u8:
      return copy_array<std::uint8_t, std::int64_t>(value);
    case GgufType::i8:
      return copy_array<std::int8_t, std::int64_t>(value);
    case GgufType::u16:
      return copy_array<std::uint16_t, std::int64_t>(value);
    case GgufType::i16:
      return copy_array<std::int16_t, std::int64_t>(value);
    case GgufType::u32:
      return copy_array<std::uint32_t, std::int64_t>(value);
    case GgufType::i32:
      return copy_array<std::int32_t, std::int64_t>(value);
    case GgufType::i64:
      return copy_array<std::int64_t, std::int64_t>(value);
    case GgufType::u64: {
      std::vector<std::int64_t> out = copy_array<std::uint64_t, std::int64_t>(value);
      for (const std::int64_t number : out)
        if (number < 0) reject(cat(where, ": ", key), "number does not fit", "", "less than 2^63");
      return out;
    }
    default:
      wrong_element(value, key, where, "an integer type");
  }
}

GgufFile parse_gguf(base::Bytes bytes, std::string_view where) {
  ByteReader reader(bytes, where);
  const Counts counts = read_header(reader);
  GgufFile file;
  read_metadata(reader, counts.keys, file);
  read_alignment(file, where);
  read_gguf_tensors(reader, {bytes, where, counts.tensors}, file);
  return file;
}

}  // namespace quern::checkpoint
