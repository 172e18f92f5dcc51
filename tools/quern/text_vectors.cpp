#include "text_vectors.hpp"

#include <algorithm>
#include <cmath>

namespace quern::tool {

contract::Pooling default_pooling(const contract::Contract& contract) {
  const bool decoder = contract.kind == contract::ModelKind::decoder;
  return contract.pooling.value_or(
      contract::Pooling{.mode = decoder ? contract::Pool::last : contract::Pool::mean, .normalize = true});
}

void normalize(std::vector<float>& vector) {
  double square = 0;
  for (const float x : vector) square += double{x} * x;
  const double length = std::sqrt(square);
  if (!(length > 0)) return;
  for (float& x : vector) x = static_cast<float>(x / length);
}

bool is_finite(const std::vector<float>& vector) {
  return std::all_of(vector.begin(), vector.end(), [](float x) { return std::isfinite(x); });
}

}  // namespace quern::tool
