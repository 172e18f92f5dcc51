// Beam search over a table in place of a model, against generate() of the reference library over
// the same table; ties, limits and interruption.
#include "engine/beam_search.hpp"

#include "base/error.hpp"
#include "catch.hpp"
#include "sampling/generation_cases.hpp"

namespace quern::tests {

namespace {

using Ids = std::vector<std::int32_t>;

// The logits after the tokens a, b (scripts/make_generation_goldens.py).
std::vector<float> table(std::uint32_t seed, std::int32_t a, std::int32_t b,
                         std::size_t vocab_size) {
  std::vector<float> row;
  for (std::uint32_t c = 0; c < vocab_size; ++c) {
    std::uint32_t x = static_cast<std::uint32_t>(a) * 7919U +
                      static_cast<std::uint32_t>(b) * 104729U + c * 1299709U + seed * 15485863U;
    for (int i = 0; i < 3; ++i) {
      x ^= x >> 16;
      x *= 0x45D9F3BU;
    }
    row.push_back(static_cast<float>((x >> 10) % (6U << 19)) / (1 << 19));
  }
  return row;
}

class TableModel : public engine::BeamModel {
 public:
  TableModel(std::uint32_t seed, std::size_t vocab_size, std::size_t n_beams, const Ids& prompt)
      : seed_(seed), vocab_size_(vocab_size), sequences_(n_beams, prompt) {}

  std::span<const float> logits(std::size_t beam) override {
    const Ids& s = sequences_[beam];
    row_ = table(seed_, s.size() > 1 ? s[s.size() - 2] : 0, s.back(), vocab_size_);
    if (spoil) row_[3] = std::nanf("");
    if (flat) std::fill(row_.begin(), row_.end(), 1.0F);
    return row_;
  }
  void advance(std::span<const std::size_t> parents, std::span<const std::int32_t> ids) override {
    std::vector<Ids> next;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      next.push_back(sequences_[parents[i]]);
      next.back().push_back(ids[i]);
    }
    sequences_ = next;
    ++n_steps;
  }

  bool spoil = false, flat = false;
  std::size_t n_steps = 0;

 private:
  std::uint32_t seed_;
  std::size_t vocab_size_;
  std::vector<Ids> sequences_;
  std::vector<float> row_;
};

engine::BeamOptions beam_options(const base::Json& o) {
  engine::BeamOptions options;
  options.n_beams = o["num_beams"].get<std::size_t>();
  options.n_return = o["num_return_sequences"].get<std::size_t>();
  options.length_penalty = o["length_penalty"].get<double>();
  const base::Json& stopping = o["early_stopping"];
  options.early_stopping = stopping.is_string()   ? engine::EarlyStopping::never
                           : stopping.get<bool>() ? engine::EarlyStopping::yes
                                                  : engine::EarlyStopping::no;
  options.max_length = o["max_length"].get<std::size_t>();
  options.ends = ids_of(o["eos_token_id"]);
  return options;
}

}  // namespace

TEST_CASE("beam search finds the reference library's sequences and scores", "[beams]") {
  const base::Json data = generation_cases("search.json");
  const auto vocab_size = data["vocab_size"].get<std::size_t>();
  for (const base::Json& test : data["cases"]) {
    INFO(test.dump());
    const Ids prompt = ids_of(test["prompt"]);
    const engine::BeamOptions options = beam_options(test["options"]);
    base::Json about = test["rules"];
    about.update(test["options"]);
    if (about.contains("min_new_tokens"))
      about.erase("min_length");  // generate() follows one of them
    sampling::TokenRules rules(rule_options(about, prompt.size()), vocab_size);
    TableModel model(test["seed"].get<std::uint32_t>(), vocab_size, options.n_beams, prompt);
    const std::vector<engine::Hypothesis> found = beam_search(model, prompt, rules, options);
    REQUIRE(found.size() == options.n_return);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].ids == ids_of(test["ids"][i]));
      CHECK(near(found[i].score, test["scores"][i].get<float>()));
      CHECK(found[i].finished);
    }
  }
  CHECK(data["cases"].size() > 200);
}

TEST_CASE("equal scores go to the lowest beam and id", "[beams]") {
  engine::BeamOptions options;
  options.n_beams = 3;
  options.n_return = 3;
  options.max_length = 3;
  TableModel model(1, 7, 3, {4});
  model.flat = true;
  sampling::TokenRules rules({}, 7);
  const std::vector<engine::Hypothesis> found = beam_search(model, Ids{4}, rules, options);
  REQUIRE(found.size() == 3);
  CHECK(found[0].ids == Ids{0, 0});
  CHECK(found[1].ids == Ids{0, 1});
  CHECK(found[2].ids == Ids{0, 2});
}

TEST_CASE("a search ends at its limits, when interrupted and when nothing may be chosen",
          "[beams]") {
  engine::BeamOptions options;
  options.n_beams = 2;
  options.max_length = 4;
  sampling::TokenRules free({}, 23);
  TableModel full(1, 23, 2, {4, 5, 6, 7});
  CHECK(beam_search(full, Ids{4, 5, 6, 7}, free, options).front().ids.empty());
  CHECK(full.n_steps == 0);

  std::size_t asked = 0;
  options.max_length = 50;
  options.stop_requested = [&] { return ++asked > 5; };
  TableModel stopped(1, 23, 2, {4});
  const engine::Hypothesis best = beam_search(stopped, Ids{4}, free, options).front();
  CHECK(best.ids.size() == 5);
  CHECK_FALSE(best.finished);
  CHECK(best.score < 0);

  options.stop_requested = nullptr;
  options.max_length = 4;
  sampling::TokenRuleOptions nothing;
  for (std::int32_t id = 0; id < 23; ++id) nothing.suppress.push_back(id);
  sampling::TokenRules none(nothing, 23);
  TableModel model(1, 23, 2, {4});
  CHECK_FALSE(beam_search(model, Ids{4}, none, options).front().finished);

  TableModel bad(1, 23, 2, {4});
  bad.spoil = true;
  CHECK_THROWS_AS(beam_search(bad, Ids{4}, free, options), base::Error);
}

}  // namespace quern::tests
