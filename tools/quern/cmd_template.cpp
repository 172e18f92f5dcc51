// quern template: prints what a chat template makes of variables. Needs no weights; with -m it takes the
// model's own template and special tokens.

#include <cstdio>
#include <iostream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "chat/format.hpp"
#include "command.hpp"
#include "convert/tokenizer_import.hpp"
#include "jinja/template.hpp"
#include "model_options.hpp"
#include "text/tokenizer.hpp"
#include "weights/reader.hpp"

namespace quern::tool {

namespace {

struct TemplateOptions {
  std::string model, tokenizer, file, variables, now;
  bool ids = false;
};

// The tokenizer of -m or --tokenizer with whatever owns its tables, and the template beside it.
struct Source {
  contract::Contract contract{};
  std::vector<std::byte> tables;
  std::unique_ptr<weights::WeightFile> weights;
  std::unique_ptr<text::Tokenizer> tokenizer;  // null without either option
  std::string where;
};

Source read_source(const TemplateOptions& options) {
  Source out;
  out.where = options.model.empty() ? options.tokenizer : options.model;
  if (out.where.empty()) return out;
  base::Bytes tables;
  if (options.model.empty()) {
    convert::ImportedTokenizer imported = convert::import_tokenizer_file(options.tokenizer);
    out.contract.tokenizer = std::move(imported.description);
    out.contract.tokens = std::move(imported.tokens);
    out.contract.chat = std::move(imported.chat);
    out.tables = std::move(imported.tables);
    tables = out.tables;
  } else {
    model::ModelFiles files = model::open_model_files(options.model);
    out.contract = std::move(files.contract);
    out.weights = std::make_unique<weights::WeightFile>(std::move(files.weights));
    tables = out.weights->tokenizer_tables();
  }
  if (out.contract.tokenizer.model == "none") base::reject(out.where, "the model has no tokenizer");
  out.tokenizer = std::make_unique<text::Tokenizer>(out.contract.tokenizer, tables, out.where);
  return out;
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
  if (!good)
    base::usage_error("--now",
                      base::cat("not a time: \"", base::printable(text, 40), "\", expected 2026-01-15T12:00:00"));
  out.tm_year -= 1900;
  out.tm_mon -= 1;
  out.tm_isdst = -1;
  std::tm checked = out;
  std::mktime(&checked);  // the day of the week and of the year
  return checked;
}

jinja::Template::Variables read_variables(const std::string& path) {
  jinja::Template::Variables out = {
      {"tools", jinja::Data()}, {"documents", jinja::Data()}, {"add_generation_prompt", jinja::Data::of(false)}};
  const jinja::Data data = jinja::Data::parse(read_input(path), path, jinja::Trust::untrusted);
  if (data.kind != jinja::Data::Kind::object) base::reject(path, "the variables are not a JSON object");
  for (const auto& [name, value] : data.members) {
    out.emplace_back(name.text, value);
    if (name.text == "messages") chat::trust_roles(out.back().second);
    if (name.text.ends_with("_token")) out.back().second.text.untrusted.clear();
  }
  return out;
}

}  // namespace

int cmd_template(const std::vector<std::string>& arguments) {
  CLI::App app("Prints what a chat template makes of variables.", "quern template");
  TemplateOptions options;
  CLI::Option* model =
      app.add_option("-m,--model,model", options.model, "a quern model: its template (unless --file) and special tokens");
  app.add_option("--tokenizer", options.tokenizer, "the same of a Hugging Face directory, tokenizer.json or GGUF")
      ->excludes(model);
  app.add_option("--file", options.file, "a file with the template (- for standard input)");
  app.add_option(
         "--vars", options.variables,
         "a JSON file (- for standard input): messages, tools, add_generation_prompt, bos_token ... any variable")
      ->required();
  app.add_option("--now", options.now, "what strftime_now shows: 2026-01-15T12:00:00 (the clock)");
  app.add_flag("--ids", options.ids, "token ids instead of text; control tokens only where the template wrote them");
  app.footer(
      "examples:\n  quern template --file chat_template.jinja --vars vars.json\n"
      "  echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"add_generation_prompt\": true}' |\n"
      "    quern template -m MODEL --vars -");
  if (parse_arguments(app, arguments)) return 0;
  if (options.model.empty() && options.tokenizer.empty() && (options.file.empty() || options.ids))
    base::usage_error("quern template", options.ids ? "--ids needs -m or --tokenizer"
                                                    : "give a template with --file, or a model with -m");
  if (options.file == "-" && options.variables == "-")
    base::usage_error("quern template", "--file and --vars cannot both be standard input");
  jinja::RenderOptions render;
  render.now = parse_time(options.now);
  const Source source = read_source(options);
  jinja::Template::Variables variables;
  if (source.tokenizer) variables = chat::special_tokens(source.contract, *source.tokenizer);
  for (auto& variable : read_variables(options.variables)) variables.push_back(std::move(variable));
  const std::string text = !options.file.empty() ? read_input(options.file) : chat::template_source(source.contract);
  if (options.file.empty() && text.empty()) base::reject(source.where, "the model has no chat template");
  const jinja::Template parsed(text, !options.file.empty() ? options.file : base::cat(source.where, ": chat template"));
  const base::MarkedText rendered = parsed.render(variables, render);
  if (!options.ids) {
    std::cout << rendered.text;
    return 0;
  }
  const std::vector<std::int32_t> ids = source.tokenizer->encode(rendered);
  for (std::size_t i = 0; i < ids.size(); ++i) std::cout << (i == 0 ? "" : " ") << ids[i];
  std::cout << "\n";
  return 0;
}

}  // namespace quern::tool
