// Time of token masks, of the thread itself: answers of several grammars over a real vocabulary, cold (nothing
// remembered) and warm. grammar_bench TOKENIZER (tokenizer.json, a Hugging Face directory, a GGUF)

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "convert/tokenizer_import.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/json_schema.hpp"
#include "grammar/matcher.hpp"
#include "grammar/random_text.hpp"
#include "grammar/regex.hpp"
#include "text/tokenizer.hpp"
#include "token_texts.hpp"

namespace {

using namespace quern;

double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double micros(double start) {
  return now() - start;
}

struct Case {
  const char* name;
  grammar::Grammar grammar;
};

std::vector<Case> cases() {
  const auto schema = [](const char* text) { return grammar::json_schema_grammar(text, "bench"); };
  std::vector<Case> out;
  out.push_back({"any JSON", schema("{}")});
  out.push_back({"object of strings and numbers", schema(R"({"type":"object","properties":{
    "name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"type":"string"}},
    "address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}}}},
    "required":["name","age","tags","address"]})")});
  out.push_back({"strings of 20 to 300 characters", schema(R"({"type":"array","items":{"type":"string","minLength":20,"maxLength":300},"minItems":3})")});
  out.push_back({"free names of properties", schema(R"({"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"string"}})")});
  out.push_back({"GBNF: arithmetic", grammar::parse_gbnf(
      "root ::= (expr \"=\" ws term \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | num | \"(\" ws expr \")\" ws\n"
      "ident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*\n", "bench")});
  out.push_back({"GBNF: lines of prose", grammar::parse_gbnf("root ::= (\"- \" char+ \"\\n\")+\nchar ::= [^\\n]\n", "bench")});
  out.push_back({"regex: words", grammar::regex_grammar("([A-Z][a-z]+ ){5,60}\\.", "bench")});
  return out;
}

void report(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) { return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))]; };
  double sum = 0;
  for (const double t : times) sum += t;
  std::printf("  %s: %zu tokens, mean %.1f us, p50 %.1f, p95 %.1f, p99 %.1f, max %.1f\n", what, times.size(),
              sum / static_cast<double>(times.size()), at(0.5), at(0.95), at(0.99), times.back());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) base::usage_error("grammar_bench", "TOKENIZER");
    const convert::ImportedTokenizer imported = convert::import_tokenizer_file(argv[1]);
    const text::Tokenizer tokenizer(imported.description, imported.tables, argv[1]);
    double start = now();
    const grammar::Vocabulary vocabulary(tool::token_texts(tokenizer, imported.description, tokenizer.size(),
                                                           {static_cast<std::int32_t>(tokenizer.size() - 1)}));
    std::printf("%zu tokens, vocabulary %.1f ms\n", vocabulary.size(), micros(start) / 1000);
    for (const Case& test : cases()) {
      start = now();
      const grammar::Automaton automaton(test.grammar);
      std::printf("%s: %zu states, compiled in %.1f ms\n", test.name, automaton.n_states(), micros(start) / 1000);
      const grammar::RandomText random(automaton);
      grammar::Matcher matcher(automaton, vocabulary);
      std::vector<double> cold, warm;
      for (std::uint64_t answer = 0; answer < 12; ++answer) {
        const std::vector<std::int32_t> ids =
            tokenizer.encode(random.make(answer, 600), {.add_special = false, .parse_special = false});
        matcher.restart();
        for (const std::int32_t id : ids) {
          start = now();
          const auto words = matcher.allowed();
          const bool allowed = (words[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0;
          matcher.accept(id);
          (answer == 0 ? cold : warm).push_back(micros(start));
          if (!allowed) base::reject(test.name, "a token of a text of the grammar is not allowed");
        }
      }
      report("first answer", cold);
      report("11 answers after it", warm);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "grammar_bench: %s\n", error.what());
    return 3;
  }
  return 0;
}
