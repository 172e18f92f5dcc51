// A recipe (models/*.json): how one family's configuration and tensors become a contract. Data
// only; docs/ADDING_A_MODEL.md explains the language.
//
//   $key, $a.b.c           value of the source's configuration
//   $key|other|literal     the first that exists
//   fn(x, y)               one of the few named functions (expression.hpp)
//
// Tensors map a canonical name (contract/tensors.hpp) to a source name, with {l} for the layer, and
// a list of transforms (transform.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "checkpoint/checkpoint.hpp"
#include "contract/contract.hpp"

namespace quern::convert {

struct TensorSource {
  std::string canonical;            // "decoder.3.0.q.weight"
  std::vector<std::string> from{};  // in `resolve`'s answer: the one source tensor (none: computed)
  std::vector<std::string> transforms{};
  std::size_t stack = 0;  // > 0: rows of so many tensors, {i} in the name is 0 .. stack - 1
  std::vector<std::string> times{};  // names of a matrix that every row is multiplied with
  // In `resolve`'s answer: of the checkpoint, or of Resolved::made; nullptr: computed.
  const checkpoint::SourceTensor* tensor = nullptr;
};

// A float32 tensor that no file holds as it is: made of several.
struct MadeTensor {
  checkpoint::SourceTensor tensor;  // its bytes are `values`
  std::vector<float> values;
};

struct Recipe {
  std::string name;
  std::vector<std::string> hf_names;    // "architectures" and "model_type" it matches
  std::vector<std::string> gguf_names;  // general.architecture
  base::Json document;                  // the whole recipe, extends applied
  std::string treated_as{};  // by --arch-as: the class that an unknown one is read as
};

Recipe parse_recipe(std::string_view text, std::string_view where);
std::vector<Recipe> builtin_recipes();

// Architectures refused by name, with the mechanism quern does not have.
struct OutOfScope {
  std::string why;
  std::vector<std::string> names;  // patterns
};
std::vector<OutOfScope> out_of_scope();

// The recipe for a checkpoint, or an input error that names the architecture, the nearest recipe,
// what is out of scope by name (docs/CONTRACT.md), and --arch-as / --recipe.
Recipe match_recipe(const std::vector<Recipe>& recipes, const checkpoint::Checkpoint& checkpoint,
                    std::string_view arch_as);

// User's wishes that change the model (announced and recorded in "source").
struct Adaptations {
  std::optional<std::string> rope_scaling;  // none | linear | yarn | ntk | dynamic
  std::optional<double> rope_scale, rope_freq_base, rope_freq_scale;
  std::optional<std::size_t> yarn_orig_ctx;
  std::optional<double> yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow;
};

struct Resolved {
  contract::Contract contract;        // without counts, quantization, weights
  std::vector<TensorSource> tensors;  // one per expected tensor, {l} filled in
  std::vector<std::unique_ptr<MadeTensor>> made;
  std::vector<TensorSource> pooling;  // where the layers behind the pooling lie
  std::vector<std::string> ignored;  // source tensors on the ignore list
  std::vector<std::string>
      unknown_keys;                  // configuration keys that no rule knows (--strict: errors)
  std::vector<std::string> notices;  // unknown keys and adaptations included
};

// Configuration + recipe -> contract and tensor plan. Everything missing, unknown or surplus is an
// input error naming the key or tensor.
Resolved resolve(const Recipe& recipe, const checkpoint::Checkpoint& checkpoint,
                 const Adaptations& adaptations);

// Contract from a configuration alone (`inspect --config config.json`).
contract::Contract resolve_config(const Recipe& recipe, std::string_view config_json,
                                  std::string_view where);

}  // namespace quern::convert
