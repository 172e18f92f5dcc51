// Operations and bytes of a token by component, in prefill and in decode, and the bound that holds: a component
// takes at least its operations at the machine's rate, and at least its bytes at its bandwidth. The arithmetic of
// attention follows the query heads, its traffic the KV heads. Activations are taken to stay in the caches, so
// times are bounds from below, speeds bounds from above.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/cache_shapes.hpp"

namespace quern::plan {

struct Work {
  std::string component;      // "qkv", "scores", "values", "o", "ffn", "experts", "router", "norms", "head", ...
  double int8_ops = 0;        // multiply and add are two; of integer formats
  double float_ops = 0;       // of float formats, attention, norms
  double weight_bytes = 0, cache_bytes = 0;
  double ops() const { return int8_ops + float_ops; }
  double bytes() const { return weight_bytes + cache_bytes; }
};

// All numbers of one token.
struct PhaseWork {
  std::vector<Work> parts;  // in the order of the forward pass
  Work total() const;
};

struct Limits {  // 0: not known
  double bandwidth = 0;             // bytes/s
  double int8_rate = 0, float_rate = 0;  // operations/s
  bool known() const { return bandwidth > 0 && int8_rate > 0 && float_rate > 0; }
};

struct WorkShape {
  CacheTypes cache;
  std::size_t context = 0;        // prefill: of all its tokens; decode: tokens in the cache
  std::size_t chunk = 512;        // prefill: tokens that share one reading of the weights
  std::size_t sequences = 1;      // decode: tokens of one step
  std::size_t source_tokens = 0;  // keys of cross-attention
};

PhaseWork encode_work(const model::Model& model, const WorkShape& shape);  // of a source; empty without
PhaseWork prefill_work(const model::Model& model, const WorkShape& shape);
PhaseWork decode_work(const model::Model& model, const WorkShape& shape);

enum class Bound { compute, bandwidth };
// Seconds of a token of that component at least, and what decides them.
struct BoundTime {
  double seconds = 0;
  Bound bound = Bound::compute;
};
BoundTime bound_time(const Work& work, const Limits& limits);
double total_seconds(const PhaseWork& work, const Limits& limits);  // sum over the components

}  // namespace quern::plan
