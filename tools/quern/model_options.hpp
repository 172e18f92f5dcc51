// Options every command that runs a model takes, and the model they load.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.hpp"
#include "engine/session.hpp"
#include "model/model.hpp"
#include "text/tokenizer.hpp"

namespace quern::tool {

struct ModelOptions {
  std::string model;
  std::string isa;                 // "" = QUERN_ISA or the best
  std::size_t threads = 0;         // 0 = default_thread_count()
  std::size_t context = 0;         // 0 = the model's
  std::size_t prefill_chunk = 512;
  std::string k_type = "int8", v_type = "int8";
  bool prefault = false;           // all weights into memory before the first token
  bool deterministic = false;      // latent attention in one form, whatever the chunk
};
void add_model_options(CLI::App& app, ModelOptions& options);
void add_cache_options(CLI::App& app, ModelOptions& options);

// A loaded model and what runs it. The order of the members is the order of construction.
struct LoadedModel {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<base::ThreadPool> pool;
  std::unique_ptr<text::Tokenizer> tokenizer;   // null when the model has none
  double load_seconds = 0, tokenizer_seconds = 0;
};
LoadedModel load_model(const ModelOptions& options);

// The tokenizer, or an input error that names --ids-file.
const text::Tokenizer& need_tokenizer(const LoadedModel& loaded);

kernels::CacheType parse_cache_type(const std::string& name, const char* option);
std::string cache_type_name(kernels::CacheType type);  // "int8": what parse_cache_type() takes for it
engine::SessionOptions session_options(const LoadedModel& loaded, const ModelOptions& options,
                                       std::size_t total_length);
// The context in tokens: -c, or the model's max_positions.
std::size_t context_length(const LoadedModel& loaded, const ModelOptions& options);
// A notice on standard error where a context is asked for that is longer than what the model was trained on.
void note_long_context(std::size_t context, const contract::Contract& contract);

// Whitespace-separated decimal ids, checked against [0, vocab_size); `what` they are, for error lines.
std::vector<std::int32_t> read_ids_file(const std::string& path, std::size_t vocab_size,
                                        const char* what = "token id");
// A file, a pipe or device to its end, or standard input for "-".
std::string read_input(const std::string& path);
// How error lines call it.
std::string input_name(const std::string& path);
// The word of `text` that begins at `at`, made safe and short: what an error line got.
std::string word_at(std::string_view text, std::size_t at);

}  // namespace quern::tool
