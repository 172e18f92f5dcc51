#include "model/relative_bias.hpp"

#include <algorithm>
#include <limits>

namespace quern::model {

namespace {

// First distance above `distance` that lies in another bucket.
std::int64_t next_bucket(const contract::RelativeBias& spec, std::int64_t distance) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::uint32_t>& starts = spec.starts;
  if (distance > 0) {
    if (!spec.bidirectional) return kNever;
    const auto next = std::upper_bound(starts.begin(), starts.end(), distance);
    return next == starts.end() ? kNever : std::int64_t{*next};
  }
  const auto next = std::upper_bound(starts.begin(), starts.end(), -distance);
  return 1 - std::int64_t{*(next - 1)};  // starts[0] is 0: distance 1 at the latest
}

}  // namespace

std::size_t relative_bucket(const contract::RelativeBias& spec, std::int64_t distance) {
  const std::int64_t length = distance > 0 ? (spec.bidirectional ? distance : 0) : -distance;
  const auto next = std::upper_bound(spec.starts.begin(), spec.starts.end(), length);
  const auto bucket = static_cast<std::size_t>(next - spec.starts.begin()) - 1;
  return bucket + (spec.bidirectional && distance > 0 ? spec.starts.size() : 0);
}

void fill_bias_lines(const BiasLines& bias, std::int64_t first, std::size_t n, float* lines,
                     std::size_t stride) {
  const std::int64_t end = first + static_cast<std::int64_t>(n);
  for (std::int64_t distance = first; distance < end;) {
    const std::int64_t next = std::min(next_bucket(bias.spec, distance), end);
    const float* values =
        bias.table + relative_bucket(bias.spec, distance) * bias.n_heads + bias.head;
    for (std::size_t g = 0; g < bias.group; ++g)
      std::fill(lines + g * stride + (distance - first), lines + g * stride + (next - first),
                values[g]);
    distance = next;
  }
}

}  // namespace quern::model
