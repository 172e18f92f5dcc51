// The forms that answers of a batch are held to. Grammars come again line after line, so their automata are kept, and
// the vocabulary is prepared once for each set of end tokens.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch/request.hpp"
#include "grammar/grammar.hpp"
#include "grammar/matcher.hpp"
#include "model_options.hpp"

namespace quern::tool {

class BatchForms {
 public:
  // `common`: the command's form, for requests without one of their own.
  BatchForms(const LoadedModel& loaded, const std::optional<grammar::Grammar>& common);

  bool has_form(const batch::Request& request) const {
    return common_ != nullptr || request.form != batch::FormKind::none;
  }
  // A constraint of one answer, with all that it stands on. Input errors of the request's grammar.
  std::shared_ptr<grammar::Matcher> matcher(const batch::Request& request, const std::vector<std::int32_t>& ends);

 private:
  using AutomatonPointer = std::shared_ptr<const grammar::Automaton>;
  AutomatonPointer automaton(const batch::Request& request);
  std::shared_ptr<const grammar::Vocabulary> vocabulary(const std::vector<std::int32_t>& ends);

  const LoadedModel& loaded_;
  AutomatonPointer common_;
  std::list<std::pair<std::string, AutomatonPointer>> recent_;  // of requests, the last used first
  std::map<std::vector<std::int32_t>, std::shared_ptr<const grammar::Vocabulary>> vocabularies_;
};

}  // namespace quern::tool
