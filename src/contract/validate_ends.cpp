#include "contract/rules.hpp"
#include "contract/tensors.hpp"

namespace quern::contract {

namespace {

void check_embedding(const Rules& rules, const std::string& path, const Embedding& embedding) {
  rules.range(path + ".d_embed", embedding.d_embed, 1, kMaxWidth);
  rules.factor(path + ".scale", embedding.scale);
  rules.range(path + ".token_types", embedding.token_types, 0, kMaxTokenTypes);
  rules.norm_resolves(path + ".norm", embedding.norm);
  rules.require(embedding.project_in || embedding.d_embed == rules.contract.d_model,
                path + ".d_embed",
                base::cat("must equal d_model (", rules.contract.d_model, ") unless project_in"));
  rules.require(embedding.project_in || !embedding.project_bias, path + ".project_bias",
                "belongs to project_in");
  if (!embedding.positions) return;
  const PositionTable& table = *embedding.positions;
  rules.range(path + ".positions.rows", table.rows, 1, 2 * kMaxPositions);
  rules.range(path + ".positions.offset", table.offset, 0, kMaxPositions);
  rules.require(table.order.has_value() == (table.kind == PositionTableKind::sinusoidal),
                path + ".positions.order", "is given for sinusoidal tables, and only for them");
  if (table.pad) {
    rules.require(rules.contract.kind == ModelKind::encoder, path + ".positions.pad",
                  "only an encoder has all tokens before it counts them");
    rules.range(path + ".positions.pad", *table.pad, 0,
                rules.contract.vocab_size - 1);
    rules.range(path + ".positions.offset", table.offset, 1, kMaxPositions);
  }
  rules.require(embedding.project_in || !table.after_project, path + ".positions.after_project",
                "belongs to project_in");
  const std::size_t width = table.after_project ? rules.contract.d_model : embedding.d_embed;
  if (table.kind == PositionTableKind::sinusoidal)  // the converter makes it
    rules.product(path + ".positions.rows", {"rows x width", table.rows, width}, kMaxComputedTable);
  const std::size_t needed = rules.contract.max_positions + table.offset;
  if (table.rows < needed)
    rules.fail(path + ".positions.rows", "the table has no row for the last position",
               base::cat(table.rows), base::cat("at least ", needed));
}

void check_encoder_embedding(const Rules& rules, const EncoderEmbedding& own) {
  const std::string path = "encoder.embedding";
  rules.require(rules.contract.kind == ModelKind::encoder_decoder, path,
                "an encoder without a decoder uses the model's embedding");
  rules.range(path + ".vocab_size", own.vocab_size, 1, kMaxVocab);
  rules.require(own.own_tokens || own.vocab_size == rules.contract.vocab_size, path + ".vocab_size",
                "a shared table has the model's vocab_size");
  rules.require(own.own_tokens || own.embedding.d_embed == rules.contract.embedding.d_embed,
                path + ".d_embed", "a shared table has the model's d_embed");
  check_embedding(rules, path, own.embedding);
}

}  // namespace

void check_embeddings(const Rules& rules) {
  check_embedding(rules, "embedding", rules.contract.embedding);
  if (rules.contract.encoder && rules.contract.encoder->embedding)
    check_encoder_embedding(rules, *rules.contract.encoder->embedding);
}

namespace {

void check_transform(const Rules& rules, const std::string& path, const HeadTransform& transform) {
  rules.range(path + ".d_out", transform.d_out, 1, kMaxWidth);
  rules.norm_resolves(path + ".norm", transform.norm);
}

void check_pooling(const Rules& rules, const Pooling& pooling) {
  if (pooling.max_tokens) rules.range("pooling.max_tokens", *pooling.max_tokens, 1, kMaxPositions);
  rules.range("pooling.dense", pooling.dense.size(), 0, kMaxPoolingLayers);
  for (std::size_t i = 0; i < pooling.dense.size(); ++i)
    check_transform(rules, base::cat("pooling.dense[", i, "]"), pooling.dense[i]);
}

void check_pool_pad(const Rules& rules, const Head& head) {
  if (!head.pool_pad) return;
  rules.require(head.pool == Pool::last, "head.pool_pad", "belongs to the pool `last`");
  rules.range("head.pool_pad", *head.pool_pad, 0, rules.contract.vocab_size - 1);
}

}  // namespace

void check_head(const Rules& rules) {
  if (rules.contract.pooling) check_pooling(rules, *rules.contract.pooling);
  const Head& head = rules.contract.head;
  check_pool_pad(rules, head);
  rules.factor("head.in_scale", head.in_scale);
  rules.factor("head.logit_scale", head.logit_scale);
  if (head.softcap) rules.positive("head.softcap", *head.softcap);
  if (head.transform) check_transform(rules, "head.transform", *head.transform);
  const bool lm = head.kind == HeadKind::lm, classify = has_labels(head.kind);
  rules.require(lm || !head.tied, "head.tied", "only a head of kind lm can be tied");
  rules.require(!head.tied || rules.contract.embedding.d_embed == head_inputs(rules.contract),
                "head.tied", "a tied head needs d_embed = the width it is given");
  const bool plain =
      !head.bias && !head.transform && !head.softcap && head.in_scale == 1 && head.logit_scale == 1;
  rules.require(lm || classify || plain, "head.kind",
                "a model without a head has no bias, transform, softcap or scale of it");
  rules.require(classify || (!head.pool && head.labels.empty()), "head.labels",
                "pool and labels belong to heads that classify");
  if (classify) rules.range("head.labels", head.labels.size(), 1, kMaxLabels);
  rules.require(head.kind != HeadKind::span || (head.labels.size() == 2 && !head.pool), "head.labels",
                "a head of kind span has two for every token: where the answer begins and where it ends");
  for (const std::string& label : head.labels) rules.label("head.labels", label);
}

}  // namespace quern::contract
