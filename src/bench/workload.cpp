#include "bench/workload.hpp"

#include <algorithm>
#include <chrono>
#include <random>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::bench {

namespace {

using WallClock = std::chrono::steady_clock;
using contract::ModelKind;

constexpr std::size_t kDefaultPrompt = 512;

std::uint64_t ns_between(WallClock::time_point from, WallClock::time_point to) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

void check(const model::Model& model, const Case& one) {
  const contract::Contract& contract = model.contract;
  const std::string where = one.label();
  if (contract.kind == ModelKind::encoder && one.n_gen != 0)
    base::reject(where, "an encoder generates nothing", base::cat("-n ", one.n_gen), "-n 0");
  if (contract.kind == ModelKind::encoder && one.n_depth != 0)
    base::reject(where, "an encoder keeps no tokens between calls", base::cat("-d ", one.n_depth), "-d 0");
  const bool encodes = contract.kind != ModelKind::decoder;
  const std::size_t needed = encodes ? std::max(one.n_prompt, one.n_depth + one.n_gen) : one.held();
  const bool bounded = contract.embedding.positions.has_value() || contract.kind == ModelKind::encoder;
  if (bounded && needed > contract.max_positions)
    base::reject(where, "the model has too few positions", base::cat(needed, " tokens"),
                 base::cat("at most ", contract.max_positions));
}

}  // namespace

Shape Shape::of(const Case& one) {
  return {one.model, one.n_threads, one.n_batch, one.n_ubatch, one.n_depth, one.n_sequences(), one.k_type, one.v_type};
}

std::size_t default_prompt(const model::Model& model) {
  return std::min(kDefaultPrompt, model.contract.max_positions);
}

struct Workload::State {
  const model::Model& model;
  std::size_t n_sequences, n_depth, n_source = 0;
  std::size_t max_held = 1, max_prompt = 0, max_growth = 1, n_batch, chunk = 1;
  std::unique_ptr<model::KvCache> cache;
  std::unique_ptr<model::Runner> runner;
  std::vector<std::vector<std::int32_t>> ids;  // per sequence
  std::function<bool()> stop_requested;
  std::vector<model::Slice> slices;

  State(const model::Model& model_, base::ThreadPool& pool, std::span<const Case> cases, const model::CacheOptions& types)
      : model(model_), n_sequences(cases.front().n_sequences()), n_depth(cases.front().n_depth),
        n_batch(cases.front().n_batch) {
    for (const Case& one : cases) {
      check(model, one);
      max_held = std::max(max_held, one.held());
      max_growth = std::max(max_growth, one.n_prompt + one.n_gen);
      max_prompt = std::max(max_prompt, one.n_prompt);
    }
    if (model.contract.kind == ModelKind::encoder_decoder) {
      n_source = max_prompt != 0 ? max_prompt : default_prompt(model);
      max_prompt = n_source;
    }
    choose_chunk(cases.front().n_ubatch);
    model::CacheOptions options = types;
    options.n_sequences = n_sequences;
    options.max_tokens = max_held;
    options.rollback = max_growth;
    cache = std::make_unique<model::KvCache>(model, options);
    runner = std::make_unique<model::Runner>(model, *cache, pool, chunk, max_held);
    if (model.contract.kind == ModelKind::encoder) runner->set_logits(false);
    make_ids();
  }

  // A step has at least one token of each sequence, and what the model must see at once.
  void choose_chunk(std::size_t n_ubatch) {
    const std::size_t n_encoded = model.contract.kind != ModelKind::decoder ? max_prompt : 0;
    const std::size_t longest = std::max({std::size_t{1}, max_prompt, n_depth}) * n_sequences;
    chunk = std::max({std::min({n_ubatch, n_batch, longest}), n_sequences,
                      model::chunk_for(model, {max_prompt, n_encoded, 0}, 1)});
    n_batch = std::max(n_batch, chunk);
  }

  void make_ids() {
    const contract::Contract& c = model.contract;
    const bool own = c.encoder && c.encoder->embedding;
    const std::size_t vocab = own ? std::min(c.vocab_size, c.encoder->embedding->vocab_size) : c.vocab_size;
    for (std::size_t s = 0; s < n_sequences; ++s) {
      std::mt19937 random(static_cast<std::uint32_t>(s + 1));
      ids.emplace_back(std::max(max_held, max_prompt));
      for (std::int32_t& id : ids.back()) id = static_cast<std::int32_t>(random() % vocab);
    }
  }

  bool stopped() const { return stop_requested && stop_requested(); }

