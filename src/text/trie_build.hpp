// The trie of a vocabulary as the tokenizer section stores it: breadth first, so that the children
// of a node lie together and behind it. Built by the converter; the reader is TokenizerTables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer_tables.hpp"

namespace quern::text {

struct Trie {
  std::vector<std::uint32_t> first_child;  // of node i; the next node's is the end
  std::vector<std::uint32_t> node_token;   // token + 1, 0 for none
  std::vector<unsigned char> labels;       // byte on the way to node i, ascending among siblings
};

// Of the searchable tokens; empty unless the vocabulary asks for one. Of two tokens with equal text
// the lower index counts.
Trie build_trie(const Vocabulary& vocabulary);

// "<0x0A>": how a token of one byte is spelled.
std::string byte_token(unsigned char byte);

}  // namespace quern::text
