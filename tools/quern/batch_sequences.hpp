// Who runs the answers of a batch: the scheduler, many at once; searches with beams one after the other, as
// `quern run` does them. Not here: lines and files.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "batch_task.hpp"
#include "engine/scheduler.hpp"

namespace quern::tool {

class BatchSequences {
 public:
  BatchSequences(const LoadedModel& loaded, const BatchOptions& options);
  ~BatchSequences();

  // on_done gets the answer, or why there is none (`error` not empty); not called after cancel().
  using OnDone = std::function<void(Answer, const std::string& error)>;
  void add(AnswerTask task, OnDone on_done);
  bool wants_more() const;
  bool idle() const;
  // Some work; false: there was none.
  bool step(const std::function<bool()>& stop_requested);
  void cancel();

  struct Totals {
    std::size_t prefill_tokens = 0, reused_tokens = 0, decode_tokens = 0, most_running = 0, n_running = 0;
  };
  Totals totals() const;

 private:
  struct Search {
    AnswerTask task;
    OnDone on_done;
  };
  engine::Scheduler& scheduler();
  Answer search(const AnswerTask& task, const std::function<bool()>& stop_requested);

  const LoadedModel& loaded_;
  const BatchOptions& options_;
  std::unique_ptr<engine::Scheduler> scheduler_;  // made when it is needed
  std::deque<Search> searches_;
  std::size_t answered_tokens_ = 0, searched_prompt_ = 0, searched_answer_ = 0;
};

}  // namespace quern::tool
