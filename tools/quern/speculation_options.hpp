// Options of speculative decoding, and what they make: the draft model, the drafter, the speculator.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "engine/speculator.hpp"
#include "model_options.hpp"

namespace quern::tool {

struct SpeculationChoice {
  std::string kind = "none";   // --spec
  std::string draft_model;     // --draft
  std::size_t max_draft = 8;   // --draft-max
  bool always = false;         // --spec-always: guesses at every step, whether they pay or not

  bool on() const { return kind != "none" || !draft_model.empty(); }
};
void add_speculation_options(CLI::App& app, SpeculationChoice& choice);
// Usage error for options that contradict each other.
void settle_speculation(const SpeculationChoice& choice);

// What guesses for one command; nothing when speculation is off.
class Speculation {
 public:
  // Loads the draft model. session: of the target, whose cache types and context the drafter takes.
  Speculation(const SpeculationChoice& choice, const ModelOptions& options, const LoadedModel& target,
              const engine::SessionOptions& session);

  engine::Speculator* speculator() { return speculator_ ? &*speculator_ : nullptr; }
  std::size_t max_draft() const { return speculator_ ? speculator_->max_draft() : 0; }

 private:
  std::unique_ptr<model::Model> draft_;
  std::unique_ptr<engine::Drafter> drafter_;
  std::optional<engine::Speculator> speculator_;
};

}  // namespace quern::tool
