// quern grammar: what a grammar, a JSON schema or a regular expression allows, without a model: as
// GBNF, as random texts, or as an answer about given texts.

#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "grammar/matcher.hpp"
#include "grammar/print.hpp"
#include "grammar/random_text.hpp"
#include "grammar_options.hpp"

namespace quern::tool {

namespace {

struct CheckOptions {
  std::string check, check_lines;
  std::size_t samples = 0, length = 60;
  std::uint64_t seed = 0;
};

// Where a text stops following the grammar; "" when all of it does.
std::string fault(const grammar::Automaton& automaton, std::string_view text) {
  const grammar::TextMatch match = grammar::match_text(automaton, text);
  if (match.complete) return {};
  if (match.bytes == text.size()) return base::cat("ends too soon, after ", match.bytes, " bytes");
  return base::cat("does not fit from byte ", match.bytes, " on: ...",
                   base::printable(text.substr(match.bytes > 20 ? match.bytes - 20 : 0, match.bytes > 20 ? 20 : match.bytes)),
                   " >> ", base::printable(text.substr(match.bytes, 20)));
}

bool check_text(const grammar::Automaton& automaton, std::string_view text, const std::string& where) {
  const std::string wrong = fault(automaton, text);
  std::cout << (where.empty() ? "" : where + ": ") << (wrong.empty() ? "fits" : wrong) << "\n";
  return wrong.empty();
}

bool check_lines(const grammar::Automaton& automaton, const std::string& path) {
  std::istringstream lines(read_input(path));
  bool all = true;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const base::Json json = base::parse_json(line, base::cat(path, ":", ++number));
    if (!json.is_string()) base::reject(base::cat(path, ":", number), "not a JSON string");
    all = check_text(automaton, json.get_ref<const std::string&>(), base::cat("line ", number)) && all;
  }
  return all;
}

void print_samples(const grammar::Automaton& automaton, const CheckOptions& options) {
  const grammar::RandomText random(automaton);
  for (std::size_t i = 0; i < options.samples; ++i) {
    const std::string text = random.make(options.seed + i, options.length);
    std::cout << nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
}

}  // namespace

int cmd_grammar(const std::vector<std::string>& arguments) {
  CLI::App app("What a grammar, a JSON schema or a regular expression allows. Needs no model.", "quern grammar");
  GrammarOptions options;
  CheckOptions checks;
  add_grammar_options(app, options);
  app.add_option("--check", checks.check, "does the text of this file fit? (- for standard input); exit code 1 if not");
  app.add_option("--check-lines", checks.check_lines, "the same for texts as JSON strings, one a line");
  app.add_option("--sample", checks.samples, "print so many random texts, as JSON strings, one a line")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1'000'000}));
  app.add_option("--sample-length", checks.length, "bytes after which a random text comes to its end (60)")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1'000'000}));
  app.add_option("-s,--seed", checks.seed, "seed of the random texts (0)");
  app.footer("examples:\n  quern grammar --json-schema-file person.json            as GBNF\n"
             "  quern grammar --json-schema-file person.json --sample 5  five texts that fit\n"
             "  quern grammar --regex '\\d{4}-\\d\\d' --check date.txt");
  if (parse_arguments(app, arguments)) return 0;
  const std::optional<grammar::Grammar> grammar = read_grammar(options);
  if (!grammar)
    base::usage_error("quern grammar", "give one of --grammar, --grammar-file, --json-schema, --json-schema-file and --regex");
  const grammar::Automaton automaton(*grammar);
  bool fits = true;
  if (!checks.check.empty()) fits = check_text(automaton, read_input(checks.check), "");
  if (!checks.check_lines.empty()) fits = check_lines(automaton, checks.check_lines) && fits;
  if (checks.samples != 0) print_samples(automaton, checks);
  if (checks.check.empty() && checks.check_lines.empty() && checks.samples == 0) {
    std::cout << grammar::print_gbnf(*grammar);
    std::cerr << "quern: " << automaton.n_rules() << " rules and " << automaton.n_states() << " states when compiled\n";
  }
  return static_cast<int>(fits ? base::ExitCode::ok : base::ExitCode::items_failed);
}

}  // namespace quern::tool
