// Norms, rotary positions, activations and sums: against float64, bit-equal on every instruction
// set, for every tail length, and at the edges of the float range.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "kernels/isas.hpp"

namespace quern::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const IsaInfo*> isas() {
  std::vector<const IsaInfo*> found;
  for (const IsaInfo& isa : tested_isas())
    if (isa.supported) found.push_back(&isa);
  return found;
}
const Kernels& scalar() {
  return *all_isas().back().kernels;
}

std::vector<float> normal(std::size_t n, unsigned seed, float sigma = 1.0f, float mean = 0.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(mean, sigma);
  std::vector<float> x(n);
  for (float& value : x) value = distribution(generator);
  return x;
}

// Bits equal; any NaN equals any NaN.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
  }
  return a.size() == b.size();
}

double exact(ActivationOp op, double x) {
  const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  switch (op) {
    case ActivationOp::relu:
      return x > 0 ? x : 0.0;
    case ActivationOp::silu:
      return x / (1 + std::exp(-x));
    case ActivationOp::gelu_erf:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case ActivationOp::gelu_tanh:
      return x / (1 + std::exp(-2 * u));
    case ActivationOp::gelu_quick:
      return x / (1 + std::exp(-1.702 * x));
    case ActivationOp::tanh:
      return std::tanh(x);
  }
  return 0;
}
constexpr ActivationOp kActivations[] = {ActivationOp::relu, ActivationOp::silu,
                                         ActivationOp::gelu_erf, ActivationOp::gelu_tanh,
                                         ActivationOp::gelu_quick, ActivationOp::tanh};

}  // namespace

TEST_CASE("activations follow their formula over the whole range") {
  std::vector<float> x;
  for (int i = -60000; i <= 60000; ++i) x.push_back(static_cast<float>(i) * 5e-4f);
  for (int e = -120; e <= 120; ++e)
    for (float s : {-1.0f, 1.0f}) x.push_back(s * std::ldexp(1.3f, e));
  for (const IsaInfo* isa : isas()) {
    for (ActivationOp op : kActivations) {
      std::vector<float> y = x;
      isa->kernels->activate(op, y.data(), y.size());
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = exact(op, static_cast<double>(x[i]));
        // Relative to x, the size of the float formula's own rounding.
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - want) /
                                    std::max(1e-38, std::abs(static_cast<double>(x[i]))));
      }
      INFO(isa->name << " activation " << static_cast<int>(op));
      CHECK(worst < 3e-7);
    }
  }
}

TEST_CASE("activations at infinities and NaN") {
  for (const IsaInfo* isa : isas()) {
    for (ActivationOp op : kActivations) {
      float x[3] = {kInf, kNan, -200.0f};
      isa->kernels->activate(op, x, 3);
      INFO(isa->name << " activation " << static_cast<int>(op));
      const bool bounded = op == ActivationOp::tanh;
      CHECK(x[0] == (bounded ? 1.0f : kInf));
      CHECK(std::isnan(x[1]));
      CHECK(std::abs(x[2] - (bounded ? -1.0f : 0.0f)) < 1e-6f);
    }
    float relu = -kInf;
    isa->kernels->activate(ActivationOp::relu, &relu, 1);
    CHECK(relu == 0.0f);
  }
}

TEST_CASE("softcap keeps small values to 4 ulp and never passes the cap") {
  std::vector<float> x;
  for (int e = -100; e <= 100; ++e)
    for (float m : {-1.7f, -1.0f, 1.0f, 1.4f}) x.push_back(std::ldexp(m, e));
  for (const IsaInfo* isa : isas()) {
    std::vector<float> y = x;
    isa->kernels->softcap(y.data(), 30.0f, y.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = 30.0 * std::tanh(static_cast<double>(x[i]) / 30.0);
      INFO(isa->name << " at " << x[i]);
      CHECK(std::abs(static_cast<double>(y[i]) - want) <= 4.8e-7 * std::abs(want));
      CHECK(std::abs(y[i]) <= 30.0f);
    }
    float edge[3] = {kInf, -kInf, kNan};
    isa->kernels->softcap(edge, 50.0f, 3);
    CHECK(edge[0] == 50.0f);
    CHECK(edge[1] == -50.0f);
    CHECK(std::isnan(edge[2]));
  }
}

