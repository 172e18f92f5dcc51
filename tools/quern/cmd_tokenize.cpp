// quern tokenize: text -> ids and back. Needs no weights: reads tokenizer.json, a sentencepiece model, a
// Hugging Face directory, a GGUF, or a quern model.

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "arguments.hpp"
#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "command.hpp"
#include "contract/json.hpp"
#include "convert/tokenizer_import.hpp"
#include "model_options.hpp"
#include "text/stream_decoder.hpp"
#include "text/tokenizer.hpp"
#include "weights/reader.hpp"

namespace quern::tool {

namespace {

struct TokenizeOptions {
  std::string model, tokenizer, text, file = "-";
  bool ids_only = false, jsonl = false, no_bos = false, decode = false, no_parse_special = false;
};

// A tokenizer and whatever owns its tables.
struct LoadedTokenizer {
  convert::ImportedTokenizer imported;
  std::unique_ptr<weights::WeightFile> weights;
  std::unique_ptr<text::Tokenizer> tokenizer;
};

LoadedTokenizer load_tokenizer(const TokenizeOptions& options) {
  LoadedTokenizer loaded;
  if (options.model.empty() == options.tokenizer.empty())
    base::usage_error("quern tokenize", "give one of -m MODEL and --tokenizer PATH");
  if (!options.tokenizer.empty()) {
    loaded.imported = convert::import_tokenizer_file(options.tokenizer);
    loaded.tokenizer = std::make_unique<text::Tokenizer>(loaded.imported.description, loaded.imported.tables,
                                                         options.tokenizer);
    return loaded;
  }
  const model::ModelPaths paths = model::resolve_model_path(options.model);
  loaded.weights = std::make_unique<weights::WeightFile>(weights::WeightFile::open(paths.weights));
  const contract::Contract contract =
      contract::read_contract(loaded.weights->contract_json(), loaded.weights->where());
  if (contract.tokenizer.model == "none") base::reject(options.model, "the model has no tokenizer");
  loaded.tokenizer = std::make_unique<text::Tokenizer>(contract.tokenizer, loaded.weights->tokenizer_tables(),
                                                       loaded.weights->where());
  return loaded;
}

// The piece as one line: control characters and half characters as \xNN, spaces and line ends visible.
std::string shown_piece(std::string_view bytes) { return base::printable(bytes, 120); }

void print_ids(const std::vector<std::int32_t>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) std::cout << (i == 0 ? "" : " ") << ids[i];
  std::cout << "\n";
}

void encode_one(const text::Tokenizer& tokenizer, const TokenizeOptions& options, std::string_view text) {
  const text::EncodeOptions encode{.add_special = !options.no_bos, .parse_special = !options.no_parse_special};
  const std::vector<std::int32_t> ids = tokenizer.encode(text, encode);
  if (options.jsonl) {
    std::cout << nlohmann::json(ids).dump() << "\n";
  } else if (options.ids_only) {
    print_ids(ids);
  } else {
    for (const std::int32_t id : ids) std::cout << id << "\t'" << shown_piece(tokenizer.token_bytes(id)) << "'\n";
  }
}

void check_ids(const std::vector<std::int32_t>& ids, const text::Tokenizer& tokenizer, const std::string& where) {
  for (const std::int32_t id : ids)
    if (id < 0 || static_cast<std::size_t>(id) >= tokenizer.size())
      base::reject(where, "token id out of range", base::cat(id), base::cat("0 to ", tokenizer.size() - 1));
}

std::vector<std::int32_t> parse_ids(const std::string& line, const std::string& where) {
  std::vector<std::int32_t> ids;
  std::istringstream in(line);
  for (std::string word; in >> word;) {
    std::istringstream number(word);
    std::int32_t id = 0;
    if (!(number >> id) || !number.eof())
      base::reject(where, "not a token id", base::printable(word, 20), "decimal numbers");
    ids.push_back(id);
  }
  return ids;
}

void decode_all(const text::Tokenizer& tokenizer, const TokenizeOptions& options, const std::string& input) {
  if (!options.jsonl) {
    const std::vector<std::int32_t> ids = parse_ids(input, options.file);
    check_ids(ids, tokenizer, options.file);
    std::cout << tokenizer.decode(ids);
    return;
  }
  std::istringstream lines(input);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const base::Json json = base::parse_json(line, base::cat(options.file, ":", ++number));
    if (!json.is_array()) base::reject(base::cat(options.file, ":", number), "not a JSON array of ids");
    std::vector<std::int32_t> ids;
    for (const base::Json& value : json) {
      if (!value.is_number_integer())
        base::reject(base::cat(options.file, ":", number), "not a JSON array of ids");
      ids.push_back(value.get<std::int32_t>());
    }
    check_ids(ids, tokenizer, base::cat(options.file, ":", number));
    std::cout << nlohmann::json(text::utf8_lossy(tokenizer.decode(ids))).dump() << "\n";
  }
}

void encode_all(const text::Tokenizer& tokenizer, const TokenizeOptions& options, const std::string& input) {
  if (!options.jsonl) {
    encode_one(tokenizer, options, input);
    return;
  }
  std::istringstream lines(input);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const base::Json json = base::parse_json(line, base::cat(options.file, ":", ++number));
    if (!json.is_string()) base::reject(base::cat(options.file, ":", number), "not a JSON string");
    encode_one(tokenizer, options, json.get_ref<const std::string&>());
  }
}

}  // namespace

int cmd_tokenize(const std::vector<std::string>& arguments) {
  CLI::App app("Text to token ids and back. Text comes from -p, -f or standard input.", "quern tokenize");
  TokenizeOptions options;
  app.add_option("-m,--model,model", options.model, "a quern model");
  app.add_option("--tokenizer", options.tokenizer, "tokenizer.json, tokenizer.model, vocab.txt, a Hugging Face directory, or a GGUF file");
  CLI::Option* text = app.add_option("-p,--prompt", options.text, "the text");
  app.add_option("-f,--file", options.file, "a file with the text (- for standard input, the default)")->excludes(text);
  app.add_flag("--ids", options.ids_only, "print ids only, on one line");
  app.add_flag("--jsonl", options.jsonl, "each input line is a JSON string, each output line a JSON array of ids");
  app.add_flag("--no-bos,--no-special", options.no_bos, "no tokens around the text (beginning, end)");
  app.add_flag("--no-parse-special", options.no_parse_special, "control tokens in the text are ordinary text");
  app.add_flag("--decode", options.decode, "the other way: ids to text");
  if (parse_arguments(app, arguments)) return 0;
  const LoadedTokenizer loaded = load_tokenizer(options);
  const std::string input = app.count("--prompt") != 0 ? options.text : read_input(options.file);
  if (options.decode)
    decode_all(*loaded.tokenizer, options, input);
  else
    encode_all(*loaded.tokenizer, options, input);
  return 0;
}

}  // namespace quern::tool
