#include "contract/document.hpp"

#include "contract/json.hpp"
#include "contract/tensors.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::enum_name;
using base::Json;

namespace {

template <class E, std::size_t N>
Json optional_word(const std::optional<E>& value, const base::EnumName<E> (&names)[N]) {
  return value ? Json(enum_name(*value, names)) : Json(nullptr);
}

Json embedding_document(const Embedding& embedding) {
  Json positions = nullptr;
  if (const auto& table = embedding.positions)
    positions = {{"kind", enum_name(table->kind, kPositionTableKinds)},
                 {"rows", table->rows},
                 {"offset", table->offset},
                 {"order", optional_word(table->order, kSinusoidOrders)},
                 {"pad", table->pad ? Json(*table->pad) : Json(nullptr)},
                 {"after_project", table->after_project}};
  return {{"d_embed", embedding.d_embed},
          {"scale", embedding.scale},
          {"positions", std::move(positions)},
          {"token_types", embedding.token_types},
          {"norm", optional_document(embedding.norm)},
          {"project_in", embedding.project_in},
          {"project_bias", embedding.project_bias}};
}

Json encoder_embedding_document(const std::optional<EncoderEmbedding>& encoder) {
  if (!encoder) return nullptr;
  Json out = {{"tokens", enum_name(encoder->own_tokens, kEncoderTokens)},
              {"vocab_size", encoder->vocab_size}};
  const Json embedding = embedding_document(encoder->embedding);
  for (const auto& [key, value] : embedding.items()) out[key] = value;
  return out;
}

Json block_document(const Block& block) {
  Json branches = Json::array();
  for (const Branch& branch : block.branches)
    branches.push_back({{"norm_in", optional_document(branch.norm_in)},
                        {"op", branch.op},
                        {"norm_out", optional_document(branch.norm_out)},
                        {"norm_after", optional_document(branch.norm_after)},
                        {"in_scale", branch.in_scale},
                        {"out_scale", branch.out_scale}});
  return {{"residual", enum_name(block.residual, kResiduals)},
          {"skip_scale", block.skip_scale},
          {"branches", std::move(branches)}};
}

Json layers_document(const std::optional<Stack>& stack) {
  if (!stack) return nullptr;
  Json layers = Json::array();
  for (const LayerGroup& group : stack->layers)
    layers.push_back({{"pattern", Json(group.pattern)},
                      {"repeat", group.repeat},
                      {"share_weights", group.share_weights}});
  return {{"layers", std::move(layers)}, {"final_norm", optional_document(stack->final_norm)}};
}

Json encoder_document(const std::optional<Stack>& stack) {
  Json out = layers_document(stack);
  if (stack) out["embedding"] = encoder_embedding_document(stack->embedding);
  return out;
}

Json transform_document(const std::optional<HeadTransform>& transform) {
  if (!transform) return nullptr;
  return {{"d_out", transform->d_out},
          {"activation", optional_word(transform->activation, kActivations)},
          {"bias", transform->bias},
          {"norm", optional_document(transform->norm)}};
}

Json pooling_document(const std::optional<Pooling>& pooling) {
  if (!pooling) return nullptr;
  Json dense = Json::array();
  for (const HeadTransform& layer : pooling->dense) dense.push_back(transform_document(layer));
  return {{"mode", enum_name(pooling->mode, kPools)},
          {"dense", std::move(dense)},
          {"normalize", pooling->normalize},
          {"max_tokens", optional_document(pooling->max_tokens)}};
}

Json head_document(const Head& head) {
  return {{"kind", enum_name(head.kind, kHeadKinds)},
          {"tied", head.tied},
          {"bias", head.bias},
          {"in_scale", head.in_scale},
          {"logit_scale", head.logit_scale},
          {"softcap", optional_document(head.softcap)},
          {"transform", transform_document(head.transform)},
          {"pool", optional_word(head.pool, kPools)},
          {"pool_pad", optional_document(head.pool_pad)},
          {"labels", Json(head.labels)}};
}

template <class T>
Json named_document(const std::map<std::string, T>& items, Json (*document_of)(const T&)) {
  Json out = Json::object();
  for (const auto& [name, value] : items) out[name] = document_of(value);
  return out;
}

Json report_document(const std::string& text, std::string_view key) {
  Json out = base::parse_json(text, key);
  if (!out.is_object()) base::reject(key, "wrong kind of value", out.type_name(), "object");
  return out;
}

}  // namespace

Json contract_document(const Contract& contract) {
  Json out;
  out["quern"] = kContractVersion;
  out["name"] = contract.name;
  out["family"] = contract.family;
  out["kind"] = enum_name(contract.kind, kModelKinds);
  out["vocab_size"] = contract.vocab_size;
  out["d_model"] = contract.d_model;
  out["max_positions"] = contract.max_positions;
  out["embedding"] = embedding_document(contract.embedding);
  out["norms"] = named_document(contract.norms, norm_document);
  out["ropes"] = named_document(contract.ropes, rope_document);
  out["ops"] = named_document(contract.ops, op_document);
  out["blocks"] = named_document(contract.blocks, block_document);
  out["encoder"] = encoder_document(contract.encoder);
  out["decoder"] = layers_document(contract.decoder);
  out["head"] = head_document(contract.head);
  out["pooling"] = pooling_document(contract.pooling);
  out["cache"] = {{"k", kCacheGranularity},
                  {"v", kCacheGranularity},
                  {"values_per_token", cache_values_per_token(contract)},
                  {"values_per_encoder_token", cache_values_per_encoder_token(contract)}};
  out["tokens"] = tokens_document(contract.tokens);
  out["generation"] = generation_document(contract.generation);
  out["tokenizer"] = tokenizer_document(contract.tokenizer);
  out["chat"] = chat_document(contract.chat);
  out["quantization"] = report_document(contract.quantization_json, "quantization");
  out["counts"] = {{"parameters_by_formula", contract.counts.parameters_by_formula},
                   {"parameters_in_tensors", contract.counts.parameters_in_tensors}};
  out["source"] = report_document(contract.source_json, "source");
  out["weights"] = report_document(contract.weights_json, "weights");
  return out;
}

}  // namespace quern::contract
