// The answers of `quern run` on standard output, and nothing else there: text or ids as they come,
// JSON when an answer (jsonl) or all of them (json) are done. docs/RUN.md has the formats.
#pragma once

#include <string>
#include <vector>

#include "answer.hpp"
#include "run_options.hpp"

namespace quern::tool {

// What JSON says of an answer beside the answer itself.
struct AnswerFacts {
  std::size_t index = 0;  // of the prompt, from 0
  std::size_t prompt_tokens = 0;
  std::uint64_t seed = 0;
  bool greedy = false;
  std::string search;        // how it was generated, for people
  std::string timings_json;
};

class AnswerPrinter {
 public:
  AnswerPrinter(const LoadedModel& loaded, const RunOptions& options);

  // An answer to the prompt of this name begins; echo: what is shown before it.
  void begin(const std::string& name, const std::string& echo);
  void show(const std::string& piece);   // text as it comes
  void id(std::int32_t id);              // ids as they come
  void next();                           // another sample of the same prompt begins
  // One answer, or those of a search, best first (which were not shown yet).
  void end(const std::vector<Answer>& answers, bool searched, const AnswerFacts& facts);
  // All are done.
  void finish();

 private:
  void show_searched(const std::vector<Answer>& answers);

  const LoadedModel& loaded_;
  const RunOptions& options_;
  const bool list_;
  std::size_t n_begun_ = 0, n_ids_ = 0;
  std::string echo_;
  std::vector<std::string> objects_;  // JSON, until finish()
};

}  // namespace quern::tool
