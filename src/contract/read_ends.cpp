#include "contract/limits.hpp"
#include "contract/read_parts.hpp"
#include "contract/vocabulary.hpp"

namespace quern::contract {

using base::JsonObject;

namespace {

PositionTable read_positions(JsonObject object) {
  PositionTable out{};
  out.kind = object.get_enum("kind", kPositionTableKinds);
  out.rows = read_count(object, "rows");
  out.offset = read_count(object, "offset");
  out.order =
      read_nullable(object, "order", [&] { return object.get_enum("order", kSinusoidOrders); });
  out.pad = read_optional_count(object, "pad");
  out.after_project = object.get_bool("after_project");
  object.finish();
  return out;
}

HeadTransform read_transform(JsonObject object) {
  HeadTransform out{};
  out.d_out = read_count(object, "d_out");
  out.activation = read_nullable(object, "activation",
                                 [&] { return object.get_enum("activation", kActivations); });
  out.bias = object.get_bool("bias");
  out.norm = read_optional_name(object, "norm");
  object.finish();
  return out;
}

}  // namespace

Embedding read_embedding(JsonObject& object) {
  Embedding out{};
  out.d_embed = read_count(object, "d_embed");
  out.scale = object.get_double("scale");
  out.positions = read_nullable(object, "positions",
                                [&] { return read_positions(object.get_object("positions")); });
  out.token_types = read_count(object, "token_types");
  out.norm = read_optional_name(object, "norm");
  out.project_in = object.get_bool("project_in");
  out.project_bias = object.get_bool("project_bias");
  return out;
}

EncoderEmbedding read_encoder_embedding(JsonObject object) {
  EncoderEmbedding out{};
  out.own_tokens = object.get_enum("tokens", kEncoderTokens);
  out.vocab_size = read_count(object, "vocab_size");
  out.embedding = read_embedding(object);
  object.finish();
  return out;
}

Head read_head(JsonObject object) {
  Head out{};
  out.kind = object.get_enum("kind", kHeadKinds);
  out.tied = object.get_bool("tied");
  out.bias = object.get_bool("bias");
  out.in_scale = object.get_double("in_scale");
  out.logit_scale = object.get_double("logit_scale");
  out.softcap = read_optional_number(object, "softcap");
  out.transform = read_nullable(object, "transform",
                                [&] { return read_transform(object.get_object("transform")); });
  out.pool = read_nullable(object, "pool", [&] { return object.get_enum("pool", kPools); });
  out.pool_pad = read_optional_count(object, "pool_pad");
  out.labels = read_strings(object, "labels", kMaxLabels);
  object.finish();
  return out;
}

std::optional<Pooling> read_pooling(JsonObject& root) {
  return read_nullable(root, "pooling", [&] {
    JsonObject object = root.get_object("pooling");
    Pooling out{};
    out.max_tokens = read_optional_count(object, "max_tokens");
    out.mode = object.get_enum("mode", kPools);
    out.normalize = object.get_bool("normalize");
    for (const base::Json& layer : read_array(object, "dense", kMaxPoolingLayers))
      out.dense.push_back(
          read_transform(JsonObject(layer, base::cat(object.path_of("dense"), "[", out.dense.size(), "]"))));
    object.finish();
    return out;
  });
}

}  // namespace quern::contract
