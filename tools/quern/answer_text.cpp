#include "answer_text.hpp"

#include <algorithm>
#include <utility>

namespace quern::tool {

void set_marks(AnswerTextOptions& options, const chat::FormatTraits& traits, const LoadedModel& loaded) {
  options.marks = std::make_shared<const chat::AnswerMarks>(chat::answer_marks(traits, *loaded.tokenizer));
}

void set_prompt(AnswerTextOptions& options, const std::vector<std::int32_t>& prompt, const LoadedModel& loaded) {
  options.opened = options.marks && options.marks->opened_by(prompt, *loaded.tokenizer);
}

void end_as_chat(std::vector<std::int32_t>& stop_ids, const chat::AnswerMarks& marks, const LoadedModel& loaded,
                 bool ignore_ends) {
  std::erase_if(stop_ids, [&](std::int32_t id) { return marks.keeps_on(*loaded.tokenizer, id); });
  if (ignore_ends) return;
  for (const std::int32_t id : marks.stop_ids)
    if (std::find(stop_ids.begin(), stop_ids.end(), id) == stop_ids.end()) stop_ids.push_back(id);
}

AnswerText::AnswerText(const LoadedModel& loaded, AnswerTextOptions options)
    : loaded_(loaded), options_(std::move(options)) {
  if (!loaded.tokenizer) return;
  stream_.emplace(*loaded.tokenizer);
  if (options_.special) options_.marks = nullptr;
  if (options_.marks && (options_.marks->thoughts.channels || options_.hide_thoughts))
    thoughts_.emplace(options_.marks->thoughts, options_.opened);
}

std::string AnswerText::push(std::int32_t id) {
  if (!stream_) return {};
  const text::Tokenizer& tokenizer = *loaded_.tokenizer;
  const bool dropped = !options_.special && tokenizer.is_special(id) &&
                       !(options_.marks && options_.marks->thoughts.has(tokenizer.token_bytes(id)));
  if (dropped) return {};
  std::string text = stream_->push(id);
  return thoughts_ ? shown(thoughts_->push(text)) : text;
}

std::string AnswerText::finish() {
  if (!stream_) return {};
  std::string text = stream_->finish();
  if (!thoughts_) return text;
  std::string out = shown(thoughts_->push(text));
  out += shown(thoughts_->finish());
  return in_thought_ ? out + "\n" + end_thought() : out;
}

std::string AnswerText::end_thought() {
  in_thought_ = false;
  return options_.marks->thoughts.shown_close();
}

std::string AnswerText::shown(const std::vector<chat::AnswerPiece>& pieces) {
  std::string out;
  for (const chat::AnswerPiece& piece : pieces) {
    if (piece.thought && options_.hide_thoughts) continue;
    if (piece.thought && !in_thought_) out += (line_open_ ? "\n\n" : "") + options_.marks->thoughts.shown_open() + "\n";
    const bool after = !piece.thought && in_thought_;
    if (after) out += "\n" + end_thought() + "\n\n";
    in_thought_ = piece.thought;
    out += after ? piece.text.substr(std::min(piece.text.find_first_not_of('\n'), piece.text.size())) : piece.text;
    line_open_ = true;
  }
  return out;
}

std::string text_of_ids(const LoadedModel& loaded, std::span<const std::int32_t> ids, AnswerTextOptions options) {
  AnswerText stream(loaded, std::move(options));
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  return text += stream.finish();
}

}  // namespace quern::tool
