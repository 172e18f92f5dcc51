// The inputs of `embed`, `classify` and `fill`: lines of text, JSON lines, or lines of ids, as token ids in the
// order they came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_options.hpp"

namespace quern::tool {

struct InputOptions {
  std::optional<std::string> text, pair;  // -p, --pair: one input
  std::string file = "-";                 // -f
  std::string ids_file;                   // lines of ids instead of text
  bool jsonl = false;                     // a line is {"text": ..., "pair": ...}, {"input": ...} or a string
  bool no_truncate = false;               // too long an input is an error, not cut
};
enum class Pairs { no, yes };
void add_input_options(CLI::App& app, InputOptions& options, Pairs pairs);

struct InputItem {
  std::string where;                      // "line 3", for messages
  std::vector<std::int32_t> ids, types;   // with the tokens that the tokenizer puts around text
  // What each token is of: 0 such a token, 1 the text, 2 its pair; empty for lines of ids.
  std::vector<std::uint8_t> parts;
};

// Input errors name the line. At most `max_tokens` ids each: longer text is cut before its closing tokens,
// with a notice on standard error that counts them, or refused.
std::vector<InputItem> read_inputs(const LoadedModel& loaded, const InputOptions& options, std::size_t max_tokens);

}  // namespace quern::tool
