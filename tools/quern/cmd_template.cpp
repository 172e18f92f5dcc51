// quern template: prints what a chat template makes of variables. Needs no weights; with -m it takes the
// model's own template and special tokens.

#include <cstdio>
#include <iostream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat/format.hpp"
#include "command.hpp"
#include "jinja/template.hpp"
#include "model_options.hpp"
#include "text/tokenizer.hpp"
#include "weights/reader.hpp"

namespace quern::tool {

namespace {

struct TemplateOptions {
  std::string model, file, variables, now;
};

// The template and the special tokens of a model, without its weights.
struct ModelTemplate {
  std::string source;
  jinja::Template::Variables special;
};

ModelTemplate read_model(const std::string& path) {
  const model::ModelFiles files = model::open_model_files(path);
  if (files.contract.tokenizer.model == "none") base::reject(path, "the model has no tokenizer");
  const text::Tokenizer tokenizer(files.contract.tokenizer, files.weights.tokenizer_tables(), files.weights.where());
  return {chat::template_source(files.contract), chat::special_tokens(files.contract, tokenizer)};
}

// 2026-01-15T12:00:00, or a space for the T.
std::tm parse_time(const std::string& text) {
  if (text.empty()) return chat::local_time();
  std::tm out{};
  int used = 0;
  const int n = std::sscanf(text.c_str(), "%4d-%2d-%2d%*1[T ]%2d:%2d:%2d%n", &out.tm_year, &out.tm_mon, &out.tm_mday,
                            &out.tm_hour, &out.tm_min, &out.tm_sec, &used);
  const bool good = n == 6 && static_cast<std::size_t>(used) == text.size() && out.tm_mon >= 1 && out.tm_mon <= 12 &&
                    out.tm_mday >= 1 && out.tm_mday <= 31 && out.tm_hour >= 0 && out.tm_hour < 24 && out.tm_min >= 0 &&
                    out.tm_min < 60 && out.tm_sec >= 0 && out.tm_sec < 61;
  if (!good) base::usage_error("--now", base::cat("not a time: \"", base::printable(text, 40), "\", expected 2026-01-15T12:00:00"));
  out.tm_year -= 1900;
  out.tm_mon -= 1;
  out.tm_isdst = -1;
  std::tm checked = out;
  std::mktime(&checked);  // the day of the week and of the year
  return checked;
}

jinja::Template::Variables read_variables(const std::string& path) {
  jinja::Template::Variables out = {{"tools", jinja::Data()}, {"documents", jinja::Data()},
                                    {"add_generation_prompt", jinja::Data::of(false)}};
  const jinja::Data data = jinja::Data::parse(read_input(path), path, jinja::Trust::untrusted);
  if (data.kind != jinja::Data::Kind::object) base::reject(path, "the variables are not a JSON object");
  for (const auto& [name, value] : data.members) out.emplace_back(name.text, value);
  return out;
}

}  // namespace

int cmd_template(const std::vector<std::string>& arguments) {
  CLI::App app("Prints what a chat template makes of variables.", "quern template");
  TemplateOptions options;
  app.add_option("-m,--model", options.model, "a quern model: its template (unless --file) and special tokens");
  app.add_option("--file", options.file, "a file with the template (- for standard input)");
  app.add_option("--vars", options.variables,
                 "a JSON file (- for standard input): messages, tools, add_generation_prompt, bos_token ... any variable")
      ->required();
  app.add_option("--now", options.now, "what strftime_now shows: 2026-01-15T12:00:00 (the clock)");
  app.footer("examples:\n  quern template --file chat_template.jinja --vars vars.json\n"
             "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"add_generation_prompt\": true}' |\n"
             "    quern template -m MODEL --vars -");
  if (parse_arguments(app, arguments)) return 0;
  if (options.model.empty() && options.file.empty())
    base::usage_error("quern template", "give a template with --file, or a model with -m");
  if (options.file == "-" && options.variables == "-")
    base::usage_error("quern template", "--file and --vars cannot both be standard input");
  jinja::RenderOptions render;
  render.now = parse_time(options.now);
  jinja::Template::Variables variables;
  std::string source, name = options.file;
  if (!options.model.empty()) {
    ModelTemplate model = read_model(options.model);
    variables = std::move(model.special);
    source = std::move(model.source);
    name = base::cat(options.model, ": chat template");
    if (options.file.empty() && source.empty()) base::reject(options.model, "the model has no chat template");
  }
  if (!options.file.empty()) {
    name = options.file;
    source = read_input(options.file);
  }
  for (auto& variable : read_variables(options.variables)) variables.push_back(std::move(variable));
  const jinja::Template parsed(source, name);
  std::cout << parsed.render(variables, render).text;
  return 0;
}

}  // namespace quern::tool
