#include "text/pretokenizer_steps.hpp"

#include <charconv>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/byte_alphabet.hpp"
#include "text/regex.hpp"
#include "text/scanners.hpp"
#include "text/split_behaviour.hpp"
#include "text/step_spelling.hpp"
#include "text/unicode.hpp"

namespace quern::text {

std::optional<Behaviour> behaviour_of(std::string_view word) {
  if (word == "isolated") return Behaviour::isolated;
  if (word == "removed") return Behaviour::removed;
  if (word == "merged_with_previous") return Behaviour::merged_with_previous;
  if (word == "merged_with_next") return Behaviour::merged_with_next;
  if (word == "contiguous") return Behaviour::contiguous;
  return std::nullopt;
}

namespace {

using Sink = PreTokenizerStep::Sink;
using Made = std::unique_ptr<PreTokenizerStep>;

TextPiece part_of(const TextPiece& piece, std::size_t begin, std::size_t end) {
  return {piece.text.substr(begin, end - begin), piece.at_start && begin == 0};
}

class ScannerStep : public PreTokenizerStep {
 public:
  explicit ScannerStep(Scanner scan) : scan_(scan) {}
  void cut(const TextPiece& piece, const Sink& sink) const override {
    for (std::size_t at = 0; at < piece.text.size();) {
      const std::size_t end = scan_(piece.text, at);
      sink(part_of(piece, at, end));
      at = end;
    }
  }

 private:
  Scanner scan_;
};

class PrefixSpaceStep : public PreTokenizerStep {
 public:
  void cut(const TextPiece& piece, const Sink& sink) const override {
    if (piece.text.starts_with(' ')) return sink(piece);
    const std::string spaced = " " + std::string(piece.text);
    sink({spaced, piece.at_start});
  }
};

class ByteAlphabetStep : public PreTokenizerStep {
 public:
  void cut(const TextPiece& piece, const Sink& sink) const override {
    const std::string spelled = bytes_to_alphabet(piece.text);
    sink({spelled, piece.at_start});
  }
};

class RegexStep : public PreTokenizerStep {
 public:
  RegexStep(std::string_view pattern, Behaviour behaviour, bool inverted, std::string_view where)
      : regex_(pattern, where), behaviour_(behaviour), inverted_(inverted) {}
  void cut(const TextPiece& piece, const Sink& sink) const override {
    const auto give = [&](std::size_t begin, std::size_t end) { sink(part_of(piece, begin, end)); };
    Joiner joiner(behaviour_, give);
    regex_.split(piece.text, [&](std::size_t begin, std::size_t end, bool matched) {
      joiner.add(begin, end, matched != inverted_);
    });
    joiner.flush();
  }

 private:
  Regex regex_;
  Behaviour behaviour_;
  bool inverted_;
};

// Matches are single characters of one kind.
class CharStep : public PreTokenizerStep {
 public:
  using Kind = bool (*)(std::uint32_t code);
  CharStep(Kind kind, Behaviour behaviour) : kind_(kind), behaviour_(behaviour) {}
  void cut(const TextPiece& piece, const Sink& sink) const override {
    const auto give = [&](std::size_t begin, std::size_t end) { sink(part_of(piece, begin, end)); };
    Joiner joiner(behaviour_, give);
    std::size_t gap = 0;
    for (std::size_t at = 0; at < piece.text.size();) {
      const Char c = decode_char(piece.text, at);
      const std::size_t end = at + c.bytes;
      if (c.code != Char::kInvalid && kind_(c.code)) {
        if (at > gap) joiner.add(gap, at, false);
        joiner.add(at, end, true);
        gap = end;
      }
      at = end;
    }
    if (piece.text.size() > gap) joiner.add(gap, piece.text.size(), false);
    joiner.flush();
  }

 private:
  Kind kind_;
  Behaviour behaviour_;
};

// Runs of characters of one script; those of no script (the space) join the run before them.
class ScriptStep : public PreTokenizerStep {
 public:
  void cut(const TextPiece& piece, const Sink& sink) const override {
    constexpr int kNone = -1;
    int last = kNone;
    std::optional<std::size_t> begin;  // characters of no script before the first are dropped
    for (std::size_t at = 0; at < piece.text.size();) {
      const Char c = decode_char(piece.text, at);
      const int script = script_of_code(c.code);
      if (script != kNone && script != last) {
        if (begin) sink(part_of(piece, *begin, at));
        begin = at;
        last = script;
      }
      at += c.bytes;
    }
    if (begin) sink(part_of(piece, *begin, piece.text.size()));
  }
};

// Runs of word characters, and runs of what is neither word nor white space.
class WordStep : public PreTokenizerStep {
 public:
  void cut(const TextPiece& piece, const Sink& sink) const override {
    std::size_t begin = 0;
    Kind run = Kind::space;
    for (std::size_t at = 0; at < piece.text.size();) {
      const Char c = decode_char(piece.text, at);
      const Kind kind = kind_of(c.code);
      if (kind != run) {
        if (run != Kind::space) sink(part_of(piece, begin, at));
        begin = at;
        run = kind;
      }
      at += c.bytes;
    }
    if (run != Kind::space) sink(part_of(piece, begin, piece.text.size()));
  }

