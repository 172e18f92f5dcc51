#include "answer_printer.hpp"

#include <iostream>

#include "answer_json.hpp"
#include "base/error.hpp"
#include "terminal.hpp"

namespace quern::tool {

namespace {

void write_line(const std::string& line) {
  std::cout << line << "\n" << std::flush;
  if (!std::cout) throw base::Error(base::ExitCode::environment, "standard output", "cannot write");
}

}  // namespace

AnswerPrinter::AnswerPrinter(const LoadedModel& loaded, const RunOptions& options)
    : loaded_(loaded), options_(options), list_(is_list(options.prompts)) {}

void AnswerPrinter::begin(const std::string& name, const std::string& echo) {
  n_ids_ = 0;
  echo_ = echo;
  if (options_.output == "text") {
    if (list_) write_line((n_begun_ == 0 ? "==> " : "\n==> ") + name + " <==");
    write_model_text(echo_);
  }
  ++n_begun_;
}

void AnswerPrinter::show(const std::string& piece) {
  if (options_.output == "text") write_model_text(piece);
}

void AnswerPrinter::id(std::int32_t id) {
  if (options_.output != "ids") return;
  std::cout << (n_ids_++ == 0 ? "" : " ") << id << std::flush;
  if (!std::cout) throw base::Error(base::ExitCode::environment, "standard output", "cannot write");
}

void AnswerPrinter::next() {
  n_ids_ = 0;
  if (!options_.json()) write_model_text("\n" + (options_.output == "text" ? echo_ : std::string()));
}

void AnswerPrinter::show_searched(const std::vector<Answer>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    n_ids_ = 0;
    if (i > 0) write_model_text("\n" + (options_.output == "text" ? echo_ : std::string()));
    show(answers[i].text);
    for (const std::int32_t one : answers[i].ids) id(one);
  }
}

void AnswerPrinter::end(const std::vector<Answer>& answers, bool searched, const AnswerFacts& facts) {
  if (!options_.json()) {
    if (searched) show_searched(answers);
    write_model_text("\n");
    return;
  }
  std::string object = answer_json(loaded_, options_, answers, searched, facts, echo_);
  if (options_.output == "jsonl") return write_line(object);
  objects_.push_back(std::move(object));
}

void AnswerPrinter::finish() {
  if (options_.output != "json") return;
  if (!list_) {
    if (!objects_.empty()) write_line(objects_.front());
    return;
  }
  std::string all = "[";
  for (std::size_t i = 0; i < objects_.size(); ++i) all += (i == 0 ? "\n" : ",\n") + objects_[i];
  write_line(all + "\n]");
}

}  // namespace quern::tool
