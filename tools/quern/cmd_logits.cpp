// quern logits: ids in, float32 logits (and hidden states) of every position out. Every parity check
// stands on this command.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "model_options.hpp"
#include "npy.hpp"
#include "quantity.hpp"

namespace quern::tool {

namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string ids_file, encoder_ids_file, token_types_file, documents_file, output, hidden;
  std::size_t prefix_length = 0;
};

bool same_place(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto place = [&](const std::string& path) { return fs::weakly_canonical(fs::absolute(path), ignored); };
  return a == b || (!b.empty() && place(a) == place(b));
}

// One text, or several documents of it that do not see each other.
struct Document {
  std::size_t first, n;
};

struct Input {
  std::vector<std::int32_t> ids, token_types, encoder_ids;
  std::vector<Document> documents;
};

// Neighbouring tokens with the same number are one document.
std::vector<Document> documents_of(const std::vector<std::int32_t>& numbers) {
  std::vector<Document> documents;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (i > 0 && numbers[i] == numbers[i - 1])
      ++documents.back().n;
    else
      documents.push_back({i, 1});
  return documents;
}

std::size_t longest(const std::vector<Document>& documents) {
  std::size_t n = 0;
  for (const Document& document : documents) n = std::max(n, document.n);
  return n;
}

// A file with one number per token of the ids file.
std::vector<std::int32_t> read_beside(const std::string& path, const char* what, std::size_t limit,
                                      std::size_t n_ids) {
  std::vector<std::int32_t> numbers = read_ids_file(path, limit, what);
  if (numbers.size() != n_ids)
    base::reject(base::printable(path), "one number per token id", base::cat(numbers.size()), base::cat(n_ids));
  return numbers;
}

bool has_prefix_mask(const contract::Contract& contract) {
  for (const auto& [name, op] : contract.ops)
    if (op.attention && op.attention->mask.kind == contract::MaskKind::prefix) return true;
  return false;
}

void check_options(const contract::Contract& contract, const LogitsOptions& options) {
  const bool source = contract.kind == contract::ModelKind::encoder_decoder;
  if (!options.encoder_ids_file.empty() && !source)
    base::usage_error("--encoder-ids-file", "the model has no encoder beside a decoder");
  if (options.encoder_ids_file.empty() && source)
    base::usage_error("quern logits", "the model reads an encoder's input: give --encoder-ids-file");
  if (!options.token_types_file.empty() && contract.embedding.token_types == 0)
    base::usage_error("--token-types-file", "the model has no token types");
  if (options.prefix_length > 0 && !has_prefix_mask(contract))
    base::usage_error("--prefix-len", "the model's masks have no prefix (a recipe with \"mask\": {\"kind\": \"prefix\"} "
                                      "makes one that has: docs/ADDING_A_MODEL.md)");
  if (!options.output.empty() && contract.head.kind == contract::HeadKind::none)
    base::usage_error("-o", "the model has no head; --hidden OUT.npy writes its hidden states");
}

void check_streams(const LogitsOptions& options) {
  const auto files = {options.ids_file, options.encoder_ids_file, options.token_types_file, options.documents_file};
  if (std::count(files.begin(), files.end(), "-") > 1)
    base::usage_error("quern logits", "standard input (-) can be read as one file only");
}

Input read_input_files(const contract::Contract& contract, const LogitsOptions& options) {
  Input input;
  input.ids = read_ids_file(options.ids_file, contract.vocab_size);
  if (options.prefix_length > input.ids.size())
    base::usage_error("--prefix-len", base::cat("longer than the ids (got ", options.prefix_length, ", expected 0 to ",
                                                input.ids.size(), ")"));
  if (!options.token_types_file.empty())
    input.token_types =
        read_beside(options.token_types_file, "token type", contract.embedding.token_types, input.ids.size());
  if (!options.encoder_ids_file.empty()) {
    const auto& own = contract.encoder->embedding;
    input.encoder_ids = read_ids_file(options.encoder_ids_file, own ? own->vocab_size : contract.vocab_size);
  }
  input.documents = {{0, input.ids.size()}};
  if (!options.documents_file.empty())
    input.documents = documents_of(
        read_beside(options.documents_file, "document number", std::size_t{1} << 31, input.ids.size()));
  return input;
}

// The next slices of the documents, `room` tokens in all; `document` and `at` (within it) move on.
std::vector<model::Slice> next_slices(const Input& input, const LogitsOptions& options, std::size_t room,
                                      std::size_t& document, std::size_t& at) {
  std::vector<model::Slice> slices;
  while (room > 0 && document < input.documents.size()) {
    const Document& part = input.documents[document];
    const std::size_t n = std::min(room, part.n - at);
    model::Slice slice{document, {input.ids.data() + part.first + at, n}, model::Want::all};
    if (!input.token_types.empty()) slice.token_types = {input.token_types.data() + part.first + at, n};
    slice.prefix_length = std::min(options.prefix_length, part.n);
    slice.source = 0;
    slices.push_back(slice);
    room -= n;
    at += n;
    if (at < part.n) break;
    ++document;
    at = 0;
  }
  return slices;
}

