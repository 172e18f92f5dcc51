#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "text/normalizer.hpp"
#include "text/regex.hpp"
#include "text/scanners.hpp"

namespace quern::convert {

using base::cat;
using base::Json;
using base::printable;
using base::reject;

namespace {

constexpr int kMostNested = 8;

// The steps of a Sequence, flat; anything else is one step. Null has none.
void flatten(const Json& value, std::string_view list_key, std::string_view where, int depth,
             std::vector<const Json*>& out) {
  if (value.is_null()) return;
  if (depth > kMostNested) reject(where, "sequences nested too deep");
  if (text_member(value, "type", where) != "Sequence") {
    out.push_back(&value);
    return;
  }
  const Json* list = member(value, list_key);
  if (list == nullptr || !list->is_array())
    reject(cat(where, ": ", list_key), "a Sequence needs a list");
  for (const Json& step : *list) flatten(step, list_key, where, depth + 1, out);
}

std::vector<const Json*> flat(const Json& value, std::string_view list_key,
                              std::string_view where) {
  std::vector<const Json*> steps;
  flatten(value, list_key, where, 0, steps);
  return steps;
}

// {"String": s} or {"Regex": r} as a regex.
struct Pattern {
  std::string text;
  bool literal;
};

Pattern pattern_of(const Json& step, std::string_view where) {
  const Json* pattern = member(step, "pattern");
  if (pattern == nullptr) reject(cat(where, ": pattern"), "key is missing");
  if (member(*pattern, "String") != nullptr) return {text_member(*pattern, "String", where), true};
  return {text_member(*pattern, "Regex", where), false};
}

std::string behaviour_of(const Json& step, std::string_view where) {
  std::string word = text_member(step, "behavior", where);
  static constexpr std::string_view kNames[][2] = {{"Removed", "removed"},
                                                   {"Isolated", "isolated"},
                                                   {"MergedWithPrevious", "merged_with_previous"},
                                                   {"MergedWithNext", "merged_with_next"},
                                                   {"Contiguous", "contiguous"}};
  for (const auto& name : kNames)
    if (word == name[0]) return std::string(name[1]);
  reject(cat(where, ": behavior"), "unknown value", printable(word));
}

std::string split_step(const Json& step, std::string_view where) {
  const Pattern pattern = pattern_of(step, where);
  const std::string behaviour = behaviour_of(step, where);
  const bool inverted = flag_member(step, "invert", false, where);
  if (pattern.text.empty()) reject(where, "Split with an empty pattern");
  const std::string regex = pattern.literal ? text::literal_pattern(pattern.text) : pattern.text;
  // The known patterns match every character, so that keeping the matches only is the same as
  // isolating.
  const std::string_view scanner =
      pattern.literal ? std::string_view() : text::scanner_for_pattern(regex);
  const bool covers = scanner == "gpt2" || scanner == "llama3" || scanner == "qwen2";
  const bool isolates = behaviour == "isolated" || (covers && behaviour == "removed" && inverted);
  if (!scanner.empty() && isolates) return std::string(scanner);
  if (behaviour == "isolated" && !inverted) return cat("regex:", regex);
  return cat("regex-", behaviour, inverted ? "-inverted:" : ":", regex);
}

void byte_level_steps(const Json& step, bool last, std::string_view where,
                      contract::TokenizerDescription& out) {
  if (out.byte_level) reject(where, "two ByteLevel steps");
  out.byte_level = true;
  if (flag_member(step, "add_prefix_space", true, where)) {
    out.add_prefix_space = true;
    out.pre_tokenizers.push_back("prefix_space");
  }
  if (flag_member(step, "use_regex", true, where)) out.pre_tokenizers.push_back("gpt2");
  if (!last) out.pre_tokenizers.push_back("byte_alphabet");
}

// digits then gpt2 has a name of its own.
void name_pairs(std::vector<std::string>& steps) {
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i] != "digits" || steps[i + 1] != "gpt2") continue;
    steps[i] = "smollm";
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

std::vector<std::int32_t> ids_of_special(const Json& processor, const std::string& name,
                                         std::string_view where) {
  const Json* table = member(processor, "special_tokens");
  const Json* entry = table == nullptr ? nullptr : member(*table, name);
  const Json* ids = entry == nullptr ? nullptr : member(*entry, "ids");
  if (ids == nullptr || !ids->is_array())
    reject(where, "template names a special token without ids", printable(name));
  std::vector<std::int32_t> out;
  for (const Json& id : *ids) {
    if (!id.is_number_integer())
      reject(where, "special token id is not an integer", printable(id.dump(), 40));
    out.push_back(static_cast<std::int32_t>(
        std::clamp<std::int64_t>(id.get<std::int64_t>(), -1, std::int64_t{1} << 30)));
  }
  return out;
}

// Processors run one after another, each around what the ones before it made.
void surround(contract::TokenizerDescription& out, std::vector<std::int32_t> before,
              const std::vector<std::int32_t>& after) {
  before.insert(before.end(), out.prefix_ids.begin(), out.prefix_ids.end());
  out.prefix_ids = std::move(before);
  out.suffix_ids.insert(out.suffix_ids.end(), after.begin(), after.end());
}

void template_processing(const Json& processor, std::string_view where,
                         contract::TokenizerDescription& out) {
  const Json* single = member(processor, "single");
  if (single == nullptr || !single->is_array()) reject(cat(where, ": single"), "a list is missing");
  std::vector<std::int32_t> before, after;
  int sequences = 0;
  for (const Json& piece : *single) {
    if (const Json* special = member(piece, "SpecialToken")) {
      const std::vector<std::int32_t> ids =
          ids_of_special(processor, text_member(*special, "id", where), where);
      std::vector<std::int32_t>& side = sequences > 0 ? after : before;
      side.insert(side.end(), ids.begin(), ids.end());
    } else if (member(piece, "Sequence") != nullptr) {
      ++sequences;
    } else {
      reject(where, "unknown piece of a template", printable(piece.dump(), 80),
             "SpecialToken or Sequence");
    }
  }
  if (sequences != 1) reject(where, "a single template needs one Sequence", cat(sequences));
  surround(out, std::move(before), after);
}

// ["</s>", 2]
std::int32_t pair_id(const Json& processor, std::string_view key, std::string_view where) {
  const Json* pair = member(processor, key);
  if (pair == nullptr || !pair->is_array() || pair->size() != 2 || !(*pair)[1].is_number_integer())
    reject(cat(where, ": ", key), "wrong value", {}, "[text, id]");
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>((*pair)[1].get<std::int64_t>(), -1, std::int64_t{1} << 30));
}

}  // namespace

