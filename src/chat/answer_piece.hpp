// A part of an answer: what a person is told, or a thought before it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern::chat {

struct AnswerPiece {
  bool thought = false;
  std::string text;
  friend bool operator==(const AnswerPiece&, const AnswerPiece&) = default;
};

// Appends text; it joins the last piece where that is of its kind.
inline void add_piece(std::vector<AnswerPiece>& pieces, bool thought, std::string text) {
  if (text.empty()) return;
  if (!pieces.empty() && pieces.back().thought == thought)
    pieces.back().text += text;
  else
    pieces.push_back({thought, std::move(text)});
}

// Length of the longest end of `text` that begins `mark` and is not all of it.
std::size_t begun_mark(std::string_view text, std::string_view mark);

}  // namespace quern::chat
