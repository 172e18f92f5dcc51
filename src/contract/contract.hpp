// The contract: everything the runtime knows about a model. Plain structs and enums, one closed
// vocabulary (docs/CONTRACT.md has every key with its meaning and the glossary).
//
// Rules: every value is stated, nothing is inferred at run time; enum values are spelled as in the
// JSON; no architecture name decides anything (name and family are labels for people).
// Not here: JSON and cross-field rules (json.hpp), the tensor list (tensors.hpp), the report (describe.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace quern::contract {

enum class ModelKind { decoder, encoder, encoder_decoder };

// ---- norms ------------------------------------------------------------------------------------------
enum class NormKind { rms_norm, layer_norm };
enum class Accumulate { f32, f64 };
struct Norm {
  NormKind kind;
  double eps;
  bool weight;
  bool bias;
  double weight_offset;  // the factor is weight + weight_offset (1 for norms stored relative to one)
  Accumulate accumulate; // precision of the sums over d
};

// ---- positions --------------------------------------------------------------------------------------
enum class RopeLayout { half, pairs };  // rotated pairs: (i, i + dims/2) or (2i, 2i + 1)

// A frequency table that depends on the declared total length of the request, chosen once per request.
enum class RopeSwitchKind { dynamic_ntk, longrope };
struct RopeSwitch {
  RopeSwitchKind kind;
  std::size_t original_length;   // above it the switch acts
  double base = 0;               // dynamic_ntk: rope base
  double factor = 0;             // dynamic_ntk: scaling factor
  std::vector<float> long_inv_freq;  // longrope: the table above original_length, else empty
  double long_mscale = 1;            // longrope
};
struct Rope {
  std::size_t dims;              // rotated dimensions at the start of each head
  RopeLayout layout;
  std::vector<float> inv_freq;   // [dims / 2], finished
  double mscale;                 // multiplies cosine and sine
  std::optional<RopeSwitch> switch_rule;  // JSON key "switch"
  // For people and `inspect` (not used by the runtime): how the table was made.
  std::string rule;              // "default", "linear", "yarn", ...: kRopeRules of vocabulary.hpp
  double base;
};

enum class PositionTableKind { learned, sinusoidal };
struct PositionTable {           // a table added to the token embedding
  PositionTableKind kind;
  std::size_t rows;
  std::size_t offset;            // row = position + offset
};

// ---- attention --------------------------------------------------------------------------------------
enum class MaskKind { causal, bidirectional };
struct Mask {
  MaskKind kind;
  std::optional<std::size_t> window;  // query i sees keys j with i - window < j <= i
  std::size_t sinks;                  // first keys visible beside the window
};
struct QkNorm {
  std::string norm;              // name in Contract::norms
  bool over_all_heads;           // JSON "over": "head" | "all"
};
struct Alibi {
  std::vector<float> slopes;     // [n_heads]
  bool before_scale;             // true: (qk + slope j) * scale
};
struct Attention {
  std::size_t n_heads, n_kv_heads;
  std::size_t d_k, d_v;
  double scale;
  bool bias_q, bias_k, bias_v, bias_o;
  std::optional<QkNorm> qk_norm;
  std::optional<std::string> rope;  // name in Contract::ropes
  Mask mask;
  std::optional<double> softcap;
  std::optional<Alibi> alibi;
  bool sink_logits;              // one learned logit per head joins each softmax row
  std::optional<std::size_t> kv_from;  // this layer reads the cache of layer kv_from
};

// ---- feed-forward -----------------------------------------------------------------------------------
enum class Activation { relu, silu, gelu_erf, gelu_tanh, gelu_quick };
struct Ffn {
  std::size_t d_ff;
  Activation activation;
  bool gated;                    // down(act(gate x) * (up x)), else down(act(up x))
  bool bias_in, bias_out;
};

// ---- ops, blocks, stacks ----------------------------------------------------------------------------
enum class OpKind { attention, ffn };
struct Op {
  OpKind kind;
  std::optional<Attention> attention;  // set by kind
  std::optional<Ffn> ffn;
};

