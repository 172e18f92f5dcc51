// Decoders of tokenizer.json.
#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "text/step_spelling.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::printable;
using base::reject;

namespace {

std::string spelled(std::string_view name, const std::vector<std::string_view>& fields,
                    std::string_view where) {
  std::string step = text::spell_step(name, fields);
  if (step.empty()) reject(where, "decoder texts with too many different characters");
  return step;
}

std::string count_text(const Json& step, std::string_view key, std::string_view where) {
  constexpr std::uint64_t kMost = 1u << 20;
  const Json* value = member(step, key);
  if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() > kMost)
    reject(cat(where, ": ", key), "wrong value", {}, cat("a number up to ", kMost));
  return value->dump();
}

std::string text_or(const Json& step, std::string_view key, std::string_view fallback,
                    std::string_view where) {
  return member(step, key) == nullptr ? std::string(fallback) : text_member(step, key, where);
}

std::string decoder_step(const Json& step, std::string_view where) {
  const std::string type = text_member(step, "type", where);
  if (type == "ByteLevel") return "byte_level";
  if (type == "ByteFallback") return "byte_fallback";
  if (type == "Fuse") return "fuse";
  if (type == "Replace") return replace_step_of(step, where);
  if (type == "Strip")
    return spelled("strip",
                   {text_member(step, "content", where), count_text(step, "start", where),
                    count_text(step, "stop", where)},
                   where);
  if (type == "Metaspace")
    return cat(prepend_scheme_of(step, where) == "never" ? "metaspace-never:" : "metaspace:",
               text_member(step, "replacement", where));
  if (type == "WordPiece")
    return spelled(
        flag_member(step, "cleanup", true, where) ? "word_pieces-cleanup" : "word_pieces",
        {text_or(step, "prefix", "##", where)}, where);
  if (type == "BPEDecoder")
    return spelled("word_ends", {text_or(step, "suffix", "</w>", where)}, where);
  reject(where, "unknown decoder", cat("\"", printable(type), "\""));
}

}  // namespace

void import_decoder(const Json& value, std::string_view where,
                    contract::TokenizerDescription& out) {
  for (const Json* step : flat_steps(value, "decoders", where))
    out.decoders.push_back(decoder_step(*step, where));
  // Without a decoder the reference puts spaces between tokens; bytes are read back as such.
  if (value.is_null()) out.decoders.push_back(out.byte_level ? "byte_level" : "join_spaces");
}

}  // namespace quern::convert
