// Rotary angles: precision at every length, and the tables that depend on the declared length.
#include "model/position.hpp"
#include "catch.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

TEST_CASE("cosine and sine are within 1e-6 of the exact ones up to a million positions",
          "[position]") {
  model::RopeFrequencies frequencies;
  for (int i = 0; i < 64; ++i)
    frequencies.inv_freq.push_back(static_cast<float>(std::pow(5e5, -i / 64.0)));
  std::vector<float> cosine(64), sine(64);
  for (const double mscale : {1.0, 1.3465735902799727}) {
    frequencies.mscale = mscale;
    for (const std::size_t position : {0UL, 1UL, 8191UL, 32767UL, 131071UL, 1048575UL}) {
      model::rope_angles(frequencies, position, cosine.data(), sine.data());
      for (std::size_t i = 0; i < 64; ++i) {
        const long double angle =
            static_cast<long double>(position) * static_cast<long double>(frequencies.inv_freq[i]);
        CHECK(std::fabs(static_cast<double>(std::cos(angle)) * mscale - double{cosine[i]}) < 1e-6);
        CHECK(std::fabs(static_cast<double>(std::sin(angle)) * mscale - double{sine[i]}) < 1e-6);
      }
    }
  }
}

TEST_CASE("dynamic NTK grows the base with the declared length only", "[position]") {
  contract::Rope rope{};
  rope.dims = 128;
  rope.mscale = 1;
  for (int i = 0; i < 64; ++i)
    rope.inv_freq.push_back(static_cast<float>(std::pow(1e4, -i / 64.0)));
  rope.switch_rule = contract::RopeSwitch{};
  rope.switch_rule->kind = contract::RopeSwitchKind::dynamic_ntk;
  rope.switch_rule->original_length = 2048;
  rope.switch_rule->base = 1e4;
  rope.switch_rule->factor = 2;
  for (const std::size_t length : {1UL, 2047UL, 2048UL})
    CHECK(model::rope_frequencies(rope, length).inv_freq == rope.inv_freq);
  // Published values for twice the trained length.
  const std::vector<float> grown = model::rope_frequencies(rope, 4096).inv_freq;
  CHECK(double{grown[1]} == Approx(.850994289).epsilon(1e-6));
  CHECK(double{grown[32]} == Approx(.00572338188).epsilon(1e-6));
  CHECK(double{grown[63]} == Approx(3.84927334e-05).epsilon(1e-6));
}

TEST_CASE("longrope changes table and factor above the original length", "[position]") {
  contract::Rope rope{};
  rope.dims = 4;
  rope.mscale = 1.1;
  rope.inv_freq = {1.0F, 0.1F};
  rope.switch_rule =
      contract::RopeSwitch{contract::RopeSwitchKind::longrope, 100, 0, 0, {0.5F, 0.01F}, 1.2};
  const model::RopeFrequencies below = model::rope_frequencies(rope, 100);
  const model::RopeFrequencies above = model::rope_frequencies(rope, 101);
  CHECK(below.inv_freq == rope.inv_freq);
  CHECK(below.mscale == 1.1);
  CHECK(above.inv_freq == std::vector<float>{0.5F, 0.01F});
  CHECK(above.mscale == 1.2);
}

}  // namespace quern::tests
