#include "contract/json.hpp"
#include "contract/json_printer.hpp"
#include "contract/limits.hpp"
#include "contract/read_parts.hpp"
#include "contract/tensors.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::cat;
using base::Json;
using base::JsonObject;

namespace {

Branch read_branch(const Json& value, const std::string& path) {
  JsonObject object(value, path);
  Branch out{};
  out.norm_in = read_optional_name(object, "norm_in");
  out.op = object.get_string("op");
  out.norm_out = read_optional_name(object, "norm_out");
  out.norm_after = read_optional_name(object, "norm_after");
  out.in_scale = object.get_double("in_scale");
  out.out_scale = object.get_double("out_scale");
  object.finish();
  return out;
}

Block read_block(JsonObject& object) {
  Block out{};
  out.residual = object.get_enum("residual", kResiduals);
  out.skip_scale = object.get_double("skip_scale");
  for (const Json& value : read_array(object, "branches", kMaxBranchesOfBlock))
    out.branches.push_back(
        read_branch(value, cat(object.path_of("branches"), "[", out.branches.size(), "]")));
  return out;
}

Stack read_stack(JsonObject object, StackPlace place) {
  Stack out;
  for (const Json& value : read_array(object, "layers", kMaxLayers)) {
    JsonObject item(value, cat(object.path_of("layers"), "[", out.layers.size(), "]"));
    LayerGroup group{};
    group.pattern = read_strings(item, "pattern", kMaxLayers);
    group.repeat = read_count(item, "repeat");
    group.share_weights = item.get_bool("share_weights");
    item.finish();
    out.layers.push_back(std::move(group));
  }
  out.final_norm = read_optional_name(object, "final_norm");
  if (place == StackPlace::encoder)
    out.embedding = read_nullable(object, "embedding", [&] {
      return read_encoder_embedding(object.get_object("embedding"));
    });
  object.finish();
  return out;
}

Counts read_counts(JsonObject object) {
  Counts out;
  out.parameters_by_formula =
      static_cast<std::uint64_t>(object.get_int("parameters_by_formula", 0, INT64_MAX));
  out.parameters_in_tensors =
      static_cast<std::uint64_t>(object.get_int("parameters_in_tensors", 0, INT64_MAX));
  object.finish();
  return out;
}

// The cache section is derived; it must say what the architecture says.
void check_derived(JsonObject& object, std::string_view key, std::uint64_t derived) {
  const std::size_t stated = read_count(object, key);
  if (stated != derived)
    base::reject(object.path_of(key), "not what the layers add up to", cat(stated), cat(derived));
}

void check_cache_section(JsonObject object, const Contract& contract) {
  for (const std::string_view key : {"k", "v"})
    if (const std::string text = object.get_string(key); text != kCacheGranularity)
      base::reject(object.path_of(key), "not what this version of quern stores",
                   base::printable(text, 60), kCacheGranularity);
  check_derived(object, "values_per_token", cache_values_per_token(contract));
  check_derived(object, "values_per_encoder_token", cache_values_per_encoder_token(contract));
  object.finish();
}

void check_version(JsonObject& root) {
  const std::int64_t version = root.get_int("quern", 0, INT64_MAX);
  if (version != kContractVersion)
    base::reject(root.path_of("quern"), "version of the contract this quern does not read",
                 cat(version), cat(kContractVersion));
}

std::string report_text(JsonObject& root, std::string_view key) {
  root.get_object(key);  // must be an object; its contents are a report for people
  return print_json_inline(root.get(key));
}

void read_architecture(JsonObject& root, Contract& out) {
  out.kind = root.get_enum("kind", kModelKinds);
  out.vocab_size = read_count(root, "vocab_size");
  out.d_model = read_count(root, "d_model");
  out.max_positions = read_count(root, "max_positions");
  JsonObject embedding = root.get_object("embedding");
  out.embedding = read_embedding(embedding);
  embedding.finish();
  out.norms = read_named<Norm>(root, "norms", kMaxNames, read_norm);
  out.ropes = read_named<Rope>(root, "ropes", kMaxNames, read_rope);
  out.ops = read_named<Op>(root, "ops", kMaxNames, read_op);
  out.blocks = read_named<Block>(root, "blocks", kMaxNames, read_block);
  out.encoder = read_nullable(
      root, "encoder", [&] { return read_stack(root.get_object("encoder"), StackPlace::encoder); });
  out.decoder = read_nullable(
      root, "decoder", [&] { return read_stack(root.get_object("decoder"), StackPlace::decoder); });
  out.head = read_head(root.get_object("head"));
  out.pooling = read_pooling(root);
}

}  // namespace

namespace {

Contract read_document(JsonObject& root) {
  Contract out{};
  check_version(root);
  out.name = root.get_string("name");
  out.family = root.get_string("family");
  read_architecture(root, out);
  root.get_object("cache");
  out.tokens = read_tokens(root.get_object("tokens"));
  out.generation = read_generation(root.get_object("generation"));
  out.tokenizer = read_tokenizer(root.get_object("tokenizer"));
  out.chat = read_chat(root.get_object("chat"));
  out.quantization_json = report_text(root, "quantization");
  out.counts = read_counts(root.get_object("counts"));
  out.source_json = report_text(root, "source");
  out.weights_json = report_text(root, "weights");
  root.finish();
  return out;
}

// A whole document without one of the keys is what an older quern-convert wrote.
Contract read_written(JsonObject& root) {
  try {
    return read_document(root);
  } catch (const base::Error& error) {
    if (error.what_only() != "key is missing") throw;
    base::reject(error.where(), "key is missing; convert the model again (an older quern-convert wrote it, or the key "
                                "was removed)");
  }
}

}  // namespace

Contract read_draft(std::string_view json, std::string_view where) {
  const Json document = base::parse_json(json, where);
  JsonObject root(document, std::string(where));
  Contract out = read_document(root);
  validate(out, where);
  return out;
}

Contract read_contract(std::string_view json, std::string_view where) {
  const Json document = base::parse_json(json, where);
  JsonObject root(document, std::string(where));
  Contract out = read_written(root);
  validate(out, where);
  check_cache_section(root.get_object("cache"), out);
  return out;
}

}  // namespace quern::contract
