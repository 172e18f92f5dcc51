// The oracle of the model tests: a float64 forward pass straight from the contract, whole sequence
// at once, sharing no code with src/model. Weights are plain row-major floats by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "contract/contract.hpp"
#include "contract/tensors.hpp"
#include "model/tiny_model.hpp"

namespace quern::tests {

using Matrix = std::vector<std::vector<double>>;  // [tokens][width]

class Reference {
 public:
  // activation_group: inputs of matrices are rounded to int8 per so many columns, 0: not at all.
  Reference(const Contract& c, const FloatTensors& tensors, std::size_t activation_group = 0)
      : c_(c), t_(tensors), group_(activation_group) {}

  // Logits [tokens][vocab_size] of a whole sequence.
  Matrix run(const std::vector<std::int32_t>& ids) {
    Matrix x = embed(ids);
    kv_.clear();
    const std::vector<contract::LayerRef> layers = contract::unroll(c_, *c_.decoder);
    for (std::size_t i = 0; i < layers.size(); ++i)
      block(*layers[i].block, i, layers[i].weights_of, x);
    if (c_.decoder->final_norm) norm(*c_.decoder->final_norm, "decoder.final_norm", x);
    for (auto& row : x)
      for (double& v : row) v *= c_.head.in_scale;
    Matrix logits = linear(x, c_.head.tied ? "embedding.tokens" : "head.weight",
                           c_.head.bias ? "head.bias" : "", c_.vocab_size);
    for (auto& row : logits)
      for (double& v : row) {
        v *= c_.head.logit_scale;
        if (c_.head.softcap) v = *c_.head.softcap * std::tanh(v / *c_.head.softcap);
      }
    return logits;
  }

 private:
  struct KeysValues {
    Matrix k, v;
  };

