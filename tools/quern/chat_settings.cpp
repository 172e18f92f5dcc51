#include "chat_settings.hpp"

#include <algorithm>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "quantity.hpp"

namespace quern::tool {

namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 26;
constexpr std::size_t kMaxSavedOptions = 200;

constexpr base::EnumName<Thinking> kThinking[] = {
    {"auto", Thinking::automatic}, {"on", Thinking::on}, {"off", Thinking::off}};

// The options that /set takes too.
void add_settings(CLI::App& app, ChatSettings& s) {
  app.add_option("-n,--predict,--n-predict", s.n_predict, "most new tokens of an answer (-1: until it ends)")
      ->transform(count_range(-1, kMostTokens))
      ->type_name("N")
      ->group("Answers");
  app.add_option_function<std::string>(
         "--reasoning",
         [&s](const std::string& word) {
           for (const auto& [name, value] : kThinking)
             if (name == word) s.thinking = value;
         },
         "-rea: thoughts on, off or auto: as the template does by itself (auto)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->type_name("WORD")
      ->group("Answers");
  app.add_option("--reasoning-budget", s.reasoning_budget,
                 "most tokens of thoughts; then their end is put in (-1: no limit, 0: none)")
      ->transform(count_range(-1, kMostTokens))
      ->type_name("N")
      ->group("Answers");
  app.add_flag("--hide-thinking,--hidethinking", s.hide_thinking, "do not show thoughts")->group("Answers");
  app.add_flag("--show-timings,--verbose,-v", s.show_timings, "a line of counts and speeds after each answer")
      ->group("Answers");
  app.add_option("--stop,-r,--reverse-prompt", s.stops, "a text that ends an answer and is no part of it; repeatable")
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->group("Answers");
  add_sampling_options(app, s.sampling);
}

std::string bare_name(const CLI::Option& option) {
  const std::string name = option.get_name(false, false);
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

// By a long name or a short one, without dashes; nullptr for no such option.
const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw("--" + name);
  return option != nullptr || name.size() != 1 ? option : app.get_option_no_throw("-" + name);
}

// Every option of add_settings that was given.
std::vector<GivenOption> given_in(const CLI::App& app) {
  ChatSettings unused;
  CLI::App settings;
  add_settings(settings, unused);
  std::vector<GivenOption> given;
  for (const CLI::Option* known : settings.get_options()) {
    const std::string name = bare_name(*known);
    if (name == "help") continue;
    const CLI::Option* option = app.get_option_no_throw("--" + name);
    if (option != nullptr && option->count() > 0) given.emplace_back(name, option->results());
  }
  return given;
}

// One option through the parser of the command line, so that names, ranges and messages are the same.
// Returns the option's usual name.
std::string parse_one(ChatSettings& settings, const std::string& name, const std::vector<std::string>& values) {
  CLI::App app("", "/set");
  app.set_help_flag();
  add_settings(app, settings);
  const CLI::Option* option = find_option(app, name);
  if (option == nullptr) {
    const std::vector<std::string> known = SettingsBook::names();
    const std::string near = base::nearest(name, {known.begin(), known.end()});
    base::usage_error("/set", base::cat("unknown option \"", base::printable(name, 40), "\"",
                                        near.empty() ? std::string("; /set lists them")
                                                     : base::cat(", did you mean \"", near, "\"?")));
  }
  const std::string usual = bare_name(*option);
  std::vector<std::string> arguments;
  const bool flag = option->get_items_expected_max() == 0;
  if (flag && values.empty()) arguments.push_back(base::cat("--", usual, "=true"));
  for (const std::string& value : values) {
    const bool off = value == "off", on = value == "on";
    arguments.push_back(base::cat("--", usual, "=", flag && (on || off) ? (on ? "true" : "false") : value));
  }
  if (arguments.empty()) base::usage_error("/set", base::cat("\"", name, "\" needs a value"));
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    base::usage_error("/set", text);
  }
  return usual;
}

}  // namespace

