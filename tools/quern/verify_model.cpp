// Checks of `quern verify` that run the model: determinism, cache and positions.

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "contract/tensors.hpp"
#include "model/position.hpp"
#include "verify.hpp"

namespace quern::tool {

namespace {

std::size_t sample_length(const VerifyContext& context, std::size_t wanted) {
  return std::min(wanted, context.model().contract.max_positions);
}

std::uint64_t formula_payload(const VerifyContext& context, const std::vector<std::size_t>& lengths) {
  const kernels::CacheType k = parse_cache_type(context.options.k_type, "-ctk");
  const kernels::CacheType v = parse_cache_type(context.options.v_type, "-ctv");
  std::uint64_t bytes = 0;
  for (const model::CacheLayerSpec& layer : context.model().output_stack().cache_layers)
    for (const std::size_t length : lengths)
      bytes += layer.rows(length) *
               (kernels::cache_bytes(layer.exact ? kernels::CacheType::f32 : k, layer.k_values()) +
                kernels::cache_bytes(layer.exact ? kernels::CacheType::f32 : v, layer.v_values()));
  return bytes;
}

// The shortest window, so that no layer has given a block back at the lengths we try.
std::size_t shortest_window(const VerifyContext& context) {
  std::size_t shortest = SIZE_MAX;
  for (const model::CacheLayerSpec& layer : context.model().output_stack().cache_layers)
    if (layer.window) shortest = std::min(shortest, *layer.window);
  return shortest;
}

}  // namespace

CheckResult check_decode(const VerifyContext& context) {
  if (!context.model().decoder) return {true, "an encoder sees whole texts: nothing is decoded"};
  const std::size_t n = sample_length(context, 70), width = row_width(context);
  const std::vector<std::int32_t> ids = sample_ids(context, n);
  const std::size_t threads = context.loaded.pool->n_threads();
  const bool same = same_rows(all_rows(context, ids, n, threads), all_rows(context, ids, 1, threads), 0, n, width);
  return {same, base::cat("logits of ", n, " positions, token by token and in one prefill: ",
                          same ? "bit-equal" : "different")};
}

CheckResult check_threads(const VerifyContext& context) {
  const std::size_t n = sample_length(context, 70), width = row_width(context);
  const std::vector<std::int32_t> ids = sample_ids(context, n);
  const std::vector<float> expected = all_rows(context, ids, n, 1);
  struct Way {
    std::size_t chunk, threads;
  };
  for (const Way way : {Way{n, 2}, Way{n, 3}, Way{1, 2}, Way{7, 1}, Way{7, 3}, Way{64, 2}})
    if (!same_rows(expected, all_rows(context, ids, way.chunk, way.threads), 0, n, width))
      return {false, base::cat("chunk ", way.chunk, " on ", way.threads, " threads differs from one prefill on one")};
  return {true, base::cat("1, 2, 3 threads and chunks of 1, 7, 64, ", n, " tokens: bit-equal")};
}

CheckResult check_cache_bytes(const VerifyContext& context) {
  if (!context.model().decoder) return {true, "an encoder keeps no cache"};
  const std::size_t longest = std::min({std::size_t{100}, shortest_window(context), context.model().contract.max_positions});
  std::string detail;
  for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{1}, {longest}, {longest, 33}, {1, 2, 3, longest}}) {
    std::vector<std::size_t> lengths = shape;
    for (std::size_t& length : lengths) length = std::min(length, longest);
    model::CacheOptions options = session_options(context.loaded, context.options, longest).cache;
    options.max_tokens = longest;
    options.n_sequences = lengths.size();
    model::KvCache cache(context.model(), options);
    const std::size_t chunk = std::max(longest, sample_source(context).size());
    model::Runner runner(context.model(), cache, *context.loaded.pool, chunk, longest);
    runner.set_deterministic(true);
    for (std::size_t sequence = 0; sequence < lengths.size(); ++sequence) {
      encode_sample(runner, context, sequence);
      const std::vector<std::int32_t> ids = sample_ids(context, lengths[sequence]);
      const model::Slice slice{sequence, ids, model::Want::none};
      runner.forward({&slice, 1});
    }
    const model::CacheBytes bytes = cache.bytes();
    const std::uint64_t formula = formula_payload(context, lengths);
    if (bytes.payload != formula)
      return {false, base::cat(lengths.size(), " sequences: ", bytes.payload, " bytes measured, ", formula, " by formula")};
    detail = base::cat("4 batches; the last (", lengths.size(), " sequences): payload ", base::grouped(bytes.payload),
                       " B = formula, scales ", base::grouped(bytes.scales), ", block rounding ",
                       base::grouped(bytes.rounding), ", metadata ", base::grouped(bytes.metadata));
  }
  return {true, detail};
}

