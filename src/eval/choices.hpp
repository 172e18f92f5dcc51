// Multiple choice: which continuation of a text is the most probable, and which is when its log-probability is
// divided by its length. A text is computed once for all its continuations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/statistics.hpp"
#include "eval/subject.hpp"

namespace quern::eval {

// One question of a file.
struct ChoiceQuestion {
  std::string where;  // "hellaswag.jsonl:3"
  std::string query;
  std::vector<std::string> choices;
  std::size_t right = 0;
};
// A line of JSON: the text under "query", "ctx" or "question"; the continuations under "choices" or "endings", as
// strings, {"text", "label"} objects or {"text": [...], "label": [...]}; the right one under "gold", "label",
// "answer" or "answerKey", as an index from 0 or one of the labels. Input errors name the line.
ChoiceQuestion parse_question(std::string_view line, const std::string& where);
// Every line that is not blank; "where:line".
std::vector<ChoiceQuestion> parse_questions(std::string_view text, const std::string& where);

struct ChoiceIds {
  std::vector<std::int32_t> prefix;                      // what all continuations share, not empty
  std::vector<std::vector<std::int32_t>> continuations;  // none empty
  std::vector<std::size_t> scored;    // of each continuation: ids at its start that belong to the text
  std::vector<std::size_t> lengths;   // characters of each choice, for acc_norm
  std::size_t right = 0;
  std::string where;
};
// Ids of the text with each continuation -> what they share and what they do not. text_length: ids of the text alone.
ChoiceIds split_choices(const std::vector<std::vector<std::int32_t>>& wholes, std::size_t text_length);

// Sum of log-probabilities of each continuation. `subject` has as many sequences as there are continuations.
// False: stopped.
bool score_choices(Subject& subject, const ChoiceIds& item, std::vector<double>& scores);

struct ChoiceReport {
  Mean acc, acc_norm;  // 1 where the right choice has the highest score, and score per character
  bool interrupted = false;
};
void add_choice(ChoiceReport& report, const ChoiceIds& item, std::span<const double> scores);
// Standard error of a share: sqrt(p (1 - p) / (n - 1)), what Mean::error() gives for zeros and ones.

}  // namespace quern::eval