void add_chat_command_options(CLI::App& app, ChatCommandOptions& o) {
  add_model_options(app, o.model);
  add_cache_options(app, o.model);
  CLI::Option* system = app.add_option_function<std::string>(
      "--system,--system-prompt", [&o](const std::string& text) { o.system = text; }, "-sys: the system message");
  app.add_option("--system-file,--system-prompt-file", o.system_file, "-sysf: a file with it")
      ->type_name("FILE")
      ->excludes(system);
  CLI::Option* prompt = app.add_option_function<std::string>(
      "-p,--prompt", [&o](const std::string& text) { o.prompt = text; }, "the first message");
  app.add_option("-f,--file", o.prompt_file, "a file with it (- for standard input)")
      ->type_name("FILE")
      ->excludes(prompt);
  app.add_flag("--single-turn", o.single_turn, "-st: leave after the first answer");
  app.add_option("--session", o.session, "go on with the chat in FILE if it exists; saved there after every answer")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--on-overflow",
         [&o](const std::string& word) { o.overflow.policy = engine::overflow_policy_of(word).value(); },
         "when the context is full: error, truncate (drop the oldest turns), shift (drop the older half) or "
         "sinks (keep the first tokens and the last) (error)")
      ->check(CLI::IsMember({"error", "truncate", "shift", "sinks"}))
      ->type_name("POLICY");
  app.add_option("--keep", o.overflow.keep, "shift: first tokens that are never dropped (the system message's)")
      ->transform(count_range(0, kMostTokens))
      ->type_name("N");
  app.add_flag("--multiline-input", o.multiline, "-mli: a line end goes on, a \\ before it sends");
  app.add_flag("--simple-io", o.simple_io, "no line editing, no cursor codes");
  app.add_option("--color", o.color, "-co: on, off or auto (auto: on a terminal, unless NO_COLOR is set)")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->type_name("WHEN");
  app.add_flag("--no-history", o.no_history, "keep no history of what is typed (so does QUERN_NOHISTORY=1)");
  add_chat_options(app, o.chat_format);
  add_speculation_options(app, o.speculation);
  add_settings(app, o.settings);
}

SettingsBook::SettingsBook(ChatSettings settings, const CLI::App& app)
    : settings_(std::move(settings)), given_(given_in(app)) {
  for (const GivenOption& option : given_) by_command_line_.push_back(option.first);
}

void SettingsBook::set(const std::string& name, const std::vector<std::string>& values) {
  ChatSettings changed = settings_;
  // A list is replaced, not added to.
  if (name == "logit-bias") changed.sampling.logit_bias.clear();
  const std::string usual = parse_one(changed, name, values);
  settings_ = std::move(changed);
  note(usual, values);
}

void SettingsBook::set_thinking(Thinking thinking) {
  set("reasoning", {std::string(base::enum_name(thinking, kThinking))});
}
void SettingsBook::set_hidden(bool hidden) {
  set("hide-thinking", {hidden ? "true" : "false"});
}

void SettingsBook::note(const std::string& name, std::vector<std::string> values) {
  for (GivenOption& option : given_)
    if (option.first == name) {
      option.second = std::move(values);
      return;
    }
  given_.emplace_back(name, std::move(values));
}

std::vector<std::string> SettingsBook::names() {
  ChatSettings unused;
  CLI::App app;
  app.set_help_flag();
  add_settings(app, unused);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(bare_name(*option));
  return names;
}

std::string SettingsBook::described(const std::string& name) const {
  ChatSettings unused;
  CLI::App app;
  app.set_help_flag();
  add_settings(app, unused);
  const CLI::Option* option = find_option(app, name);
  if (option == nullptr) return {};
  const std::string usual = bare_name(*option);
  std::string value;
  for (const auto& [known, words] : given_)
    if (known == usual)
      for (const std::string& word : words) value += (value.empty() ? " = " : " ") + base::printable(word, 100);
  return base::cat(usual, value, ": ", option->get_description());
}

std::string SettingsBook::json() const {
  base::Json options = base::Json::object();
  for (const auto& [name, values] : given_) options[name] = values;
  return base::Json({{"options", options}}).dump(-1, ' ', false, base::Json::error_handler_t::replace);
}

std::vector<std::string> SettingsBook::take(const std::string& json, const std::string& where) {
  base::Json document = base::parse_json(json, where);
  std::vector<std::string> refused;
  if (!document.is_object() || !document.contains("options")) return refused;
  const base::Json& options = document["options"];
  if (!options.is_object() || options.size() > kMaxSavedOptions)
    base::reject(where, "settings: \"options\" is no object of options");
  for (const auto& [name, values] : options.items()) {
    if (std::find(by_command_line_.begin(), by_command_line_.end(), name) != by_command_line_.end()) continue;
    std::vector<std::string> words;
    for (const base::Json& value : values) words.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    try {
      set(name, words);
    } catch (const base::Error&) {
      refused.push_back(name);
    }
  }
  return refused;
}

}  // namespace quern::tool