namespace {

// Largest error of the angle tables against long double, at the trained length and beside it.
double rope_error(const contract::Rope& rope, std::size_t trained) {
  const model::RopeFrequencies frequencies = model::rope_frequencies(rope, trained);
  const std::size_t half = frequencies.inv_freq.size();
  std::vector<float> cosine(half), sine(half);
  double worst = 0;
  for (const std::size_t position : {std::size_t{0}, std::size_t{1}, trained - 1, trained, trained + 1}) {
    model::rope_angles(frequencies, position, cosine.data(), sine.data());
    for (std::size_t i = 0; i < half; ++i) {
      const long double angle = static_cast<long double>(position) * static_cast<long double>(frequencies.inv_freq[i]);
      const auto mscale = static_cast<long double>(frequencies.mscale);
      raise_to(worst, static_cast<double>(std::fabs(cosine[i] - std::cos(angle) * mscale)));
      raise_to(worst, static_cast<double>(std::fabs(sine[i] - std::sin(angle) * mscale)));
    }
  }
  return worst;
}

// The trained length and its neighbours through the model itself: the last tokens one by one equal a prefill.
CheckResult check_trained_length(const VerifyContext& context, const std::string& so_far) {
  const bool table = context.model().contract.embedding.positions.has_value();
  const std::size_t trained = context.model().contract.max_positions;
  const std::size_t n = table ? trained : trained + 1, width = row_width(context);
  const std::vector<std::int32_t> ids = sample_ids(context, n + 1);
  const auto tail = [&](std::size_t last_chunk) {
    model::CacheOptions options = session_options(context.loaded, context.options, n).cache;
    options.max_tokens = n + 1;
    model::KvCache cache(context.model(), options);
    model::Runner runner(context.model(), cache, *context.loaded.pool, 512, n);
    runner.set_deterministic(true);
    encode_sample(runner, context, 0);
    std::vector<float> rows;
    for (std::size_t at = 0; at < n;) {
      const std::size_t step = at + 3 >= n ? std::min(last_chunk, n - at) : std::min<std::size_t>(512, n - 3 - at);
      const model::Slice slice{0, {ids.data() + at, step}, at + 3 >= n ? model::Want::all : model::Want::none};
      runner.forward({&slice, 1});
      if (at + 3 >= n) append_rows(context, runner, rows);
      at += step;
    }
    if (table) {
      const model::Slice beyond{0, {ids.data() + n, 1}, model::Want::last};
      try {
        runner.forward({&beyond, 1});
        rows.clear();   // a position that the table does not have was accepted
      } catch (const base::Error&) {
      }
    }
    return rows;
  };
  const std::vector<float> singles = tail(1), together = tail(3);
  const bool same = !singles.empty() && singles.size() == together.size() &&
                    same_rows(singles, together, 0, singles.size() / width, width);
  const bool finite = std::all_of(singles.begin(), singles.end(), [](float x) { return std::isfinite(x); });
  return {same && finite, base::cat(so_far, "; logits around position ", trained, same && finite ? ": finite, " : ": wrong, ",
                                    "decode = prefill", table ? ", the position after the table is refused" : "")};
}

}  // namespace

CheckResult check_positions(const VerifyContext& context) {
  const contract::Contract& contract = context.model().contract;
  const std::size_t trained = contract.max_positions;
  double worst = 0;
  for (const auto& [name, rope] : contract.ropes) raise_to(worst, rope_error(rope, trained));
  if (!(worst <= 1e-6))
    return {false, base::cat("rope angles around position ", trained, " differ by ", worst, " from long double")};
  std::string detail = base::cat("rope angles at 0, 1, ", trained - 1, ", ", trained, ", ", trained + 1,
                                 " within ", worst, " of long double");
  if (contract.ropes.empty()) detail = base::cat(contract.embedding.positions ? "position table of " : "no rope, ", trained, " rows");
  if (!context.model().decoder) return {true, detail};
  // A cached prefix: the rest of the text starts at its offset, as if it had been computed in one piece.
  const std::size_t n = sample_length(context, 50), prefix = n / 2, width = row_width(context);
  const std::vector<std::int32_t> ids = sample_ids(context, n), other = sample_ids(context, n, 2);
  model::CacheOptions options = session_options(context.loaded, context.options, n).cache;
  options.max_tokens = n;
  model::KvCache cache(context.model(), options);
  model::Runner runner(context.model(), cache, *context.loaded.pool, std::max(n, sample_source(context).size()), n);
  runner.set_deterministic(true);
  encode_sample(runner, context, 0);
  std::vector<std::int32_t> first(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(prefix));
  first.insert(first.end(), other.begin(), other.begin() + static_cast<std::ptrdiff_t>(n - prefix));
  const model::Slice whole{0, first, model::Want::none};
  runner.forward({&whole, 1});
  if (cache.truncate(0, prefix)) {
    const model::Slice rest{0, {ids.data() + prefix, n - prefix}, model::Want::all};
    runner.forward({&rest, 1});
    const std::vector<float> expected = all_rows(context, ids, n, context.loaded.pool->n_threads());
    std::vector<float> rows(prefix * width);
    append_rows(context, runner, rows);
    for (std::size_t i = 0; i < n - prefix; ++i)
      if (!same_rows(rows, expected, prefix + i, prefix + i + 1, width))
        return {false, base::cat("position ", prefix + i, " after a cached prefix of ", prefix, " differs from one prefill")};
    detail += base::cat("; ", n - prefix, " positions after a cached prefix of ", prefix, ": bit-equal");
  }
  return context.full ? check_trained_length(context, detail) : CheckResult{true, detail};
}

}  // namespace quern::tool
