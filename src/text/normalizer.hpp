// Normalizers, by the steps of the contract's tokenizer section (docs/CONTRACT.md lists them). Not
// here: what the steps do to characters (text/char_steps.hpp, text/normal_forms.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/charsmap.hpp"

namespace quern::text {

class Normalizer {
 public:
  // charsmap (outliving it) and user_defined are for the steps that ask for them. Input errors
  // quote an unknown step.
  Normalizer(const std::vector<std::string>& steps, std::string_view where,
             std::string_view charsmap = {}, std::vector<AddedEntry> user_defined = {});

  struct Result {
    std::string text;
    bool start_kept;  // the text begins with what the character it began with has become
  };
  bool empty() const { return steps_.empty(); }
  // Bytes that are not UTF-8 stay as they are (sentencepiece: become U+FFFD).
  Result run(std::string_view text) const;
  std::string apply(std::string_view text) const { return run(text).text; }

 private:
  using Step = std::function<void(Result&)>;
  Step parse(const std::string& step, std::string_view where) const;
  Step parse_sentencepiece(std::string_view options) const;

  // What steps point to; it does not move with the object.
  struct Shared {
    std::unique_ptr<Charsmap> charsmap;
    AddedMatcher user_defined;
  };
  std::shared_ptr<const Shared> shared_;
  std::vector<Step> steps_;
};

// The spelling of a replace step for any two texts (step_spelling.hpp).
std::string replace_step(std::string_view from, std::string_view to);

}  // namespace quern::text