TEST_CASE("norms of every width equal float64") {
  for (const IsaInfo* isa : isas()) {
    for (std::size_t n = 1; n <= 130; ++n) {
      for (bool wide : {false, true}) {
        for (NormOp op : {NormOp::rms_norm, NormOp::layer_norm}) {
          const auto x = normal(n, static_cast<unsigned>(n), 2.0f, 3.0f);
          const auto weight = normal(n, 1000), bias = normal(n, 2000);
          std::vector<float> y = x;  // in place
          isa->kernels->norm({op, n, 1e-5f, weight.data(), bias.data(), wide}, y.data(), y.data());
          double mean = 0, squares = 0;
          if (op == NormOp::layer_norm) {
            for (float v : x) mean += static_cast<double>(v);
            mean /= static_cast<double>(n);
          }
          for (float v : x) squares += std::pow(static_cast<double>(v) - mean, 2.0);
          const double inverse =
              1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(1e-5f));
          for (std::size_t i = 0; i < n; ++i) {
            const double z = (static_cast<double>(x[i]) - mean) * inverse;
            const double want = z * static_cast<double>(weight[i]) + static_cast<double>(bias[i]);
            // A layer norm in float loses the rounding of the mean, once per value.
            const double slack = 4e-7 * std::abs(mean) * inverse * (wide ? 0.0 : 1.0) + 1e-6;
            INFO(isa->name << " n " << n << " op " << static_cast<int>(op) << " f64 " << wide);
            CHECK(std::abs(static_cast<double>(y[i]) - want) <=
                  slack * (1 + std::abs(weight[i])) + 1e-7 * std::abs(want));
          }
        }
      }
    }
  }
}

TEST_CASE("norm without weight and bias, and of huge values in f64") {
  for (const IsaInfo* isa : isas()) {
    const auto x = normal(77, 5, 1e25f);
    std::vector<float> y(77);
    isa->kernels->norm({NormOp::rms_norm, 77, 1e-6f, nullptr, nullptr, true}, x.data(), y.data());
    double squares = 0;
    for (float v : y) squares += static_cast<double>(v) * static_cast<double>(v);
    CHECK(squares / 77 == Approx(1.0).epsilon(1e-6));
  }
}

TEST_CASE("rope turns the right pairs by the right angle") {
  for (const IsaInfo* isa : isas()) {
    for (bool pairs : {false, true}) {
      for (std::size_t half : {1u, 5u, 8u, 16u, 17u, 32u, 48u, 64u}) {
        const auto x = normal(2 * half + 3, static_cast<unsigned>(half));
        std::vector<float> cosine(half), sine(half), y = x;
        for (std::size_t i = 0; i < half; ++i) {
          cosine[i] = std::cos(0.37f * static_cast<float>(i + 1));
          sine[i] = std::sin(0.37f * static_cast<float>(i + 1));
        }
        isa->kernels->rope(y.data(), cosine.data(), sine.data(), half, pairs);
        for (std::size_t i = 0; i < half; ++i) {
          const std::size_t a = pairs ? 2 * i : i, b = pairs ? 2 * i + 1 : i + half;
          INFO(isa->name << " half " << half << " pairs " << pairs << " i " << i);
          CHECK(y[a] == x[a] * cosine[i] - x[b] * sine[i]);
          CHECK(y[b] == x[b] * cosine[i] + x[a] * sine[i]);
        }
        for (std::size_t i = 2 * half; i < x.size(); ++i) CHECK(y[i] == x[i]);
      }
    }
  }
}

