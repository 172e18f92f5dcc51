// quern eval: perplexity of a text, divergence of other models and cache types from the first in the same pass,
// and multiple choice.

#include <algorithm>
#include <iostream>
#include <memory>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "eval_report.hpp"
#include "signals.hpp"
#include "terminal.hpp"
#include "text_limit.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kDefaultContext = 512;
// Logits of a step are held for every subject: at most so many bytes each.
constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;  // a tokenizer keeps some 16 bytes for each
constexpr std::size_t kMaxLogitBytes = std::size_t{64} << 20;

struct Loaded {
  LoadedModel base;
  std::vector<LoadedModel> others;  // of --against; they run on the first one's threads
};

Loaded load_all(const EvalOptions& options) {
  Loaded loaded{load_model(options.model), {}};
  for (const std::string& path : options.against) {
    ModelOptions other = options.model;
    other.model = path;
    other.threads = 1;
    loaded.others.push_back(load_model(other));
    const auto &a = loaded.base.model->contract, &b = loaded.others.back().model->contract;
    if (a.vocab_size != b.vocab_size)
      base::reject(base::printable(path), "another vocabulary than -m", base::cat(b.vocab_size, " tokens"),
                   base::cat(a.vocab_size));
  }
  return loaded;
}

// Sizes of a window, from -c, --depth and what the model has.
eval::WindowOptions window_options(const Loaded& loaded, const EvalOptions& options) {
  eval::WindowOptions windows;
  std::size_t most = loaded.base.model->contract.max_positions;
  for (const LoadedModel& other : loaded.others) most = std::min(most, other.model->contract.max_positions);
  windows.context = options.model.context;
  if (windows.context == 0) windows.context = std::min(kDefaultContext + options.depth.value_or(0), most);
  windows.stride = options.stride;
  windows.depth = options.depth;
  windows.most = options.chunks;
  if (windows.context < 4) base::usage_error("-c", "a window needs 4 tokens at least");
  if (options.depth && *options.depth >= windows.context)
    base::usage_error("--depth", base::cat("must be below the window (got ", *options.depth, ", window ", windows.context, ")"));
  if (options.stride >= windows.context)
    base::usage_error("--ppl-stride", base::cat("must be below the window (got ", options.stride, ", window ", windows.context, ")"));
  return windows;
}

std::vector<std::int32_t> text_ids(const LoadedModel& loaded, const EvalOptions& options, const eval::WindowOptions& windows) {
  if (!options.ids_file.empty()) return read_ids_file(options.ids_file, loaded.model->contract.vocab_size);
  const std::string text = read_input(options.file);
  if (text.empty()) base::reject(base::printable(options.file), "is empty");
  std::string_view read = text;
  if (windows.most != 0) {
    const std::size_t step = windows.stride == 0 ? windows.context : windows.stride;
    if (windows.most < (std::size_t{1} << 24)) read = cut_text(text, windows.context + windows.most * step);
  }
  if (read.size() > kMaxTextBytes)
    base::reject(base::printable(options.file), "text is too long", base::human_bytes(read.size()),
                 base::cat("at most ", base::human_bytes(kMaxTextBytes), "; --chunks N reads its beginning"));
  return need_tokenizer(loaded).encode(read);
}

// A subject of `model` that runs on the base model's threads.
std::unique_ptr<eval::Subject> make_subject(const LoadedModel& model, const Loaded& loaded, const EvalOptions& options,
                                            const std::string& name, const model::CacheOptions& cache) {
  eval::SubjectOptions subject;
  subject.name = name;
  subject.cache = cache;
  const std::size_t row_bytes = std::max<std::size_t>(1, model.model->contract.vocab_size) * sizeof(float);
  subject.chunk = std::min(options.model.prefill_chunk, std::max<std::size_t>(16, kMaxLogitBytes / row_bytes));
  subject.deterministic = options.model.deterministic;
  return std::make_unique<eval::Subject>(*model.model, *loaded.base.pool, subject);
}

std::string model_name(const LoadedModel& loaded, const std::string& path) {
  const std::string& name = loaded.model->contract.name;
  return name.empty() ? base::printable(path) : base::printable(name, 60);
}

model::CacheOptions cache_of(const std::string& types, std::size_t max_tokens) {
  const std::size_t slash = types.find('/');
  model::CacheOptions cache;
  cache.k_type = parse_cache_type(types.substr(0, slash), "--kv");
  cache.v_type = slash == std::string::npos ? cache.k_type : parse_cache_type(types.substr(slash + 1), "--kv");
  cache.max_tokens = max_tokens;
  return cache;
}

std::vector<std::unique_ptr<eval::Subject>> make_subjects(const Loaded& loaded, const EvalOptions& options, std::size_t window) {
  const std::string name = model_name(loaded.base, options.model.model);
  std::vector<std::unique_ptr<eval::Subject>> subjects;
  model::CacheOptions own = session_options(loaded.base, options.model, window).cache;
  own.max_tokens = window;
  if (!options.kv.empty()) own = cache_of("f32", window);
  const std::string cache_name = options.kv.empty() ? "" : ", f32 cache";
  subjects.push_back(make_subject(loaded.base, loaded, options, name + cache_name, own));
  for (const std::string& types : options.kv)
    subjects.push_back(make_subject(loaded.base, loaded, options, base::cat(name, ", ", types, " cache"), cache_of(types, window)));
  for (std::size_t i = 0; i < loaded.others.size(); ++i) {
    const std::string& path = options.against[i];
    subjects.push_back(make_subject(loaded.others[i], loaded, options,
                                    base::cat(model_name(loaded.others[i], path), " (", base::printable(path, 60), ")"), own));
  }
  return subjects;
}

