// Generation defaults: every key, the order of the files, and what is ignored with a notice.
#include "convert/generation_import.hpp"

#include "base/error.hpp"
#include "catch.hpp"
#include "convert/memory_checkpoint.hpp"

namespace quern::test {

namespace {

contract::Contract empty_contract(contract::ModelKind kind) {
  contract::Contract contract{};
  contract.kind = kind;
  contract.vocab_size = 100;
  return contract;
}

contract::Contract imported(const std::string& config, const std::string& generation,
                            std::vector<std::string>& notices,
                            contract::ModelKind kind = contract::ModelKind::encoder_decoder) {
  MemoryCheckpoint checkpoint(checkpoint::SourceKind::hugging_face, config);
  checkpoint.side_files["generation_config.json"] = generation;
  contract::Contract contract = empty_contract(kind);
  convert::import_generation(checkpoint, contract, notices);
  return contract;
}

}  // namespace

TEST_CASE("every generation default is read, generation_config.json before config.json",
          "[generation]") {
  std::vector<std::string> notices;
  const contract::Contract c = imported(
      R"({"num_beams": 6, "max_length": 512, "decoder_start_token_id": 99, "bad_words_ids": [[99]],
          "early_stopping": true, "length_penalty": 2.0, "forced_eos_token_id": 0, "min_length": 3})",
      R"({"num_beams": 4, "min_length": 56, "max_new_tokens": 142, "min_new_tokens": 7, "no_repeat_ngram_size": 3,
          "early_stopping": "never", "forced_bos_token_id": 5, "suppress_tokens": [1, 2],
          "begin_suppress_tokens": [3], "renormalize_logits": true, "mask_token_id": 11, "repetition_penalty": 1.5,
          "do_sample": false})",
      notices);
  const contract::Generation& g = c.generation;
  CHECK(g.n_beams == 4);
  CHECK(g.max_length == 512);
  CHECK(g.min_length == 56);
  CHECK(g.max_new_tokens == 142);
  CHECK(g.min_new_tokens == 7);
  CHECK(g.no_repeat_ngram == 3);
  CHECK(g.length_penalty == 2.0);
  CHECK(g.early_stopping == "never");
  CHECK(g.forced_bos == 5);
  CHECK(g.forced_eos == 0);
  CHECK(g.suppress == std::vector<std::int32_t>{1, 2});
  CHECK(g.begin_suppress == std::vector<std::int32_t>{3});
  CHECK(g.bad_words == std::vector<std::vector<std::int32_t>>{{99}});
  CHECK(g.renormalize);
  CHECK(g.repetition_penalty == 1.5);
  CHECK(g.sample == false);
  CHECK(c.tokens.decoder_start == 99);
  CHECK(c.tokens.mask == 11);
  CHECK(notices.empty());
}

TEST_CASE("the words of early stopping; a decoder has no start of its own", "[generation]") {
  std::vector<std::string> notices;
  const std::string start = R"("decoder_start_token_id": 4)";
  CHECK(imported("{}", R"({"early_stopping": true, )" + start + "}", notices,
                 contract::ModelKind::decoder)
            .generation.early_stopping == "true");
  CHECK(imported("{" + start + "}", R"({"early_stopping": false})", notices,
                 contract::ModelKind::decoder)
            .generation.early_stopping == "false");
  CHECK_FALSE(imported("{" + start + "}", "{}", notices, contract::ModelKind::decoder)
                  .tokens.decoder_start);
  CHECK(notices.empty());
  CHECK_FALSE(
      imported("{}", R"({"early_stopping": "sometimes"})", notices).generation.early_stopping);
  CHECK(notices.size() == 1);
}

TEST_CASE("nonsense and what quern does not follow are notices", "[generation]") {
  std::vector<std::string> notices;
  const contract::Contract c = imported(
      "{}",
      R"({"num_beams": 100000, "no_repeat_ngram_size": -1, "bad_words_ids": [[1, 200], [2, 3], 4, []],
                "suppress_tokens": [100, 7], "forced_bos_token_id": 100, "min_length": 1.5,
                "typical_p": 0.5, "num_beam_groups": 1, "diversity_penalty": 0.0, "max_length": 0})",
      notices);
  CHECK_FALSE(c.generation.n_beams);
  CHECK_FALSE(c.generation.no_repeat_ngram);
  CHECK_FALSE(c.generation.min_length);
  CHECK_FALSE(c.generation.forced_bos);
  CHECK(c.generation.bad_words == std::vector<std::vector<std::int32_t>>{{2, 3}});
  CHECK(c.generation.suppress == std::vector<std::int32_t>{7});
  CHECK(notices.size() == 8);
  const std::string typical = notices.back();
  CHECK(typical.find("typical_p 0.5 is not followed") != std::string::npos);
}

}  // namespace quern::test
