// The float64 oracle with experts, latent attention and native sparse attention. Latent attention
// is computed in its expanded form, whole keys and values of each head.
#pragma once

#include <algorithm>
#include <map>

#include "model/reference.hpp"

namespace quern::tests {

class SparseReference : public Reference {
 public:
  using Reference::Reference;

 protected:
  Matrix run_op(const contract::Op& op, const std::string& prefix, std::size_t layer,
                const Matrix& x) override {
    if (op.moe) return moe(*op.moe, prefix, x);
    if (op.mla) return mla(*op.mla, prefix, x);
    if (op.nsa) return nsa(*op.nsa, prefix, x);
    return Reference::run_op(op, prefix, layer, x);
  }

 private:
  // ---- experts ----
  struct Choice {
    std::vector<std::size_t> experts;
    std::vector<double> weights;
  };

  static std::vector<std::size_t> best(const std::vector<double>& values, std::size_t n) {
    std::vector<std::size_t> order(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    order.resize(n);
    return order;
  }

  static std::vector<double> softmax(std::vector<double> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (double& v : x) sum += v = std::exp(v - top);
    for (double& v : x) v /= sum;
    return x;
  }

  Choice choose(const contract::Moe& op, const std::string& prefix,
                std::vector<double> scores) const {
    const contract::Router& router = op.router;
    if (router.score == contract::RouterScore::softmax) scores = softmax(scores);
    if (router.score == contract::RouterScore::sigmoid)
      for (double& v : scores) v = 1 / (1 + std::exp(-v));
    std::vector<double> choice = scores;
    if (router.select_bias)
      for (std::size_t e = 0; e < choice.size(); ++e)
        choice[e] += double{t_.at(prefix + "router.select_bias")[e]};
    const std::size_t size = op.n_experts / router.n_groups;
    std::vector<double> groups;
    for (std::size_t g = 0; g < router.n_groups; ++g) {
      std::vector<double> part(choice.begin() + static_cast<std::ptrdiff_t>(g * size),
                               choice.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
      std::sort(part.rbegin(), part.rend());
      groups.push_back(router.group_score == contract::GroupScore::max ? part[0]
                                                                       : part[0] + part.at(1));
    }
    const std::vector<std::size_t> kept = best(groups, router.top_groups);
    for (std::size_t e = 0; e < choice.size(); ++e)
      if (std::find(kept.begin(), kept.end(), e / size) == kept.end()) choice[e] = -INFINITY;
    Choice result{best(choice, op.top_k), {}};
    for (const std::size_t e : result.experts) result.weights.push_back(scores[e]);
    if (router.score == contract::RouterScore::softmax_selected)
      result.weights = softmax(result.weights);
    double sum = router.normalize_eps;
    for (const double w : result.weights) sum += w;
    for (double& w : result.weights) w = w / (router.normalize ? sum : 1) * router.scale;
    return result;
  }

  Matrix exact(const Matrix& x, const std::string& weight, const std::string& bias,
               std::size_t out) const {
    SparseReference unrounded(c_, t_);
    return unrounded.linear(x, weight, bias, out);
  }

  Matrix moe(const contract::Moe& op, const std::string& prefix, const Matrix& x) const {
    const Matrix scores = exact(x, prefix + "router.weight",
                                op.router.bias ? prefix + "router.bias" : "", op.n_experts);
    std::vector<Matrix> outputs;
    for (std::size_t e = 0; e < op.n_experts; ++e)
      outputs.push_back(ffn(op.expert, prefix + "expert." + std::to_string(e) + ".", x));
    Matrix y(x.size(), std::vector<double>(c_.d_model));
    if (op.shared) {
      y = ffn(op.shared->ffn, prefix + "shared.", x);
      if (op.shared->gate) {
        const Matrix gate = exact(x, prefix + "shared.router.weight", "", 1);
        for (std::size_t t = 0; t < x.size(); ++t)
          for (double& v : y[t]) v /= 1 + std::exp(-gate[t][0]);
      }
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Choice choice = choose(op, prefix, scores[t]);
      for (std::size_t k = 0; k < op.top_k; ++k)
        for (std::size_t i = 0; i < c_.d_model; ++i)
          y[t][i] += choice.weights[k] * outputs[choice.experts[k]][t][i];
    }
    return y;
  }

  // ---- latent attention ----
  static Matrix columns(const Matrix& x, std::size_t first, std::size_t n) {
    Matrix part;
    for (const auto& row : x)
      part.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(first),
                        row.begin() + static_cast<std::ptrdiff_t>(first + n));
    return part;
  }

  // The n best of a row whose end is masked, equal ones as PyTorch's topk() on a CPU leaves them.
  static std::vector<std::size_t> as_reference(const std::vector<double>& scores, std::size_t n,
                                               std::size_t total) {
    std::vector<std::pair<double, std::size_t>> row;
    for (std::size_t s = 0; s < total; ++s)
      row.emplace_back(s < scores.size() ? scores[s] : -INFINITY, s);
    const auto above = [](const auto& a, const auto& b) { return a.first > b.first; };
    const auto end = row.begin() + static_cast<std::ptrdiff_t>(std::min(n, total));
    if (64 * n <= total)
      std::partial_sort(row.begin(), end, row.end(), above);
    else
      std::nth_element(row.begin(), end - 1, row.end(), above);
    std::vector<std::size_t> found;
    for (auto entry = row.begin(); entry != end; ++entry)
      if (entry->second < scores.size()) found.push_back(entry->second);
    return found;
  }

  std::vector<std::vector<bool>> chosen_keys(const contract::Mla& op, const std::string& prefix,
                                             const Matrix& x, const Matrix& q_latent) const {
    const contract::Indexer& index = *op.indexer;
    Matrix q = linear(q_latent, prefix + "indexer.q.weight", "", index.n_heads * index.d_k);
    Matrix k = linear(x, prefix + "indexer.k.weight", "", index.d_k);
    const Matrix w = exact(x, prefix + "indexer.weights.weight", "", index.n_heads);
    norm(index.k_norm, prefix + "indexer.k_norm", k);
    std::vector<std::vector<bool>> seen;
    for (std::size_t t = 0; t < x.size(); ++t) {
      if (index.rope) {
        rotate(c_.ropes.at(*index.rope), static_cast<double>(t), k[t].data());
        for (std::size_t h = 0; h < index.n_heads; ++h)
          rotate(c_.ropes.at(*index.rope), static_cast<double>(t), q[t].data() + h * index.d_k);
      }
      std::vector<double> score(t + 1);
      for (std::size_t s = 0; s <= t; ++s)
        for (std::size_t h = 0; h < index.n_heads; ++h) {
          double dot = 0;
          for (std::size_t i = 0; i < index.d_k; ++i) dot += q[t][h * index.d_k + i] * k[s][i];
          score[s] += w[t][h] * std::max(0.0, index.scale * dot);
        }
      std::vector<bool> row(x.size());
      for (const std::size_t s : as_reference(score, index.top_k, x.size())) row[s] = true;
      seen.push_back(row);
    }
    return seen;
  }

  Matrix mla(const contract::Mla& op, const std::string& prefix, const Matrix& x) const {
    const std::size_t width = op.d_nope + op.d_rope;
    const auto bias = [&](const char* part) {
      return op.bias_a ? prefix + part + ".bias" : std::string();
    };
    Matrix q_latent = x;
    if (op.q_rank) {
      q_latent = linear(x, prefix + "q_a.weight", bias("q_a"), *op.q_rank);
      if (op.q_norm) norm(*op.q_norm, prefix + "q_a_norm", q_latent);
    }
    Matrix q =
        linear(q_latent, prefix + (op.q_rank ? "q_b.weight" : "q.weight"), "", op.n_heads * width);
    const Matrix kv = linear(x, prefix + "kv_a.weight", bias("kv_a"), op.kv_rank + op.d_rope);
    Matrix latent = columns(kv, 0, op.kv_rank), key = columns(kv, op.kv_rank, op.d_rope);
    norm(op.kv_norm, prefix + "kv_a_norm", latent);
    const Matrix k_nope = exact(latent, prefix + "k_b.weight", "", op.n_heads * op.d_nope);
    const Matrix v = exact(latent, prefix + "v_b.weight", "", op.n_heads * op.d_v);
    for (std::size_t t = 0; t < x.size(); ++t) {
      rotate(c_.ropes.at(op.rope), static_cast<double>(t), key[t].data());
      for (std::size_t h = 0; h < op.n_heads; ++h)
        rotate(c_.ropes.at(op.rope), static_cast<double>(t), q[t].data() + h * width + op.d_nope);
    }
    std::vector<std::vector<bool>> seen;
    if (op.indexer) seen = chosen_keys(op, prefix, x, q_latent);
    Matrix out(x.size(), std::vector<double>(op.n_heads * op.d_v));
    for (std::size_t t = 0; t < x.size(); ++t)
      for (std::size_t h = 0; h < op.n_heads; ++h) {
        std::vector<double> score(t + 1, -INFINITY);
        for (std::size_t s = 0; s <= t; ++s) {
          const bool visible = !op.mask.window || t - s < *op.mask.window || s < op.mask.sinks;
          if (!visible || (op.indexer && !seen[t][s])) continue;
          double dot = 0;
          for (std::size_t i = 0; i < op.d_nope; ++i)
            dot += q[t][h * width + i] * k_nope[s][h * op.d_nope + i];
          for (std::size_t i = 0; i < op.d_rope; ++i)
            dot += q[t][h * width + op.d_nope + i] * key[s][i];
          score[s] = op.scale * dot;
        }
        const std::vector<double> p = softmax(score);
        for (std::size_t s = 0; s <= t; ++s)
          for (std::size_t i = 0; i < op.d_v; ++i)
            out[t][h * op.d_v + i] += p[s] * v[s][h * op.d_v + i];
      }
    return linear(out, prefix + "o.weight", op.bias_o ? prefix + "o.bias" : "", c_.d_model);
  }

  // ---- native sparse attention ----
  // Rows of one KV head compressed, for blocks that are complete after `n` tokens: [blocks][width].
  Matrix compress(const contract::Nsa& op, const std::string& name, const Matrix& x) const {
    Matrix rows;
    const std::vector<float>& position = t_.at(name + "_position");
    for (std::size_t first = 0; first + op.compress_block <= x.size();
         first += op.compress_stride) {
      std::vector<double> flat;
      for (std::size_t j = 0; j < op.compress_block; ++j)
        for (std::size_t i = 0; i < x[0].size(); ++i)
          flat.push_back(x[first + j][i] + double{position[j * x[0].size() + i]});
      rows.push_back(flat);
    }
    if (rows.empty()) return rows;
    Matrix hidden = linear(rows, name + "_in.weight", name + "_in.bias", op.compress_hidden);
    for (auto& row : hidden)
      for (double& v : row) v = std::max(v, 0.0);
    return linear(hidden, name + "_out.weight", name + "_out.bias", x[0].size());
  }

  // softmax(scale q.k) over the first `n` rows, those with seen[row] only (empty: all).
  static std::vector<double> weights(const contract::Nsa& op, const double* q, const Matrix& k,
                                     std::size_t n, const std::vector<bool>& seen) {
    std::vector<double> score(n, -INFINITY);
    for (std::size_t s = 0; s < n; ++s) {
      if (!seen.empty() && !seen[s]) continue;
      score[s] = 0;
      for (std::size_t i = 0; i < op.d_k; ++i) score[s] += op.scale * q[i] * k[s][i];
    }
    return softmax(score);
  }

  static std::vector<bool> chosen_keys(const contract::Nsa& op, const std::vector<double>& p,
                                       std::size_t t) {
    const std::size_t ratio = op.select_block / op.compress_stride,
                      overlap = op.compress_block / op.compress_stride;
    const std::size_t n_blocks = t / op.select_block + 1;
    std::vector<double> score(n_blocks);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      for (std::size_t m = 0; m < ratio; ++m)
        for (std::size_t n = 0; n < overlap; ++n) {
          const std::size_t index = ratio * (b + 1);
          if (index > m + n && index - m - n <= p.size()) score[b] += p[index - m - n - 1];
        }
      if (b < op.n_initial || b + op.n_local >= n_blocks) score[b] = INFINITY;
    }
    std::vector<bool> seen(t + 1);
    for (const std::size_t b : best(score, std::min(n_blocks, op.n_selected)))
      for (std::size_t key = b * op.select_block; key < std::min((b + 1) * op.select_block, t + 1);
           ++key)
        seen[key] = true;
    return seen;
  }

