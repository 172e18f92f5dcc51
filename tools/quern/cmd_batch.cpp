// quern batch: a file of requests, answered many at once into a file that survives every way to die. Everything that
// can be wrong is found before the model is loaded: options, input, output, lock, manifest.

#include <array>
#include <csignal>
#include <ctime>
#include <iostream>
#include <span>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/mapped_file.hpp"
#include "base/strings.hpp"
#include "batch/output_scan.hpp"
#include "batch_options.hpp"
#include "batch_run.hpp"
#include "command.hpp"
#include "grammar_options.hpp"
#include "signals.hpp"
#include "version.hpp"

namespace quern::tool {

namespace {

namespace fs = std::filesystem;

std::string text_of_time(const std::tm& time) {
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &time);
  return text.data();
}

std::tm time_of_text(const std::string& text, const std::string& where) {
  std::tm time{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (end == nullptr || *end != '\0') base::reject(where, "\"now\" is no time", base::printable(text, 40));
  time.tm_isdst = -1;
  std::mktime(&time);
  return time;
}

std::string hex(std::uint64_t value) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

// Whatever decides about answers: weights, tokenizer and contract (in model.json as it is, chat template and all).
void describe_model(const std::string& path, const model::ModelPaths& paths, batch::Manifest& manifest) {
  const model::ModelFiles files = model::open_model_files(path);
  const std::string contract = base::read_text_file(paths.contract, std::size_t{256} << 20);
  const std::array<std::uint64_t, 2> parts = {files.weights.checksum(), base::xxh3(base::as_bytes(contract))};
  manifest.model_name = files.contract.name;
  manifest.model_hash = hex(base::xxh3(std::as_bytes(std::span(parts))));
}

void refuse_model_files(const fs::path& output, const model::ModelPaths& paths) {
  std::error_code ignored;
  for (const fs::path& path : {paths.weights, paths.contract})
    for (const fs::path& ours : {output, batch::manifest_path(output), batch::torn_path(output)})
      if (fs::equivalent(path, ours, ignored))
        base::usage_error("-o", base::cat(base::printable(ours.string()), " is a file of the model"));
}

// The output as it is found, compared with what this run would make.
struct Found {
  batch::Manifest manifest;  // to be written
  batch::OutputScan scan;
  bool resumed = false;
};

Found look_at_output(batch::OutputLog& output, batch::Manifest now, bool ordered, batch::LineIndex& index) {
  Found found;
  found.manifest = std::move(now);
  found.manifest.n_lines = index.size();
  found.manifest.digest = index.digest(index.size());
  if (!output.stored()) return found;
  const batch::StoredManifest& stored = *output.stored();
  batch::Manifest same = found.manifest;  // lines may have been added
  if (stored.manifest.n_lines <= index.size()) same.digest = index.digest(stored.manifest.n_lines);
  batch::check_same(stored.manifest, same, output.name());
  found.manifest.now = stored.manifest.now;
  found.scan = batch::scan_output(output.descriptor(), output.name(), stored.sync, ordered, index);
  found.resumed = true;
  return found;
}

void say_what_was_found(const batch::OutputLog& output, const batch::OutputScan& scan) {
  if (scan.torn_bytes == 0) return;
  std::cerr << "quern: note: " << output.name() << ": " << scan.torn_bytes
            << (scan.unsure ? " bytes after a failed sync are done again" : " bytes of a torn end are done again")
            << " (kept in " << base::printable(batch::torn_path(output.name()).string()) << ")\n";
}

void begin_output(batch::OutputLog& output, const Found& found) {
  if (found.resumed) output.begin_resumed(found.manifest, found.scan);
  else output.begin(found.manifest);
}

// What is written stays and is synced, whatever goes wrong.
void run_and_sync(const BatchJob& job, TaskMaker& tasks) {
  try {
    BatchRun(job, tasks).run();
  } catch (const batch::ClosedPipe&) {
    throw;
  } catch (...) {
    job.files.output.sync();
    throw;
  }
  job.files.output.sync();
}

// Answers all that is left; the summary comes however that ends.
void answer_all(const BatchOptions& options, const std::optional<grammar::Grammar>& grammar, const Found& found,
                const BatchFiles& files) {
  BatchProgress progress(options.progress_seconds, options.quiet);
  try {
    if (files.counts.remaining() == 0) {
      begin_output(files.output, found);
    } else {
      const LoadedModel loaded = load_model(options.answer.model);
      note_long_context(options.answer.model.context, loaded.model->contract);
      TaskMaker tasks(loaded, options, grammar, time_of_text(found.manifest.now, files.output.name()));
      catch_signals();
      begin_output(files.output, found);
      progress.begin();
      run_and_sync({loaded, options, files, progress}, tasks);
    }
  } catch (const batch::ClosedPipe&) {
    progress.finish(files.counts);
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  } catch (...) {
    progress.finish(files.counts);
    throw;
  }
  progress.finish(files.counts);
}

}  // namespace

int cmd_batch(const std::vector<std::string>& arguments) {
  CLI::App app("Answers a file of prompts or requests, many at once, into a file that --resume goes on with.", "quern batch");
  BatchOptions options;
  add_batch_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  parse_cache_type(options.answer.model.k_type, "-ctk");
  parse_cache_type(options.answer.model.v_type, "-ctv");
  settle_batch_options(options);
  std::signal(SIGPIPE, SIG_IGN);

  const model::ModelPaths paths = model::resolve_model_path(options.answer.model.model);
  if (options.output != "-") refuse_model_files(options.output, paths);
  const batch::InputFile input(options.input);
  const auto existing = options.resume      ? batch::Existing::resume
                        : options.overwrite ? batch::Existing::overwrite
                                            : batch::Existing::refuse;
  batch::OutputLog output(options.output, existing, input, options.sync_lines);
  const std::optional<grammar::Grammar> grammar = read_grammar(options.answer.grammar);
  batch::Manifest manifest;
  describe_model(options.answer.model.model, paths, manifest);
  const batch::InputFormat format = options.format == "auto" ? batch::detect_format(input, options.input)
                                                             : *batch::input_format_of(options.format);
  manifest.format = batch::input_format_name(format);
  manifest.options = remembered_options(app);
  manifest.quern_version = version();
  manifest.now = text_of_time(chat::local_time());
  batch::LineIndex index(input, format);
  const Found found = look_at_output(output, std::move(manifest), !options.unordered, index);
  say_what_was_found(output, found.scan);

  BatchCounts counts;
  counts.total = index.size();
  counts.done = found.scan.n_done;
  counts.failed = found.scan.n_failed;
  counts.before = counts.done + counts.failed;
  answer_all(options, grammar, found, {format, input, index, output, counts});
  return counts.failed > 0 && !interrupted() ? static_cast<int>(base::ExitCode::items_failed) : 0;
}

}  // namespace quern::tool
