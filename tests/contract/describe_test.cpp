// The report: equations of the known block shapes, figures equal to the contract's, all points
// present.
#include "contract/describe.hpp"
#include "base/json_reader.hpp"
#include "catch.hpp"
#include "contract/tensors.hpp"
#include "random_contract.hpp"

namespace quern::contract {
namespace {

using base::Json;

Contract small() {
  return gated_decoder({100, 64, 6, 4, 2, 16, 96, true, false});
}

// The value of a row of the JSON report.
std::string value_of(const Json& rows, const std::string& label) {
  for (const Json& row : rows)
    if (row["label"] == label) return row["value"].get<std::string>();
  return "(no row " + label + ")";
}
std::string equation_of(const Contract& contract, const std::string& label) {
  validate(contract, "test");
  return value_of(Json::parse(describe_json(contract))["equations"], label);
}

}  // namespace

TEST_CASE("equations: pre, post, sandwich, parallel, scales") {
  const std::string all = "layers 0-5";
  Contract c = small();
  std::vector<Branch>& branches = c.blocks["block"].branches;
  CHECK(equation_of(c, all) == "U = X + Attn(RMS(X)); Y = U + FFN(RMS(U))");
  CHECK(equation_of(c, "input") == "X_0 = E[token]");
  CHECK(equation_of(c, "output") == "logits = E RMS(X_n)");
  CHECK(equation_of(c, "FFN(z)") == "Wdown (silu(Wgate z) * (Wup z))");
  CHECK(equation_of(c, "RMS(x)") == "x / sqrt(mean(x^2) + 1e-5) * w");

  branches[0].norm_out = branches[1].norm_out = "rms";
  CHECK(equation_of(c, all) == "U = X + RMS(Attn(RMS(X))); Y = U + RMS(FFN(RMS(U)))");

  branches[0] = {std::nullopt, "attn", std::nullopt, "rms", 1, 1};
  branches[1] = {std::nullopt, "ffn", std::nullopt, "rms", 1, 1};
  CHECK(equation_of(c, all) == "U = RMS(X + Attn(X)); Y = RMS(U + FFN(U))");

  branches[0] = {"rms", "attn", std::nullopt, std::nullopt, 0.5, 0.25};
  c.blocks["block"].skip_scale = 2;
  CHECK(equation_of(c, all) ==
        "U = 2.0 * X + 0.25 * Attn(0.5 * RMS(X)); Y = RMS(2.0 * U + FFN(U))");

  c = small();
  c.blocks["block"].residual = Residual::parallel;
  CHECK(equation_of(c, all) == "Y = X + Attn(RMS(X)) + FFN(RMS(X))");
  c.blocks["block"].branches[1].norm_in = kSharedNorm;
  CHECK(equation_of(c, all) == "N0 = RMS(X); Y = X + Attn(N0) + FFN(N0)");

  c = small();
  c.blocks["block"].residual = Residual::normed;
  CHECK(equation_of(c, all) == "N0 = RMS(X); U = N0 + Attn(N0); N1 = RMS(U); Y = N1 + FFN(N1)");
}

TEST_CASE("equations: several norms, ops and layer groups keep their names") {
  Contract c = small();
  c.norms["ln"] = {NormKind::layer_norm, 1e-6, true, true, 0, Accumulate::f32};
  c.norms["unit"] = {NormKind::rms_norm, 1e-6, true, false, 1, Accumulate::f32};
  c.ops["local"] = c.ops["attn"];
  c.ops["local"].attention->mask.window = 8;
  c.ops["local"].attention->softcap = 50;
  c.blocks["local"] = {Residual::sequential, 1, {{"unit", "local", "ln", std::nullopt, 1, 1}}};
  c.decoder->layers = {{{"local", "block"}, 2, false}, {{"local"}, 1, false}};
  c.head.softcap = 30;
  c.head.logit_scale = 0.5;
  c.head.tied = false;
  CHECK(equation_of(c, "layers 0, 2, 4") == "Y = X + LN(Attn_local(RMS_unit(X)))");
  CHECK(equation_of(c, "layers 1, 3") == "U = X + Attn_attn(RMS_rms(X)); Y = U + FFN(RMS_rms(U))");
  CHECK(equation_of(c, "RMS_unit(x)") == "x / sqrt(mean(x^2) + 1e-6) * (w + 1.0)");
  CHECK(equation_of(c, "output") == "logits = 30.0 * tanh((0.5 * (Whead RMS_rms(X_n))) / 30.0)");
  CHECK(equation_of(c, "Attn_local(z)").find("50.0 * tanh((0.25 * q_i k_j) / 50.0)") !=
        std::string::npos);
}

TEST_CASE("the table has the eight points, and its figures are the contract's") {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const Contract contract = RandomContract(seed).make();
    INFO("seed " << seed);
    const std::string text = describe_text(contract);
    const Json report = Json::parse(describe_json(contract));
    for (int point = 1; point <= 8; ++point)
      REQUIRE(text.find(base::cat("\n", point, ". ")) != std::string::npos);
    REQUIRE(report["points"].size() >= 8);
    const Json& parameters = report["parameters"];
    std::uint64_t sum = 0;
    for (const char* part : {"embedding", "positions", "attention", "ffn", "norms", "head"})
      sum += parameters[part].get<std::uint64_t>();
    REQUIRE(sum == parameters_by_formula(contract));
    REQUIRE(parameters["total"] == sum);
    REQUIRE(parameters["read_per_token"].get<std::uint64_t>() <= sum);
    REQUIRE(text.find(base::grouped(sum)) != std::string::npos);
    // Every norm, rope, op and block of the contract has its row, every layer its equation.
    for (const auto& [name, op] : contract.ops)
      REQUIRE(text.find("\"" + name + "\"") != std::string::npos);
    for (const auto& [name, norm] : contract.norms)
      REQUIRE(text.find("norm \"" + name + "\"") != std::string::npos);
    for (const auto& [name, rope] : contract.ropes)
      REQUIRE(text.find("rope \"" + name + "\"") != std::string::npos);
  }
}