TEST_CASE("sums and products are exact and stop at n") {
  for (const IsaInfo* isa : isas()) {
    const Kernels& k = *isa->kernels;
    for (std::size_t n = 1; n <= 67; ++n) {
      const auto x = normal(80, 1), y = normal(80, 2);
      auto scaled = x, added = x, both = x, gated = x;
      k.scale(scaled.data(), 0.3f, n);
      k.add(added.data(), y.data(), n);
      k.scaled_add(both.data(), 0.7f, y.data(), -1.3f, n);
      k.activate_gated(ActivationOp::relu, y.data(), gated.data(), n);
      bool good = true;
      for (std::size_t i = 0; i < 80; ++i) {
        good = good && scaled[i] == (i < n ? x[i] * 0.3f : x[i]);
        good = good && added[i] == (i < n ? x[i] + y[i] : x[i]);
        good = good && both[i] == (i < n ? std::fma(y[i], -1.3f, x[i] * 0.7f) : x[i]);
        good = good && gated[i] == (i < n ? x[i] * (y[i] > 0 ? y[i] : 0.0f) : x[i]);
      }
      INFO(isa->name << " n " << n);
      CHECK(good);
    }
  }
}

TEST_CASE("every instruction set gives the bits of the scalar path") {
  std::string covered;
  for (const IsaInfo* isa : isas()) {
    covered += " " + isa->name;
    const Kernels& k = *isa->kernels;
    for (std::size_t n : {1u, 15u, 16u, 33u, 576u, 1001u}) {
      for (float sigma : {1e-30f, 1e-3f, 1.0f, 40.0f, 1e30f}) {
        auto x = normal(n, 7, sigma);
        if (n > 20) x[3] = kInf, x[5] = -kInf, x[18] = kNan;
        const auto finite = normal(n, 9, sigma);
        INFO(isa->name << " n " << n << " sigma " << sigma);
        for (ActivationOp op : kActivations) {
          auto a = x, b = x, c = finite, d = finite;
          k.activate(op, a.data(), n);
          scalar().activate(op, b.data(), n);
          CHECK(same(a, b));
          k.activate_gated(op, x.data(), c.data(), n);
          scalar().activate_gated(op, x.data(), d.data(), n);
          CHECK(same(c, d));
        }
        auto a = x, b = x;
        k.softcap(a.data(), 30.0f, n);
        scalar().softcap(b.data(), 30.0f, n);
        CHECK(same(a, b));
        a = b = x;
        k.clamp(a.data(), -0.5f, 0.75f, n);
        scalar().clamp(b.data(), -0.5f, 0.75f, n);
        CHECK(same(a, b));
        k.shift(a.data(), 0.3f, n);
        scalar().shift(b.data(), 0.3f, n);
        CHECK(same(a, b));
        for (bool wide : {false, true}) {
          for (NormOp op : {NormOp::rms_norm, NormOp::layer_norm}) {
            const NormArgs args{op, n, 1e-5f, finite.data(), finite.data(), wide};
            std::vector<float> y(n), z(n);
            k.norm(args, finite.data(), y.data());
            scalar().norm(args, finite.data(), z.data());
            CHECK(same(y, z));
          }
        }
        if (n % 2 == 0) {
          for (bool pairs : {false, true}) {
            auto y = finite, z = finite;
            k.rope(y.data(), x.data(), finite.data(), n / 2, pairs);
            scalar().rope(z.data(), x.data(), finite.data(), n / 2, pairs);
            CHECK(same(y, z));
          }
        }
      }
    }
  }
  WARN("instruction sets covered:" << covered);
}

TEST_CASE("clamp keeps what lies between and NaN; shift adds") {
  for (const IsaInfo* isa : isas()) {
    std::vector<float> x(37, 0.25f);
    x[0] = -kInf, x[1] = kInf, x[2] = kNan, x[3] = -2.0f, x[36] = 9.0f;
    isa->kernels->clamp(x.data(), -1.0f, 2.0f, x.size());
    INFO(isa->name);
    CHECK(x[0] == -1.0f);
    CHECK(x[1] == 2.0f);
    CHECK(std::isnan(x[2]));
    CHECK(x[3] == -1.0f);
    CHECK(x[4] == 0.25f);
    CHECK(x[36] == 2.0f);
    isa->kernels->shift(x.data(), 1.5f, x.size());
    CHECK(x[4] == 1.75f);
    CHECK(x[36] == 3.5f);
  }
}

}  // namespace quern::kernels
