#include "convert/generation_import.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_reader.hpp"
#include "base/strings.hpp"
#include "contract/limits.hpp"

namespace quern::convert {

namespace {

using base::cat;
using base::Json;

constexpr double kMost = 1e9;  // of counts

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

  void count(const std::vector<ConfigFile>& files, const char* key, double low, double high,
             std::optional<std::int64_t>& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find(key)) {
        const double number = value->is_number() ? value->get<double>() : std::nan("");
        if (number >= low && number <= high && number == std::floor(number)) {
          target = static_cast<std::int64_t>(number);
          return;
        }
        ignore(file, key, *value);
      }
  }

  void flag(const std::vector<ConfigFile>& files, const char* key, bool& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find(key); value != nullptr && value->is_boolean()) {
        target = value->get<bool>();
        return;
      }
  }

  void id_list(const std::vector<ConfigFile>& files, const char* key,
               std::vector<std::int32_t>& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find(key)) {
        target = ids_of(*value, file, key);
        if (target.size() > contract::kMaxIds) {
          ignore(file, key, *value);
          target.clear();
        }
        return;
      }
  }

  // Sequences of ids; one with an id outside the vocabulary can never be completed and is left out.
  void words(const std::vector<ConfigFile>& files, const char* key,
             std::vector<std::vector<std::int32_t>>& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find(key)) {
        if (!value->is_array() || value->size() > contract::kMaxIds) {
          ignore(file, key, *value);
          return;
        }
        for (const Json& word : *value) {
          std::vector<std::int32_t> ids;
          if (word.is_array() && word.size() <= contract::kMaxIds) ids = ids_of(word, file, key);
          if (!ids.empty() && ids.size() == word.size()) target.push_back(std::move(ids));
        }
        return;
      }
  }

  void early_stopping(const std::vector<ConfigFile>& files, std::optional<std::string>& target) {
    for (const ConfigFile& file : files)
      if (const Json* value = file.find("early_stopping")) {
        if (value->is_boolean())
          target = value->get<bool>() ? "true" : "false";
        else if (*value == "never")
          target = "never";
        else
          ignore(file, "early_stopping", *value);
        return;
      }
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

  // Settings that change the answer and that quern does not have.
  void name_unknown(const std::vector<ConfigFile>& files) {
    struct Setting {
      const char* key;
      double neutral;  // at this number it does nothing
    };
    static constexpr Setting kSettings[] = {{"typical_p", 1},
                                            {"encoder_no_repeat_ngram_size", 0},
                                            {"encoder_repetition_penalty", 1},
                                            {"num_beam_groups", 1},
                                            {"diversity_penalty", 0},
                                            {"exponential_decay_length_penalty", 0},
                                            {"sequence_bias", 0},
                                            {"guidance_scale", 1},
                                            {"penalty_alpha", 0},
                                            {"epsilon_cutoff", 0},
                                            {"eta_cutoff", 0}};
    for (const Setting& setting : kSettings)
      for (const ConfigFile& file : files)
        if (const Json* value = file.find(setting.key);
            value != nullptr && !(value->is_number() && *value == setting.neutral))
          notices_.push_back(cat(file.name, ": ", setting.key, " ",
                                 base::printable(value->dump(), 40), " is not followed"));
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

void import_sampling(Import& import, const std::vector<ConfigFile>& files,
                     contract::Generation& generation) {
  import.sample(files);
  import.number(files, "temperature", 0, 100, generation.temperature);
  import.count(files, "top_k", 0, kMost, generation.top_k);
  import.number(files, "top_p", 0, 1, generation.top_p);
  import.number(files, "min_p", 0, 1, generation.min_p);
  import.number(files, "repetition_penalty", 0.01, 100, generation.repetition_penalty);
}

void import_search(Import& import, const std::vector<ConfigFile>& files,
                   contract::Generation& generation) {
  import.count(files, "max_new_tokens", 1, kMost, generation.max_new_tokens);
  import.count(files, "min_new_tokens", 0, kMost, generation.min_new_tokens);
  import.count(files, "max_length", 1, kMost, generation.max_length);
  import.count(files, "min_length", 0, kMost, generation.min_length);
  import.count(files, "num_beams", 1, contract::kMaxBeams, generation.n_beams);
  import.number(files, "length_penalty", -100, 100, generation.length_penalty);
  import.early_stopping(files, generation.early_stopping);
  import.count(files, "no_repeat_ngram_size", 0, kMost, generation.no_repeat_ngram);
  import.id(files, "forced_bos_token_id", generation.forced_bos);
  import.id(files, "forced_eos_token_id", generation.forced_eos);
  import.id_list(files, "suppress_tokens", generation.suppress);
  import.id_list(files, "begin_suppress_tokens", generation.begin_suppress);
  import.words(files, "bad_words_ids", generation.bad_words);
  import.flag(files, "renormalize_logits", generation.renormalize);
}

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
  import.id(files, "mask_token_id", contract.tokens.mask);
  import.ends(files);
  import_sampling(import, files, contract.generation);
  import_search(import, files, contract.generation);
  if (contract.kind == contract::ModelKind::encoder_decoder)
    import.id(files, "decoder_start_token_id", contract.tokens.decoder_start);
  import.name_unknown(files);
}

}  // namespace quern::convert
