// What the tests of grammars share: texts against a grammar, and small vocabularies.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "grammar/gbnf.hpp"
#include "grammar/matcher.hpp"

namespace quern::tests {

inline bool accepts(const grammar::Automaton& automaton, std::string_view text) {
  return grammar::match_text(automaton, text).complete;
}

inline grammar::Automaton from_gbnf(std::string_view text) {
  return grammar::Automaton(grammar::parse_gbnf(text, "test"));
}

// The message of the input error that f() throws; "" without one.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const base::Error& error) {
    return error.code() == base::ExitCode::input ? error.what() : "not an input error";
  }
  return {};
}

// The first id ends an answer; the others have these texts.
inline grammar::TokenTexts texts_of(std::vector<std::string> texts) {
  grammar::TokenTexts out;
  out.texts = std::move(texts);
  out.texts.insert(out.texts.begin(), "");
  out.ends = {0};
  return out;
}

inline bool has_bit(std::span<const std::uint64_t> words, std::size_t id) {
  return id / 64 < words.size() && (words[id / 64] >> (id % 64) & 1) != 0;
}

}  // namespace quern::tests
