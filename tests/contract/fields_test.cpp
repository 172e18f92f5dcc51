// A field that a struct gains and the document does not is lost without a word. The bindings below
// stop compiling then: add the field to read*.cpp, document*.cpp, docs/CONTRACT.md and the
// samples, then here.
#include "base/json_reader.hpp"
#include "catch.hpp"
#include "samples.hpp"

namespace quern::contract {
namespace {

[[maybe_unused]] void every_field_is_known(const Contract& contract) {
  [[maybe_unused]] const auto& [name, family, kind, vocab_size, d_model, max_positions, embedding,
                                norms, ropes, ops, blocks, encoder, decoder, head, pooling, tokens,
                                generation, tokenizer, chat, counts, quantization, source,
                                weights] = contract;
  [[maybe_unused]] const auto& [d_embed, scale, positions, token_types, norm, project_in,
                                project_bias] = embedding;
  [[maybe_unused]] const auto& [table_kind, rows, offset, order, pad, after_project] =
      *positions;
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6] = norms.at("");
  [[maybe_unused]] const auto& [r1, r2, r3, r4, switch_rule, r6, r7] = ropes.at("");
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6] = *switch_rule;
  [[maybe_unused]] const auto& [op_kind, attention, mla, nsa, ffn, moe] = ops.at("");
  [[maybe_unused]] const auto& [b1, b2, branches] = blocks.at("");
  [[maybe_unused]] const auto& [c1, c2, c3, c4, c5, c6] = branches.at(0);
  [[maybe_unused]] const auto& [layers, final_norm, own] = *decoder;
  [[maybe_unused]] const auto& [g1, g2, g3] = layers.at(0);
  [[maybe_unused]] const auto& [o1, o2, o3] = *own;
  [[maybe_unused]] const auto& [h1, h2, h3, h4, h5, h6, transform, h8, h9, h10] = head;
  [[maybe_unused]] const auto& [x1, x2, x3, x4] = *transform;
  [[maybe_unused]] const auto& [w1, w2, w3, w4] = *pooling;
  [[maybe_unused]] const auto& [j1, j2, j3, j4, j5] = chat;
  [[maybe_unused]] const auto& [p1, p2] = counts;
}

[[maybe_unused]] void every_field_of_ops_is_known(const Op& op) {
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, qk_norm, a12, mask, a14,
                                alibi, relative_bias, a17, a18, a19] = *op.attention;
  [[maybe_unused]] const auto& [q1, q2] = *qk_norm;
  [[maybe_unused]] const auto& [m1, m2, m3] = mask;
  [[maybe_unused]] const auto& [l1, l2, l3] = *alibi;
  [[maybe_unused]] const auto& [b1, b2, b3] = *relative_bias;
  [[maybe_unused]] const auto& [d1, d2, d3, d4, d5, d6, d7, d8, d9, d10, d11, d12, d13, indexer] =
      *op.mla;
  [[maybe_unused]] const auto& [i1, i2, i3, i4, i5, i6] = *indexer;
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14] =
      *op.nsa;
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7] = *op.ffn;
  [[maybe_unused]] const auto& [e1, e2, e3, router, shared] = *op.moe;
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7, r8, r9] = router;
  [[maybe_unused]] const auto& [s1, s2] = *shared;
}

[[maybe_unused]] void every_field_of_text_is_known(const Contract& contract) {
  [[maybe_unused]] const auto& [t1, t2, t3, t4, t5, t6, t7, t8] = contract.tokens;
  [[maybe_unused]] const auto& [e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12, e13, e14, e15,
                                e16, e17, e18, e19, e20] = contract.generation;
  [[maybe_unused]] const auto& [k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13, k14, k15,
                                k16, k17, k18, k19, pair, k21, added] = contract.tokenizer;
  [[maybe_unused]] const auto& [u1, u2, u3, u4, u5, u6, u7, u8] = *pair;
  [[maybe_unused]] const auto& [d1, d2, d3, d4, d5, d6, d7] = added.at(0);
}

void collect_keys(const base::Json& value, std::vector<std::string>& keys) {
  for (const auto& item : value.items()) {
    if (value.is_object()) keys.push_back(item.key());
    if (item.value().is_structured()) collect_keys(item.value(), keys);
  }
}

}  // namespace

TEST_CASE("docs/CONTRACT.md names every key of the document") {
  const std::string docs =
      base::read_text_file(std::string(QUERN_SOURCE_DIR) + "/docs/CONTRACT.md", 1 << 20);
  for (const std::string& name : kSamples) {
    base::Json document = base::Json::parse(sample_text(name));
    for (const char* report : {"quantization", "source", "weights"})
      document[report] = base::Json::object();
    // Names that the model chooses are no keys.
    for (const char* section : {"norms", "ropes", "ops", "blocks"}) {
      base::Json values = base::Json::array();
      for (const auto& item : document[section].items()) values.push_back(item.value());
      document[section] = values;
    }
    std::vector<std::string> keys;
    collect_keys(document, keys);
    for (const std::string& key : keys) {
      INFO(key);
      CHECK(docs.find("`" + key + "`") != std::string::npos);
    }
  }
}

}  // namespace quern::contract
