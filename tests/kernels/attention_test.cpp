// Attention: against float64; prefill in any chunks = token by token, bit for bit; nothing a query
// does not see has any influence; bit-equal on every instruction set.
#include <cmath>

#include "attention_cases.hpp"
#include "catch.hpp"
#include "kernels/sample.hpp"

namespace quern::kernels {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Shapes, group sizes, masks and mechanisms; the cache types are the tests' own.
std::vector<AttentionCase> cases() {
  std::vector<AttentionCase> all;
  auto add = [&](std::size_t d_k, std::size_t d_v, std::size_t n,
                 std::size_t group) -> AttentionCase& {
    AttentionCase c;
    c.d_k = d_k, c.d_v = d_v, c.n_keys = n, c.group = group;
    all.push_back(c);
    return all.back();
  };
  for (std::size_t d : {16u, 32u, 64u, 80u, 96u, 128u}) add(d, d, 37, 3);
  add(1, 1, 20, 1);
  add(7, 33, 45, 2);  // odd widths: padded to the layout's steps
  add(65, 17, 70, 5);
  add(128, 64, 300, 4);
  add(64, 64, 600, 3);
  for (std::size_t group : {1u, 2u, 6u, 8u, 9u}) add(32, 32, 64, group);
  add(64, 64, 530, 2).window = 100;
  add(64, 64, 530, 1).window = 1;
  add(32, 32, 560, 2).window = 257;
  AttentionCase& sinks = add(64, 64, 540, 2);
  sinks.window = 40, sinks.sinks = 5;
  AttentionCase& many_sinks = add(48, 48, 300, 1);
  many_sinks.window = 19, many_sinks.sinks = 270;
  add(64, 64, 280, 4).sink_logits = true;
  add(64, 64, 90, 2).softcap = 5.0f;
  add(64, 64, 290, 4).alibi = true;
  AttentionCase& early = add(64, 64, 290, 4);
  early.alibi = early.alibi_before_scale = true;
  AttentionCase& rounded = add(32, 32, 1100, 5);
  rounded.alibi = rounded.alibi_bf16 = true;
  add(48, 48, 300, 3).bias = true;
  return all;
}

// Under sampling every pair of types has some of the cases, and the pairs of one type have them all together.
std::vector<AttentionCase> cases_of(CacheType k_type, CacheType v_type) {
  const std::vector<AttentionCase> all = cases();
  const auto k = static_cast<std::size_t>(k_type), v = static_cast<std::size_t>(v_type);
  constexpr std::size_t kTypes = std::size(kCacheTypes);
  std::vector<AttentionCase> taken;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!sampled(i + v + 3 * ((k + kTypes - v) % kTypes))) continue;
    taken.push_back(all[i]);
    taken.back().k_type = k_type, taken.back().v_type = v_type;
  }
  return taken;
}

// Every type of keys with every type of values.
std::vector<std::pair<CacheType, CacheType>> type_pairs() {
  std::vector<std::pair<CacheType, CacheType>> pairs;
  for (CacheType k_type : kCacheTypes)
    for (CacheType v_type : kCacheTypes) pairs.emplace_back(k_type, v_type);
  return pairs;
}

}  // namespace

TEST_CASE("the scratch of one pair of cache types serves every other") {
  for (const std::size_t d : {1u, 12u, 64u, 80u, 128u})
    for (const CacheType k_type : kCacheTypes)
      for (const CacheType v_type : kCacheTypes) {
        const CacheLayout layout = make_cache_layout(k_type, v_type, d, d);
        const CacheLayout plain = make_cache_layout(CacheType::f32, CacheType::f32, d, d);
        for (const std::size_t rows : {1u, 7u, 64u, 200u})
          CHECK(attend_scratch_floats(rows, layout) == attend_scratch_floats(rows, plain));
        CHECK(score_scratch_floats(layout) == score_scratch_floats(plain));
      }
}

TEST_CASE("attention equals float64 on the values the cache holds") {
  for (const IsaInfo* isa : supported_isas()) {
    for (CacheType k_type : kCacheTypes) {
      for (CacheType v_type : kCacheTypes) {
        for (const AttentionCase& c : cases_of(k_type, v_type)) {
          if (k_type != v_type && c.n_keys > 64) continue;
          if (c.n_keys > 320 && isa->name == "scalar")
            continue;  // the same bits as the others (below)
          AttentionSequence sequence(c, *isa->kernels);
          sequence.store(0, c.n_keys);
          const std::vector<float> output = sequence.attend(0, c.n_keys);
          // |q| ~ 2 sqrt(d), |k| ~ sqrt(d): a score's error is about 2^-24 of |q| |k| scale, and an
          // output of values below 5 moves by twice that, relatively.
          const double norms = 2.0 * static_cast<double>(c.d_k) * static_cast<double>(c.scale);
          const double tolerance = 5.0 * (norms + 10.0) * 0x1p-23;
          double worst = 0;  // in tolerances
          std::size_t outside = 0, rows = 0;
          for (std::size_t token = 0; token < c.n_keys; token += token < 20 ? 1 : 61) {
            for (std::size_t head = 0; head < c.group; ++head) {
              const auto [want, slack] = sequence.reference(token, head);
              const float* got = &output[(token * c.group + head) * c.d_v];
              double error = 0;
              for (std::size_t d = 0; d < c.d_v; ++d) error = std::max(error, std::abs(want[d] - double{got[d]}));
              worst = std::max(worst, error / (tolerance + 2 * slack));
              outside += error > tolerance ? 1u : 0u;
              ++rows;
            }
          }
          INFO(isa->name << ", " << describe(c));
          CHECK(worst < 1.0);
          CHECK(outside * 20 <= rows);  // codes on a tie are rare
        }
      }
    }
  }
}

