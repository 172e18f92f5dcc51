#include "text_input.hpp"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <string_view>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "text_limit.hpp"

namespace quern::tool {

namespace {

struct TextRecord {
  std::string where, text;
  std::optional<std::string> pair;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string string_of(const base::Json& value, const std::string& where, const char* key) {
  if (!value.is_string()) base::reject(where, base::cat("\"", key, "\" is not a string"), value.type_name());
  return value.get<std::string>();
}

TextRecord record_of(std::string_view line, const std::string& where) {
  const base::Json json = base::parse_json(line, where);
  if (json.is_string()) return {where, json.get<std::string>(), std::nullopt};
  if (!json.is_object()) base::reject(where, "not an object or a string", json.type_name());
  const char* const key = json.contains("text") ? "text" : "input";
  if (!json.contains(key)) base::reject(where, "no \"text\" and no \"input\"");
  TextRecord record{where, string_of(json[key], where, key), std::nullopt};
  for (const char* second : {"pair", "text_pair"})
    if (json.contains(second)) record.pair = string_of(json[second], where, second);
  return record;
}

std::vector<TextRecord> read_records(const InputOptions& options) {
  if (options.text) return {{"-p", *options.text, options.pair}};
  const std::string text = read_input(options.file);
  const std::string file = input_name(options.file);
  const bool jsonl = options.jsonl || options.file.ends_with(".jsonl");
  std::vector<TextRecord> records;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::string where = base::cat(file, ":", ++number);
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      if (jsonl) continue;
      base::reject(where, "an empty line", {}, "one text a line; a file named *.jsonl may hold any text");
    }
    records.push_back(jsonl ? record_of(line, where) : TextRecord{where, std::string(line), std::nullopt});
  }
  return records;
}

void append(InputItem& item, const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& types,
            std::uint8_t part = 0) {
  item.ids.insert(item.ids.end(), ids.begin(), ids.end());
  item.types.insert(item.types.end(), types.begin(), types.end());
  item.parts.insert(item.parts.end(), ids.size(), part);
}

void append_text(InputItem& item, const std::vector<std::int32_t>& ids, std::int32_t type, std::uint8_t part) {
  append(item, ids, std::vector<std::int32_t>(ids.size(), type), part);
}

class Encoder {
 public:
  Encoder(const LoadedModel& loaded, const InputOptions& options, std::size_t max_tokens)
      : description_(loaded.model->contract.tokenizer),
        tokenizer_(need_tokenizer(loaded)),
        types_(loaded.model->contract.embedding.token_types > 0),
        refuse_(options.no_truncate),
        max_tokens_(max_tokens) {}

  InputItem encode(const TextRecord& record) {
    InputItem item = record.pair ? joined(record) : single(record);
    if (!types_) item.types.clear();
    return item;
  }

  std::size_t n_cut() const { return n_cut_; }

 private:
  // Takes tokens off the end of the longer text until both fit.
  void cut(const TextRecord& record, std::vector<std::int32_t>& first, std::vector<std::int32_t>& second,
           std::size_t around) {
    const std::size_t total = first.size() + second.size() + around;
    if (total <= max_tokens_) return;
    if (refuse_ || around >= max_tokens_)
      base::reject(record.where, "too many tokens", base::cat(total), base::cat("at most ", max_tokens_));
    const std::size_t room = max_tokens_ - around;
    ++n_cut_;
    const std::size_t shorter = std::min({first.size(), second.size(), room / 2});
    std::vector<std::int32_t>& longer = first.size() >= second.size() ? first : second;
    std::vector<std::int32_t>& other = first.size() >= second.size() ? second : first;
    const std::size_t kept = std::min(other.size(), std::max(shorter, room - std::min(room, longer.size())));
    other.resize(kept);
    longer.resize(std::min(longer.size(), room - kept));
  }