// A file that gets one row per position (or text) in their order; a row with NaN or infinity is an input error.
class RowsFile {
 public:
  RowsFile(const std::string& path, const char* what, std::size_t rows, std::size_t columns)
      : what_(what), columns_(columns) {
    if (!path.empty()) file_ = std::make_unique<NpyWriter>(path, rows, columns);
  }
  void write(const float* row) {
    if (!file_) return;
    for (std::size_t i = 0; i < columns_; ++i)
      if (!std::isfinite(row[i]))
        base::reject("model", base::cat(what_, " are not finite at position ", n_written_, ", index ", i));
    file_->write_row({row, columns_});
    ++n_written_;
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  std::unique_ptr<NpyWriter> file_;
  const char* what_;
  std::size_t columns_, n_written_ = 0;
};

void write_rows(const model::Runner& runner, RowsFile& logits, RowsFile& hidden) {
  for (std::size_t row = 0; row < runner.n_logits(); ++row) logits.write(runner.logits(row));
  for (std::size_t row = 0; row < runner.n_hidden(); ++row) hidden.write(runner.hidden(row));
}

// More ids than -c allows, or than a table of positions has, are an error. More than the model was trained on are not:
// what a reference computes for them is a question this command is there for.
void check_length(const std::string& file, std::size_t length, const model::Stack& stack, std::size_t context,
                  bool limited) {
  if (length <= context) return;
  if (limited || stack.embedding.positions != nullptr)
    base::reject(base::printable(file), "too many token ids", base::cat(length),
                 base::cat("at most ", context, ", the context"));
  std::cerr << "quern: note: " << base::printable(file) << ": " << length << " tokens, the model was trained on "
            << context << "\n";
}

// All ids in chunks; each position's row goes straight to its file.
void run(const LoadedModel& loaded, const LogitsOptions& options, const Input& input) {
  const contract::Contract& contract = loaded.model->contract;
  const std::size_t n = longest(input.documents);
  engine::SessionOptions session = session_options(loaded, options.model, n);
  const std::size_t context = context_length(loaded, options.model);
  const bool limited = options.model.context != 0;
  const model::Model& model = *loaded.model;
  check_length(options.ids_file, n, model.output_stack(), context, limited);
  if (!options.encoder_ids_file.empty())
    check_length(options.encoder_ids_file, input.encoder_ids.size(), *model.encoder, context, limited);
  session.cache.max_tokens = n;
  session.cache.n_sequences = input.documents.size();
  model::KvCache cache(*loaded.model, session.cache);
  // A prefix may not be cut: the room left in a step must hold it, so documents with one are not packed tighter
  // than whole.
  const bool whole = options.prefix_length > 0 || !loaded.model->decoder || contract.head.pool;
  const std::size_t chunk = model::chunk_for(*loaded.model, {input.ids.size(), input.encoder_ids.size(), 0},
                                             whole ? input.ids.size() : session.prefill_chunk);
  model::Runner runner(*loaded.model, cache, *loaded.pool, chunk, n);
  runner.set_deterministic(session.deterministic);
  if (!input.encoder_ids.empty()) {
    const model::Slice source{0, input.encoder_ids, model::Want::none};
    runner.encode({&source, 1});
  }
  const std::size_t n_rows = contract.head.pool ? input.documents.size() : input.ids.size();
  RowsFile logits(options.output, "logits", n_rows, runner.n_outputs());
  RowsFile hidden(options.hidden, "hidden states", input.ids.size(), contract.d_model);
  for (std::size_t document = 0, at = 0; document < input.documents.size();) {
    const std::vector<model::Slice> slices =
        next_slices(input, options, whole ? input.ids.size() : std::min(chunk, session.prefill_chunk), document, at);
    runner.forward(slices);
    write_rows(runner, logits, hidden);
  }
  logits.finish();
  hidden.finish();
}

}  // namespace

int cmd_logits(const std::vector<std::string>& arguments) {
  CLI::App app("Writes the logits of every position as a float32 NumPy array [tokens, vocab_size];\n"
               "a classifier of whole texts has one row per text.",
               "quern logits");
  LogitsOptions options;
  add_model_options(app, options.model);
  add_cache_options(app, options.model);
  app.add_option("--ids-file", options.ids_file, "token ids, separated by white space (- for standard input)")
      ->required();
  app.add_option("--encoder-ids-file", options.encoder_ids_file, "ids of the encoder's input");
  app.add_option("--token-types-file", options.token_types_file, "token types (segments), one per id");
  app.add_option("--doc-ids", options.documents_file,
                 "numbers of documents, one per id: they do not see each other, positions begin anew");
  app.add_option("--prefix-len", options.prefix_length, "tokens at the start that see each other (prefix mask)")
      ->transform(count_range(0, 1 << 26))
      ->type_name("N");
  app.add_option("-o,--output", options.output, "logits: OUT.npy");
  app.add_option("--hidden", options.hidden, "hidden states after the final norm: OUT.npy [tokens, d_model]");
  if (parse_arguments(app, arguments)) return 0;
  if (options.output.empty() && options.hidden.empty())
    base::usage_error("quern logits", "nothing to write: give -o OUT.npy or --hidden OUT.npy");
  check_streams(options);

  const model::ModelPaths paths = model::resolve_model_path(options.model.model);
  for (const std::string& path : {options.output, options.hidden})
    check_output_is_no_input(path, {paths.weights.string(), paths.contract.string(), options.ids_file,
                                    options.encoder_ids_file, options.token_types_file, options.documents_file});
  if (!options.output.empty() && same_place(options.output, options.hidden))
    base::usage_error("--hidden", "is the same file as -o");
  const LoadedModel loaded = load_model(options.model);
  check_options(loaded.model->contract, options);
  run(loaded, options, read_input_files(loaded.model->contract, options));
  return 0;
}

}  // namespace quern::tool