TEST_CASE("prefill in any chunks equals token by token, bit for bit") {
  for (const IsaInfo* isa : supported_isas()) {
    for (const auto& [k_type, v_type] : type_pairs()) {
      for (const AttentionCase& c : cases_of(k_type, v_type)) {
        if (c.n_keys > (k_type != v_type ? 64u : isa->name == "scalar" ? 100u : 2000u)) continue;
        AttentionSequence decode(c, *isa->kernels);
        std::vector<float> one_by_one;
        for (std::size_t t = 0; t < c.n_keys; ++t) {
          decode.store(t, t + 1);
          const std::vector<float> row = decode.attend(t, t + 1);
          one_by_one.insert(one_by_one.end(), row.begin(), row.end());
        }
        for (std::size_t chunk : {std::size_t{7}, std::size_t{64}, c.n_keys}) {
          AttentionSequence prefill(c, *isa->kernels);
          std::vector<float> output;
          for (std::size_t t = 0; t < c.n_keys; t += chunk) {
            const std::size_t end = std::min(c.n_keys, t + chunk);
            prefill.store(t, end);
            const std::vector<float> rows = prefill.attend(t, end);
            output.insert(output.end(), rows.begin(), rows.end());
          }
          INFO(isa->name << ", " << describe(c) << ", chunk " << chunk);
          CHECK(same_bits(one_by_one, output));
          CHECK(prefill.bytes() == decode.bytes());
        }
      }
    }
  }
}

TEST_CASE("what a query does not see has no influence") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const IsaInfo* isa : supported_isas()) {
    for (const auto& [k_type, v_type] : type_pairs()) {
      for (const AttentionCase& c : cases_of(k_type, v_type)) {
        if (c.n_keys < 40 || c.n_keys > (k_type != v_type || isa->name == "scalar" ? 100u : 320u)) continue;
        const std::size_t seen = c.n_keys - 23;
        AttentionSequence clean(c, *isa->kernels), dirty(c, *isa->kernels);
        clean.store(0, seen);
        // Keys after `seen` are stored too, as in prefill, and are as bad as values can be.
        for (std::size_t i = seen * c.d_k; i < dirty.k().size(); ++i)
          dirty.k()[i] = i % 2 ? kNan : kInf;
        for (std::size_t i = seen * c.d_v; i < dirty.v().size(); ++i)
          dirty.v()[i] = i % 2 ? kNan : -kInf;
        dirty.store(0, c.n_keys);
        std::vector<float> expected = clean.attend(0, seen), got = dirty.attend(0, c.n_keys);
        got.resize(expected.size());
        INFO(isa->name << ", " << describe(c));
        CHECK(same_bits(expected, got));
        for (float value : expected) REQUIRE(std::isfinite(value));
      }
    }
  }
}

TEST_CASE("keys before the window are neither read nor weighed") {
  for (const IsaInfo* isa : supported_isas()) {
    for (CacheType type : kCacheTypes) {
      AttentionCase c;
      c.k_type = c.v_type = type;
      c.n_keys = 400, c.window = 60, c.sinks = 3, c.group = 3;
      AttentionSequence whole(c, *isa->kernels), holes(c, *isa->kernels);
      whole.store(0, c.n_keys);
      holes.store(0, 3);                // the others stay NaN patterns
      holes.store(400 - 61, c.n_keys);  // token 399 sees [340, 400), token 398 [339, 399)
      INFO(isa->name << ", " << describe(c));
      CHECK(same_bits(whole.attend(398, 400), holes.attend(398, 400)));
    }
  }
}

TEST_CASE("attention gives the bits of the scalar path") {
  for (CacheType k_type : kCacheTypes) {
    for (CacheType v_type : kCacheTypes) {
      for (const AttentionCase& c : cases_of(k_type, v_type)) {
        if (k_type != v_type && c.n_keys > 64) continue;
        const std::size_t first = c.n_keys > 60 ? c.n_keys - 60 : 0;
        AttentionSequence scalar(c, *all_isas().back().kernels);
        scalar.store(0, c.n_keys);
        const std::vector<float> expected = scalar.attend(first, c.n_keys);
        for (const IsaInfo* isa : supported_isas()) {
          AttentionSequence sequence(c, *isa->kernels);
          sequence.store(0, c.n_keys);
          INFO(isa->name << ", " << describe(c));
          CHECK(sequence.bytes() == scalar.bytes());
          CHECK(same_bits(sequence.attend(first, c.n_keys), expected));
        }
      }
    }
  }
}

