// Every sampler once more, as short as it can be said: on the full sorted list, in doubles.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sampling/options.hpp"

namespace quern::tests {

struct Choice {
  double logit;
  std::int32_t id;
};
using Choices = std::vector<Choice>;

inline void sort_choices(Choices& c) {
  std::sort(c.begin(), c.end(), [](const Choice& a, const Choice& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
}

// Of choices in any order.
inline std::vector<double> softmax(const Choices& c) {
  double largest = c.front().logit, sum = 0;
  for (const Choice& x : c) largest = std::max(largest, x.logit);
  std::vector<double> p;
  for (const Choice& x : c) sum += std::exp(x.logit - largest);
  for (const Choice& x : c) p.push_back(std::exp(x.logit - largest) / sum);
  return p;
}

inline double entropy_of(const std::vector<double>& p) {
  double entropy = 0;
  for (const double x : p)
    if (x > 0) entropy -= x * std::log(x);
  return entropy;
}

inline void reference_penalties(Choices& c, const sampling::SamplerOptions& o,
                                const std::vector<std::int32_t>& sequence) {
  std::map<std::int32_t, int> counts;
  const std::size_t n = o.repeat_last_n < 0
                            ? sequence.size()
                            : std::min<std::size_t>(sequence.size(), o.repeat_last_n);
  for (std::size_t i = sequence.size() - n; i < sequence.size(); ++i) ++counts[sequence[i]];
  for (Choice& x : c) {
    if (counts.count(x.id) == 0) continue;
    x.logit = x.logit > 0 ? x.logit / o.repeat_penalty : x.logit * o.repeat_penalty;
    x.logit -= counts[x.id] * o.frequency_penalty + o.presence_penalty;
  }
}

// Every earlier place compared with the end, token by token.
inline void reference_dry(Choices& c, const sampling::SamplerOptions& o,
                          const std::vector<std::int32_t>& sequence) {
  const std::size_t n = o.dry_penalty_last_n < 0
                            ? sequence.size()
                            : std::min<std::size_t>(sequence.size(), o.dry_penalty_last_n);
  const std::vector<std::int32_t> w(sequence.end() - static_cast<std::ptrdiff_t>(n), sequence.end());
  std::size_t limit = n;
  for (std::size_t head = n; head-- > 0;) {  // the last place where a breaker begins and fits
    std::ptrdiff_t longest = -1;
    for (const sampling::DryBreaker& b : o.dry_breakers) {
      if (b.head != w[head] || head + 1 + b.tail.size() > n) continue;
      if (std::equal(b.tail.begin(), b.tail.end(), w.begin() + static_cast<std::ptrdiff_t>(head + 1)))
        longest = std::max(longest, static_cast<std::ptrdiff_t>(b.tail.size()));
    }
    if (longest < 0) continue;
    limit = n - 1 - head - static_cast<std::size_t>(longest);
    break;
  }
  if (n <= o.dry_allowed_length || limit < o.dry_allowed_length) return;
  std::map<std::int32_t, std::size_t> longest;
  for (std::size_t next = 1; next < n; ++next) {
    std::size_t length = 0;
    while (length < next && length < limit && w[next - 1 - length] == w[n - 1 - length]) ++length;
    if (length >= o.dry_allowed_length)
      longest[w[next]] = std::max(longest.count(w[next]) ? longest[w[next]] : 0, length);
  }
  for (Choice& x : c) {
    const bool breaks = std::any_of(
        o.dry_breakers.begin(), o.dry_breakers.end(),
        [&](const sampling::DryBreaker& b) { return b.head == x.id && b.tail.empty(); });
    if (breaks || longest.count(x.id) == 0) continue;
    x.logit -= o.dry_multiplier *
               std::pow(o.dry_base, static_cast<double>(longest[x.id] - o.dry_allowed_length));
  }
}

inline void reference_top_n_sigma(Choices& c, double n) {
  double mean = 0, square = 0, largest = c.front().logit;
  for (const Choice& x : c) mean += x.logit / static_cast<double>(c.size());
  for (const Choice& x : c) {
    square += (x.logit - mean) * (x.logit - mean) / static_cast<double>(c.size());
    largest = std::max(largest, x.logit);
  }
  std::erase_if(c, [&](const Choice& x) { return x.logit < largest - n * std::sqrt(square); });
}

inline void reference_top_k(Choices& c, std::size_t k) {
  sort_choices(c);
  c.resize(std::min(k, c.size()));
}

inline void reference_typical(Choices& c, double p, std::size_t min_keep) {
  sort_choices(c);
  const std::vector<double> all = softmax(c);
  const double entropy = entropy_of(all);
  std::vector<std::size_t> order(c.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(-std::log(all[a]) - entropy) < std::fabs(-std::log(all[b]) - entropy);
  });
  Choices kept;
  double sum = 0;
  for (const std::size_t i : order) {
    kept.push_back(c[i]);
    sum += all[i];
    if (sum > p && kept.size() >= min_keep) break;
  }
  c = kept;
}

inline void reference_top_p(Choices& c, double p, std::size_t min_keep) {
  sort_choices(c);
  const std::vector<double> all = softmax(c);
  double sum = 0;
  std::size_t n = 0;
  while (n < c.size()) {
    sum += all[n++];
    if (sum >= p && n >= min_keep) break;
  }
  c.resize(n);
}

inline void reference_min_p(Choices& c, double p, std::size_t min_keep) {
  sort_choices(c);
  const std::vector<double> all = softmax(c);
  std::size_t n = 1;
  while (n < c.size() && (all[n] >= p * all[0] || n < min_keep)) ++n;
  c.resize(n);
}

inline void reference_xtc(Choices& c, double threshold, std::size_t min_keep) {
  sort_choices(c);
  const std::vector<double> all = softmax(c);
  std::size_t last = 0;
  for (std::size_t i = 0; i < c.size() && all[i] >= threshold; ++i) last = i;
  if (last > 0 && c.size() - last >= min_keep)
    c.erase(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(last));
}

inline void reference_temperature(Choices& c, double temperature) {
  sort_choices(c);
  if (temperature <= 0) c.resize(1);
  for (Choice& x : c) x.logit /= temperature > 0 ? temperature : 1;
}

inline void reference_dynatemp(Choices& c, const sampling::SamplerOptions& o) {
  if (c.size() <= 1) return;
  const double low = std::max(0.0, o.temperature - o.dynatemp_range);
  const double high = o.temperature + o.dynatemp_range;
  const double part = entropy_of(softmax(c)) / std::log(static_cast<double>(c.size()));
  reference_temperature(c, low + (high - low) * std::pow(part, o.dynatemp_exponent));
}

// k of mirostat 1, from its paper: s by least squares over the best 100.
inline std::size_t reference_mirostat_k(Choices c, double mu, double vocab_size) {
  sort_choices(c);
  const std::vector<double> p = softmax(c);
  double tb = 0, tt = 0;
  for (std::size_t i = 0; i < 99 && i + 1 < c.size(); ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    tb += t * std::log(p[i] / p[i + 1]);
    tt += t * t;
  }
  const double s = tb / tt, e = s - 1;
  const double k = std::pow(e * std::pow(2, mu) / (1 - std::pow(vocab_size, -e)), 1 / s);
  return static_cast<std::size_t>(std::clamp(k, 1.0, static_cast<double>(c.size())));
}

}  // namespace quern::tests
