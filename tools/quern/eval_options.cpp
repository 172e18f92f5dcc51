#include "eval_options.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"
#include "quantity.hpp"

namespace quern::tool {

void add_eval_options(CLI::App& app, EvalOptions& options) {
  const auto size = [&](const char* name, std::size_t& target, std::int64_t high, const char* help) {
    app.add_option(name, target, help)->transform(count_range(1, high))->type_name("N");
  };
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  app.get_option("--ctx-size")->description("tokens of a window (512, more with --depth)");
  app.add_option("-f,--file", options.file, "a text: perplexity (- for standard input)");
  app.add_option("--ids-file", options.ids_file, "token ids instead of a text, separated by white space");
  size("--chunks", options.chunks, 1 << 30, "windows of the text at most (all)");
  size("--ppl-stride", options.stride, 1 << 20, "a window every N tokens, its last N are scored (windows side by side, second half)");
  app.add_option("--depth", options.depth, "score the tokens of a window that have N before them")
      ->transform(count_range(1, 1 << 22))->type_name("N");
  app.add_option("--against", options.against, "another model with the same vocabulary, compared with -m; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--kv", options.kv, "cache types, comma-separated (int8 or K/V), each compared with an f32 cache")
      ->delimiter(',')->allow_extra_args(false);
  app.add_option("--choices", options.choices_file, "multiple choice: JSON lines of hellaswag's or ARC's form");
  size("--tasks", options.tasks, 1 << 30, "questions of --choices at most (all)");
  app.add_option("--prompt-format", options.prompt_format, "with --choices: the text before a choice, {} stands for the question");
  app.add_option("--output", options.output, "text or json (text)")->check(CLI::IsMember({"text", "json"}));
}

void settle_eval_options(EvalOptions& options) {
  const int inputs = !options.file.empty() + !options.ids_file.empty() + !options.choices_file.empty();
  if (inputs != 1) base::usage_error("quern eval", "give one of -f TEXT, --ids-file FILE and --choices FILE");
  if (!options.choices_file.empty() &&
      (!options.against.empty() || !options.kv.empty() || options.depth || options.stride != 0 || options.chunks != 0))
    base::usage_error("--choices", "not with --against, --kv, --depth, --ppl-stride and --chunks");
  if (options.choices_file.empty() && (options.tasks != 0 || !options.prompt_format.empty()))
    base::usage_error("quern eval", "--tasks and --prompt-format belong to --choices");
  if (options.depth && options.stride != 0) base::usage_error("--depth", "not with --ppl-stride");
  if (!options.prompt_format.empty() && options.prompt_format.find("{}") == std::string::npos)
    base::usage_error("--prompt-format", "has no {} for the question");
  // What is compared with a cache type is f32, not the default type.
  if (!options.kv.empty() && (options.model.k_type != ModelOptions{}.k_type || options.model.v_type != ModelOptions{}.v_type))
    base::usage_error("--kv", "compares with an f32 cache: not with -ctk and -ctv");
}

}  // namespace quern::tool