TEST_CASE("cache bytes: 2 L S n_kv d b for equal layers; windows bound what is held") {
  const auto cost_of = [](const Contract& contract, const std::string& type) {
    const Json report = Json::parse(describe_json(contract));
    for (const Json& row : report["cache"]["types"])
      if (row["type"] == type) return row;
    return Json();
  };
  Contract c = small();
  const std::uint64_t values = 2 * 6 * 2 * 16;
  CHECK(cost_of(c, "f32")["payload_bytes_per_token"] == 4 * values);
  CHECK(cost_of(c, "f32")["scale_bytes_per_token"] == 0);
  CHECK(cost_of(c, "f16")["payload_bytes_per_1024_tokens"] == 2 * values * 1024);
  CHECK(cost_of(c, "int8")["payload_bytes_per_token"] == values);
  CHECK(cost_of(c, "int8")["scale_bytes_per_token"] == 6 * 2 * 2 * 4);
  c.ops["attn"].attention->mask.window = 100;
  c.ops["attn"].attention->mask.sinks = 4;
  CHECK(cost_of(c, "f32")["payload_bytes_per_1024_tokens"] == 4 * values * 104);
  // A reader without a window makes the layer it reads hold everything, and adds nothing of its
  // own.
  c.ops["reader"] = c.ops["attn"];
  c.ops["reader"].attention->kv_from = 0;
  c.ops["reader"].attention->mask = {MaskKind::causal, std::nullopt, 0};
  c.blocks["reader"] = {
      Residual::sequential, 1, {{"rms", "reader", std::nullopt, std::nullopt, 1, 1}}};
  c.decoder->layers.push_back({{"reader"}, 1, false});
  validate(c, "reader");
  CHECK(cost_of(c, "f32")["payload_bytes_per_token"] == 4 * values);
  CHECK(cost_of(c, "f32")["payload_bytes_per_1024_tokens"] == 4 * values / 6 * (1024 + 5 * 104));
}

TEST_CASE("stored tensors are summed by role and format, and a missing one shows") {
  const Contract contract = small();
  std::vector<StoredTensor> stored;
  std::uint64_t bytes = 0;
  for (const TensorSpec& spec : expected_tensors(contract)) {
    stored.push_back(
        {spec.name, spec.matrix ? "bf16" : "f32", spec.parameters() * (spec.matrix ? 2 : 4)});
    bytes += stored.back().bytes;
  }
  const Json report = Json::parse(describe_json(contract, stored));
  std::uint64_t sum = 0;
  for (const Json& line : report["formats"]) sum += line["bytes"].get<std::uint64_t>();
  CHECK(sum == bytes);
  CHECK(describe_text(contract, stored).find("16.0 bits a weight") != std::string::npos);
  stored.pop_back();
  CHECK(describe_text(contract, stored).find("missing") != std::string::npos);
}