inline const std::string kSharedNorm = "shared";  // Branch::norm_in of a parallel block
struct Branch {
  std::optional<std::string> norm_in;   // on the branch's input
  std::string op;                       // name in Contract::ops
  std::optional<std::string> norm_out;  // on its output, before the add
  std::optional<std::string> norm_after;// on the sum (post-norm)
  double in_scale, out_scale;
};
enum class Residual { sequential, parallel };
struct Block {
  Residual residual;
  double skip_scale;                    // x * skip_scale + branch
  std::vector<Branch> branches;
};
struct LayerGroup {
  std::vector<std::string> pattern;     // block names; the group has pattern.size() * repeat layers
  std::size_t repeat;
  bool share_weights;                   // every repetition uses the weights of the first
};
struct Stack {
  std::vector<LayerGroup> layers;
  std::optional<std::string> final_norm;
};

// ---- ends -------------------------------------------------------------------------------------------
struct Embedding {
  std::size_t d_embed;
  double scale;
  std::optional<PositionTable> positions;
  std::size_t token_types;
  std::optional<std::string> norm;
  bool project_in;                      // d_embed -> d_model
};
enum class HeadKind { lm, none };
struct Head {
  HeadKind kind;
  bool tied;                            // logits use the token embedding
  bool bias;
  double in_scale, logit_scale;
  std::optional<double> softcap;
};

// ---- what is not architecture -------------------------------------------------------------------------
struct Tokens {                         // special ids; absent = the model has none
  std::optional<std::int32_t> bos, pad, unk;
  std::vector<std::int32_t> eos;        // any of them ends the answer
  bool add_bos = false, add_eos = false;
};
struct Generation {                     // defaults of the checkpoint; absent = quern's own default
  std::optional<bool> sample;           // false: greedy
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int64_t> top_k, max_new_tokens;
};

// How text becomes ids; the tables themselves are a section of model.quern (text/tokenizer_tables.hpp).
struct AddedToken {
  std::string content;
  std::int32_t id;
  bool special, normalized, single_word, lstrip, rstrip;
};
struct TokenizerDescription {
  std::string model;                    // "bpe"; "none" for a checkpoint without a tokenizer
  std::vector<std::string> normalizers; // in order; empty = none
  // Pre-tokenizer steps in order: a named scanner (docs/CONTRACT.md lists them) or
  // "regex:PATTERN" (PCRE2).
  std::vector<std::string> pre_tokenizers;
  bool byte_level = false;              // the byte alphabet of GPT-2
  bool add_prefix_space = false;
  bool ignore_merges = false;           // a whole pre-token found in the vocabulary is taken as it is
  bool byte_fallback = false;
  bool fuse_unk = false;
  std::optional<std::int32_t> unk_id;   // stands for a byte or character without a token; null: it is dropped
  std::vector<std::int32_t> prefix_ids, suffix_ids;  // around plain text ($A of the post-processor)
  std::string decoder;                  // "byte_level"
  std::vector<AddedToken> added;
};

struct ChatDescription {
  std::string jinja;                    // the template's source, "" when there is none
  std::string builtin;                  // "chatml" when quern knows the template's plain form, else ""
  std::string default_system;           // system text the template puts in when the chat has none, else ""
};

struct Counts {                         // validated against the tensors
  std::uint64_t parameters_by_formula;
  std::uint64_t parameters_in_tensors;
};

struct Contract {
  std::string name, family;             // labels for people; the runtime reads neither
  ModelKind kind;
  std::size_t vocab_size, d_model, max_positions;
  Embedding embedding;
  std::map<std::string, Norm> norms;
  std::map<std::string, Rope> ropes;
  std::map<std::string, Op> ops;
  std::map<std::string, Block> blocks;
  std::optional<Stack> encoder, decoder;
  Head head;
  Tokens tokens;
  Generation generation;
  TokenizerDescription tokenizer;
  ChatDescription chat;
  Counts counts{};
  // Reports for people, kept as the converter wrote them (JSON text of one object each): format per
  // tensor role, bits per weight, notices; provenance and adaptations (--rope-*); the weight file's hash.
  std::string quantization_json = "{}", source_json = "{}", weights_json = "{}";
};

// Layer i of a stack, patterns and repetition unrolled.
struct LayerRef {
  const std::string* block_name;
  const Block* block;
  std::size_t weights_of;  // index of the layer whose tensors it uses (itself unless shared)
};
std::vector<LayerRef> unroll(const Contract& contract, const Stack& stack);

}  // namespace quern::contract
