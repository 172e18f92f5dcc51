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

}  // namespace quern::contract
