// Sessions over tiny models: every kind of cache, greedy generation, snapshots as bytes.
#pragma once

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "catch.hpp"
#include "engine/snapshot.hpp"
#include "model/run_model.hpp"
#include "model/sparse_variants.hpp"
#include "model/stack_variants.hpp"

namespace quern::tests {

using Ids = std::vector<std::int32_t>;
using FileBytes = std::vector<std::byte>;

// A directory of this process, removed at the end.
struct SessionDirectory {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quern-sessions-" + std::to_string(getpid()));
  SessionDirectory() { std::filesystem::create_directories(path); }
  ~SessionDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

inline FileBytes file_bytes(const std::filesystem::path& path) {
  const base::MappedFile file(path);
  return {file.bytes().begin(), file.bytes().end()};
}

inline void write_bytes(const std::filesystem::path& path, base::Bytes bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline FileBytes snapshot_of(const engine::Session& session, const SessionDirectory& directory) {
  const std::filesystem::path path = directory.path / "snapshot";
  std::filesystem::remove(path);
  {
    base::OutputFile file(path);  // not save_snapshot(): that one syncs, which takes most of a test's time
    engine::write_snapshot(session, file);
  }
  CHECK(std::filesystem::file_size(path) == engine::snapshot_bytes(session));
  return file_bytes(path);
}

// Every mechanism a cache knows.
inline std::vector<Variant> cache_variants() {
  std::vector<Variant> variants = all_variants();
  for (std::vector<Variant> more : {option_variants(), sparse_variants()})
    for (Variant& variant : more) variants.push_back(std::move(variant));
  return variants;
}

struct SessionShape {
  std::size_t context = 400, chunk = 16;
  kernels::CacheType k_type = kernels::CacheType::int8, v_type = kernels::CacheType::int8;
  std::size_t total_length = 0;
  bool follow_length = false, deterministic = true;
};

inline engine::SessionOptions session_options(const SessionShape& shape) {
  engine::SessionOptions options;
  options.cache.k_type = shape.k_type;
  options.cache.v_type = shape.v_type;
  options.cache.max_tokens = shape.context;
  options.prefill_chunk = shape.chunk;
  options.total_length = shape.total_length;
  options.follow_length = shape.follow_length;
  options.deterministic = shape.deterministic;
  return options;
}

struct Answer {
  Ids ids;
  engine::FinishReason reason = engine::FinishReason::length;
};

inline Answer answer_greedily(engine::Session& session, const Ids& prompt, const engine::GenerateOptions& options) {
  sampling::SamplerOptions greedy;
  greedy.temperature = 0;
  sampling::Sampler sampler(greedy, session.model().contract.vocab_size);
  Answer answer;
  answer.reason = session.generate(prompt, sampler, options, [&](std::int32_t id) {
    answer.ids.push_back(id);
    return true;
  });
  return answer;
}

inline Answer answer_greedily(engine::Session& session, const Ids& prompt, std::size_t n) {
  engine::GenerateOptions options;
  options.max_new_tokens = n;
  return answer_greedily(session, prompt, options);
}

inline Ids joined_ids(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Ids first_ids(const Ids& ids, std::size_t n) {
  return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)};
}

// What a session is that never held anything else: the bits to compare with.
inline FileBytes fresh_snapshot(const model::Model& model, const Ids& ids, const SessionShape& shape,
                                const SessionDirectory& directory) {
  base::ThreadPool pool(2);
  engine::Session session(model, pool, session_options(shape));
  session.evaluate(ids, [](std::size_t, const float*) {});
  return snapshot_of(session, directory);
}

// Two turns with a snapshot between them, against the same two turns at a stretch.
inline void check_restored(const model::Model& model, std::size_t n_prompt, const SessionShape& shape,
                    const SessionDirectory& directory) {
  base::ThreadPool pool(2);
  engine::Session straight(model, pool, session_options(shape));
  const std::size_t vocab_size = model.contract.vocab_size;
  const Ids prompt = random_ids(n_prompt, vocab_size, 3);
  const Ids answer = answer_greedily(straight, prompt, 7).ids;
  const FileBytes saved = snapshot_of(straight, directory);

  SessionShape other = shape;
  other.chunk = 29;
  engine::Session restored(model, pool, session_options(other));
  const engine::RestoreResult result = engine::restore_snapshot(restored, saved, "saved");
  CHECK(result.n_tokens == n_prompt + 6);
  CHECK_FALSE(result.other_isa);
  CHECK_FALSE(result.other_length);
  CHECK(restored.tokens() == straight.tokens());
  CHECK(snapshot_of(restored, directory) == saved);

  const Ids next = joined_ids(joined_ids(prompt, answer), random_ids(41, vocab_size, 5));
  const Ids expected = answer_greedily(straight, next, 40).ids;
  CHECK(answer_greedily(restored, next, 40).ids == expected);
  CHECK(restored.times().prefill_tokens == straight.times().prefill_tokens);
  CHECK(restored.times().reused_tokens == n_prompt + 6);
  CHECK(snapshot_of(restored, directory) == snapshot_of(straight, directory));
  const float *a = straight.runner().logits(0), *b = restored.runner().logits(0);
  CHECK(std::memcmp(a, b, vocab_size * sizeof(float)) == 0);
}

// The tiny contract with dynamic NTK: its position tables change with the declared length.
inline Contract ntk_contract(std::size_t original) {
  Contract c = tiny_contract();
  c.ropes["main"].switch_rule = contract::RopeSwitch{};
  c.ropes["main"].switch_rule->kind = contract::RopeSwitchKind::dynamic_ntk;
  c.ropes["main"].switch_rule->original_length = original;
  c.ropes["main"].switch_rule->base = 1e4;
  c.ropes["main"].switch_rule->factor = 2;
  return c;
}

}  // namespace quern::tests
