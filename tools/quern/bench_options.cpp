#include "bench_options.hpp"

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "base/thread_pool.hpp"
#include "bench/sweep.hpp"
#include "bench/workload.hpp"
#include "quantity.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 22, kMaxUbatch = std::size_t{1} << 16;
constexpr std::size_t kMaxThreads = 1024, kMaxParallel = 4096, kMaxContext = std::size_t{1} << 26;

constexpr const char* kFooter =
    "numbers: \"512\", \"4k\" (x 1,024), \"1,8,64\", \"1-4\", \"0-4096+1024\", \"1-8*2\", or the option again; every combination is a row\n\n"
    "examples:\n"
    "  quern bench -m MODEL                                   pp512 and tg128\n"
    "  quern bench -m MODEL -p 0 -n 64 -d 0-8192+2048         decode at five depths\n"
    "  quern bench -m MODEL -npl 1,4,16 -p 128 -n 32          sequences that decode together\n"
    "  quern bench -m MODEL -o json > base.json               keep it, and later:\n"
    "  quern bench -m MODEL --compare base.json               exit code 1 when this is slower\n"
    "  quern bench -m MODEL --against build-old/quern         two programs, measured alternately\n"
    "  quern bench --limits                                   what this machine can do at best\n";

void add_rows(CLI::App& app, BenchOptions& o) {
  const auto list = [&](const char* name, std::vector<std::string>& target, const char* help) {
    app.add_option(name, target, help)->allow_extra_args(false)->type_name("N,...");
  };
  list("-p,--n-prompt", o.prompts, "prompt lengths; 0: none (512)");
  list("-n,--n-gen", o.answers, "generated lengths; 0: none (128)");
  app.add_option("--prompt-gen", o.pairs, "-pg: a prompt and then an answer as one test; repeatable")
      ->allow_extra_args(false)->type_name("PP,TG");
  list("-d,--n-depth", o.depths, "tokens in the cache before the test (0)");
  list("-t,--threads", o.threads, "threads (the physical cores this process may use)");
  list("-b,--batch-size", o.batches, "prompt tokens given at once (2048)");
  list("--ubatch-size", o.ubatches, "-ub: prompt tokens computed at once (512)");
  list("--n-parallel", o.parallel, "-npl: sequences that are prefilled and decode together: -p x -n x -npl rows");
  const auto types = [&](const char* name, std::vector<std::string>& target, const char* help) {
    app.add_option(name, target, help)->delimiter(',')->allow_extra_args(false)->type_name("TYPE,...");
  };
  types("--cache-type-k", o.k_types, "-ctk: f32 bf16 f16 int8 fp8_e4m3 fp8_e5m2 int4 (int8)");
  types("--cache-type-v", o.v_types, "-ctv: as --cache-type-k (int8)");
}

void add_reports(CLI::App& app, BenchOptions& o) {
  app.add_option("-o,--output", o.format, "md, csv, json, jsonl or sql (md)")->type_name("FORMAT");
  app.add_option("--output-err", o.format_error, "-oe: the same on standard error, in this format")->type_name("FORMAT");
  app.add_flag("--step-times", o.step_times, "JSON: the time of every decode step");
  app.add_flag("--progress", o.progress, "say on standard error what is measured");
  app.add_flag("--limits", o.limits,
               "measure read bandwidth and peak operations with these threads for 3 s, print and store them");
  app.add_flag("--no-limits", o.no_limits, "do not measure them for half a second before the rows");
  app.add_option("--eval", o.eval, "perplexity of this text beside the speed")->type_name("FILE");
  app.add_option("--eval-tokens", o.eval_tokens, "at most that many tokens of it (4096)")
      ->transform(count_range(2, kMaxTokens))->type_name("N");
}

void add_comparisons(CLI::App& app, BenchOptions& o) {
  app.add_option("--compare", o.compare, "rows of an earlier run (-o json); exit code 1 when this one is slower")
      ->type_name("FILE");
  app.add_option("--against", o.against, "another quern, run alternately with this one; exit code 1 when this one is slower")
      ->type_name("PROGRAM");
  app.add_option("--effect", o.effect_percent, "differences up to that many percent are none (2.5)")
      ->check(finite_range(0, 100))->type_name("PERCENT");
  app.add_option("--budget", o.budget_seconds, "--against: at most about that many seconds a row (60)")
      ->check(finite_range(0.1, 86400))->type_name("SECONDS");
  app.add_flag("--worker", o.worker, "one repetition per line of standard input")->group("");
}