void import_normalizer(const Json& value, std::string_view where,
                       contract::TokenizerDescription& out) {
  std::vector<std::string>& steps = out.normalizers;
  for (const Json* step : flat(value, "normalizers", where)) {
    const std::string type = text_member(*step, "type", where);
    if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
      std::string name = type;
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return static_cast<char>(c | 0x20); });
      steps.push_back(name);
    } else if (type == "Lowercase") {
      steps.push_back("lowercase");
    } else if (type == "StripAccents") {
      steps.push_back("strip_accents");
    } else if (type == "Strip") {
      if (flag_member(*step, "strip_left", true, where)) steps.push_back("strip_left");
      if (flag_member(*step, "strip_right", true, where)) steps.push_back("strip_right");
    } else if (type == "Prepend") {
      steps.push_back(cat("prepend:", text_member(*step, "prepend", where)));
    } else if (type == "Replace") {
      const Pattern pattern = pattern_of(*step, where);
      const std::string made =
          pattern.literal && !pattern.text.empty()
              ? text::replace_step(pattern.text, text_member(*step, "content", where))
              : std::string();
      if (made.empty())
        reject(where, "Replace with this pattern is not supported", printable(pattern.text));
      steps.push_back(made);
    } else {
      reject(where, "unknown normalizer", cat("\"", printable(type), "\""));
    }
  }
}

void import_pre_tokenizer(const Json& value, std::string_view where,
                          contract::TokenizerDescription& out) {
  std::vector<std::string>& steps = out.pre_tokenizers;
  const std::vector<const Json*> all = flat(value, "pretokenizers", where);
  for (const Json* step : all) {
    const std::string type = text_member(*step, "type", where);
    if (type == "ByteLevel") {
      byte_level_steps(*step, step == all.back(), where, out);
    } else if (type == "Split") {
      steps.push_back(split_step(*step, where));
    } else if (type == "Digits") {
      steps.push_back(flag_member(*step, "individual_digits", false, where) ? "digits"
                                                                            : "digit_runs");
    } else if (type == "Punctuation") {
      steps.push_back(cat("punctuation-", member(*step, "behavior") == nullptr
                                              ? "isolated"
                                              : behaviour_of(*step, where)));
    } else if (type == "WhitespaceSplit") {
      steps.push_back(R"(regex-removed:\s+)");
    } else if (type == "Whitespace") {
      steps.push_back(R"(regex-removed-inverted:\w+|[^\w\s]+)");
    } else {
      reject(where, "unknown pre-tokenizer", cat("\"", printable(type), "\""));
    }
  }
  name_pairs(steps);
}

void import_post_processor(const Json& value, std::string_view where,
                           contract::TokenizerDescription& out) {
  for (const Json* step : flat(value, "processors", where)) {
    const std::string type = text_member(*step, "type", where);
    if (type == "TemplateProcessing") {
      template_processing(*step, where, out);
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      surround(out, {pair_id(*step, "cls", where)}, {pair_id(*step, "sep", where)});
    } else if (type != "ByteLevel") {
      reject(where, "unknown post-processor", cat("\"", printable(type), "\""));
    }
  }
}

bool has_byte_level_decoder(const Json& value) {
  if (value.is_null()) return true;  // byte-level vocabularies are read back as such
  const std::vector<const Json*> steps = flat(value, "decoders", "decoder");
  return steps.size() == 1 && text_member(*steps[0], "type", "decoder") == "ByteLevel";
}

}  // namespace quern::convert
