#include "plan_options.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "base/thread_pool.hpp"
#include "model_options.hpp"
#include "quantity.hpp"

namespace quern::tool {

namespace {

using kernels::CacheType;

constexpr std::int64_t kMaxContext = std::int64_t{1} << 24;

// All digits of a whole number.
std::string plain(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

double read_number(const std::string& text, const char* option, double low, double high) {
  const std::optional<double> value = parse_quantity(text);
  if (!value || !(*value >= low && *value <= high))  // NaN is in no range
    base::usage_error(option, base::cat("not a number in range (got \"", base::printable(text, 40), "\", expected ", plain(low),
                                        " to ", plain(high), ", k, M, G and T are powers of 1,024)"));
  return *value;
}

std::vector<plan::CacheTypes> settle_types(const PlanOptions& options) {
  std::vector<std::string> k = options.k_types, v = options.v_types;
  if (k.empty()) k = v.empty() ? std::vector<std::string>{"int8"} : v;
  if (v.empty()) v = k;
  if (k.size() == 1) k.resize(v.size(), k[0]);
  if (v.size() == 1) v.resize(k.size(), v[0]);
  if (k.size() != v.size())
    base::usage_error("-ctv", base::cat("as many types as -ctk, or one (got ", v.size(), ", expected ", k.size(), ")"));
  std::vector<plan::CacheTypes> types;
  for (std::size_t i = 0; i < k.size(); ++i)
    types.push_back({parse_cache_type(k[i], "-ctk"), parse_cache_type(v[i], "-ctv")});
  return types;
}

void settle_shape(PlanOptions& options) {
  plan::PlainShape& shape = options.shape;
  const bool any = shape.layers + shape.heads + shape.kv_heads + shape.head_dim > 0;
  if (options.model.empty() != any)
    base::usage_error("quern plan", any ? "--layers, --heads and --head-dim stand for a model: give no MODEL"
                                        : "give a MODEL, or --layers, --heads and --head-dim");
  if (!any) return;
  if (shape.layers == 0 || shape.heads == 0 || shape.head_dim == 0)
    base::usage_error("quern plan", "a shape needs --layers, --heads and --head-dim");
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  if (shape.heads % shape.kv_heads != 0)
    base::usage_error("--kv-heads", base::cat("must divide the number of heads (got ", shape.kv_heads, ", heads ",
                                              shape.heads, ")"));
  if (options.params.empty()) base::usage_error("--params", "a shape needs the number of parameters, such as 7e9");
  if (!options.draft.empty()) base::usage_error("--draft", "needs a MODEL");
}

void settle_limits(PlanOptions& options) {
  options.limits.bandwidth = options.bandwidth * 1e9;
  options.limits.int8_rate = options.gops * 1e9;
  // A float multiply-add takes four times the bits of an int8 one in the units that have both.
  options.limits.float_rate = (options.gflops > 0 ? options.gflops : options.gops / 4) * 1e9;
}

}  // namespace

void add_plan_options(CLI::App& app, PlanOptions& options) {
  const auto size = [&](const char* name, std::size_t& target, std::int64_t low, std::int64_t high, const char* help) {
    app.add_option(name, target, help)->transform(count_range(low, high))->type_name("N");
  };
  app.add_option("-m,--model,model", options.model, "a quern model, its model.json, or a Hugging Face config.json (or its directory)");
  app.add_option("-c,--ctx-size", options.context_lengths, "contexts, comma-separated, such as 8k,32k (the model's)")
      ->delimiter(',')->allow_extra_args(false)->transform(count_range(1, kMaxContext))->type_name("N,...");
  app.add_option("--cache-type-k", options.k_types, "-ctk: cache types, comma-separated (int8)")
      ->delimiter(',')->allow_extra_args(false);
  app.add_option("--cache-type-v", options.v_types, "-ctv: as many, or one (as -ctk)")
      ->delimiter(',')->allow_extra_args(false);
  size("--parallel", options.run.sequences, 1, 4096, "-np: sequences that run at once, each with the whole context (1)");
  size("--num-beams", options.run.beams, 1, 1024, "beams of a search; they share the prompt's cache (1)");
  size("-n,--predict", options.run.new_tokens, 1, kMaxContext, "new tokens, which each beam keeps for itself (128)");
  size("--source-tokens", options.run.source_tokens, 1, 1 << 20, "tokens of an encoder-decoder's source (the context)");
  app.add_option("--draft", options.draft, "a draft model beside it: the same spellings as MODEL");
  size("--draft-max", options.run.draft_tokens, 1, 1024, "guesses checked at once (8 with --draft)");
  size("-t,--threads", options.run.shape.n_threads, 1, 4096, "threads (as run chooses them)");
  size("--ubatch-size", options.run.shape.prefill_chunk, 1, 1 << 16, "-ub: prompt tokens computed at once (512)");
  app.add_flag("--deterministic", options.run.shape.deterministic, "latent attention in one form for any chunk");
  app.add_option("--isa", options.isa, "instruction set");
  app.add_option("--type,--outtype", options.source.convert.type, "of a bare configuration: the type it will be converted to (q4)");
  app.add_option("--recipe", options.source.convert.recipe_file, "of a bare configuration: a recipe file beside the built-in ones");
  app.add_option("--arch-as", options.source.convert.arch_as, "of a bare configuration: the recipe to use");
  app.add_option("--params", options.params, "number of parameters, instead of what the configuration gives: 7e9");
  size("--layers", options.shape.layers, 1, 1 << 16, "without a MODEL: layers");
  size("--heads", options.shape.heads, 1, 1 << 16, "without a MODEL: query heads");
  size("--kv-heads", options.shape.kv_heads, 1, 1 << 16, "without a MODEL: KV heads (as many)");
  size("--head-dim", options.shape.head_dim, 1, 1 << 16, "without a MODEL: width of a head");
  app.add_option("--memory", options.memory, "16G: the longest context and the most sequences that fit");
  app.add_option("--bandwidth", options.bandwidth, "read bandwidth in GB/s, for times")->check(finite_range(1e-3, 1e6));
  app.add_option("--gops", options.gops, "int8 operations in GOP/s, for times")->check(finite_range(1e-3, 1e9));
  app.add_option("--gflops", options.gflops, "float operations in GFLOP/s (a quarter of --gops)")->check(finite_range(1e-3, 1e9));
  app.add_flag("--measure", options.measure, "measure what of these three is not given (0.5 s, 256 MiB)");
  app.add_option("--output", options.output, "text or json (text)")->check(CLI::IsMember({"text", "json"}));
}

void settle_plan_options(PlanOptions& options) {
  options.types = settle_types(options);
  if (!options.params.empty()) options.n_parameters = read_number(options.params, "--params", 1, 1e15);
  if (!options.memory.empty())
    options.budget = static_cast<std::uint64_t>(read_number(options.memory, "--memory", 1, 1e18));
  settle_shape(options);
  settle_limits(options);
  if (options.run.beams > 1 && options.run.sequences > 1)
    base::usage_error("--num-beams", "not with -np: a search runs alone");
  if (options.run.draft_tokens == 0 && !options.draft.empty()) options.run.draft_tokens = 8;
}

}  // namespace quern::tool
