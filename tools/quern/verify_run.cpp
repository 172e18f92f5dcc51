// How the checks of `quern verify` run a model of any kind: pseudo-random inputs in, one row per position out.

#include <cstdio>
#include <cstring>
#include <random>

#include "verify.hpp"

namespace quern::tool {

std::string scientific(double value) {
  char text[24];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

std::vector<std::int32_t> sample_ids(const VerifyContext& context, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> ids(n);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % context.model().contract.vocab_size);
  return ids;
}

std::vector<std::int32_t> sample_source(const VerifyContext& context) {
  const contract::Contract& contract = context.model().contract;
  if (contract.kind != contract::ModelKind::encoder_decoder) return {};
  const std::size_t n = std::min<std::size_t>(37, contract.max_positions);
  const std::size_t vocabulary = context.model().encoder->embedding.tokens->rows;
  std::mt19937 random(5);
  std::vector<std::int32_t> ids(n);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % vocabulary);
  return ids;
}

void encode_sample(model::Runner& runner, const VerifyContext& context, std::size_t sequence) {
  const std::vector<std::int32_t> source = sample_source(context);
  if (source.empty()) return;
  const model::Slice slice{sequence, source, model::Want::none};
  runner.encode({&slice, 1});
}

bool rows_are_logits(const VerifyContext& context) {
  const contract::Head& head = context.model().contract.head;
  return head.kind != contract::HeadKind::none && !head.pool;
}

std::size_t row_width(const VerifyContext& context) {
  return rows_are_logits(context) ? context.model().head.logits.out : context.model().contract.d_model;
}

void append_rows(const VerifyContext& context, const model::Runner& runner, std::vector<float>& rows) {
  const bool logits = rows_are_logits(context);
  const std::size_t width = row_width(context), n = logits ? runner.n_logits() : runner.n_hidden();
  for (std::size_t i = 0; i < n; ++i) {
    const float* row = logits ? runner.logits(i) : runner.hidden(i);
    rows.insert(rows.end(), row, row + width);
  }
}

std::vector<float> all_rows(const VerifyContext& context, const VerifyInput& input, const VerifyWay& way) {
  const model::Model& model = context.model();
  std::size_t total = 0, longest = 0;
  for (const std::vector<std::int32_t>& ids : input.documents) {
    total += ids.size();
    longest = std::max(longest, ids.size());
  }
  model::CacheOptions cache_options = session_options(context.loaded, context.options, longest).cache;
  cache_options.max_tokens = longest;
  cache_options.n_sequences = input.documents.size();
  base::ThreadPool pool(way.threads, way.threads);  // more than CPUs too
  model::KvCache cache(model, cache_options);
  const std::size_t chunk =
      model::chunk_for(model, {total, sample_source(context).size(), input.prefix_length}, way.chunk);
  model::Runner runner(model, cache, pool, chunk, longest);
  runner.set_deterministic(true);
  encode_sample(runner, context, 0);
  std::vector<float> rows;
  std::vector<model::Slice> slices;
  std::size_t room = chunk;
  const auto run = [&] {
    runner.forward(slices);
    append_rows(context, runner, rows);
    slices.clear();
    room = chunk;
  };
  for (std::size_t document = 0; document < input.documents.size(); ++document)
    for (std::span<const std::int32_t> rest = input.documents[document]; !rest.empty();) {
      const std::size_t n = std::min(room, rest.size());
      model::Slice slice{document, rest.first(n), model::Want::all};
      slice.prefix_length = input.prefix_length;
      slice.source = 0;
      slices.push_back(slice);
      rest = rest.subspan(n);
      room -= n;
      if (room == 0) run();
    }
  if (!slices.empty()) run();
  return rows;
}

std::vector<float> all_rows(const VerifyContext& context, const std::vector<std::int32_t>& ids, std::size_t chunk,
                            std::size_t threads) {
  return all_rows(context, VerifyInput{{ids}}, {chunk, threads});
}

bool same_rows(const std::vector<float>& a, const std::vector<float>& b, std::size_t first, std::size_t end,
               std::size_t width) {
  return std::memcmp(a.data() + first * width, b.data() + first * width, (end - first) * width * sizeof(float)) == 0;
}

}  // namespace quern::tool