 private:
  enum class Kind { space, word, other };
  static Kind kind_of(std::uint32_t code) {
    if (code == Char::kInvalid) return Kind::other;
    if (is_space_code(code)) return Kind::space;
    return is_word_code(code) ? Kind::word : Kind::other;
  }
};

class FixedLengthStep : public PreTokenizerStep {
 public:
  explicit FixedLengthStep(std::size_t length) : length_(length) {}
  void cut(const TextPiece& piece, const Sink& sink) const override {
    std::size_t begin = 0, count = 0;
    for (std::size_t at = 0; at < piece.text.size();) {
      at += decode_char(piece.text, at).bytes;
      if (++count < length_ && at < piece.text.size()) continue;
      sink(part_of(piece, begin, at));
      begin = at;
      count = 0;
    }
  }

 private:
  std::size_t length_;
};

class MetaspaceStep : public PreTokenizerStep {
 public:
  enum class Scheme { always, first, never };
  MetaspaceStep(std::string mark, Scheme scheme, bool whole)
      : mark_(std::move(mark)), scheme_(scheme), whole_(whole) {}
  void cut(const TextPiece& piece, const Sink& sink) const override {
    std::string text;
    text.reserve(piece.text.size() + mark_.size());
    for (const char c : piece.text) {
      if (c == ' ') {
        text += mark_;
      } else {
        text += c;
      }
    }
    const bool wanted = scheme_ == Scheme::always || (scheme_ == Scheme::first && piece.at_start);
    if (wanted && !text.empty() && !text.starts_with(mark_)) text.insert(0, mark_);
    const TextPiece spelled{text, piece.at_start};
    if (whole_) return sink(spelled);
    const auto give = [&](std::size_t begin, std::size_t end) {
      sink(part_of(spelled, begin, end));
    };
    Joiner joiner(Behaviour::merged_with_next, give);
    std::size_t gap = 0;
    for (std::size_t at; (at = text.find(mark_, gap)) != std::string::npos;
         gap = at + mark_.size()) {
      if (at > gap) joiner.add(gap, at, false);
      joiner.add(at, at + mark_.size(), true);
    }
    if (text.size() > gap) joiner.add(gap, text.size(), false);
    joiner.flush();
  }

 private:
  std::string mark_;
  Scheme scheme_;
  bool whole_;
};

// "regex:P", "regex-BEHAVIOUR:P", "regex-BEHAVIOUR-inverted:P"; nullptr for anything else.
Made regex_step(std::string_view step, std::string_view where) {
  const std::size_t colon = step.find(':');
  if (colon == std::string_view::npos || !step.starts_with("regex")) return nullptr;
  std::string_view options = step.substr(5, colon - 5);
  const std::string_view pattern = step.substr(colon + 1);
  if (options.empty())
    return std::make_unique<RegexStep>(pattern, Behaviour::isolated, false, where);
  if (options[0] != '-') return nullptr;
  options.remove_prefix(1);
  constexpr std::string_view kInverted = "-inverted";
  const bool inverted = options.ends_with(kInverted);
  if (inverted) options.remove_suffix(kInverted.size());
  const std::optional<Behaviour> behaviour = behaviour_of(options);
  if (!behaviour) return nullptr;
  return std::make_unique<RegexStep>(pattern, *behaviour, inverted, where);
}

Made char_step(std::string_view step) {
  struct Named {
    std::string_view prefix;
    CharStep::Kind kind;
  };
  constexpr Named kKinds[] = {{"punctuation-", is_punctuation_code},
                              {"white_space-", is_space_code}};
  for (const Named& entry : kKinds) {
    if (!step.starts_with(entry.prefix)) continue;
    if (const auto behaviour = behaviour_of(step.substr(entry.prefix.size())))
      return std::make_unique<CharStep>(entry.kind, *behaviour);
  }
  return nullptr;
}

Made metaspace_step(std::string_view step) {
  struct Named {
    std::string_view name;
    MetaspaceStep::Scheme scheme;
  };
  using enum MetaspaceStep::Scheme;
  constexpr Named kSchemes[] = {
      {"metaspace-always", always}, {"metaspace-first", first}, {"metaspace-never", never}};
  for (const Named& entry : kSchemes) {
    for (const bool whole : {false, true}) {
      const std::string name = base::cat(entry.name, whole ? "-whole" : "");
      if (const auto mark = step_text(step, name); mark && !mark->empty())
        return std::make_unique<MetaspaceStep>(*mark, entry.scheme, whole);
    }
  }
  return nullptr;
}

Made fixed_length_step(std::string_view step) {
  const auto text = step_text(step, "fixed_length");
  std::size_t length = 0;
  if (!text) return nullptr;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, length);
  if (error != std::errc() || stop != end || length == 0) return nullptr;
  return std::make_unique<FixedLengthStep>(length);
}

}  // namespace

Made make_pretokenizer_step(std::string_view step, std::string_view where) {
  if (const Scanner scan = find_scanner(step)) return std::make_unique<ScannerStep>(scan);
  if (step == "prefix_space") return std::make_unique<PrefixSpaceStep>();
  if (step == "byte_alphabet") return std::make_unique<ByteAlphabetStep>();
  if (step == "words") return std::make_unique<WordStep>();
  if (step == "scripts") return std::make_unique<ScriptStep>();
  if (auto made = char_step(step)) return made;
  if (auto made = metaspace_step(step)) return made;
  if (auto made = fixed_length_step(step)) return made;
  if (auto made = regex_step(step, where)) return made;
  base::reject(where, "unknown pre-tokenizer step", base::printable(step),
               "gpt2, smollm, llama3, qwen2, digits, digit_runs, regex:..., punctuation-..., "
               "white_space-..., words, scripts, fixed_length:N, metaspace-..., prefix_space or "
               "byte_alphabet");
}

}  // namespace quern::text
