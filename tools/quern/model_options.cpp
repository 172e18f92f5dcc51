#include "model_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/round_up.hpp"
#include "base/strings.hpp"
#include "kernels/select.hpp"
#include "quantity.hpp"

namespace quern::tool {

namespace {

using Clock = std::chrono::steady_clock;
using kernels::CacheType;

constexpr std::size_t kMaxThreads = 1024;
constexpr std::int64_t kMaxContext = std::int64_t{1} << 26;
constexpr std::size_t kMaxInputBytes = std::size_t{256} << 20;

constexpr std::array<std::pair<std::string_view, CacheType>, 10> kCacheTypes = {{
    {"f32", CacheType::f32},
    {"f16", CacheType::f16},
    {"bf16", CacheType::bf16},
    {"int8", CacheType::int8},
    {"fp8_e4m3", CacheType::fp8_e4m3},
    {"fp8_e5m2", CacheType::fp8_e5m2},
    {"int4", CacheType::int4},
    {"q8_0", CacheType::int8},      // what users of llama.cpp type
    {"q4_0", CacheType::int4},
    {"fp8", CacheType::fp8_e4m3},
}};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("-m,--model,model", options.model, "model directory (or its model.quern or model.json)")
      ->required()
      ->type_name("PATH");
  app.add_option("-t,--threads", options.threads, "threads (default: the physical cores this process may use)")
      ->check(CLI::Range(std::size_t{1}, kMaxThreads))
      ->type_name("N");
  app.add_option("--isa", options.isa, "instruction set (default: the best; quern --version lists them)")
      ->type_name("NAME");
  app.add_option("--ubatch-size", options.prefill_chunk, "-ub: prompt tokens computed at once (512)")
      ->transform(count_range(1, 1 << 16))
      ->type_name("N");
  app.add_flag("--prefault", options.prefault, "read all weights into memory before the first token");
  app.add_flag("--deterministic", options.deterministic, "never trade bits for speed: latent attention in one form for any chunk");
}

void add_cache_options(CLI::App& app, ModelOptions& options) {
  app.add_option("-c,--ctx-size", options.context, "context in tokens, such as 4096 or 32k (default: the model's)")
      ->transform(count_range(0, kMaxContext))
      ->type_name("N");
  app.add_option("--cache-type-k", options.k_type,
                 "-ctk: f32 bf16 f16 int8 fp8_e4m3 fp8_e5m2 int4 (int8)")->type_name("TYPE");
  app.add_option("--cache-type-v", options.v_type, "-ctv: as --cache-type-k (int8)")->type_name("TYPE");
}

namespace {

// Page faults of the weights taken now, by all threads.
void prefault(const base::MappedFile& file, base::ThreadPool& pool) {
  constexpr std::size_t kPart = std::size_t{4} << 20;
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) { file.populate(begin * kPart, (end - begin) * kPart); };
  pool.parallel_for(base::divide_up(file.bytes().size(), kPart), 1, work);
}

}  // namespace

LoadedModel load_model(const ModelOptions& options) {
  LoadedModel loaded;
  const Clock::time_point start = Clock::now();
  const kernels::Kernels& kernels = kernels::select_kernels(options.isa);
  loaded.model = model::Model::load(options.model, kernels);
  loaded.pool = std::make_unique<base::ThreadPool>(options.threads == 0 ? base::default_thread_count()
                                                                        : options.threads);
  const base::MappedFile& file = loaded.model->weights.file();
  file.advise(base::MappedFile::Advice::huge_pages, 0, file.bytes().size());
  if (options.prefault) prefault(file, *loaded.pool);
  loaded.load_seconds = seconds_since(start);
  const Clock::time_point tokenizer_start = Clock::now();
  const contract::TokenizerDescription& description = loaded.model->contract.tokenizer;
  if (description.model != "none")
    loaded.tokenizer = std::make_unique<text::Tokenizer>(description, loaded.model->weights.tokenizer_tables(),
                                                         loaded.model->weights.where());
  loaded.tokenizer_seconds = seconds_since(tokenizer_start);
  return loaded;
}

