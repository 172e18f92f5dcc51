#include "speculation_options.hpp"

#include "base/error.hpp"
#include "kernels/select.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMostDrafted = 64;
constexpr const char* kGroup = "Speculation";

}  // namespace

void add_speculation_options(CLI::App& app, SpeculationChoice& choice) {
  app.add_option("--spec", choice.kind,
                 "guess following tokens and check them together: the same answer, sooner where it repeats text. "
                 "ngram (from the text so far) or none (none)")
      ->check(CLI::IsMember({"ngram", "none"}))->group(kGroup);
  app.add_option("--draft,--model-draft", choice.draft_model,
                 "-md: guesses of this smaller model, which has the same vocabulary")
      ->type_name("PATH")->group(kGroup);
  app.add_option("--draft-max", choice.max_draft, "most guesses at once (8)")
      ->check(CLI::Range(std::size_t{1}, kMostDrafted))->type_name("N")->group(kGroup);
  app.add_flag("--spec-always", choice.always, "guess at every step, even where it takes longer")->group(kGroup);
}

void settle_speculation(const SpeculationChoice& choice) {
  if (choice.kind != "none" && !choice.draft_model.empty())
    base::usage_error("--spec, --draft", "one of them: guesses come from the text or from a model");
}

Speculation::Speculation(const SpeculationChoice& choice, const ModelOptions& options, const LoadedModel& target,
                         const engine::SessionOptions& session) {
  if (!choice.on()) return;
  if (choice.draft_model.empty()) {
    drafter_ = engine::ngram_drafter();
  } else {
    draft_ = model::Model::load(choice.draft_model, kernels::select_kernels(options.isa));
    drafter_ = engine::model_drafter(*draft_, *target.model, *target.pool, session.cache, session.prefill_chunk);
  }
  speculator_.emplace(*drafter_, engine::SpeculationOptions{choice.max_draft, !choice.always});
}

}  // namespace quern::tool
