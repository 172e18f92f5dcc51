// quern embed: one vector for each text, as JSON lines or a NumPy array.

#include <algorithm>
#include <cstdint>

#include "arguments.hpp"
#include "base/error.hpp"
#include "command.hpp"
#include "contract/tensors.hpp"
#include "engine/packed_batch.hpp"
#include "signals.hpp"
#include "text_input.hpp"
#include "text_vectors.hpp"
#include "vector_output.hpp"

namespace quern::tool {

namespace {

struct EmbedOptions {
  ModelOptions model;
  InputOptions input;
  std::string output, format, pooling;
  bool normalize = false, no_normalize = false;
};

contract::Pooling pooling_of(const contract::Contract& contract, const EmbedOptions& options) {
  contract::Pooling pooling = default_pooling(contract);
  if (options.pooling == "mean") pooling.mode = contract::Pool::mean;
  if (options.pooling == "first" || options.pooling == "cls") pooling.mode = contract::Pool::first;
  if (options.pooling == "last") pooling.mode = contract::Pool::last;
  if (options.normalize) pooling.normalize = true;
  if (options.no_normalize) pooling.normalize = false;
  return pooling;
}

void check_finite(const std::vector<float>& vector, const std::string& where) {
  if (!is_finite(vector)) base::reject(where, "the model's output is not finite");
}

void add_embed_options(CLI::App& app, EmbedOptions& options) {
  add_model_options(app, options.model);
  add_input_options(app, options.input, Pairs::no);
  app.add_option("--pooling", options.pooling, "mean, first (cls) or last (the model's, else mean)")
      ->check(CLI::IsMember({"mean", "first", "cls", "last"}));
  CLI::Option* yes = app.add_flag("--normalize", options.normalize, "vectors of length 1 (the model's, else yes)");
  app.add_flag("--no-normalize", options.no_normalize, "vectors as they come")->excludes(yes);
  app.add_option("-o,--output", options.output, "the file, in place of standard output: JSON lines (OUT.jsonl) or a NumPy array "
                                                "[texts, width] (OUT.npy)");
  app.add_option("--format", options.format, "jsonl or npy (by the file's ending, else jsonl)")
      ->check(CLI::IsMember({"jsonl", "npy"}));
  app.footer("examples:\n  quern embed -m MODEL -p \"a text\"\n  quern embed -m MODEL -f texts.txt -o vectors.npy\n"
             "  quern embed -m MODEL -f texts.jsonl > vectors.jsonl");
}

}  // namespace

int cmd_embed(const std::vector<std::string>& arguments) {
  CLI::App app("Writes one vector for each text, in the order of the texts.", "quern embed");
  EmbedOptions options;
  add_embed_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  const VectorFormat format = vector_format(options.output, options.format);
  const model::ModelPaths paths = model::resolve_model_path(options.model.model);
  check_output_is_no_input(options.output, {paths.weights.string(), paths.contract.string(), options.input.file,
                                            options.input.ids_file});
  const LoadedModel loaded = load_model(options.model);
  const contract::Contract& contract = loaded.model->contract;
  if (contract.kind == contract::ModelKind::encoder_decoder)
    base::reject(loaded.model->weights.where(), "an encoder-decoder has no text vectors");
  const contract::Pooling pooling = pooling_of(contract, options);
  const std::size_t longest = std::min(context_length(loaded, options.model), pooling.max_tokens.value_or(SIZE_MAX));
  const std::vector<InputItem> items = read_inputs(loaded, options.input, longest);
  std::vector<engine::PackedSequence> sequences;
  for (const InputItem& item : items) sequences.push_back({item.ids, item.types});
  VectorOutput output(options.output, format, items.size(), contract::vector_width(contract));
  catch_signals();
  std::vector<float> vector(contract::vector_width(contract));
  const engine::PackOptions pack{options.model.prefill_chunk, false, interrupted};
  const bool done = engine::run_packed(
      *loaded.model, *loaded.pool, sequences, pack, [&](const engine::PackedResult& result) {
        const InputItem& item = items[result.index];
        result.runner.pool(pooling.mode, result.first_hidden, item.ids.size(), vector.data());
        check_finite(vector, item.where);
        if (pooling.normalize) normalize(vector);
        output.write(result.index, vector);
      });
  if (done) output.finish();
  return 0;
}

}  // namespace quern::tool
