// A model bound to its weight file and kernels: every string of the contract is resolved here,
// once. Immutable after load and shared by sessions through const&. Reading order: this,
// forward.cpp, block.cpp, attention.cpp, linear.cpp. Not here: JSON, architecture names,
// generation.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "contract/contract.hpp"
#include "kernels/kernels.hpp"
#include "weights/reader.hpp"

namespace quern::model {

// A bound matrix [out, in] and its optional bias [out].
struct Linear {
  const weights::TensorView* weight = nullptr;
  const float* bias = nullptr;
  kernels::MatmulFn matmul = nullptr;
  std::size_t out = 0, in = 0, panel_bytes = 0, n_panels = 0;
};

struct Norm {
  kernels::NormArgs args;     // weight (offset added) and bias bound
  std::vector<float> weight;  // owns weight + weight_offset where the offset is not zero
};

struct Attention {
  const contract::Attention* spec = nullptr;
  Linear q, k, v, o;
  std::optional<Norm> q_norm, k_norm;  // each_head: the norm of the first head, weights of all
  const float* sink_logits = nullptr;    // [n_heads]
  const float* relative_bias = nullptr;  // [buckets, n_heads]
  std::optional<std::size_t> rope;       // index in Model::ropes
  std::size_t cache_layer = 0;           // its layer in the cache it reads (kv_from resolved)
  bool owns_cache = true;
};

struct Ffn {
  const contract::Ffn* spec = nullptr;
  Linear gate, up, down;  // gate unused unless gated
  kernels::ActivationOp activation;
};

struct Branch {
  contract::OpKind kind;
  std::optional<Attention> attention;
  std::optional<Ffn> ffn;
  std::optional<Norm> norm_in, norm_out, norm_after;
  bool shared_norm_in = false;  // parallel block: input is the previous branch's normed input
  float in_scale = 1, out_scale = 1;
};

struct Layer {
  contract::Residual residual;
  float skip_scale = 1;
  std::vector<Branch> branches;
};

struct Embedding {
  const weights::TensorView* tokens = nullptr;       // [vocab_size, d_embed]
  const weights::TensorView* positions = nullptr;    // rows_f32 [rows, d_embed]
  const weights::TensorView* token_types = nullptr;  // rows_f32 [token_types, d_embed]
  std::size_t position_offset = 0;
  float scale = 1;
  std::optional<Norm> norm;
  std::optional<Linear> project;                     // d_embed -> d_model
};

// What a cache stores for one attention layer.
struct CacheLayerSpec {
  std::size_t n_kv_heads, d_k, d_v;
  std::optional<std::size_t> window;
  std::size_t sinks;

  friend bool operator==(const CacheLayerSpec&, const CacheLayerSpec&) = default;
};

// Embedding, layers, final norm: the encoder or the decoder.
struct Stack {
  std::string name;  // "encoder", "decoder": what its tensors and taps begin with
  Embedding embedding;
  std::vector<Layer> layers;
  std::optional<Norm> final_norm;
  // Layers of its cache in order. An encoder keeps none: layers of one shape share one for a step.
  std::vector<CacheLayerSpec> cache_layers;
  std::vector<CacheLayerSpec> cross_layers;  // K and V of the encoder's output, per attention over it
};

// norm(act(W x + b)) between the stack and the output matrix.
struct HeadTransform {
  Linear linear;
  std::optional<kernels::ActivationOp> activation;
  std::optional<Norm> norm;
};

struct Head {
  std::optional<contract::Pool> pool;  // one row of logits per sequence, not per token
  std::optional<HeadTransform> transform;
  Linear logits;                       // no weight: a model without a head
  float in_scale = 1, logit_scale = 1, softcap = 0;
};

class Model {
 public:
  // Loads OUT/, OUT/model.quern or OUT/model.json. Errors: files missing, damaged, of different
  // models (hash), tensors missing or surplus, an op this version does not run.
  static std::unique_ptr<Model> load(const std::filesystem::path& path,
                                     const kernels::Kernels& kernels);

  contract::Contract contract;
  weights::WeightFile weights;
  const kernels::Kernels* kernels = nullptr;

  std::optional<Stack> encoder, decoder;  // by contract::ModelKind
  Head head;
  std::vector<const contract::Rope*> ropes;

  // The stack whose output the head reads.
  const Stack& output_stack() const { return decoder ? *decoder : *encoder; }
  std::vector<const Stack*> stacks() const;
};

// The three spellings of -m: directory, model.quern, model.json.
struct ModelPaths {
  std::filesystem::path directory, weights, contract;
};
ModelPaths resolve_model_path(const std::filesystem::path& path);

// Both files of a model, read and checked to belong together (structural hash and checksum); nothing is
// bound and no weight is touched.
struct ModelFiles {
  contract::Contract contract;
  weights::WeightFile weights;
};
ModelFiles open_model_files(const std::filesystem::path& path);

}  // namespace quern::model
