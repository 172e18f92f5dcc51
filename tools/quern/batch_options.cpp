#include "batch_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace {

// Where work is done, not what comes of it.
constexpr std::array<std::string_view, 16> kWithoutEffect = {
    "help", "model", "threads", "isa", "ubatch-size", "parallel", "input", "output-file",
    "resume", "overwrite", "quiet", "progress", "deterministic", "input-format", "sync-every", "prefault"};
constexpr std::array<std::string_view, 6> kFiles = {"system-file", "grammar-file", "json-schema-file",
                                                    "stop-file", "ban-file", "chat-template-file"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, const CLI::Option& option) {
  const std::vector<std::string>& all = option.get_lnames();
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& name) { return std::find(names.begin(), names.end(), name) != names.end(); });
}

std::string hash_of_file(const std::string& path) {
  const std::string text = read_input(path);
  std::string hex = "xxh3:";
  const std::uint64_t hash = base::xxh3(base::as_bytes(text));
  for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[hash >> shift & 15];
  return hex;
}

}  // namespace

void add_batch_options(CLI::App& app, BatchOptions& o) {
  add_model_options(app, o.answer.model);
  add_cache_options(app, o.answer.model);
  app.add_option("-i,--input,--input-file", o.input, "the lines to answer (- for standard input)")->type_name("FILE");
  app.add_option("-o,--output-file,--output", o.output, "their answers (- for standard output)")->type_name("FILE");
  app.add_option("--input-format", o.format,
                 "openai (batch lines), jsonl ({\"prompt\": ...} or {\"messages\": [...]}) or text (a prompt a line); "
                 "auto looks at the first line")
      ->check(CLI::IsMember({"auto", "openai", "jsonl", "text"}));
  app.add_option("--parallel", o.n_parallel, "-np: most sequences that run at once (8)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1024}))->type_name("N");
  CLI::Option* resume = app.add_flag("--resume", o.resume, "go on with the lines that the output lacks");
  app.add_flag("--overwrite", o.overwrite, "begin anew where an output is there")->excludes(resume);
  app.add_flag("--unordered", o.unordered, "answers as they are done, not in the order of the input");
  app.add_flag("--ids", o.ids, "token ids too in answers to simple lines");
  app.add_option("--progress", o.progress_seconds, "seconds between lines of progress where there is no terminal (60; 0: none)")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20))->type_name("N");
  app.add_option("--sync-every", o.sync_lines, "lines between syncs of the output to the disk (1000; every 2 seconds anyway)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 30))->type_name("N");
  app.add_flag("-q,--quiet", o.quiet, "no progress");
  add_answer_options(app, o.answer);
  app.footer("examples:\n  quern batch -m MODEL -i requests.jsonl -o answers.jsonl -np 16\n"
             "  quern batch -m MODEL -i requests.jsonl -o answers.jsonl --resume      after a crash, a kill or a full disk\n"
             "  quern batch -m MODEL -i questions.txt -o answers.jsonl --temp 0 -n 200\n"
             "docs/BATCH.md has the formats, the fields and what a killed run leaves.");
}

void settle_batch_options(BatchOptions& options) {
  RunOptions& answer = options.answer;
  if (!answer.system_file.empty()) answer.system = read_input(answer.system_file);
  if (answer.sampling.seed < 0) answer.sampling.seed = 0;  // lines have seeds of their own, made of this one
  if (options.output == "-" && options.resume)
    base::usage_error("--resume", "needs an output file (-o FILE), not standard output");
}

std::vector<std::pair<std::string, std::string>> remembered_options(const CLI::App& app) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || among(kWithoutEffect, *option) || option->get_lnames().empty()) continue;
    std::string value;
    for (const std::string& one : option->results())
      value += (value.empty() ? "" : "\n") + (among(kFiles, *option) ? hash_of_file(one) : one);
    out.emplace_back("--" + option->get_lnames().front(), std::move(value));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace quern::tool