const text::Tokenizer& need_tokenizer(const LoadedModel& loaded) {
  if (loaded.tokenizer == nullptr)
    base::reject(loaded.model->weights.where(),
                 "the model has no tokenizer: give token ids with --ids-file and --output ids");
  return *loaded.tokenizer;
}

CacheType parse_cache_type(const std::string& name, const char* option) {
  std::vector<std::string_view> known;
  for (const auto& [word, type] : kCacheTypes) {
    if (word == name) return type;
    known.push_back(word);
  }
  base::usage_error(option, base::cat("unknown cache type \"", base::printable(name, 40), "\"; known: ",
                                      base::join(known)));
}

std::string cache_type_name(CacheType type) {
  const auto own = [&](const auto& entry) { return entry.second == type; };  // names of others come behind
  return std::string(std::find_if(kCacheTypes.begin(), kCacheTypes.end(), own)->first);
}

std::size_t context_length(const LoadedModel& loaded, const ModelOptions& options) {
  return options.context != 0 ? options.context : loaded.model->contract.max_positions;
}

void note_long_context(std::size_t context, const contract::Contract& contract) {
  if (context > contract.max_positions)
    std::cerr << "quern: note: -c " << context << ": the model was trained on " << contract.max_positions << " tokens\n";
}

engine::SessionOptions session_options(const LoadedModel& loaded, const ModelOptions& options,
                                       std::size_t total_length) {
  engine::SessionOptions session;
  session.cache.k_type = parse_cache_type(options.k_type, "-ctk");
  session.cache.v_type = parse_cache_type(options.v_type, "-ctv");
  session.cache.max_tokens = context_length(loaded, options);
  session.prefill_chunk = options.prefill_chunk;
  session.total_length = total_length;
  session.deterministic = options.deterministic;
  return session;
}

namespace {

std::string read_stream(std::istream& stream, const std::string& where) {
  std::string text;
  std::array<char, 65536> chunk{};
  while (stream.read(chunk.data(), chunk.size()), stream.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxInputBytes) base::reject(where, base::cat("more than ", kMaxInputBytes, " bytes"));
  }
  return text;
}

}  // namespace

std::string read_input(const std::string& path) {
  if (path == "-") return read_stream(std::cin, input_name(path));
  // Pipes and devices (the shell's <(command) is one) are read to their end; files are checked as ever.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool is_stream = std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
  if (error || !is_stream) return base::read_text_file(path, kMaxInputBytes);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) base::reject(input_name(path), "cannot be opened");
  return read_stream(stream, input_name(path));
}

std::string input_name(const std::string& path) {
  return path == "-" ? "standard input" : base::printable(path);
}

std::string word_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kMostBytes = 20;
  const std::size_t end = std::min(text.find_first_of(" \t\n\v\f\r", at), text.size());
  return base::printable(text.substr(at, std::min(kMostBytes, end - at)));
}

std::vector<std::int32_t> read_ids_file(const std::string& path, std::size_t vocab_size, const char* what) {
  const std::string text = read_input(path);
  const std::string where = input_name(path);
  std::vector<std::int32_t> ids;
  for (std::size_t at = 0; at < text.size();) {
    const auto is_space = [&](std::size_t i) {
      return text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r');
    };
    if (is_space(at)) {
      ++at;
      continue;
    }
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    const auto next = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || (next < text.size() && !is_space(next)))
      base::reject(base::cat(where, ":", at), base::cat("not a ", what), word_at(text, at),
                   "decimal numbers separated by white space");
    if (id < 0 || static_cast<std::uint64_t>(id) >= vocab_size)
      base::reject(base::cat(where, ":", at), base::cat(what, " out of range"), base::cat(id),
                   base::cat("0 to ", vocab_size - 1));
    ids.push_back(static_cast<std::int32_t>(id));
    at = next;
  }
  if (ids.empty()) base::reject(where, base::cat("no ", what, "s"));
  return ids;
}

}  // namespace quern::tool
