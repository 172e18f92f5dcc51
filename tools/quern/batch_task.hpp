// What the model makes of a request: ids, samplers, ends, forms - one task per answer. The same numbers as
// `quern run` makes of the same options, so that each answer is the one it would give alone. Not here: running them.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer.hpp"
#include "batch/request.hpp"
#include "batch_forms.hpp"
#include "batch_options.hpp"

namespace quern::tool {

struct AnswerTask {
  std::vector<std::int32_t> prompt, source;  // source: of an encoder-decoder
  engine::GenerationPlan plan;
  std::unique_ptr<sampling::Sampler> sampler;
  std::shared_ptr<grammar::Matcher> form;
  std::optional<std::uint64_t> seed;         // absent: greedy
  std::string echo;
  AnswerOptions answer;
  std::size_t n_prompt() const { return source.empty() ? prompt.size() : source.size(); }
};

class TaskMaker {
 public:
  // Usage and input errors of the command's own options. now: what templates take for the current time.
  TaskMaker(const LoadedModel& loaded, const BatchOptions& options, const std::optional<grammar::Grammar>& form,
            const std::tm& now);

  // In the order of the answers: those of the first prompt, of the second ... ItemError for what cannot be answered.
  std::vector<AnswerTask> make(const batch::Request& request, std::uint64_t key);
  std::size_t context() const { return context_; }

 private:
  struct Prepared {  // one prompt
    std::vector<std::int32_t> ids;
    bool chat = false;
    std::string text;
  };
  std::vector<Prepared> prepare(const batch::Request& request) const;
  Prepared chat(const batch::Request& request, std::vector<chat::Message> messages) const;
  Prepared raw(const batch::Prompt& prompt) const;
  engine::GenerationPlan plan(const batch::Request& request, const AnswerTask& task, const Prepared& prepared) const;
  sampling::SamplerOptions sampler_options(const batch::Request& request, std::uint64_t seed) const;
  AnswerTask make_one(const batch::Request& request, const Prepared& prepared, std::uint64_t seed);
  void check_search(const batch::Request& request, const AnswerTask& task) const;

  const LoadedModel& loaded_;
  const BatchOptions& options_;
  std::size_t context_;
  SamplerMaker samplers_;
  BatchForms forms_;
  std::optional<chat::Format> format_;
  AnswerOptions answer_;  // its marks are those of a chat
  engine::GenerationRequest generation_;
};

}  // namespace quern::tool
