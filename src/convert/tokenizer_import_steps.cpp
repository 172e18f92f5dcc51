#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "convert/tokenizer_import_parts.hpp"
#include "text/regex.hpp"
#include "text/scanners.hpp"
#include "text/step_spelling.hpp"

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

}  // namespace

std::vector<const Json*> flat_steps(const Json& value, std::string_view list_key,
                                    std::string_view where) {
  std::vector<const Json*> steps;
  flatten(value, list_key, where, 0, steps);
  return steps;
}

Pattern pattern_of(const Json& step, std::string_view where) {
  const Json* pattern = member(step, "pattern");
  if (pattern == nullptr) reject(cat(where, ": pattern"), "key is missing");
  if (member(*pattern, "String") != nullptr) return {text_member(*pattern, "String", where), true};
  return {text_member(*pattern, "Regex", where), false};
}

std::string replace_step_of(const Json& step, std::string_view where) {
  const Pattern pattern = pattern_of(step, where);
  const std::string made =
      pattern.text.empty() ? std::string()
                           : text::spell_step(pattern.literal ? "replace" : "replace_regex",
                                              {pattern.text, text_member(step, "content", where)});
  if (made.empty())
    reject(where, "Replace with this pattern is not supported", printable(pattern.text));
  return made;
}

std::string prepend_scheme_of(const Json& step, std::string_view where) {
  const Json* scheme = member(step, "prepend_scheme");
  if (scheme == nullptr)
    return flag_member(step, "add_prefix_space", true, where) ? "always" : "never";
  std::string word = text_member(step, "prepend_scheme", where);
  if (word != "always" && word != "first" && word != "never")
    reject(cat(where, ": prepend_scheme"), "unknown value", printable(word),
           "always, first or never");
  return word;
}

namespace {

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

void byte_level_steps(const Json& step, bool respell, std::string_view where,
                      contract::TokenizerDescription& out) {
  if (flag_member(step, "add_prefix_space", true, where)) {
    out.add_prefix_space = true;
    out.pre_tokenizers.push_back("prefix_space");
  }
  if (flag_member(step, "use_regex", true, where)) out.pre_tokenizers.push_back("gpt2");
  if (respell) out.pre_tokenizers.push_back("byte_alphabet");
}

std::string metaspace_step(const Json& step, std::string_view where) {
  const bool split = flag_member(step, "split", true, where);
  return cat("metaspace-", prepend_scheme_of(step, where),
             split ? ":" : "-whole:", text_member(step, "replacement", where));
}

std::string fixed_length_step(const Json& step, std::string_view where) {
  const Json* length = member(step, "length");
  if (length == nullptr || !length->is_number_unsigned() || *length == 0)
    reject(cat(where, ": length"), "wrong value", {}, "a number above 0");
  return cat("fixed_length:", length->dump());
}

// Clean-up, ideographs, marks, case: what the normalizer of that name does, in its order.
void wordpiece_steps(const Json& step, std::string_view where, std::vector<std::string>& steps) {
  const bool lower = flag_member(step, "lowercase", true, where);
  if (flag_member(step, "clean_text", true, where)) steps.push_back("clean_text");
  if (flag_member(step, "handle_chinese_chars", true, where)) steps.push_back("space_ideographs");
  if (flag_member(step, "strip_accents", lower, where)) steps.push_back("strip_marks");
  if (lower) steps.push_back("lowercase");
}

// digits then gpt2 has a name of its own.
void name_pairs(std::vector<std::string>& steps) {
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i] != "digits" || steps[i + 1] != "gpt2") continue;
    steps[i] = "smollm";
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace

void import_normalizer(const Json& value, std::string_view where,
                       contract::TokenizerDescription& out, std::string& charsmap) {
  static constexpr std::string_view kPlain[][2] = {{"NFC", "nfc"},
                                                   {"NFD", "nfd"},
                                                   {"NFKC", "nfkc"},
                                                   {"NFKD", "nfkd"},
                                                   {"Nmt", "nmt"},
                                                   {"Lowercase", "lowercase"},
                                                   {"StripAccents", "strip_accents"},
                                                   {"ByteLevel", "byte_alphabet"}};
  std::vector<std::string>& steps = out.normalizers;
  for (const Json* step : flat_steps(value, "normalizers", where)) {
    const std::string type = text_member(*step, "type", where);
    const auto* plain = std::find_if(std::begin(kPlain), std::end(kPlain),
                                     [&](const auto& entry) { return entry[0] == type; });
    if (plain != std::end(kPlain)) {
      steps.emplace_back((*plain)[1]);
    } else if (type == "Strip") {
      if (flag_member(*step, "strip_left", true, where)) steps.push_back("strip_left");
      if (flag_member(*step, "strip_right", true, where)) steps.push_back("strip_right");
    } else if (type == "Prepend") {
      steps.push_back(cat("prepend:", text_member(*step, "prepend", where)));
    } else if (type == "Replace") {
      steps.push_back(replace_step_of(*step, where));
    } else if (type == "BertNormalizer") {
      wordpiece_steps(*step, where, steps);
    } else if (type == "Precompiled") {
      const std::string map =
          decode_base64(text_member(*step, "precompiled_charsmap", where), where);
      if (!charsmap.empty() && charsmap != map) reject(where, "two different character maps");
      charsmap = map;
      if (!map.empty()) steps.push_back("charsmap");
    } else {
      reject(where, "unknown normalizer", cat("\"", printable(type), "\""));
    }
  }
}

void import_pre_tokenizer(const Json& value, std::string_view where, bool spelled,
                          contract::TokenizerDescription& out) {
  std::vector<std::string>& steps = out.pre_tokenizers;
  const std::vector<const Json*> all = flat_steps(value, "pretokenizers", where);
  int byte_levels = 0;
  for (const Json* step : all) {
    const std::string type = text_member(*step, "type", where);
    if (type == "ByteLevel") {
      if (++byte_levels > 1) reject(where, "two ByteLevel steps");
      byte_level_steps(*step, spelled || step != all.back(), where, out);
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
      steps.push_back("white_space-removed");
    } else if (type == "BertPreTokenizer") {
      steps.push_back("white_space-removed");
      steps.push_back("punctuation-isolated");
    } else if (type == "Whitespace") {
      steps.push_back("words");
    } else if (type == "Metaspace") {
      steps.push_back(metaspace_step(*step, where));
    } else if (type == "UnicodeScripts") {
      steps.push_back("scripts");
    } else if (type == "FixedLength") {
      steps.push_back(fixed_length_step(*step, where));
    } else if (type == "CharDelimiterSplit") {
      steps.push_back(
          cat("regex-removed:", text::literal_pattern(text_member(*step, "delimiter", where))));
    } else {
      reject(where, "unknown pre-tokenizer", cat("\"", printable(type), "\""));
    }
  }
  name_pairs(steps);
}

}  // namespace quern::convert
