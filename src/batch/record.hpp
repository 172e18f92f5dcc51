// What a line of the input is: its format, the name its user gave it, the key by which a resumed run knows it, the
// seed it has when it names none. Not here: what it asks for (request.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "batch/line_reader.hpp"

namespace quern::batch {

enum class InputFormat {
  openai,  // {"custom_id", "method", "url", "body"}
  jsonl,   // {"prompt": ...}, {"messages": [...]} or a JSON string
  text,    // the line is the prompt
};
std::optional<InputFormat> input_format_of(std::string_view word);  // "openai", "jsonl", "text"
std::string_view input_format_name(InputFormat format);

// By the first line, and the first that is an object of JSON: with "url", "method" or "body" it is OpenAI's. A first
// line that does not begin with { or " is text, unless the name ends in .jsonl or .ndjson.
InputFormat detect_format(const InputFile& file, const std::filesystem::path& path);

inline constexpr std::size_t kMaxCustomIdBytes = 4096;

struct LineIdentity {
  std::optional<std::string> custom_id;  // only a usable one; of jsonl: "custom_id" or "id", a whole number too
  std::uint64_t key = 0;                 // of custom_id (else the line's number) and all bytes of the line
};
LineIdentity identify(const Line& line, InputFormat format);

// "batch_req_0123456789abcdef": the line's id in the output, from which its key is read back.
std::string request_id(std::uint64_t key);
std::optional<std::uint64_t> key_of_request_id(std::string_view id);

// Seed of choice `choice` of a line: of the line's own seed, or of `base` (--seed) and its key. The first choice of a
// line with a seed has that seed. In 0 to 2^63 - 1, so that `quern run -s` takes it.
std::uint64_t seed_of(std::optional<std::uint64_t> own, std::uint64_t base, std::uint64_t key, std::size_t choice);

}  // namespace quern::batch
