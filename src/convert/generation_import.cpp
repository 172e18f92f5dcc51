#include "convert/generation_import.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_reader.hpp"
#include "base/strings.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

// One of the two files; a key that is absent or null is not there.
struct ConfigFile {
  std::string name;
  Json document;
  const Json* find(const char* key) const {
    const auto found = document.find(key);
    return found == document.end() || found->is_null() ? nullptr : &*found;
  }
};

class Import {
 public:
  Import(contract::Contract& contract, std::vector<std::string>& notices)
      : contract_(contract), notices_(notices) {}

  // The first file that has the key decides.
  void id(const std::vector<ConfigFile>& files, const char* key,
          std::optional<std::int32_t>& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find(key)) {
        const std::vector<std::int32_t> ids = ids_of(*value, file, key);
        if (!ids.empty()) target = ids.front();
        if (!ids.empty()) return;
      }
  }

  // All end tokens of all files together.
  void ends(const std::vector<ConfigFile>& files) {
    std::vector<std::int32_t> all;
    for (const ConfigFile& file : files)
      if (const Json* value = file.find("eos_token_id"))
        for (const std::int32_t id : ids_of(*value, file, "eos_token_id"))
          if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
    for (const std::int32_t id : contract_.tokens.eos)
      if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
    contract_.tokens.eos = std::move(all);
  }

  void number(const std::vector<ConfigFile>& files, const char* key, double low, double high,
              std::optional<double>& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find(key)) {
        const double number = value->is_number() ? value->get<double>() : std::nan("");
        if (number >= low && number <= high) {
          target = number;
          return;
        }
        ignore(file, key, *value);
      }
  }

  void count(const std::vector<ConfigFile>& files, const char* key, double low,
             std::optional<std::int64_t>& target) {
    std::optional<double> value;
    number(files, key, low, 1e9, value);
    if (value && *value == std::floor(*value)) target = static_cast<std::int64_t>(*value);
  }

  // Greedy unless the checkpoint says otherwise, even when it has a temperature.
  void sample(const std::vector<ConfigFile>& files) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find("do_sample"); value != nullptr && value->is_boolean()) {
        contract_.generation.sample = value->get<bool>();
        return;
      }
    if (!files.front().document.empty()) contract_.generation.sample = false;
  }

  void warn_beams(const std::vector<ConfigFile>& files) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find("num_beams");
          value != nullptr && value->is_number() && *value > 1) {
        notices_.push_back(
            cat(file.name, ": num_beams ", value->dump(), " is not followed: no beam search"));
        return;
      }
  }

 private:
  std::vector<std::int32_t> ids_of(const Json& value, const ConfigFile& file, const char* key) {
    std::vector<std::int32_t> ids;
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& element : list) {
      const bool valid =
          element.is_number_integer() && element >= 0 && element < contract_.vocab_size;
      if (valid)
        ids.push_back(element.get<std::int32_t>());
      else
        ignore(file, key, element);
    }
    return ids;
  }
  void ignore(const ConfigFile& file, const char* key, const Json& value) {
    notices_.push_back(cat(file.name, ": ", key, " ", base::printable(value.dump(), 40),
                           " ignored: out of range"));
  }

  contract::Contract& contract_;
  std::vector<std::string>& notices_;
};

Json object_or_empty(const std::string& text, const std::string& where) {
  if (text.empty()) return Json::object();
  Json document = base::parse_json(text, where);
  if (!document.is_object()) base::reject(where, "not an object");
  return document;
}

}  // namespace

void import_generation(const checkpoint::Checkpoint& checkpoint, contract::Contract& contract,
                       std::vector<std::string>& notices) {
  if (checkpoint.kind() == checkpoint::SourceKind::gguf)
    return;  // all of it is in the tokenizer's keys
  const std::string name = "generation_config.json";
  const std::vector<ConfigFile> files = {
      {name, object_or_empty(checkpoint.side_file(name), cat(checkpoint.where(), "/", name))},
      {"config.json", object_or_empty(checkpoint.config_json(), checkpoint.where().data())}};
  Import import(contract, notices);
  import.id(files, "bos_token_id", contract.tokens.bos);
  import.id(files, "pad_token_id", contract.tokens.pad);
  import.id(files, "unk_token_id", contract.tokens.unk);
  import.ends(files);
  import.sample(files);
  contract::Generation& generation = contract.generation;
  import.number(files, "temperature", 0, 100, generation.temperature);
  import.number(files, "top_p", 0, 1, generation.top_p);
  import.number(files, "min_p", 0, 1, generation.min_p);
  import.number(files, "repetition_penalty", 0.01, 100, generation.repetition_penalty);
  import.count(files, "top_k", 0, generation.top_k);
  import.count(files, "max_new_tokens", 1, generation.max_new_tokens);
  import.warn_beams(files);
}

}  // namespace quern::convert