  Matrix head_of(const Matrix& x, std::size_t head, std::size_t width) const {
    return columns(x, head * width, width);
  }

  Matrix nsa(const contract::Nsa& op, const std::string& prefix, const Matrix& x) const {
    const auto project = [&](const std::string& part, std::size_t n_heads, std::size_t width,
                             bool turn) {
      Matrix y = linear(x, prefix + part + ".weight", "", n_heads * width);
      for (std::size_t t = 0; turn && op.rope && t < y.size(); ++t)
        for (std::size_t h = 0; h < n_heads; ++h)
          rotate(c_.ropes.at(*op.rope), static_cast<double>(t), y[t].data() + h * width);
      return y;
    };
    const Matrix q = project("q", op.n_heads, op.d_k, true);
    const Matrix gates = exact(x, prefix + "gates.weight", prefix + "gates.bias", 3 * op.n_heads);
    Matrix out(x.size(), std::vector<double>(op.n_heads * op.d_v));
    const std::size_t group = op.n_heads / op.n_kv_heads;
    std::map<std::string, Matrix> k, v;
    for (const std::string part : {"compress", "select", "window"}) {
      k[part] = project(part + ".k", op.n_kv_heads, op.d_k, true);
      v[part] = project(part + ".v", op.n_kv_heads, op.d_v, false);
    }
    for (std::size_t g = 0; g < op.n_kv_heads; ++g) {
      const Matrix k_rows = compress(op, prefix + "compress.k", head_of(k["compress"], g, op.d_k));
      const Matrix v_rows = compress(op, prefix + "compress.v", head_of(v["compress"], g, op.d_v));
      const Matrix k_all = head_of(k["select"], g, op.d_k), v_all = head_of(v["select"], g, op.d_v);
      const Matrix k_new = head_of(k["window"], g, op.d_k), v_new = head_of(v["window"], g, op.d_v);
      for (std::size_t t = 0; t < x.size(); ++t) {
        const std::size_t n_rows =
            t + 1 < op.compress_block ? 0 : (t + 1 - op.compress_block) / op.compress_stride + 1;
        std::vector<double> sum(n_rows);
        for (std::size_t h = g * group; n_rows > 0 && h < (g + 1) * group; ++h) {
          const std::vector<double> p = weights(op, q[t].data() + h * op.d_k, k_rows, n_rows, {});
          for (std::size_t r = 0; r < n_rows; ++r) sum[r] += p[r];
        }
        const std::vector<bool> chosen = chosen_keys(op, sum, t);
        std::vector<bool> newest(t + 1);
        for (std::size_t s = 0; s <= t; ++s) newest[s] = t - s < op.window;
        for (std::size_t h = g * group; h < (g + 1) * group; ++h) {
          const auto add = [&](std::size_t branch, const std::vector<double>& p,
                               const Matrix& values) {
            const double gate = 1 / (1 + std::exp(-gates[t][branch * op.n_heads + h]));
            for (std::size_t s = 0; s < p.size(); ++s)
              for (std::size_t i = 0; i < op.d_v; ++i)
                out[t][h * op.d_v + i] += gate * p[s] * values[s][i];
          };
          const double* row = q[t].data() + h * op.d_k;
          if (n_rows > 0) add(0, weights(op, row, k_rows, n_rows, {}), v_rows);
          add(1, weights(op, row, k_all, t + 1, chosen), v_all);
          add(2, weights(op, row, k_new, t + 1, newest), v_new);
        }
      }
    }
    return linear(out, prefix + "o.weight", "", c_.d_model);
  }
};

}  // namespace quern::tests
