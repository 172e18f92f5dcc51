#include "text/pretokenizer.hpp"

#include <optional>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/byte_alphabet.hpp"
#include "text/pretokenizer_steps.hpp"

namespace quern::text {

struct PreTokenizer::Piece : TextPiece {};

PreTokenizer::PreTokenizer(const std::vector<std::string>& steps, std::string_view where,
                           bool read_back) {
  constexpr std::size_t kMostSteps = 32;
  if (steps.size() > kMostSteps)
    base::reject(where, "too many pre-tokenizer steps", base::cat(steps.size()));
  for (const std::string& step : steps) {
    if (step == "smollm") {
      steps_.push_back(make_pretokenizer_step("digits", where));
      steps_.push_back(make_pretokenizer_step("gpt2", where));
      continue;
    }
    if (step == "byte_alphabet" && spelled_) base::reject(where, "byte_alphabet stands twice");
    spelled_ = spelled_ || (step == "byte_alphabet" && read_back);
    steps_.push_back(make_pretokenizer_step(step, where));
  }
}

PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;

void PreTokenizer::run(std::string_view text, const Sink& sink, bool at_start) const {
  if (text.empty()) return;
  const Piece whole{{text, at_start}};
  if (!spelled_) return run_from(0, whole, sink);
  run_from(0, whole, [&](std::string_view word) {
    // A prefix space after the alphabet step is outside the alphabet; it stays as it is.
    const std::optional<std::string> bytes = alphabet_to_bytes(word);
    sink(bytes ? std::string_view(*bytes) : word);
  });
}

void PreTokenizer::run_from(std::size_t index, const Piece& piece, const Sink& sink) const {
  if (index == steps_.size()) return sink(piece.text);
  if (index + 1 == steps_.size())
    return steps_[index]->cut(piece, [&](const TextPiece& part) { sink(part.text); });
  steps_[index]->cut(piece, [&](const TextPiece& part) { run_from(index + 1, Piece{part}, sink); });
}

}  // namespace quern::text