  // A text far longer than the tokens could hold is cut, or refused, before it is tokenized.
  std::vector<std::int32_t> bare(const TextRecord& record, std::string_view text) {
    if (refuse_) check_text_bytes(text, record.where, max_tokens_);
    text = cut_text(text, max_tokens_);
    return tokenizer_.encode(text, {.add_special = false});
  }
  InputItem single(const TextRecord& record) {
    const contract::TokenizerDescription& d = description_;
    std::vector<std::int32_t> text = bare(record, record.text), none;
    cut(record, text, none, d.prefix_ids.size() + d.suffix_ids.size());
    InputItem item{record.where, {}, {}, {}};
    append(item, d.prefix_ids, d.prefix_types);
    append_text(item, text, d.text_type, 1);
    append(item, d.suffix_ids, d.suffix_types);
    return item;
  }
  InputItem joined(const TextRecord& record) {
    if (!description_.pair) base::reject(record.where, "the model's tokenizer does not join two texts");
    const contract::PairTemplate& p = *description_.pair;
    std::vector<std::int32_t> first = bare(record, record.text), second = bare(record, *record.pair);
    cut(record, first, second, p.prefix_ids.size() + p.middle_ids.size() + p.suffix_ids.size());
    InputItem item{record.where, {}, {}, {}};
    append(item, p.prefix_ids, p.prefix_types);
    append_text(item, first, p.first_type, 1);
    append(item, p.middle_ids, p.middle_types);
    append_text(item, second, p.second_type, 2);
    append(item, p.suffix_ids, p.suffix_types);
    return item;
  }

  const contract::TokenizerDescription& description_;
  const text::Tokenizer& tokenizer_;
  const bool types_, refuse_;
  const std::size_t max_tokens_;
  std::size_t n_cut_ = 0;
};

InputItem ids_of_line(std::string_view line, const std::string& where, std::size_t vocab_size) {
  InputItem item{where, {}, {}, {}};
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t') {
      ++at;
      continue;
    }
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), id);
    const auto next = static_cast<std::size_t>(end - line.data());
    const bool whole = error == std::errc() && (next == line.size() || line[next] == ' ' || line[next] == '\t');
    if (!whole || id < 0 || static_cast<std::uint64_t>(id) >= vocab_size)
      base::reject(where, "not a token id", word_at(line, at), base::cat("0 to ", vocab_size - 1));
    item.ids.push_back(static_cast<std::int32_t>(id));
    at = next;
  }
  return item;
}

std::vector<InputItem> read_id_lines(const LoadedModel& loaded, const InputOptions& options, std::size_t max_tokens) {
  const std::string text = read_input(options.ids_file);
  std::vector<InputItem> items;
  std::size_t number = 0;
  for (const std::string_view line : lines_of(text)) {
    const std::string where = base::cat(input_name(options.ids_file), ":", ++number);
    items.push_back(ids_of_line(line, where, loaded.model->contract.vocab_size));
    const std::size_t n = items.back().ids.size();
    if (n == 0) base::reject(where, "no token ids");
    if (n > max_tokens) base::reject(where, "too many tokens", base::cat(n), base::cat("at most ", max_tokens));
  }
  return items;
}

}  // namespace

void add_input_options(CLI::App& app, InputOptions& options, Pairs pairs) {
  CLI::Option* text = app.add_option_function<std::string>(
      "-p,--prompt,--text", [&](const std::string& value) { options.text = value; }, "one text");
  CLI::Option* file = app.add_option("-f,--file", options.file, "a file of texts, one a line (- for standard input)");
  CLI::Option* ids = app.add_option("--ids-file", options.ids_file,
                                    "token ids instead of text, one input a line, special tokens included");
  CLI::Option* jsonl = app.add_flag(
      "--jsonl", options.jsonl,
      "a line is a JSON string or an object with \"text\" or \"input\" (so is every file named *.jsonl)");
  text->excludes(file)->excludes(ids)->excludes(jsonl);
  file->excludes(ids);
  app.add_flag("--no-truncate", options.no_truncate, "an input longer than the model's positions is an error");
  if (pairs == Pairs::no) return;
  app.add_option_function<std::string>(
         "--pair", [&](const std::string& value) { options.pair = value; },
         "the second text beside -p (in JSON lines: \"pair\")")
      ->needs(text);
}

std::vector<InputItem> read_inputs(const LoadedModel& loaded, const InputOptions& options, std::size_t max_tokens) {
  if (!options.ids_file.empty()) return read_id_lines(loaded, options, max_tokens);
  Encoder encoder(loaded, options, max_tokens);
  std::vector<InputItem> items;
  for (const TextRecord& record : read_records(options)) {
    items.push_back(encoder.encode(record));
    if (items.back().ids.empty()) base::reject(record.where, "no tokens");
  }
  if (encoder.n_cut() > 0)
    std::cerr << "quern: note: " << encoder.n_cut() << " of " << items.size() << " inputs cut to " << max_tokens
              << " tokens\n";
  return items;
}

}  // namespace quern::tool
