// The inside of Session, shared by session*.cpp; nobody else includes it.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "engine/session.hpp"

namespace quern::engine {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline constexpr std::size_t kSessionSequence = 0;  // of the cache; a search has more

struct Session::State {
  State(const model::Model& model, base::ThreadPool& pool, const SessionOptions& options);

  const model::Model& model;
  std::size_t max_tokens, chunk, source_length, max_draft;
  bool follow_length;
  std::size_t declared;  // length that position tables are made for
  model::KvCache cache;
  model::Runner runner;
  bool deterministic;
  std::vector<std::int32_t> tokens;  // held by the cache
  std::size_t row = 0;               // of the runner's logits, for the next token
  PhaseTimes times;

  void restart_times(std::size_t n_tokens);  // but what encode() took
  void check_length(std::size_t n) const;
  void forget_all();
  bool declare(std::size_t length);
  void follow(std::size_t n_tokens, const GenerateOptions& options);
  std::size_t common_prefix(std::span<const std::int32_t> ids) const;  // what keep_prefix() would keep
  std::size_t keep_prefix(std::span<const std::int32_t> ids);
  bool run(std::span<const std::int32_t> ids, model::Want want);
  bool prefill(std::span<const std::int32_t> ids, const GenerateOptions& options);
  std::size_t room() const;
  bool append(std::int32_t id, const GenerateOptions& options, std::optional<FinishReason>& end);
  struct DecodeSteps;  // session_decode.cpp
  FinishReason decode(sampling::Sampler& sampler, const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token);
};

}  // namespace quern::engine
