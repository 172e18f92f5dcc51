// A field that a struct gains and the document does not is lost without a word. The bindings below
// stop compiling then: add the field to read*.cpp, document*.cpp, docs/CONTRACT.md and both
// samples, then here.
#include "base/json_reader.hpp"
#include "catch.hpp"
#include "samples.hpp"

namespace quern::contract {
namespace {

[[maybe_unused]] void every_field_is_known(const Contract& contract) {
  [[maybe_unused]] const auto& [name, family, kind, vocab_size, d_model, max_positions, embedding,
                                norms, ropes, ops, blocks, encoder, decoder, head, tokens,
                                generation, tokenizer, chat, counts, quantization, source,
                                weights] = contract;
  [[maybe_unused]] const auto& [d_embed, scale, positions, token_types, norm, project_in] =
      embedding;
  [[maybe_unused]] const auto& [table_kind, rows, offset] = *positions;
  [[maybe_unused]] const auto& [n1, n2, n3, n4, n5, n6] = norms.at("");
  [[maybe_unused]] const auto& [r1, r2, r3, r4, switch_rule, r6, r7] = ropes.at("");
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6] = *switch_rule;
  [[maybe_unused]] const auto& [op_kind, attention, ffn] = ops.at("");
  [[maybe_unused]] const auto& [a1, a2, a3, a4, a5, a6, a7, a8, a9, qk_norm, a11, mask, a13, alibi,
                                a15, a16] = *attention;
  [[maybe_unused]] const auto& [q1, q2] = *qk_norm;
  [[maybe_unused]] const auto& [m1, m2, m3] = mask;
  [[maybe_unused]] const auto& [l1, l2] = *alibi;
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5] = *ffn;
  [[maybe_unused]] const auto& [b1, b2, branches] = blocks.at("");
  [[maybe_unused]] const auto& [c1, c2, c3, c4, c5, c6] = branches.at(0);
  [[maybe_unused]] const auto& [layers, final_norm] = *decoder;
  [[maybe_unused]] const auto& [g1, g2, g3] = layers.at(0);
  [[maybe_unused]] const auto& [h1, h2, h3, h4, h5, h6] = head;
  [[maybe_unused]] const auto& [t1, t2, t3, t4, t5, t6] = tokens;
  [[maybe_unused]] const auto& [e1, e2, e3, e4, e5, e6, e7] = generation;
  [[maybe_unused]] const auto& [k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13, k14, k15,
                                k16, k17, k18, k19, pair, k21, added] = tokenizer;
  [[maybe_unused]] const auto& [u1, u2, u3, u4, u5, u6, u7, u8] = *pair;
  [[maybe_unused]] const auto& [d1, d2, d3, d4, d5, d6, d7] = added.at(0);
  [[maybe_unused]] const auto& [j1, j2, j3] = chat;
  [[maybe_unused]] const auto& [p1, p2] = counts;
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
  const std::vector<std::string> chosen = {"rms",   "main", "attn", "attn_reuse", "ffn",
                                           "block", "ln",   "long", "last",       "mlp"};
  for (const std::string name : {"llama.json", "gpt2.json"}) {
    base::Json document = base::Json::parse(sample_text(name));
    for (const char* report : {"quantization", "source", "weights"})
      document[report] = base::Json::object();
    std::vector<std::string> keys;
    collect_keys(document, keys);
    for (const std::string& key : keys) {
      if (std::find(chosen.begin(), chosen.end(), key) != chosen.end()) continue;
      INFO(key);
      CHECK(docs.find("`" + key + "`") != std::string::npos);
    }
  }
}

}  // namespace quern::contract