TEST_CASE("equations of latent and sparse attention, experts and cross-attention") {
  const Contract latent = sample("latent.json");
  CHECK(equation_of(latent, "layer 0") == "U = X + MLA_attn(RMS(X)); Y = U + FFN(RMS(U))");
  CHECK(equation_of(latent, "layers 1-2") == "U = X + MLA_attn(RMS(X)); Y = U + MoE_moe(RMS(U))");
  const std::string mla = equation_of(latent, "MLA_attn(z)");
  for (const char* part : {"cq = RMS(Wqa z + bqa)", "[c' | k'] = Wkva z + bkva; c = RMS(c')",
                           "k_h = [Wkb_h c | kr]; v_h = Wvb_h c", "kI = RoPE(LN(Wk z))",
                           "the 12 keys with the largest I_ij", "+ bo"}) {
    INFO(mla << " lacks " << part);
    CHECK(mla.find(part) != std::string::npos);
  }
  CHECK(equation_of(latent, "MLA_attn_lite(z)").find("[qn | qr]_h = (Wq z)_h") == 0);
  const std::string moe = equation_of(latent, "MoE_moe(z)");
  for (const char* part :
       {"score = sigmoid(Wr z + br)", "the 3 of 8 experts with the largest score + select_bias",
        "from the 2 of 4 groups with the best two scores added",
        "weight = 2.5 * score / (sum of the chosen + 1e-20)", "+ sigmoid(ws z) * shared(z)"}) {
    INFO(moe << " lacks " << part);
    CHECK(moe.find(part) != std::string::npos);
  }
  CHECK(equation_of(latent, "MoE_moe_plain(z)").find("softmax over the chosen scores") !=
        std::string::npos);
  CHECK(equation_of(latent, "FFN(z)") ==
        "Wdown (silu(min(Wgate z + bgate, 7.0)) * (clip(Wup z + bup, 7.0) + 1.0)) + bdown");

  const Contract both = sample("encoder_decoder.json");
  CHECK(equation_of(both, "encoder input") == "X_0 = Wp RMS(E[token] + P[position + 2]) + bp");
  CHECK(equation_of(both, "decoder input") == "X_0 = RMS(8.0 * E[token] + P[position])");
  CHECK(equation_of(both, "encoder output") == "Z = RMS(X_n)");
  CHECK(equation_of(both, "decoder layers 0-1") ==
        "U = RMS(X + Attn_write(X)); V = RMS(U + Cross(U)); Y = RMS(V + FFN(V))");
  CHECK(equation_of(both, "output") == "logits = E 0.125 * X_n + bhead");
  CHECK(equation_of(both, "Cross(z)").find("k = Wk Z + bk; v = Wv Z + bv") != std::string::npos);
  CHECK(equation_of(both, "Attn_write(z)").find("v = clip(Wv z, 8.0)") != std::string::npos);
  CHECK(equation_of(both, "Attn_write(z)").find("q_i k_j + B[bucket(j - i), h]") !=
        std::string::npos);

  const Contract encoder = sample("encoder.json");
  CHECK(equation_of(encoder, "input") == "X_0 = Wp LN(E[token] + T[type] + P[position + 2]) + bp");
  CHECK(equation_of(encoder, "output") ==
        "logits = Whead LN(tanh(Wt first_of_tokens(X_n) + bt)) + bhead");
  CHECK(equation_of(sample("sparse.json"), "NSA(z)").find("the 5 blocks of 16 keys") !=
        std::string::npos);
}