void show_progress(const eval::TextReport& report, std::size_t n_windows) {
  if (!stderr_is_terminal()) return;
  std::cerr << "\rwindow " << report.windows << " of " << n_windows << ", perplexity "
            << report.scores.front().perplexity() << "   " << (report.windows == n_windows ? "\n" : "") << std::flush;
}

int evaluate_text(const EvalOptions& options) {
  const Loaded loaded = load_all(options);
  const eval::WindowOptions windows = window_options(loaded, options);
  const std::string source = options.ids_file.empty() ? options.file : options.ids_file;
  const std::vector<std::int32_t> ids = text_ids(loaded.base, options, windows);
  const std::vector<eval::Window> parts = eval::make_windows(ids.size(), windows, base::printable(source));
  const auto owned = make_subjects(loaded, options, windows.context);
  std::vector<eval::Subject*> subjects;
  for (const auto& subject : owned) subjects.push_back(subject.get());
  eval::TextOptions run;
  const std::vector<std::int32_t>& prefix = loaded.base.model->contract.tokenizer.prefix_ids;
  if (options.ids_file.empty() && !prefix.empty()) run.first_id = prefix.front();
  run.stop_requested = interrupted;
  run.on_window = show_progress;
  catch_signals();
  EvaluatedText result{source, options.model.model, windows.context, parts.front().scored, parts.size(),
                       eval::evaluate_text(subjects, ids, parts, run)};
  std::cout << (options.output == "json" ? text_json(result) : text_table(result));
  return 0;
}

std::string question_text(const EvalOptions& options, const std::string& query) {
  if (options.prompt_format.empty()) return query;
  std::string text = options.prompt_format;
  return text.replace(text.find("{}"), 2, query);
}

// Characters, not bytes.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

eval::ChoiceIds choice_ids(const LoadedModel& loaded, const EvalOptions& options, const eval::ChoiceQuestion& question) {
  const text::Tokenizer& tokenizer = need_tokenizer(loaded);
  const std::vector<std::int32_t>& prefix = loaded.model->contract.tokenizer.prefix_ids;
  const auto encode = [&](const std::string& text) {
    std::vector<std::int32_t> ids = tokenizer.encode(text, {.add_special = false});
    ids.insert(ids.begin(), prefix.begin(), prefix.end());
    return ids;
  };
  const std::string text = question_text(options, question.query);
  const std::vector<std::int32_t> alone = encode(text);
  if (alone.empty()) base::reject(question.where, "the text has no tokens");
  std::vector<std::vector<std::int32_t>> wholes;
  std::vector<std::size_t> lengths;
  for (const std::string& choice : question.choices) {
    const bool joined = choice[0] == ' ' || (!text.empty() && (text.back() == ' ' || text.back() == '\n'));
    wholes.push_back(encode(base::cat(text, joined ? "" : " ", choice)));
    lengths.push_back(length_of(choice));
    if (wholes.back().size() < 2) base::reject(question.where, "a choice has no tokens of its own");
  }
  eval::ChoiceIds item = eval::split_choices(wholes, alone.size());
  item.lengths = std::move(lengths);
  item.right = question.right;
  item.where = question.where;
  return item;
}

int evaluate_choices(const EvalOptions& options) {
  std::vector<eval::ChoiceQuestion> questions =
      eval::parse_questions(read_input(options.choices_file), base::printable(options.choices_file));
  if (options.tasks != 0 && questions.size() > options.tasks) questions.resize(options.tasks);
  const Loaded loaded = load_all(options);
  const std::size_t context = context_length(loaded.base, options.model);
  std::vector<eval::ChoiceIds> items;
  std::size_t longest = 1, most = 1;
  for (const eval::ChoiceQuestion& question : questions) {
    items.push_back(choice_ids(loaded.base, options, question));
    for (const auto& ids : items.back().continuations) {
      const std::size_t n = items.back().prefix.size() + ids.size();
      if (n > context)
        base::reject(question.where, base::cat("question has ", n, " tokens, context is ", context));
      longest = std::max(longest, n);
    }
    most = std::max(most, items.back().continuations.size());
  }
  model::CacheOptions cache = session_options(loaded.base, options.model, longest).cache;
  cache.max_tokens = longest;
  cache.n_sequences = most;
  const auto subject = make_subject(loaded.base, loaded, options, model_name(loaded.base, options.model.model), cache);
  EvaluatedChoices result{options.choices_file, subject->name(), items.size(), {}};
  catch_signals();
  subject->set_stop(interrupted);
  std::vector<double> scores;
  for (const eval::ChoiceIds& item : items) {
    result.report.interrupted = interrupted() || !eval::score_choices(*subject, item, scores);
    if (result.report.interrupted) break;
    eval::add_choice(result.report, item, scores);
  }
  std::cout << (options.output == "json" ? choice_json(result) : choice_table(result));
  return 0;
}

}  // namespace

int cmd_eval(const std::vector<std::string>& arguments) {
  CLI::App app("How good a model is: perplexity of a text, KL divergence of other models (--against) or cache types (--kv)\n"
               "from it in the same pass, and multiple choice (--choices).",
               "quern eval");
  EvalOptions options;
  add_eval_options(app, options);
  if (parse_arguments(app, arguments)) return 0;
  settle_eval_options(options);
  for (const std::string& types : options.kv) cache_of(types, 1);
  return options.choices_file.empty() ? evaluate_text(options) : evaluate_choices(options);
}

}  // namespace quern::tool
