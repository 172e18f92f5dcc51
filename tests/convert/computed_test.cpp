// Position tables that a formula gives.
#include <cmath>

#include "catch.hpp"
#include "convert/computed.hpp"

using namespace quern;
using contract::SinusoidOrder;

TEST_CASE("sinusoids: sines then cosines, or in turn, of an odd width too") {
  for (const std::size_t width : {1u, 6u, 7u}) {
    const std::vector<float> halves = convert::sinusoids(40, width, SinusoidOrder::halves);
    const std::vector<float> turns = convert::sinusoids(40, width, SinusoidOrder::interleaved);
    REQUIRE(halves.size() == 40 * width);
    for (std::size_t row = 0; row < 40; ++row)
      for (std::size_t j = 0; j < width; ++j) {
        const double angle =
            static_cast<double>(row) /
            std::pow(10000.0, static_cast<double>(j - j % 2) / static_cast<double>(width));
        const auto want = static_cast<float>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
        CHECK(turns[row * width + j] == want);
        CHECK(halves[row * width + (j % 2 == 0 ? j / 2 : (width + 1) / 2 + j / 2)] == want);
      }
  }
}

TEST_CASE("a computed tensor is the table of its spec, and not without bound") {
  contract::Contract c;
  c.embedding.positions =
      contract::PositionTable{contract::PositionTableKind::sinusoidal, 9, 0, SinusoidOrder::halves};
  contract::TensorSpec spec{"embedding.positions",           9,     4,
                            contract::TensorRole::positions, false, true};
  const auto made = convert::compute_tensor(c, spec, "t");
  CHECK(made->source.shape == std::vector<std::uint64_t>{9, 4});
  CHECK(made->source.bytes.size() == 9 * 4 * sizeof(float));
  CHECK(made->values == convert::sinusoids(9, 4, SinusoidOrder::halves));
  spec.rows = std::size_t{1} << 40;
  CHECK_THROWS_AS(convert::compute_tensor(c, spec, "t"), base::Error);
}
