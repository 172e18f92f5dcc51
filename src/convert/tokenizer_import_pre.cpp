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
// Letters of scripts that have case.
constexpr const char* kCasedLetters =
    R"(regex:\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-)"
    R"(\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-)"
    R"(\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59})"
    R"(\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-)"
    R"(\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2})"
    R"(-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-)"
    R"(\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-)"
    R"(\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21})"
    R"(-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* kFullWidthMarks =
    R"(regex:\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kLongSpaces =
    R"(regex:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr const char* kOneLineEnd =
    R"(regex:'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kSymbolsWithoutLineEnds =
    R"(regex:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kNoSentenceMarks =
    R"(regex: ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";

struct Named {
  std::vector<std::string_view> names;
  PreTokenizerSet set;
};

const std::vector<Named>& all_sets() {
  static const std::vector<Named> sets = {
      {{"default", "gpt-2", "gpt2", "phi-2", "jais", "mpt", "olmo", "trillion", "granite-docling",
        "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0", "mellum",
        "modern-bert", "exaone4"},
       {{}, {"gpt2"}, false, false, false}},
      {{"roberta-bpe", "jina-v1-en", "jina-v2-code"}, {{}, {"gpt2"}, false, true, true}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       {{}, {"smollm"}, false, false, false}},
      {{"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {{}, {"llama3"}, true, true, false}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {{}, {"llama3"}, false, false, false}},
      {{"jais-2"}, {{}, {kLongSpaces}, false, false, false}},
      // The vocabularies behind these names were trained on composed text; GGUF has no key for it.
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2"},
       {{"nfc"}, {"qwen2"}, false, false, false}},
      {{"qwen35"}, {{"nfc"}, {kMarkedWords}, false, false, false}},
      {{"stablelm2", "hunyuan", "megrez", "grok-2", "solar-open"},
       {{}, {"qwen2"}, false, false, false}},
      {{"gpt-4o", "llama4", "kanana2", "minimax-m2"}, {{}, {kCasedWords}, true, false, false}},
      {{"tekken"}, {{}, {kCasedWordsNoContractions}, true, true, false}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {{}, {kThreeDigits, kIdeographsAndKana, kSymbolWords}, false, false, false}},
      {{"deepseek-llm"},
       {{},
        {R"(regex:[\r\n])", kCasedLetters, kFullWidthMarks, R"(regex:\s+$)", kIdeographs, "digits"},
        false,
        false,
        false}},
      {{"deepseek-coder"},
       {{},
        {R"(regex:[\r\n])", R"(regex:\s?\p{L}+)", R"(regex:\s?\p{P}+)", kIdeographs, "digits"},
        false,
        false,
        false}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {{}, {kOneLineEnd}, false, false, false}},
      {{"seed-coder"}, {{}, {kSymbolsWithoutLineEnds}, false, false, false}},
      {{"falcon"},
       {{},
        {"punctuation-contiguous", "gpt2", "byte_alphabet", "digit_runs", "regex:[0-9][0-9][0-9]"},
        false,
        false,
        false}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {{}, {kNoSentenceMarks}, false, false, false}},
      {{"viking"}, {{}, {kNoSentenceMarks, "digits"}, false, false, false}},
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
               base::cat("\"", base::printable(name, 60), "\""),
               base::printable(base::join(known), 300));
}

}  // namespace quern::convert