  // Positions [first, first + n) of every sequence, packed into steps of at most the chunk.
  bool prefill(std::size_t first, std::size_t n, bool wants_logits) {
    slices.clear();
    std::size_t in_step = 0, in_batch = 0;
    for (std::size_t s = 0; s < n_sequences; ++s)
      for (std::size_t done = 0; done < n;) {
        const std::size_t room = std::min(chunk - in_step, n_batch - in_batch);
        const std::size_t take = std::min(room, n - done);
        const bool last = done + take == n;
        slices.push_back({s, std::span(ids[s]).subspan(first + done, take),
                          wants_logits && last ? model::Want::last : model::Want::none});
        done += take;
        in_step += take;
        in_batch += take;
        if (in_step < chunk && in_batch < n_batch && !(last && s + 1 == n_sequences)) continue;
        if (stopped() || !runner->forward(slices)) return false;
        slices.clear();
        in_step = 0;
        if (in_batch == n_batch) in_batch = 0;
      }
    return true;
  }

  bool encode(std::size_t n) {
    for (std::size_t s = 0; s < n_sequences; ++s) {
      if (stopped()) return false;
      const model::Slice slice{s, std::span(ids[s]).subspan(0, n), model::Want::none};
      runner->encode({&slice, 1});
    }
    return true;
  }

  // Every sequence as a whole, several in one step where they fit.
  bool embed(std::size_t n) {
    for (std::size_t s = 0; s < n_sequences;) {
      slices.clear();
      for (std::size_t used = 0; s < n_sequences && used + n <= std::max(chunk, n); ++s, used += n)
        slices.push_back({s, std::span(ids[s]).subspan(0, n), model::Want::all});
      if (stopped() || !runner->forward(slices)) return false;
    }
    return true;
  }

  // The cache holds the depth and nothing else.
  bool fill_depth() {
    bool kept = true;
    for (std::size_t s = 0; s < n_sequences; ++s)
      kept = kept && cache->length(s) >= n_depth && cache->truncate(s, n_depth);
    if (kept) return true;
    for (std::size_t s = 0; s < n_sequences; ++s) cache->clear(s);
    return n_depth == 0 || prefill(0, n_depth, false);
  }

  bool prompt(std::size_t n) {
    switch (model.contract.kind) {
      case ModelKind::encoder: return embed(n);
      case ModelKind::encoder_decoder: return encode(n);
      case ModelKind::decoder: break;
    }
    return prefill(n_depth, n, true);
  }

  bool generate(std::size_t first, std::size_t n, Timing& timing) {
    timing.step_ns.reserve(n);
    WallClock::time_point before = WallClock::now();
    for (std::size_t i = 0; i < n; ++i) {
      slices.clear();
      for (std::size_t s = 0; s < n_sequences; ++s)
        slices.push_back({s, std::span(ids[s]).subspan(first + i, 1), model::Want::last});
      if (stopped() || !runner->forward(slices)) return false;
      const WallClock::time_point after = WallClock::now();
      timing.step_ns.push_back(ns_between(before, after));
      before = after;
    }
    return true;
  }
};

Workload::Workload(const model::Model& model, base::ThreadPool& pool, std::span<const Case> cases,
                   const model::CacheOptions& types, bool deterministic)
    : state_(std::make_unique<State>(model, pool, cases, types)) {
  state_->runner->set_deterministic(deterministic);
}

Workload::~Workload() = default;

std::size_t Workload::n_source() const {
  return state_->n_source;
}

void Workload::set_stop(std::function<bool()> stop_requested) {
  state_->stop_requested = stop_requested;
  state_->runner->set_stop(std::move(stop_requested));
}

bool Workload::run(const Case& one, Timing& timing) {
  State& s = *state_;
  timing = {};
  const bool decodes = s.model.decoder.has_value();
  const bool encodes_first = s.n_source != 0 && one.n_prompt == 0;
  if (encodes_first && !s.encode(s.n_source)) return false;
  if (decodes && !s.fill_depth()) return false;
  timing.step_ns.reserve(one.n_gen);
  const WallClock::time_point start = WallClock::now();
  if (one.n_prompt != 0 && !s.prompt(one.n_prompt)) return false;
  const WallClock::time_point middle = WallClock::now();
  const std::size_t first = one.n_depth + (s.n_source != 0 ? 0 : one.n_prompt);
  if (one.n_gen != 0 && !s.generate(first, one.n_gen, timing)) return false;
  const WallClock::time_point end = WallClock::now();
  timing.prompt_ns = ns_between(start, middle);
  timing.gen_ns = ns_between(middle, end);
  timing.total_ns = ns_between(start, end);
  if (decodes) {
    const model::CacheBytes bytes = s.cache->bytes();
    timing.cache_bytes = bytes.payload + bytes.scales;
  }
  return true;
}

}  // namespace quern::bench
