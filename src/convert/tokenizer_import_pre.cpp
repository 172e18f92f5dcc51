#include "convert/tokenizer_import_pre.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

// Contractions, then runs of letters with what case and marks allow, digits, symbols, white space.
constexpr const char* kCasedWords =
    R"(regex:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kCasedWordsNoContractions =
    R"(regex:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kMarkedWords =
    R"(regex:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kThreeDigits = R"(regex:\p{N}{1,3})";
constexpr const char* kIdeographsAndKana =
    R"(regex:[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kSymbolWords =
    R"(regex:[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kIdeographs =
    R"(regex:[\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kNoSentenceMarks =
    R"(regex: ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";

struct Named {
  std::vector<std::string_view> names;
  PreTokenizerSet set;
};

const std::vector<Named>& all_sets() {
  static const std::vector<Named> sets = {
      {{"default", "gpt-2", "gpt2", "phi-2", "roberta-bpe", "jais", "mpt", "olmo", "trillion"},
       {{}, {"gpt2"}, false, false}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       {{}, {"smollm"}, false, false}},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
       {{}, {"llama3"}, true, true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {{}, {"llama3"}, false, false}},
      // The vocabularies behind this name were trained on composed text; GGUF has no key for it.
      {{"qwen2", "deepseek-r1-qwen"}, {{"nfc"}, {"qwen2"}, false, false}},
      {{"qwen35"}, {{"nfc"}, {kMarkedWords}, false, false}},
      {{"stablelm2", "hunyuan", "megrez"}, {{}, {"qwen2"}, false, false}},
      {{"gpt-4o"}, {{}, {kCasedWords}, true, false}},
      {{"tekken"}, {{}, {kCasedWordsNoContractions}, true, true}},
      {{"deepseek-v3"}, {{}, {kThreeDigits, kIdeographsAndKana, kSymbolWords}, false, false}},
      {{"deepseek-coder"},
       {{},
        {R"(regex:[\r\n])", R"(regex:\s?\p{L}+)", R"(regex:\s?\p{P}+)", kIdeographs, "digits"},
        false,
        false}},
      {{"falcon"},
       {{},
        {"punctuation-contiguous", "gpt2", "byte_alphabet", "digit_runs", "regex:[0-9][0-9][0-9]"},
        false,
        false}},
      {{"bloom"}, {{}, {kNoSentenceMarks}, false, false}},
  };
  return sets;
}

}  // namespace

PreTokenizerSet find_pre_tokenizer_set(std::string_view name, std::string_view where) {
  std::vector<std::string_view> known;
  for (const Named& entry : all_sets()) {
    if (std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end())
      return entry.set;
    known.insert(known.end(), entry.names.begin(), entry.names.end());
  }
  base::reject(base::cat(where, ": tokenizer.ggml.pre"), "unknown pre-tokenizer",
               base::cat("\"", base::printable(name, 60), "\""), base::join(known));
}

}  // namespace quern::convert
