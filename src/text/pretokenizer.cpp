#include "text/pretokenizer.hpp"

#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/byte_alphabet.hpp"
#include "text/regex.hpp"
#include "text/scanners.hpp"
#include "text/unicode.hpp"

namespace quern::text {

class PreTokenizer::Step {
 public:
  virtual ~Step() = default;
  virtual void cut(std::string_view piece, const Sink& sink) const = 0;
};

namespace {

class ScannerStep : public PreTokenizer::Step {
 public:
  explicit ScannerStep(Scanner scan) : scan_(scan) {}
  void cut(std::string_view piece, const PreTokenizer::Sink& sink) const override {
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t end = scan_(piece, at);
      sink(piece.substr(at, end - at));
      at = end;
    }
  }

 private:
  Scanner scan_;
};

class PrefixSpaceStep : public PreTokenizer::Step {
 public:
  void cut(std::string_view piece, const PreTokenizer::Sink& sink) const override {
    if (piece.starts_with(' ')) return sink(piece);
    sink(" " + std::string(piece));
  }
};

class ByteAlphabetStep : public PreTokenizer::Step {
 public:
  void cut(std::string_view piece, const PreTokenizer::Sink& sink) const override {
    sink(bytes_to_alphabet(piece));
  }
};

enum class Behaviour { isolated, removed, merged_with_previous, merged_with_next, contiguous };

// Turns the sequence of matches and gaps into pieces, as the behaviour says. One span is held back,
// since a later one may join it.
class Joiner {
 public:
  Joiner(Behaviour behaviour, std::string_view text, const PreTokenizer::Sink& sink)
      : behaviour_(behaviour), text_(text), sink_(sink) {}

  void add(std::size_t begin, std::size_t end, bool matched) {
    if (held_ && joins(matched)) {
      end_ = end;
    } else {
      flush();
      begin_ = begin, end_ = end, held_ = true;
    }
    last_matched_ = matched;
    if (behaviour_ == Behaviour::removed && matched) held_ = false;
  }

  void flush() {
    if (held_) sink_(text_.substr(begin_, end_ - begin_));
    held_ = false;
  }

 private:
  bool joins(bool matched) const {
    switch (behaviour_) {
      case Behaviour::merged_with_previous:
        return matched && !last_matched_;
      case Behaviour::merged_with_next:
        return last_matched_ && !matched;
      case Behaviour::contiguous:
        return matched == last_matched_;
      default:
        return false;
    }
  }

  Behaviour behaviour_;
  std::string_view text_;
  const PreTokenizer::Sink& sink_;
  std::size_t begin_ = 0, end_ = 0;
  bool held_ = false, last_matched_ = false;
};

class RegexStep : public PreTokenizer::Step {
 public:
  RegexStep(std::string_view pattern, Behaviour behaviour, bool inverted, std::string_view where)
      : regex_(pattern, where), behaviour_(behaviour), inverted_(inverted) {}
  void cut(std::string_view piece, const PreTokenizer::Sink& sink) const override {
    Joiner joiner(behaviour_, piece, sink);
    regex_.split(piece, [&](std::size_t begin, std::size_t end, bool matched) {
      joiner.add(begin, end, matched != inverted_);
    });
    joiner.flush();
  }

 private:
  Regex regex_;
  Behaviour behaviour_;
  bool inverted_;
};

class PunctuationStep : public PreTokenizer::Step {
 public:
  explicit PunctuationStep(Behaviour behaviour) : behaviour_(behaviour) {}
  void cut(std::string_view piece, const PreTokenizer::Sink& sink) const override {
    Joiner joiner(behaviour_, piece, sink);
    std::size_t gap = 0;
    for (std::size_t at = 0; at < piece.size();) {
      const Char c = decode_char(piece, at);
      const std::size_t end = at + c.bytes;
      if (c.code != Char::kInvalid && is_punctuation_code(c.code)) {
        if (at > gap) joiner.add(gap, at, false);
        joiner.add(at, end, true);
        gap = end;
      }
      at = end;
    }
    if (piece.size() > gap) joiner.add(gap, piece.size(), false);
    joiner.flush();
  }

 private:
  Behaviour behaviour_;
};

std::optional<Behaviour> behaviour_of(std::string_view word) {
  if (word == "isolated") return Behaviour::isolated;
  if (word == "removed") return Behaviour::removed;
  if (word == "merged_with_previous") return Behaviour::merged_with_previous;
  if (word == "merged_with_next") return Behaviour::merged_with_next;
  if (word == "contiguous") return Behaviour::contiguous;
  return std::nullopt;
}

// "regex:P", "regex-BEHAVIOUR:P", "regex-BEHAVIOUR-inverted:P"; nullptr for anything else.
std::unique_ptr<PreTokenizer::Step> regex_step(std::string_view step, std::string_view where) {
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

std::unique_ptr<PreTokenizer::Step> make_step(std::string_view step, std::string_view where) {
  constexpr std::string_view kPunctuation = "punctuation-";
  if (const Scanner scan = find_scanner(step)) return std::make_unique<ScannerStep>(scan);
  if (step == "prefix_space") return std::make_unique<PrefixSpaceStep>();
  if (step == "byte_alphabet") return std::make_unique<ByteAlphabetStep>();
  if (step.starts_with(kPunctuation))
    if (const auto behaviour = behaviour_of(step.substr(kPunctuation.size())))
      return std::make_unique<PunctuationStep>(*behaviour);
  if (auto made = regex_step(step, where)) return made;
  base::reject(where, "unknown pre-tokenizer step", base::printable(step),
               "gpt2, smollm, llama3, qwen2, digits, digit_runs, regex:..., punctuation-..., "
               "prefix_space or "
               "byte_alphabet");
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<std::string>& steps, std::string_view where) {
  constexpr std::size_t kMostSteps = 32;
  if (steps.size() > kMostSteps)
    base::reject(where, "too many pre-tokenizer steps", base::cat(steps.size()));
  for (const std::string& step : steps) {
    if (step == "smollm") {
      steps_.push_back(make_step("digits", where));
      steps_.push_back(make_step("gpt2", where));
      continue;
    }
    if (step == "byte_alphabet" && spelled_) base::reject(where, "byte_alphabet stands twice");
    spelled_ = spelled_ || step == "byte_alphabet";
    steps_.push_back(make_step(step, where));
  }
}

PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;

void PreTokenizer::run(std::string_view text, const Sink& sink) const {
  if (text.empty()) return;
  if (!spelled_) return run_from(0, text, sink);
  run_from(0, text, [&](std::string_view word) {
    // A prefix space after the alphabet step is outside the alphabet; it stays as it is.
    const std::optional<std::string> bytes = alphabet_to_bytes(word);
    sink(bytes ? std::string_view(*bytes) : word);
  });
}

void PreTokenizer::run_from(std::size_t index, std::string_view piece, const Sink& sink) const {
  if (index == steps_.size()) return sink(piece);
  if (index + 1 == steps_.size()) return steps_[index]->cut(piece, sink);
  steps_[index]->cut(piece, [&](std::string_view part) { run_from(index + 1, part, sink); });
}

}  // namespace quern::text