std::vector<std::size_t> numbers(const char* option, const std::vector<std::string>& words, std::size_t low,
                                 std::size_t high, std::vector<std::size_t> usual) {
  return words.empty() ? usual : bench::parse_sweep(option, words, {low, high});
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& o) {
  app.add_option("-m,--model,model", o.models, "model directory (or its model.quern or model.json); repeatable")
      ->allow_extra_args(false)->type_name("PATH");
  add_rows(app, o);
  app.add_option("-r,--repetitions", o.repetitions, "repetitions of each row, interleaved with the other rows (5)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100000}))->type_name("N");
  app.add_flag("--no-warmup", o.no_warmup, "measure the first repetition too");
  app.add_option("--isa", o.isa, "instruction set (default: the best; quern --version lists them)")->type_name("NAME");
  app.add_option("-c,--ctx-size", o.context, "allow rows of that many tokens (default: the model's context)")
      ->transform(count_range(0, kMaxContext))->type_name("N");
  app.add_flag("--deterministic", o.deterministic, "never trade bits for speed: latent attention in one form for any chunk");
  add_reports(app, o);
  add_comparisons(app, o);
  app.footer(kFooter);
}

void check_bench_options(const BenchOptions& o) {
  bench::parse_format("-o", o.format);
  if (!o.format_error.empty()) bench::parse_format("-oe", o.format_error);
  if (o.models.empty() && !o.limits) base::usage_error("quern bench", "--model is required (-m MODEL; --limits needs none)");
  if (o.limits && o.no_limits) base::usage_error("--no-limits", "not with --limits");
  if (o.worker) return;  // its options are those of the whole command
  if (!o.against.empty() && !o.compare.empty()) base::usage_error("--against", "not with --compare");
  if (!o.against.empty() && !o.eval.empty()) base::usage_error("--against", "not with --eval");
  if (!o.against.empty() && o.format != "md" && o.format != "json")
    base::usage_error("--against", base::cat("unknown format of a comparison (got \"", base::printable(o.format, 40),
                                             "\", expected md or json)"));
}

std::vector<std::size_t> thread_counts(const BenchOptions& o) {
  return numbers("-t", o.threads, 1, kMaxThreads, {base::default_thread_count()});
}

bench::Grid grid_of(const BenchOptions& o, const model::Model& model, std::size_t index) {
  const bool generates = model.contract.kind != contract::ModelKind::encoder;
  const bool batched = !o.parallel.empty();
  bench::Grid grid;
  grid.model = index;
  const std::vector<std::size_t> usual_prompt = {batched ? std::size_t{128} : bench::default_prompt(model)};
  const std::vector<std::size_t> usual_answer = {generates ? std::size_t{batched ? 32u : 128u} : std::size_t{0}};
  grid.pairs = bench::parse_pairs("-pg", o.pairs, {0, kMaxTokens});
  const bool only_pairs = !o.pairs.empty();  // llama-bench measures its usual rows too; who asks for pairs wants pairs
  grid.prompts = numbers("-p", o.prompts, 0, kMaxTokens, only_pairs ? std::vector<std::size_t>{} : usual_prompt);
  grid.answers = numbers("-n", o.answers, 0, kMaxTokens, only_pairs ? std::vector<std::size_t>{} : usual_answer);
  grid.depths = numbers("-d", o.depths, 0, kMaxTokens, {0});
  grid.batches = numbers("-b", o.batches, 1, kMaxTokens, {2048});
  grid.ubatches = numbers("-ub", o.ubatches, 1, kMaxUbatch, {512});
  grid.threads = thread_counts(o);
  grid.parallel = numbers("-npl", o.parallel, 1, kMaxParallel, {});
  grid.k_types = o.k_types.empty() ? std::vector<std::string>{"int8"} : o.k_types;
  grid.v_types = o.v_types.empty() ? std::vector<std::string>{"int8"} : o.v_types;
  return grid;
}

}  // namespace quern::tool
