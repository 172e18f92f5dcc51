#include "batch/record.hpp"

#include <array>
#include <charconv>

#include "base/hash.hpp"
#include "batch/json_scan.hpp"

namespace quern::batch {

namespace {

constexpr std::string_view kPrefix = "batch_req_";
constexpr std::size_t kHexDigits = 16;

std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) {
  std::array<std::uint64_t, 2> both = {a, b};
  return base::xxh3(std::as_bytes(std::span(both)));
}

bool is_integer(std::string_view value) {
  return value.size() < 20 && value.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<std::string> custom_id_of(const std::vector<JsonMember>& members, InputFormat format) {
  const JsonMember* member = find_member(members, "custom_id");
  if (member == nullptr && format == InputFormat::jsonl) member = find_member(members, "id");
  if (member == nullptr || member->value.size() > 6 * kMaxCustomIdBytes + 2) return std::nullopt;
  if (format == InputFormat::jsonl && is_integer(member->value)) return std::string(member->value);
  std::optional<std::string> text = json_string(member->value);
  const bool usable = text.has_value() && text->size() <= kMaxCustomIdBytes;
  return usable ? std::make_optional(std::move(*text)) : std::nullopt;
}

}  // namespace

std::optional<InputFormat> input_format_of(std::string_view word) {
  for (const InputFormat format : {InputFormat::openai, InputFormat::jsonl, InputFormat::text})
    if (input_format_name(format) == word) return format;
  return std::nullopt;
}

std::string_view input_format_name(InputFormat format) {
  switch (format) {
    case InputFormat::openai: return "openai";
    case InputFormat::jsonl: return "jsonl";
    case InputFormat::text: return "text";
  }
  return "";
}

InputFormat detect_format(const InputFile& file, const std::filesystem::path& path) {
  const bool named_json = path.extension() == ".jsonl" || path.extension() == ".ndjson";
  LineReader reader(file);
  Line line;
  std::vector<JsonMember> members;
  for (bool first = true; reader.next(line); first = false) {
    const std::size_t begin = line.text.find_first_not_of(" \t");
    const char c = begin == std::string_view::npos ? '\0' : line.text[begin];
    if (first && !named_json && !line.too_long() && c != '{' && c != '"') return InputFormat::text;
    if (c != '{' || scan_json(line.text, members)) continue;
    for (const char* key : {"url", "method", "body"})
      if (find_member(members, key) != nullptr) return InputFormat::openai;
    return InputFormat::jsonl;
  }
  return InputFormat::jsonl;
}

LineIdentity identify(const Line& line, InputFormat format) {
  LineIdentity identity;
  std::vector<JsonMember> members;
  if (format != InputFormat::text && !line.too_long() && !scan_json(line.text, members))
    identity.custom_id = custom_id_of(members, format);
  const std::uint64_t name =
      identity.custom_id ? base::xxh3(base::as_bytes(*identity.custom_id)) : hash_of(line.number, 0x6c696e65);
  identity.key = hash_of(name, line.hash);
  return identity;
}

std::string request_id(std::uint64_t key) {
  std::string id(kPrefix);
  for (int shift = 60; shift >= 0; shift -= 4) id += "0123456789abcdef"[key >> shift & 15];
  return id;
}

std::optional<std::uint64_t> key_of_request_id(std::string_view id) {
  if (!id.starts_with(kPrefix) || id.size() != kPrefix.size() + kHexDigits) return std::nullopt;
  std::uint64_t key = 0;
  const auto [end, error] = std::from_chars(id.data() + kPrefix.size(), id.data() + id.size(), key, 16);
  if (error != std::errc() || end != id.data() + id.size()) return std::nullopt;
  return key;
}

std::uint64_t seed_of(std::optional<std::uint64_t> own, std::uint64_t base, std::uint64_t key, std::size_t choice) {
  if (own && choice == 0) return *own;
  const std::uint64_t line = own ? *own : hash_of(base, key);
  return (choice == 0 ? line : hash_of(line, choice)) & static_cast<std::uint64_t>(INT64_MAX);
}

}  // namespace quern::batch
