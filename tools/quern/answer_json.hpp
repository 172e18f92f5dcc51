// An answer as one JSON object on one line (docs/RUN.md).
#pragma once

#include <string>
#include <vector>

#include "answer.hpp"
#include "answer_printer.hpp"

namespace quern::tool {

std::string answer_json(const LoadedModel& loaded, const RunOptions& options, const std::vector<Answer>& answers,
                        bool searched, const AnswerFacts& facts, const std::string& echo);

}  // namespace quern::tool
