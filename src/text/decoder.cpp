#include "text/decoder.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"
#include "text/decoder_stages.hpp"

namespace quern::text {

Decoder::Decoder(const std::vector<std::string>& steps, bool tokens_are_bytes,
                 std::string_view where) {
  constexpr std::size_t kMostSteps = 64;
  if (steps.size() > kMostSteps)
    base::reject(where, "too many decoder steps", base::cat(steps.size()));
  bool fused = false;
  for (const std::string& step : steps) {
    stages_.push_back(make_decoder_stage(step, fused, tokens_are_bytes, where));
    fused = fused || decoder_step_fuses(step);
  }
}

Decoder::Stream::Stream(const Decoder& decoder) {
  for (const auto& stage : decoder.stages_) stages_.push_back(stage->fresh());
}

void Decoder::Stream::push_from(std::size_t index, std::string piece, std::string& out) {
  if (index == stages_.size()) {
    out += piece;
    return;
  }
  stages_[index]->push(std::move(piece),
                       [&](std::string next) { push_from(index + 1, std::move(next), out); });
}

std::string Decoder::Stream::push(std::string_view token) {
  std::string out;
  push_from(0, std::string(token), out);
  return out;
}

std::string Decoder::Stream::finish() {
  std::string out;
  for (std::size_t i = 0; i < stages_.size(); ++i)
    stages_[i]->finish([&](std::string piece) { push_from(i + 1, std::move(piece), out); });
  return out;
}

}  // namespace quern::text
