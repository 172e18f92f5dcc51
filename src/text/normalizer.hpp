// Normalizers, by the steps of the contract's tokenizer section:
//   nfc nfd nfkc nfkd lowercase strip_accents strip_left strip_right
//   prepend:TEXT           before a piece that is not empty
//   replace/FROM/TO/       every occurrence; the character after "replace" separates
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quern::text {

class Normalizer {
 public:
  // Input errors quote an unknown step.
  Normalizer(const std::vector<std::string>& steps, std::string_view where);

  bool empty() const { return steps_.empty(); }
  // Bytes that are not UTF-8 stay as they are.
  std::string apply(std::string_view text) const;

  enum class Kind {
    nfc,
    nfd,
    nfkc,
    nfkd,
    lowercase,
    strip_accents,
    strip_left,
    strip_right,
    prepend,
    replace
  };

 private:
  struct Step {
    Kind kind;
    std::string from, to;
  };
  static Step parse(const std::string& step, std::string_view where);
  std::vector<Step> steps_;
};

// The spelling of a replace step for any two texts ("" when no separator is left, which takes > 90
// of them).
std::string replace_step(std::string_view from, std::string_view to);

}  // namespace quern::text
