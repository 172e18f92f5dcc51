// The options that say what form an answer has: --grammar, --json-schema, --regex and their files;
// and the constraint that they make of a model's vocabulary.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "grammar/grammar.hpp"
#include "grammar/matcher.hpp"
#include "model_options.hpp"

namespace quern::tool {

struct GrammarOptions {
  std::optional<std::string> grammar, schema, regex;
  std::string grammar_file, schema_file;
};
void add_grammar_options(CLI::App& app, GrammarOptions& options);

// None without one of the options. Needs no model, so that a mistake costs no time.
std::optional<grammar::Grammar> read_grammar(const GrammarOptions& options);

// What an answer may be, over one model's vocabulary. Matchers are made of it, one per answer.
class AnswerForm {
 public:
  // `ends` are the ids that end an answer.
  AnswerForm(const grammar::Grammar& grammar, const LoadedModel& loaded, std::vector<std::int32_t> ends);
  std::unique_ptr<grammar::Matcher> matcher() const;

 private:
  grammar::Automaton automaton_;
  grammar::Vocabulary vocabulary_;
};

}  // namespace quern::tool
