#include "prompts.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "escapes.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMostPrompts = 1000000;

Prompt prompt_of_json(std::string_view line, const std::string& where) {
  const base::Json json = base::parse_json(line, where);
  if (json.is_string()) return {where, json.get<std::string>(), std::nullopt};
  if (!json.is_object()) base::reject(where, "not a string or an object", json.type_name());
  base::JsonObject object(json, where);
  Prompt prompt{where, object.get_string(object.has("text") ? "text" : "prompt"), std::nullopt};
  if (object.has("system")) prompt.system = object.get_string("system");
  object.finish();
  return prompt;
}

std::vector<Prompt> prompts_of_file(const std::string& path) {
  const std::string text = read_input(path);
  const std::string file = input_name(path);
  const bool json = path.ends_with(".jsonl");
  std::vector<Prompt> prompts;
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string where = base::cat(file, ":", number);
    if (prompts.size() == kMostPrompts) base::reject(where, base::cat("more than ", kMostPrompts, " prompts"));
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      if (json) continue;
      base::reject(where, "an empty line", {}, "one prompt a line; a file named *.jsonl may hold any text");
    }
    prompts.push_back(json ? prompt_of_json(line, where) : Prompt{where, std::string(line), std::nullopt});
  }
  if (prompts.empty()) base::reject(file, "no prompts");
  return prompts;
}

}  // namespace

void add_prompt_options(CLI::App& app, PromptOptions& o) {
  CLI::Option* prompt = app.add_option("-p,--prompt", o.texts,
                                       "the prompt, or an encoder-decoder's source (default: standard input); "
                                       "given again: another prompt");
  CLI::Option* file = app.add_option("-f,--file", o.files, "a file with the prompt (- for standard input); repeatable");
  CLI::Option* list = app.add_option("--prompts-file", o.prompts_file,
                                     "prompts, one a line; *.jsonl: JSON strings, or objects with \"prompt\" and "
                                     "perhaps \"system\"");
  CLI::Option* ids = app.add_option("--ids-file", o.ids_file, "token ids instead of text");
  prompt->allow_extra_args(false)->type_name("TEXT");
  file->allow_extra_args(false)->type_name("FILE");
  list->type_name("FILE");
  ids->type_name("FILE");
  prompt->excludes(file)->excludes(list)->excludes(ids);
  file->excludes(list)->excludes(ids);
  list->excludes(ids);
  app.add_flag("-e,--escape", o.escapes, "backslash escapes in -p: \\n, \\t, \\\"");
}

std::vector<Prompt> read_prompts(const PromptOptions& o) {
  if (!o.ids_file.empty()) return {{o.ids_file, "", std::nullopt}};
  if (!o.prompts_file.empty()) return prompts_of_file(o.prompts_file);
  std::vector<Prompt> prompts;
  for (const std::string& text : o.texts)
    prompts.push_back({base::cat("prompt ", prompts.size() + 1), o.escapes ? unescaped(text) : text, std::nullopt});
  for (const std::string& path : o.files) prompts.push_back({base::printable(path), read_input(path), std::nullopt});
  if (prompts.empty()) prompts.push_back({input_name("-"), read_input("-"), std::nullopt});
  return prompts;
}

bool is_list(const PromptOptions& o) {
  return !o.prompts_file.empty() || o.texts.size() + o.files.size() > 1;
}

}  // namespace quern::tool
