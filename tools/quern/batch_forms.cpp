#include "batch_forms.hpp"

#include <algorithm>

#include "grammar/gbnf.hpp"
#include "grammar/json_schema.hpp"
#include "grammar/regex.hpp"
#include "token_texts.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMostAutomata = 32, kMostVocabularies = 8;

grammar::Grammar grammar_of(const batch::Request& request) {
  switch (request.form) {
    case batch::FormKind::json_schema: return grammar::json_schema_grammar(request.form_text, "json schema");
    case batch::FormKind::regex: return grammar::regex_grammar(request.form_text, "regex");
    default: return grammar::parse_gbnf(request.form_text, "grammar");
  }
}

// A matcher and what it refers to.
struct Held {
  Held(std::shared_ptr<const grammar::Automaton> a, std::shared_ptr<const grammar::Vocabulary> v)
      : automaton(std::move(a)), vocabulary(std::move(v)), matcher(*automaton, *vocabulary) {}
  std::shared_ptr<const grammar::Automaton> automaton;
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  grammar::Matcher matcher;
};

}  // namespace

BatchForms::BatchForms(const LoadedModel& loaded, const std::optional<grammar::Grammar>& common) : loaded_(loaded) {
  if (common) common_ = std::make_shared<const grammar::Automaton>(*common);
}

BatchForms::AutomatonPointer BatchForms::automaton(const batch::Request& request) {
  if (request.form == batch::FormKind::none) return common_;
  const std::string name = std::to_string(static_cast<int>(request.form)) + request.form_text;
  const auto found = std::find_if(recent_.begin(), recent_.end(), [&](const auto& one) { return one.first == name; });
  if (found != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, found);
  } else {
    recent_.emplace_front(name, std::make_shared<const grammar::Automaton>(grammar_of(request)));
    if (recent_.size() > kMostAutomata) recent_.pop_back();
  }
  return recent_.front().second;
}

std::shared_ptr<const grammar::Vocabulary> BatchForms::vocabulary(const std::vector<std::int32_t>& ends) {
  auto& known = vocabularies_[ends];
  if (known) return known;
  auto made = std::make_shared<const grammar::Vocabulary>(
      token_texts(need_tokenizer(loaded_), loaded_.model->contract.tokenizer, loaded_.model->contract.vocab_size, ends));
  if (vocabularies_.size() > kMostVocabularies) vocabularies_.clear();
  return vocabularies_[ends] = made;
}

std::shared_ptr<grammar::Matcher> BatchForms::matcher(const batch::Request& request,
                                                      const std::vector<std::int32_t>& ends) {
  auto held = std::make_shared<Held>(automaton(request), vocabulary(ends));
  return {held, &held->matcher};
}

}  // namespace quern::tool
