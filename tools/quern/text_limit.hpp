// How much text is worth tokenizing for a number of tokens. The tokenizers keep some 16 bytes for each byte of a text:
// 100 MB that no context holds would take 1.7 GB before anybody counts the tokens.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quern::tool {

// Above any tokenizer's bytes per token of text in some language (runs of spaces may be one token); at least 1 MiB.
std::size_t most_text_bytes(std::size_t max_tokens);

// Input error of `where` above it. Every command asks this before it tokenizes what a user gave.
void check_text_bytes(std::string_view text, const std::string& where, std::size_t max_tokens);

// The beginning of a text that is cut anyway, whole UTF-8 characters.
std::string_view cut_text(std::string_view text, std::size_t max_tokens);

}  // namespace quern::tool
