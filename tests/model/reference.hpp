// The oracle of the model tests: a float64 forward pass straight from the contract, whole sequence
// at once, sharing no code with src/model. Weights are plain row-major floats by name.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/small_float.hpp"
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

  // What a request gives: ids of the output stack's input, and what only some models take.
  struct Input {
    std::vector<std::int32_t> ids, types = {}, encoder_ids = {};
    std::size_t prefix_length = 0;
  };

  // Logits [tokens][outputs] of a whole sequence.
  Matrix run(const std::vector<std::int32_t>& ids) { return run(Input{ids}); }
  Matrix run(const Input& input) { return head(hidden(input)); }

  // After the final norm, [tokens][d_model].
  Matrix hidden(const Input& input) {
    prefix_length_ = input.prefix_length;
    if (!c_.decoder) return stack("encoder", *c_.encoder, input.ids, input.types);
    if (c_.encoder) encoded_ = stack("encoder", *c_.encoder, input.encoder_ids, {});
    return stack("decoder", *c_.decoder, input.ids, input.types);
  }

  Matrix encoded() const { return encoded_; }
  virtual ~Reference() = default;

 protected:
  virtual Matrix run_op(const contract::Op& op, const std::string& prefix, std::size_t layer, const Matrix& x) {
    return op.attention ? attention(*op.attention, prefix, layer, x) : ffn(*op.ffn, prefix, x);
  }

  struct KeysValues {
    Matrix k, v;
  };

  Matrix stack(const std::string& name, const contract::Stack& spec,
               const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& types) {
    name_ = name;
    Matrix x = spec.embedding
                   ? embed(spec.embedding->embedding, name + ".embedding.",
                           spec.embedding->own_tokens ? name + ".embedding.tokens" : "", ids, types)
                   : embed(c_.embedding, "embedding.", "", ids, types);
    kv_.clear();
    const std::vector<contract::LayerRef> layers = contract::unroll(c_, spec);
    for (std::size_t i = 0; i < layers.size(); ++i)
      block(*layers[i].block, i, layers[i].weights_of, x);
    if (spec.final_norm) norm(*spec.final_norm, name + ".final_norm", x);
    return x;
  }

  Matrix head(Matrix x) const {
    const contract::Head& spec = c_.head;
    if (spec.pool) x = {pooled(x, *spec.pool)};
    if (spec.transform) {
      x = linear(x, "head.transform.weight", spec.transform->bias ? "head.transform.bias" : "",
                 spec.transform->d_out);
      if (spec.transform->activation)
        for (auto& row : x)
          for (double& v : row) v = activate(*spec.transform->activation, v);
      if (spec.transform->norm) norm(*spec.transform->norm, "head.transform.norm", x);
    }
    for (auto& row : x)
      for (double& v : row) v *= spec.in_scale;
    Matrix logits = linear(x, spec.tied ? "embedding.tokens" : "head.weight",
                           spec.bias ? "head.bias" : "", contract::head_outputs(c_));
    for (auto& row : logits)
      for (double& v : row) {
        v *= spec.logit_scale;
        if (spec.softcap) v = *spec.softcap * std::tanh(v / *spec.softcap);
      }
    return logits;
  }

  static std::vector<double> pooled(const Matrix& x, contract::Pool mode) {
    if (mode != contract::Pool::mean) return mode == contract::Pool::first ? x.front() : x.back();
    std::vector<double> sum(x[0].size());
    for (const auto& row : x)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row[i] / static_cast<double>(x.size());
    return sum;
  }

  Matrix embed(const contract::Embedding& spec, const std::string& prefix, const std::string& own,
               const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& types) const {
    const std::vector<float>& tokens = t_.at(own.empty() ? "embedding.tokens" : own);
    const std::size_t d = spec.d_embed;
    Matrix x;
    for (std::size_t p = 0; p < ids.size(); ++p) {
      std::vector<double> row(d);
      const std::size_t type = types.empty() ? 0 : static_cast<std::size_t>(types[p]);
      for (std::size_t i = 0; i < d; ++i) {
        row[i] = spec.scale * double{tokens[static_cast<std::size_t>(ids[p]) * d + i]};
        if (spec.positions && !spec.positions->after_project)
          row[i] += double{t_.at(prefix + "positions")[(p + spec.positions->offset) * d + i]};
        if (spec.token_types > 0) row[i] += double{t_.at(prefix + "token_types")[type * d + i]};
      }
      x.push_back(row);
    }
    if (spec.norm) norm(*spec.norm, prefix + "norm", x);
    if (!spec.project_in) return x;
    x = linear(x, prefix + "project.weight", spec.project_bias ? prefix + "project.bias" : "",
               c_.d_model);
    if (spec.positions && spec.positions->after_project)
      for (std::size_t p = 0; p < x.size(); ++p)
        for (std::size_t i = 0; i < c_.d_model; ++i)
          x[p][i] += double{
              t_.at(prefix + "positions")[(p + spec.positions->offset) * c_.d_model + i]};
    return x;
  }

  void norm(const std::string& kind, const std::string& name, Matrix& x) const {
    for (auto& row : x) norm_row(kind, name, row.data(), row.size());
  }

  // first: of the weights, where each head has its own.
  void norm_row(const std::string& kind, const std::string& name, double* x, std::size_t n,
                std::size_t first = 0) const {
    const contract::Norm& spec = c_.norms.at(kind);
    double mean = 0, square = 0;
    if (spec.kind == contract::NormKind::layer_norm)
      for (std::size_t i = 0; i < n; ++i) mean += x[i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i)
      square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = (x[i] - mean) / std::sqrt(square + spec.eps);
      if (spec.weight) x[i] *= double{t_.at(name + ".weight")[first + i]} + spec.weight_offset;
      if (spec.bias) x[i] += double{t_.at(name + ".bias")[first + i]};
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
          name_ + "." + std::to_string(weights_of) + "." + std::to_string(b) + ".";
      if (branch.norm_in != contract::kSharedNorm) {
        normed = parallel ? input : x;
        if (branch.norm_in) norm(*branch.norm_in, prefix + "norm_in", normed);
        if (spec.residual == contract::Residual::normed) x = normed;
        for (auto& row : normed)
          for (double& v : row) v *= branch.in_scale;
      }
      const contract::Op& op = c_.ops.at(branch.op);
      Matrix y = run_op(op, prefix, layer, normed);
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
      case contract::Activation::tanh:
        return std::tanh(x);
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
      for (std::size_t j = 0; j < op.d_ff; ++j) {
        double& u = up[i][j];
        if (op.clamp) {
          gate[i][j] = std::min(gate[i][j], *op.clamp);
          u = std::clamp(u, -*op.clamp, *op.clamp);
        }
        u = op.gated ? activate(op.activation, gate[i][j]) * (u + op.up_offset)
                     : activate(op.activation, u);
      }
    return linear(up, prefix + "down.weight", bias("down", op.bias_out), c_.d_model);
  }

  void place(const contract::Attention& op, const std::string& norm_name, std::size_t n_heads,
             Matrix& x) const {
    for (std::size_t p = 0; p < x.size(); ++p) {
      double* row = x[p].data();
      clip(op, x[p]);
      const bool all = op.qk_norm && op.qk_norm->over == contract::QkNormOver::all;
      const bool each = op.qk_norm && op.qk_norm->over == contract::QkNormOver::each_head;
      if (all) norm_row(op.qk_norm->norm, norm_name, row, x[p].size());
      for (std::size_t h = 0; h < n_heads; ++h, row += op.d_k) {
        if (op.qk_norm && !all)
          norm_row(op.qk_norm->norm, norm_name, row, op.d_k, each ? h * op.d_k : 0);
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

  static void clip(const contract::Attention& op, std::vector<double>& row) {
    if (op.clip_qkv)
      for (double& v : row) v = std::clamp(v, -*op.clip_qkv, *op.clip_qkv);
  }

  bool sees(const contract::Attention& op, std::size_t query, std::size_t key) const {
    if (op.source == contract::AttentionSource::encoder) return true;
    const std::size_t apart = query > key ? query - key : key - query;
    switch (op.mask.kind) {
      case contract::MaskKind::bidirectional:
        return !op.mask.window || apart < *op.mask.window;
      case contract::MaskKind::prefix:
        return key <= query || (key < prefix_length_ && query < prefix_length_);
      case contract::MaskKind::causal:
        break;
    }
    return key <= query &&
           (!op.mask.window || query - key < *op.mask.window || key < op.mask.sinks);
  }

  // T5: buckets by distance, the second half for keys after the query.
  double relative_bias(const contract::Attention& op, const std::string& prefix, std::size_t query,
                       std::size_t key, std::size_t head) const {
    if (!op.relative_bias) return 0;
    const contract::RelativeBias& spec = *op.relative_bias;
    const auto distance = static_cast<std::ptrdiff_t>(key) - static_cast<std::ptrdiff_t>(query);
    const std::ptrdiff_t length = spec.bidirectional ? std::abs(distance)
                                                     : std::max<std::ptrdiff_t>(-distance, 0);
    std::size_t bucket = 0;
    for (std::size_t b = 0; b < spec.starts.size(); ++b)
      if (length >= std::ptrdiff_t{spec.starts[b]}) bucket = b;
    if (spec.bidirectional && distance > 0) bucket += spec.starts.size();
    const std::string table = spec.per_layer ? prefix + "relative_bias" : name_ + ".relative_bias";
    return double{t_.at(table)[bucket * op.n_heads + head]};
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
      const Matrix& source = op.source == contract::AttentionSource::encoder ? encoded_ : x;
      own.k = linear(source, prefix + "k.weight", bias("k", op.bias_k), op.n_kv_heads * op.d_k);
      own.v = linear(source, prefix + "v.weight", bias("v", op.bias_v), op.n_kv_heads * op.d_v);
      for (auto& row : own.v) clip(op, row);
      place(op, prefix + "k_norm", op.n_kv_heads, own.k);
    }
    const KeysValues& kv = kv_.at(op.kv_from ? *op.kv_from : layer);
    Matrix out(x.size(), std::vector<double>(op.n_heads * op.d_v));
    for (std::size_t p = 0; p < x.size(); ++p)
      for (std::size_t h = 0; h < op.n_heads; ++h) attend(op, prefix, q, kv, p, h, out[p]);
    return linear(out, prefix + "o.weight", bias("o", op.bias_o), c_.d_model);
  }

  static double rounded_bias(float slope, std::size_t j) {
    const auto bf16 = [](float x) { return base::bf16_to_float(base::float_to_bf16(x)); };
    return double{bf16(slope * bf16(static_cast<float>(j)))};
  }

  void attend(const contract::Attention& op, const std::string& prefix, const Matrix& q,
              const KeysValues& kv, std::size_t p, std::size_t h, std::vector<double>& out) const {
    const std::size_t kv_head = h / (op.n_heads / op.n_kv_heads);
    const std::size_t n_keys = kv.k.size();
    std::vector<double> score(n_keys, -INFINITY);
    double largest = op.sink_logits ? double{t_.at(prefix + "sink_logits")[h]} : -INFINITY;
    for (std::size_t j = 0; j < n_keys; ++j) {
      if (!sees(op, p, j)) continue;
      double s = 0;
      for (std::size_t i = 0; i < op.d_k; ++i)
        s += q[p][h * op.d_k + i] * kv.k[j][kv_head * op.d_k + i];
      double slope = op.alibi ? double{op.alibi->slopes[h]} * static_cast<double>(j) : 0.0;
      if (op.alibi && op.alibi->round) slope = rounded_bias(op.alibi->slopes[h], j);
      s = op.alibi && op.alibi->before_scale ? (s + slope) * op.scale : s * op.scale + slope;
      if (op.softcap) s = *op.softcap * std::tanh(s / *op.softcap);
      s += relative_bias(op, prefix, p, j, h);
      score[j] = s;
      largest = std::max(largest, s);
    }
    double sum =
        op.sink_logits ? std::exp(double{t_.at(prefix + "sink_logits")[h]} - largest) : 0.0;
    for (double& s : score) sum += s = std::exp(s - largest);
    for (std::size_t j = 0; j < n_keys; ++j)
      for (std::size_t i = 0; i < op.d_v; ++i)
        out[h * op.d_v + i] += score[j] / sum * kv.v[j][kv_head * op.d_v + i];
  }

  const Contract& c_;
  const FloatTensors& t_;
  std::size_t group_;
  std::string name_ = "decoder";  // of the stack that runs
  std::map<std::size_t, KeysValues> kv_;
  Matrix encoded_;
  std::size_t prefix_length_ = 0;
};

}  // namespace quern::tests
