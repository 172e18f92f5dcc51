// quern logits: ids in, float32 logits (and hidden states) of every position out. Every parity check
// stands on this command.

#include <filesystem>
#include <iostream>
#include <memory>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "model_options.hpp"
#include "npy.hpp"

namespace quern::tool {

namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string ids_file, encoder_ids_file, token_types_file, output, hidden;
};

// An output may not be what is read, nor anything but a file: it is renamed into place.
void check_output(const std::string& path, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored)) return;
  if (!fs::is_regular_file(path, ignored))
    base::usage_error(base::printable(path), "exists and is not a regular file");
  for (const std::string& input : inputs)
    if (!input.empty() && fs::exists(input, ignored) && fs::equivalent(path, input, ignored))
      base::usage_error(base::printable(path), "is an input of this command");
}

// One prefill of all ids in chunks; each position's row goes straight to its file.
void write_rows(const LoadedModel& loaded, const LogitsOptions& options, const std::vector<std::int32_t>& ids) {
  const contract::Contract& contract = loaded.model->contract;
  engine::SessionOptions session = session_options(loaded, options.model, ids.size());
  if (ids.size() > session.cache.max_tokens)
    base::reject(options.ids_file, base::cat("has ", ids.size(), " tokens, context is ", session.cache.max_tokens));
  session.cache.max_tokens = ids.size();
  model::KvCache cache(*loaded.model, session.cache);
  const std::size_t chunk = std::min(session.prefill_chunk, ids.size());
  model::Runner runner(*loaded.model, cache, *loaded.pool, chunk, ids.size());
  std::unique_ptr<NpyWriter> logits, hidden;
  if (!options.output.empty())
    logits = std::make_unique<NpyWriter>(options.output, ids.size(), contract.vocab_size);
  if (!options.hidden.empty())
    hidden = std::make_unique<NpyWriter>(options.hidden, ids.size(), contract.d_model);
  for (std::size_t at = 0; at < ids.size(); at += chunk) {
    const std::size_t n = std::min(chunk, ids.size() - at);
    const model::Slice slice{0, {ids.data() + at, n}, model::Want::all};
    runner.forward({&slice, 1});
    for (std::size_t row = 0; row < n; ++row) {
      if (logits) logits->write_row({runner.logits(row), contract.vocab_size});
      if (hidden) hidden->write_row({runner.hidden(row), contract.d_model});
    }
  }
  if (logits) logits->finish();
  if (hidden) hidden->finish();
}

}  // namespace

int cmd_logits(const std::vector<std::string>& arguments) {
  CLI::App app("Writes the logits of every position as a float32 NumPy array [tokens, vocab_size].",
               "quern logits");
  LogitsOptions options;
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  app.add_option("--ids-file", options.ids_file, "token ids, separated by white space (- for standard input)")
      ->required();
  app.add_option("--encoder-ids-file", options.encoder_ids_file, "ids of the encoder's input");
  app.add_option("--token-types-file", options.token_types_file, "token types (segments)");
  app.add_option("-o,--output", options.output, "logits: OUT.npy");
  app.add_option("--hidden", options.hidden, "hidden states after the final norm: OUT.npy [tokens, d_model]");
  if (parse_arguments(app, arguments)) return 0;
  if (options.output.empty() && options.hidden.empty())
    base::usage_error("quern logits", "nothing to write: give -o OUT.npy or --hidden OUT.npy");

  const model::ModelPaths paths = model::resolve_model_path(options.model.model);
  for (const std::string& path : {options.output, options.hidden})
    check_output(path, {paths.weights.string(), paths.contract.string(), options.ids_file});
  if (!options.output.empty() && options.output == options.hidden)
    base::usage_error("--hidden", "is the same file as -o");
  const LoadedModel loaded = load_model(options.model);
  const contract::Contract& contract = loaded.model->contract;
  if (!options.encoder_ids_file.empty() && !contract.encoder)
    base::usage_error("--encoder-ids-file", "the model has no encoder");
  if (!options.token_types_file.empty() && contract.embedding.token_types == 0)
    base::usage_error("--token-types-file", "the model has no token types");
  write_rows(loaded, options, read_ids_file(options.ids_file, contract.vocab_size));
  return 0;
}

}  // namespace quern::tool
