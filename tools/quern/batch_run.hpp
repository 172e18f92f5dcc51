// The run of a batch: takes lines while there is room, runs what they ask for, writes answers and errors. Ends when all
// lines are written, when it is interrupted, or with an error; what is written then is whole and counted. Not here:
// options, files and manifest (cmd_batch.cpp).
#pragma once

#include <memory>
#include <unordered_map>

#include "batch/line_index.hpp"
#include "batch/output_log.hpp"
#include "batch/reorder.hpp"
#include "batch/response.hpp"
#include "batch_embed.hpp"
#include "batch_progress.hpp"
#include "batch_sequences.hpp"
#include "batch_task.hpp"

namespace quern::tool {

// What a run reads and writes, and what a run works with; all of it outlives the run.
struct BatchFiles {
  batch::InputFormat format;
  const batch::InputFile& input;
  const batch::LineIndex& index;
  batch::OutputLog& output;
  BatchCounts& counts;
};
struct BatchJob {
  const LoadedModel& loaded;
  const BatchOptions& options;
  BatchFiles files;
  BatchProgress& progress;
};

class BatchRun {
 public:
  BatchRun(const BatchJob& job, TaskMaker& tasks);
  void run();

 private:
  struct Item {  // a line in work
    std::size_t order;
    batch::LineFacts facts;
    batch::Request request;
    batch::GenerationResult generated;
    batch::EmbeddingResult embedded;
    std::size_t n_open = 0;
    std::string error;
  };

  void take();
  void take_line(const batch::Line& line);
  void begin_answers(Item& item);
  void begin_embedding(Item& item);
  void answered(Item& item, std::size_t place, const std::string& echo, Answer answer, const std::string& error);
  void finish(Item& item);
  void write(std::size_t order, batch::FinishedLine line);
  void refresh();
  void check_input();  // now and then

  BatchJob job_;
  TaskMaker& tasks_;
  batch::LineReader reader_;
  BatchSequences sequences_;
  BatchEmbedder embedder_;
  batch::Reorder reorder_;
  std::unordered_map<std::size_t, std::unique_ptr<Item>> items_;  // by order
  std::size_t n_read_ = 0, n_begun_ = 0;  // lines; those of this run
  bool ended_ = false;                    // all lines were read
  std::chrono::steady_clock::time_point checked_;
};

}  // namespace quern::tool