TEST_CASE("cache of every kind: rows held, by hand") {
  const auto cost_of = [](const std::string& name, const std::string& type) {
    const Json report = Json::parse(describe_json(sample(name)));
    for (const Json& row : report["cache"]["types"])
      if (row["type"] == type) return row;
    return Json();
  };
  // Three layers of latent + rotated key + indexer key, one with a window of 40 and 2 sinks.
  CHECK(cost_of("latent.json", "f32")["payload_bytes_per_token"] == 4 * (3 * (40 + 16) + 40));
  CHECK(cost_of("latent.json", "int8")["scale_bytes_per_token"] == 4 * (3 * 3 + 2));
  CHECK(cost_of("latent.json", "f16")["payload_bytes_per_1024_tokens"] ==
        2 * (1024 * 3 * 56 + 42 * 40));
  // Two layers of 16-wide multi-query heads; two of three branches of 2 x (16 + 12) values.
  const std::uint64_t branch = 2 * (16 + 12), rows = (1024 - 8) / 4 + 1;
  CHECK(cost_of("sparse.json", "int8")["payload_bytes_per_1024_tokens"] ==
        2 * (8 * branch * 4 + rows * branch + 1024 * branch + 24 * branch) + 2 * 1024 * 32);
  CHECK(cost_of("encoder_decoder.json", "f32")["payload_bytes_of_max_positions"] == 4 * 176 * 256);
  CHECK(cost_of("encoder.json", "f32")["payload_bytes_of_max_positions"] == 0);
  const std::string cross = describe_text(sample("encoder_decoder.json"));
  CHECK(cross.find("2 x 2 x (12 + 10) = 88 values per token of the encoder's input") !=
        std::string::npos);
  for (const char* name : {"latent.json", "sparse.json"})
    CHECK(describe_text(sample(name)).find("does not shrink the cache") != std::string::npos);
  CHECK(describe_text(sample("llama.json")).find("does not shrink the cache") == std::string::npos);
  CHECK(describe_text(sample("latent.json")).find("a latent row has no int4 form") != std::string::npos);
  CHECK(describe_text(sample("llama.json")).find("no int4 form") == std::string::npos);
  CHECK(describe_text(sample("sparse.json")).find(", compressed rows apart") != std::string::npos);
}

TEST_CASE("active parameters and the shares of a layer") {
  const Json report = Json::parse(describe_json(sample("latent.json")));
  const std::uint64_t total = report["parameters"]["total"];
  // Of 8 experts of 3 x 64 x 20 + 64 parameters 3 serve a token (two layers), of 6 plain ones 2.
  CHECK(total - report["parameters"]["active"].get<std::uint64_t>() ==
        2 * 5 * (3 * 64 * 20 + 64) + 4 * 2 * 64 * 20);
  for (const Json& layer : report["parameters"]["layers"])
    CHECK(layer["attention"].get<std::uint64_t>() + layer["ffn"].get<std::uint64_t>() +
              layer["norms"].get<std::uint64_t>() ==
          layer["total"].get<std::uint64_t>());
  // The 7B of the published widths: 67 % of a layer in the FFN, 33 % in the attention.
  const std::string text =
      describe_text(gated_decoder({32000, 4096, 32, 32, 32, 128, 11008, false, false}));
  CHECK(text.find("33.2 % attention, 66.8 % ffn") != std::string::npos);
  CHECK(text.find("width 11,008 (8/3 d_model rounded up to a multiple of 256)") !=
        std::string::npos);
  CHECK(text.find("6,738,415,616") != std::string::npos);
}

TEST_CASE("decoding reads neither the encoder nor rows it does not look up") {
  const auto read_of = [](const Contract& contract) {
    return Json::parse(describe_json(contract))["parameters"]["read_per_token"]
        .get<std::uint64_t>();
  };
  // Tied: the table is read whole, as the head.
  const Contract tied = gated_decoder({100, 64, 2, 4, 2, 16, 96, true, false});
  CHECK(read_of(tied) == parameters_by_formula(tied));
  const Contract untied = gated_decoder({100, 64, 2, 4, 2, 16, 96, false, false});
  CHECK(read_of(untied) == parameters_by_formula(untied) - 99 * 64);
  // Everything of the decoder but K and V of the encoder's output.
  const Contract both = sample("encoder_decoder.json");
  std::uint64_t decoder = 0;
  for (const TensorSpec& tensor : expected_tensors(both)) {
    const bool cross = tensor.name.find(".1.k.") != std::string::npos ||
                       tensor.name.find(".1.v.") != std::string::npos;
    if (tensor.name.find("encoder.") != 0 && !cross && !tensor.computed)
      decoder += tensor.parameters();
  }
  CHECK(read_of(both) == decoder);
}

}  // namespace quern::contract