TEST_CASE("queries of zeros, and near it, weigh what they see alike and nothing else") {
  for (const IsaInfo* isa : supported_isas()) {
    for (const auto& [k_type, v_type] : type_pairs()) {
      for (const float value : {0.0f, 1e-45f, 1e-38f, 1e-34f}) {
        AttentionCase c;
        c.k_type = k_type, c.v_type = v_type, c.n_keys = 20;
        AttentionSequence sequence(c, *isa->kernels);
        sequence.q().assign(sequence.q().size(), value);
        sequence.store(0, 10);  // half of a half block; the other slots are NaN patterns
        const std::vector<float> output = sequence.attend(9, 10);
        INFO(isa->name << ", " << describe(c) << ", queries " << value);
        std::size_t wrong = 0;
        for (std::size_t d = 0; d < c.d_v; ++d) {
          double mean = 0;
          for (std::size_t key = 0; key < 10; ++key) mean += static_cast<double>(sequence.v()[key * c.d_v + d]) / 10;
          wrong += !(std::abs(static_cast<double>(output[d]) - mean) < 0.3) ? 1u : 0u;  // int4: a step is 0.4
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("values and keys that are subnormal give the bits of the scalar path") {
  for (const auto& [k_type, v_type] : type_pairs()) {
    AttentionCase c;
    c.k_type = k_type, c.v_type = v_type, c.n_keys = 45, c.group = 2;
    const auto output_of = [&](const Kernels& kernels) {
      AttentionSequence sequence(c, kernels);
      for (std::size_t i = 0; i < sequence.k().size(); i += 3) sequence.k()[i] *= 1e-39f;
      for (std::size_t i = 0; i < sequence.v().size(); i += 2) sequence.v()[i] *= 1e-39f;
      sequence.store(0, c.n_keys);
      return sequence.attend(0, c.n_keys);
    };
    const std::vector<float> expected = output_of(*all_isas().back().kernels);
    for (const IsaInfo* isa : supported_isas()) {
      INFO(isa->name << ", " << describe(c));
      CHECK(same_bits(output_of(*isa->kernels), expected));
    }
  }
}

TEST_CASE("a stored query keeps to its row, whatever its width") {
  for (const IsaInfo* isa : supported_isas()) {
    for (CacheType type : kCacheTypes) {
      std::vector<CacheLayout> layouts;
      for (std::size_t d_k : {1u, 2u, 3u, 7u, 15u, 16u, 65u, 576u})
        layouts.push_back(make_cache_layout(type, CacheType::f32, d_k, 16));
      for (std::size_t d_rope : {1u, 2u, 63u})
        if (type != CacheType::int4) layouts.push_back(make_latent_layout(type, 17, d_rope));
      for (const CacheLayout& layout : layouts) {
        const std::vector<float> q = normal_values(layout.d_k, 7);
        std::vector<float> row(query_floats(layout.d_k) + 16, 5.0f), again = row;
        isa->kernels->store_query(layout, q.data(), row.data());
        isa->kernels->store_query(layout, q.data(), again.data());
        INFO(isa->name << " type " << static_cast<int>(type) << " d_k " << layout.d_k);
        CHECK(same_bits(row, again));
        for (std::size_t i = query_floats(layout.d_k); i < row.size(); ++i) REQUIRE(row[i] == 5.0f);
      }
    }
  }
}

TEST_CASE("a row that sees no key gives zeros and keeps its state") {
  for (const IsaInfo* isa : supported_isas()) {
    AttentionCase c;
    c.n_keys = 20;
    AttentionSequence sequence(c, *isa->kernels);
    sequence.store(0, 20);
    const std::byte* block = sequence.block_of(0);
    const std::vector<float> ones(3 * 64, 1.0f), q = stored_queries(*isa->kernels, sequence.layout(), ones.data(), 3);
    std::vector<float> scratch(attend_scratch_floats(3, sequence.layout()));
    const std::uint32_t begin[3] = {0, 20, 7}, end[3] = {5, 20, 7};
    float max[3], sum[3] = {0, 0, 0};
    for (float& m : max) m = -std::numeric_limits<float>::infinity();
    std::vector<float> o(3 * 64, 0.0f), output(3 * 64, 9.0f);
    const AttendState state{max, sum, o.data(), 64};
    isa->kernels->attend({&sequence.layout(), &block, 1, 0, 3, q.data(), query_floats(64), begin, end, 0, 0.1f,
                          0.0f, nullptr, false, nullptr, state, scratch.data()});
    CHECK(sum[0] >= 1.0f);
    CHECK(sum[1] == 0.0f);
    CHECK(std::isinf(max[2]));
    const float sink[3] = {0.5f, 0.5f, 0.5f};
    for (const float* logits : {static_cast<const float*>(nullptr), sink}) {
      isa->kernels->finish_attention(state, 3, 64, output.data(), 64, logits);
      for (std::size_t i = 64; i < 192; ++i) REQUIRE(output[i] == 0.0f);
      REQUIRE(output[0] != 0.0f);
    }
  }
}

}  // namespace quern::kernels
