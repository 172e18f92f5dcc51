#include "grammar_options.hpp"

#include "base/error.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/json_schema.hpp"
#include "grammar/regex.hpp"
#include "token_texts.hpp"

namespace quern::tool {

void add_grammar_options(CLI::App& app, GrammarOptions& options) {
  const auto text = [&](const char* names, std::optional<std::string>& target, const char* help) {
    return app.add_option_function<std::string>(names, [&target](const std::string& value) { target = value; }, help);
  };
  CLI::Option* all[] = {
      text("--grammar", options.grammar, "the answer follows this grammar (GBNF; docs/STRUCTURED_OUTPUT.md)"),
      app.add_option("--grammar-file", options.grammar_file, "the same, from a file"),
      text("-j,--json-schema", options.schema, "the answer is JSON that is valid for this schema ({} for any JSON)"),
      app.add_option("--json-schema-file", options.schema_file, "-jf: the same, from a file"),
      text("--regex", options.regex, "all of the answer matches this regular expression"),
  };
  for (CLI::Option* one : all)
    for (CLI::Option* other : all)
      if (one != other) one->excludes(other);
}

std::optional<grammar::Grammar> read_grammar(const GrammarOptions& options) {
  if (options.grammar) return grammar::parse_gbnf(*options.grammar, "--grammar");
  if (!options.grammar_file.empty())
    return grammar::parse_gbnf(read_input(options.grammar_file), options.grammar_file);
  if (options.schema) return grammar::json_schema_grammar(*options.schema, "--json-schema");
  if (!options.schema_file.empty())
    return grammar::json_schema_grammar(read_input(options.schema_file), options.schema_file);
  if (options.regex) return grammar::regex_grammar(*options.regex, "--regex");
  return std::nullopt;
}

AnswerForm::AnswerForm(const grammar::Grammar& grammar, const LoadedModel& loaded, std::vector<std::int32_t> ends)
    : automaton_(grammar),
      vocabulary_(token_texts(need_tokenizer(loaded), loaded.model->contract.tokenizer,
                              loaded.model->contract.vocab_size, std::move(ends))) {}

std::unique_ptr<grammar::Matcher> AnswerForm::matcher() const {
  return std::make_unique<grammar::Matcher>(automaton_, vocabulary_);
}

}  // namespace quern::tool
