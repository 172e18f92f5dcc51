// What `quern eval` found, as a table and as JSON.
#pragma once

#include <string>

#include "eval_options.hpp"

namespace quern::tool {

struct EvaluatedText {
  std::string source, model;
  std::size_t context = 0, first_scored = 0, n_windows = 0;
  eval::TextReport report;
};
std::string text_table(const EvaluatedText& text);
std::string text_json(const EvaluatedText& text);

struct EvaluatedChoices {
  std::string source, model;
  std::size_t n_questions = 0;
  eval::ChoiceReport report;
};
std::string choice_table(const EvaluatedChoices& choices);
std::string choice_json(const EvaluatedChoices& choices);

}  // namespace quern::tool