  Matrix embed(const std::vector<std::int32_t>& ids) const {
    Matrix x;
    for (std::size_t p = 0; p < ids.size(); ++p) {
      std::vector<double> row(c_.d_model);
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] =
            c_.embedding.scale *
            double{t_.at("embedding.tokens")[static_cast<std::size_t>(ids[p]) * row.size() + i]};
        if (c_.embedding.positions)
          row[i] += double{
              t_.at("embedding.positions")[(p + c_.embedding.positions->offset) * row.size() + i]};
      }
      x.push_back(row);
    }
    if (c_.embedding.norm) norm(*c_.embedding.norm, "embedding.norm", x);
    return x;
  }

  void norm(const std::string& kind, const std::string& name, Matrix& x) const {
    for (auto& row : x) norm_row(kind, name, row.data(), row.size());
  }

  void norm_row(const std::string& kind, const std::string& name, double* x, std::size_t n) const {
    const contract::Norm& spec = c_.norms.at(kind);
    double mean = 0, square = 0;
    if (spec.kind == contract::NormKind::layer_norm)
      for (std::size_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = (x[i] - mean) / std::sqrt(square + spec.eps);
      if (spec.weight) x[i] *= double{t_.at(name + ".weight")[i]} + spec.weight_offset;
      if (spec.bias) x[i] += double{t_.at(name + ".bias")[i]};
    }
  }

  std::vector<double> rounded(const std::vector<double>& x) const {
    if (group_ == 0) return x;
    std::vector<double> y(x.size());
    for (std::size_t first = 0; first < x.size(); first += group_) {
      const std::size_t end = std::min(first + group_, x.size());
      double largest = 0;
      for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
      const double scale = largest / 127;
      for (std::size_t i = first; i < end; ++i)
        y[i] = scale > 0 ? std::nearbyint(x[i] / scale) * scale : 0;
    }
    return y;
  }

  Matrix linear(const Matrix& x, const std::string& weight, const std::string& bias,
                std::size_t out) const {
    const std::vector<float>& w = t_.at(weight);
    Matrix y;
    for (const auto& exact : x) {
      const std::vector<double> row = rounded(exact);
      std::vector<double> result(out);
      for (std::size_t r = 0; r < out; ++r) {
        for (std::size_t k = 0; k < row.size(); ++k)
          result[r] += double{w[r * row.size() + k]} * row[k];
        if (!bias.empty()) result[r] += double{t_.at(bias)[r]};
      }
      y.push_back(result);
    }
    return y;
  }

  void block(const contract::Block& spec, std::size_t layer, std::size_t weights_of, Matrix& x) {
    const bool parallel = spec.residual == contract::Residual::parallel;
    const Matrix input = x;
    Matrix normed;
    for (std::size_t b = 0; b < spec.branches.size(); ++b) {
      const contract::Branch& branch = spec.branches[b];
      const std::string prefix =
          "decoder." + std::to_string(weights_of) + "." + std::to_string(b) + ".";
      if (branch.norm_in != contract::kSharedNorm) {
        normed = parallel ? input : x;
        if (branch.norm_in) norm(*branch.norm_in, prefix + "norm_in", normed);
        for (auto& row : normed)
          for (double& v : row) v *= branch.in_scale;
      }
      const contract::Op& op = c_.ops.at(branch.op);
      Matrix y = op.attention ? attention(*op.attention, prefix, layer, normed)
                              : ffn(*op.ffn, prefix, normed);
      if (branch.norm_out) norm(*branch.norm_out, prefix + "norm_out", y);
      const double skip = parallel && b > 0 ? 1.0 : spec.skip_scale;
      for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < x[i].size(); ++j)
          x[i][j] = skip * x[i][j] + branch.out_scale * y[i][j];
      if (branch.norm_after) norm(*branch.norm_after, prefix + "norm_after", x);
    }
  }

  static double activate(contract::Activation kind, double x) {
    switch (kind) {
      case contract::Activation::relu:
        return std::max(x, 0.0);
      case contract::Activation::silu:
        return x / (1 + std::exp(-x));
      case contract::Activation::gelu_erf:
        return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
      case contract::Activation::gelu_tanh:
        return 0.5 * x *
               (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
      case contract::Activation::gelu_quick:
        return x / (1 + std::exp(-1.702 * x));
    }
    return 0;
  }

  Matrix ffn(const contract::Ffn& op, const std::string& prefix, const Matrix& x) const {
    const auto bias = [&](const char* part, bool has) {
      return has ? prefix + part + ".bias" : "";
    };
    Matrix up = linear(x, prefix + "up.weight", bias("up", op.bias_in), op.d_ff);
    Matrix gate;
    if (op.gated) gate = linear(x, prefix + "gate.weight", bias("gate", op.bias_in), op.d_ff);
    for (std::size_t i = 0; i < up.size(); ++i)
      for (std::size_t j = 0; j < op.d_ff; ++j)
        up[i][j] = op.gated ? activate(op.activation, gate[i][j]) * up[i][j]
                            : activate(op.activation, up[i][j]);
    return linear(up, prefix + "down.weight", bias("down", op.bias_out), c_.d_model);
  }

  void place(const contract::Attention& op, const std::string& norm_name, std::size_t n_heads,
             Matrix& x) const {
    for (std::size_t p = 0; p < x.size(); ++p) {
      double* row = x[p].data();
      if (op.qk_norm && op.qk_norm->over_all_heads)
        norm_row(op.qk_norm->norm, norm_name, row, x[p].size());
      for (std::size_t h = 0; h < n_heads; ++h, row += op.d_k) {
        if (op.qk_norm && !op.qk_norm->over_all_heads)
          norm_row(op.qk_norm->norm, norm_name, row, op.d_k);
        if (op.rope) rotate(c_.ropes.at(*op.rope), static_cast<double>(p), row);
      }
    }
  }

  static void rotate(const contract::Rope& rope, double position, double* x) {
    const std::size_t half = rope.dims / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = position * double{rope.inv_freq[i]};
      const double c = std::cos(angle) * rope.mscale, s = std::sin(angle) * rope.mscale;
      const bool pairs = rope.layout == contract::RopeLayout::pairs;
      double& a = x[pairs ? 2 * i : i];
      double& b = x[pairs ? 2 * i + 1 : i + half];
      const double first = a * c - b * s;
      b = b * c + a * s;
      a = first;
    }
  }

  static bool sees(const contract::Mask& mask, std::size_t query, std::size_t key) {
    if (key > query) return false;
    return !mask.window || query - key < *mask.window || key < mask.sinks;
  }

  Matrix attention(const contract::Attention& op, const std::string& prefix, std::size_t layer,
                   const Matrix& x) {
    const auto bias = [&](const char* part, bool has) {
      return has ? prefix + part + ".bias" : "";
    };
    Matrix q = linear(x, prefix + "q.weight", bias("q", op.bias_q), op.n_heads * op.d_k);
    place(op, prefix + "q_norm", op.n_heads, q);
    if (!op.kv_from) {
      KeysValues& own = kv_[layer];
      own.k = linear(x, prefix + "k.weight", bias("k", op.bias_k), op.n_kv_heads * op.d_k);
      own.v = linear(x, prefix + "v.weight", bias("v", op.bias_v), op.n_kv_heads * op.d_v);
      place(op, prefix + "k_norm", op.n_kv_heads, own.k);
    }
    const KeysValues& kv = kv_.at(op.kv_from ? *op.kv_from : layer);
    Matrix out(x.size(), std::vector<double>(op.n_heads * op.d_v));
    for (std::size_t p = 0; p < x.size(); ++p)
      for (std::size_t h = 0; h < op.n_heads; ++h) attend(op, prefix, q, kv, p, h, out[p]);
    return linear(out, prefix + "o.weight", bias("o", op.bias_o), c_.d_model);
  }

  void attend(const contract::Attention& op, const std::string& prefix, const Matrix& q,
              const KeysValues& kv, std::size_t p, std::size_t h, std::vector<double>& out) const {
    const std::size_t kv_head = h / (op.n_heads / op.n_kv_heads);
    std::vector<double> score(p + 1, -INFINITY);
    double largest = op.sink_logits ? double{t_.at(prefix + "sink_logits")[h]} : -INFINITY;
    for (std::size_t j = 0; j <= p; ++j) {
      if (!sees(op.mask, p, j)) continue;
      double s = 0;
      for (std::size_t i = 0; i < op.d_k; ++i)
        s += q[p][h * op.d_k + i] * kv.k[j][kv_head * op.d_k + i];
      const double slope = op.alibi ? double{op.alibi->slopes[h]} * static_cast<double>(j) : 0.0;
      s = op.alibi && op.alibi->before_scale ? (s + slope) * op.scale : s * op.scale + slope;
      if (op.softcap) s = *op.softcap * std::tanh(s / *op.softcap);
      score[j] = s;
      largest = std::max(largest, s);
    }
    double sum =
        op.sink_logits ? std::exp(double{t_.at(prefix + "sink_logits")[h]} - largest) : 0.0;
    for (double& s : score) sum += s = std::exp(s - largest);
    for (std::size_t j = 0; j <= p; ++j)
      for (std::size_t i = 0; i < op.d_v; ++i)
        out[h * op.d_v + i] += score[j] / sum * kv.v[j][kv_head * op.d_v + i];
  }

  const Contract& c_;
  const FloatTensors& t_;
  std::size_t group_;
  std::map<std::size_t, KeysValues> kv_;
};

}  // namespace quern::tests
