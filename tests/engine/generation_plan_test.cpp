// What the user says, then what the checkpoint says; lengths as the reference library counts them.
#include "engine/generation_plan.hpp"

#include "base/error.hpp"
#include "catch.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

using engine::plan_generation;

TEST_CASE("lengths: new tokens decide over all tokens, the context over both", "[plan]") {
  Contract c = tiny_contract();
  CHECK(plan_generation(c, {}, 10, 64).max_new_tokens == 55);  // the last one needs no position
  c.generation.max_length = 30;
  CHECK(plan_generation(c, {}, 10, 64).max_new_tokens == 20);
  CHECK(plan_generation(c, {}, 40, 64).max_new_tokens == 25);  // a prompt beyond it
  c.generation.max_new_tokens = 7;
  engine::GenerationPlan plan = plan_generation(c, {}, 10, 64);
  CHECK(plan.max_new_tokens == 7);
  CHECK(plan.rules.max_length == 17);
  CHECK(plan.beams.max_length == 17);
  engine::GenerationRequest request;
  request.max_new_tokens = 3;
  CHECK(plan_generation(c, request, 10, 64).max_new_tokens == 3);
  request.max_new_tokens = 1000;
  CHECK(plan_generation(c, request, 10, 64).max_new_tokens == 55);
  CHECK(plan_generation(c, request, 70, 64).max_new_tokens == 0);
}

TEST_CASE("search and rules: the user, then the checkpoint, then quern", "[plan]") {
  Contract c = tiny_contract();
  c.tokens.eos = {3, 4};
  c.generation.n_beams = 4;
  c.generation.length_penalty = 2;
  c.generation.early_stopping = "true";
  c.generation.min_length = 8;
  c.generation.no_repeat_ngram = 3;
  c.generation.forced_eos = 3;
  engine::GenerationPlan plan = plan_generation(c, {}, 1, 64);
  CHECK(plan.beams.n_beams == 4);
  CHECK(plan.beams.length_penalty == 2);
  CHECK(plan.beams.early_stopping == engine::EarlyStopping::yes);
  CHECK(plan.rules.min_length == 8);
  CHECK(plan.rules.no_repeat_ngram == 3);
  CHECK(plan.stop_ids == c.tokens.eos);
  CHECK(engine::search_description(plan, true).find("4 beams") != std::string::npos);

  engine::GenerationRequest request;
  request.n_beams = 2;
  request.min_new_tokens = 5;
  request.no_repeat_ngram = 0;
  request.early_stopping = engine::EarlyStopping::never;
  plan = plan_generation(c, request, 1, 64);
  CHECK(plan.beams.n_beams == 2);
  CHECK(plan.beams.early_stopping == engine::EarlyStopping::never);
  CHECK(plan.rules.min_new_tokens == 5);
  CHECK(plan.rules.min_length == 0);
  CHECK(plan.rules.no_repeat_ngram == 0);

  request.ignore_ends = true;
  plan = plan_generation(c, request, 1, 64);
  CHECK(plan.stop_ids.empty());
  CHECK(plan.rules.ends.empty());
  CHECK_FALSE(plan.rules.forced_eos);
}

TEST_CASE("sampling turns a checkpoint's beams off and contradicts a user's", "[plan]") {
  Contract c = tiny_contract();
  c.generation.n_beams = 4;
  engine::GenerationRequest request;
  request.sample = true;
  CHECK(plan_generation(c, request, 1, 64).beams.n_beams == 1);
  request.n_beams = 2;
  CHECK_THROWS_AS(plan_generation(c, request, 1, 64), base::Error);
  request = {};
  request.n_beams = 2;
  request.n_return = 3;
  CHECK_THROWS_AS(plan_generation(c, request, 1, 64), base::Error);
  request.n_beams.reset();
  CHECK(plan_generation(c, request, 1, 64).beams.n_return == 3);
  c.generation.n_beams.reset();  // without beams: so many samples, and no search
  CHECK(plan_generation(c, request, 1, 64).beams.n_return == 3);
  CHECK(plan_generation(c, request, 1, 64).beams.n_beams == 1);
}

TEST_CASE("the decoder's first id", "[plan]") {
  Contract c = encoder_decoder_contract(false);
  CHECK_THROWS_AS(engine::decoder_prompt(c), base::Error);
  c.tokens.bos = 7;
  CHECK(engine::decoder_prompt(c) == std::vector<std::int32_t>{7});
  c.tokens.decoder_start = 9;
  CHECK(engine::decoder_prompt(c) == std::vector<std::int32_t>{9});
}

}  // namespace quern::tests
