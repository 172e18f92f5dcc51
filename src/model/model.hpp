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

// Complete rows of row_block tokens, one every row_stride, among n_tokens.
inline std::size_t rows_of(std::size_t n_tokens, std::size_t row_block, std::size_t row_stride) {
  return n_tokens < row_block ? 0 : (n_tokens - row_block) / row_stride + 1;
}

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
  std::size_t n_groups = 0;              // of query heads, a multiple of n_kv_heads: see group_heads()
  std::size_t d_rope = 0;                // above 0: the cache holds latent rows
  // A key stands for row_block tokens, one every row_stride, and is seen once all of them are.
  std::size_t row_block = 1, row_stride = 1;

  // Of the step's tokens, into the stack's own cache.
  bool stores_keys() const { return owns_cache && spec->source == contract::AttentionSource::self; }
};

struct Indexer {
  const contract::Indexer* spec = nullptr;
  Linear q, k, weights;
  Norm k_norm;
  std::optional<std::size_t> rope;       // index in Model::ropes
  std::size_t cache_layer = 0;           // of its keys
};

struct Mla {
  const contract::Mla* spec = nullptr;
  Linear q, q_a, q_b, kv_a, k_b, v_b, o;  // q, or q_a and q_b
  kernels::TransposedFn transposed = nullptr;  // of k_b
  std::optional<Norm> q_norm;
  Norm kv_norm;
  std::size_t rope = 0;
  std::optional<Indexer> indexer;
  // The absorbed form as attention of all query heads over one KV head: the latent rows.
  std::shared_ptr<const contract::Attention> latent_spec;
  Attention latent;
};

struct Ffn {
  const contract::Ffn* spec = nullptr;
  Linear gate, up, down;  // gate unused unless gated
  kernels::ActivationOp activation;
};

struct Nsa {
  // The compression of a block: out(relu(in(rows + position))).
  struct Phi {
    const float* position;  // [compress_block, width]
    Linear in, out;
  };
  struct Source {
    Linear k, v;
    std::size_t cache_layer = 0;
  };
  const contract::Nsa* spec = nullptr;
  Linear q, gates, o;
  Source branches[3];                     // compress, select, window
  Phi phi_k, phi_v;
  std::optional<std::size_t> rope;
  std::shared_ptr<const contract::Attention> plain_spec, local_spec;
  Attention compressed, selected, local;  // of the three, over what they keep

  std::size_t compressed_rows(std::size_t n_tokens) const {
    return rows_of(n_tokens, spec->compress_block, spec->compress_stride);
  }
};

struct Moe {
  const contract::Moe* spec = nullptr;
  Linear router;
  const float* select_bias = nullptr;     // [n_experts]
  std::vector<Ffn> experts;
  std::optional<Ffn> shared;
  std::optional<Linear> shared_router;
  std::size_t index = 0;                  // among the model's mixtures of experts
  // Activation groups of the experts' matrices: of gate and up, of down.
  std::vector<std::size_t> groups_in, groups_down;
};

struct Branch {
  contract::OpKind kind;
  std::optional<Attention> attention;
  std::optional<Mla> mla;
  std::optional<Nsa> nsa;
  std::optional<Ffn> ffn;
  std::optional<Moe> moe;
  std::optional<Norm> norm_in, norm_out, norm_after;
  bool shared_norm_in = false;  // parallel block: input is the previous branch's normed input
  float in_scale = 1, out_scale = 1;

  bool stores_keys() const { return mla || nsa || (attention && attention->stores_keys()); }
};

struct Layer {
  contract::Residual residual;
  float skip_scale = 1;
  std::vector<Branch> branches;
};

struct Embedding {
  const weights::TensorView* tokens = nullptr;       // [vocab_size, d_embed]
  const weights::TensorView* positions = nullptr;    // rows_f32 [rows, d_embed], or d_model
  const weights::TensorView* token_types = nullptr;  // rows_f32 [token_types, d_embed]
  std::size_t position_offset = 0;
  std::optional<std::size_t> position_pad;           // has row position_offset - 1, is not counted
  bool positions_last = false;                       // after the projection
  float scale = 1;
  std::optional<Norm> norm;
  std::optional<Linear> project;                     // d_embed -> d_model
};

// What a cache stores for one attention layer.
struct CacheLayerSpec {
  std::size_t n_kv_heads, d_k, d_v;
  std::optional<std::size_t> window;
  std::size_t sinks;
  std::size_t d_rope = 0;  // above 0: latent rows, one of d_k values that serves as key and value
  std::size_t row_block = 1, row_stride = 1;  // a row stands for that many tokens, one every row_stride
  bool exact = false;      // f32 whatever the types of the cache

  // Values that a row stores as K's type, and as V's.
  std::size_t k_values() const { return n_kv_heads * d_k; }
  std::size_t v_values() const { return d_rope != 0 ? 0 : n_kv_heads * d_v; }
  std::size_t rows(std::size_t n_tokens) const { return rows_of(n_tokens, row_block, row_stride); }
  friend bool operator==(const CacheLayerSpec&, const CacheLayerSpec&) = default;
};

struct BranchPlace {
  std::size_t layer, branch;
  friend bool operator==(const BranchPlace&, const BranchPlace&) = default;
};

// Embedding, layers, final norm: the encoder or the decoder.
struct Stack {
  std::string name;  // "encoder", "decoder": what its tensors and taps begin with
  Embedding embedding;
  std::vector<Layer> layers;
  std::optional<Norm> final_norm;
  // The last branch whose keys later tokens see: what follows it is needed of wanted tokens only. None: an encoder's.
  std::optional<BranchPlace> last_store;
  // Layers of its cache in order. An encoder keeps none: layers of one shape share one for a step.
  std::vector<CacheLayerSpec> cache_layers;
  std::vector<CacheLayerSpec> cross_layers;  // K and V of the encoder's output, per attention over it
};

// norm(act(W x + b)) between the stack and the output matrix, or behind a pooling.
struct HeadTransform {
  Linear linear;
  std::optional<kernels::ActivationOp> activation;
  std::optional<Norm> norm;
};

struct Head {
  std::optional<contract::Pool> pool;  // one row of logits per sequence, not per token
  std::optional<std::size_t> pool_pad; // the id that the pool `last` passes over
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
  std::vector<HeadTransform> pooling;     // on a pooled vector, in order
  std::vector<const contract::Rope*> ropes;
  std::size_t n_moe_layers = 0;

  // The stack whose output the head reads.
  const Stack& output_stack() const { return decoder ? *decoder : *encoder; }
  std::vector<const Stack*> stacks() const;
};

// Every branch of the model, of either stack.
template <class F>
void for_branches(const Model& model, F&& visit) {
  for (const Stack* stack : model.stacks())
    for (const Layer& layer : stack->layers)
      for (const Branch& branch : layer.branches) visit(branch);
}

// visit(branch, wanted_only) over a stack in order. wanted_only: it is run for the tokens that outputs are asked of
// alone; of attention that stores keys, those are of all tokens none the less.
template <class F>
void walk_branches(const Stack& stack, F&& visit) {
  bool behind = false;  // the stack's last keys
  for (std::size_t layer = 0; layer < stack.layers.size(); ++layer)
    for (std::size_t b = 0; b < stack.layers[layer].branches.size(); ++b) {
      const Branch& branch = stack.layers[layer].branches[b];
      const bool stores_last = stack.last_store == BranchPlace{layer, b};
      visit(branch, behind || (stores_last && branch.attention));  // latent and sparse attention is run whole
      behind = behind || stores_last;
    }
}

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
