// GGUF metadata as JSON text, written piece by piece: a document tree looks keys up linearly.
#include <array>
#include <charconv>
#include <cmath>

#include "base/json_reader.hpp"
#include "checkpoint/dequant.hpp"
#include "checkpoint/gguf.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::uint64_t kMaxArray = 1024;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The fewest digits that read back as the same number; always with a point or an exponent, so that
// a reader sees a float. Plain digits where a person would write them: 100000.0, not 1e+05.
template <class T>
std::string number(T value) {
  if (!std::isfinite(value)) return "null";
  const T size = std::fabs(value);
  const bool plain = value == 0 || (size >= T(1e-3) && size < T(1e15));
  std::array<char, 64> text{};
  char* const begin = text.data();
  char* const limit = begin + text.size();
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string out(begin, std::to_chars(begin, limit, value, format).ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

struct ScalarText {
  GgufType type;
  std::string operator()(std::uint64_t value) const {
    if (type == GgufType::boolean) return value != 0 ? "true" : "false";
    return std::to_string(value);
  }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    return type == GgufType::f32 ? number(static_cast<float>(value)) : number(value);
  }
  std::string operator()(std::string_view value) const { return json_text(value); }
};

// One element of an array of fixed-size values.
std::string element_text(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::u8:
      return std::to_string(load<std::uint8_t>(at));
    case GgufType::i8:
      return std::to_string(load<std::int8_t>(at));
    case GgufType::u16:
      return std::to_string(load<std::uint16_t>(at));
    case GgufType::i16:
      return std::to_string(load<std::int16_t>(at));
    case GgufType::u32:
      return std::to_string(load<std::uint32_t>(at));
    case GgufType::i32:
      return std::to_string(load<std::int32_t>(at));
    case GgufType::u64:
      return std::to_string(load<std::uint64_t>(at));
    case GgufType::i64:
      return std::to_string(load<std::int64_t>(at));
    case GgufType::f32:
      return number(load<float>(at));
    case GgufType::f64:
      return number(load<double>(at));
    case GgufType::boolean:
      return byte_at(at, 0) != 0 ? "true" : "false";
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return "null";  // not reached: strings are read apart, arrays of arrays are rejected
}

std::string array_text(const GgufFile& file, const std::string& key, const GgufValue& value) {
  std::string out = "[";
  const auto add = [&](const std::string& text) {
    if (out.size() > 1) out += ", ";
    out += text;
  };
  if (value.element == GgufType::string) {
    for (const std::string_view text : file.strings(key, "metadata")) add(json_text(text));
  } else if (value.count != 0) {
    const std::size_t size = value.array.size() / value.count;
    for (std::size_t i = 0; i < value.count; ++i)
      add(element_text(value.element, value.array.data() + i * size));
  }
  return out + "]";
}

}  // namespace

std::string gguf_metadata_json(const GgufFile& file) {
  std::string out = "{";
  for (const auto& [key, value] : file.metadata) {
    if (value.type == GgufType::array && value.count > kMaxArray) continue;
    if (out.size() > 1) out += ",\n ";
    out += json_text(key) + ": ";
    out += value.type == GgufType::array ? array_text(file, key, value)
                                         : std::visit(ScalarText{value.type}, value.scalar);
  }
  return out + "}\n";
}

}  // namespace quern::checkpoint
