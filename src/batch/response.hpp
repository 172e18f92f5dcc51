// Lines of the output: answers and errors, in OpenAI's schema for OpenAI's lines, else as plain objects. One line of
// strict JSON each, valid UTF-8, no control byte but the line end; the same answer is the same line, so there are no
// times and dates in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batch/item_error.hpp"
#include "batch/request.hpp"

namespace quern::batch {

struct TokenLogprob {
  std::int32_t id;
  std::string bytes;  // what the token adds to the text
  float logprob;
};
struct ScoredToken {
  TokenLogprob token;
  std::vector<TokenLogprob> top;  // best first
};

struct ChoiceResult {
  std::string text;
  std::vector<std::int32_t> ids;
  std::string finish_reason;  // "stop", "length"
  std::optional<std::uint64_t> seed;  // absent: greedy
  std::vector<ScoredToken> scores;
};

struct GenerationResult {
  std::vector<ChoiceResult> choices;
  std::size_t prompt_tokens = 0, completion_tokens = 0;
};

struct EmbeddingResult {
  std::vector<std::vector<float>> vectors;
  std::size_t prompt_tokens = 0;
};

// Whose answer it is, and what every line of this run says.
struct LineFacts {
  std::uint64_t number = 0, key = 0;
  std::optional<std::string> custom_id;
  InputFormat format = InputFormat::text;
  std::string model;
  bool ids = false;  // simple lines: token ids too (--ids)
};

std::string generation_line(const LineFacts& facts, const Request& request, const GenerationResult& result);
std::string embedding_line(const LineFacts& facts, const Request& request, const EmbeddingResult& result);
std::string error_line(const LineFacts& facts, const ItemError& error);

}  // namespace quern::batch
