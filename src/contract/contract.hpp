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
// Sinusoidal tables are computed by the converter (float64, rounded once): column 2i and 2i + 1 of the paper
// are sin and cos of position / 10000^(2i / d); halves: all sines first, then all cosines.
enum class SinusoidOrder { halves, interleaved };
struct PositionTable {           // a table added to the token embedding
  PositionTableKind kind;
  std::size_t rows;
  std::size_t offset;            // row = position + offset
  std::optional<SinusoidOrder> order;  // sinusoidal only
  std::optional<std::size_t> pad = {};   // encoders: a token with this id has row offset - 1, and the ones
                                         // after it count on as if it were not there
  bool after_project = false;    // width d_model, added to the projected embedding; else d_embed, before it
};

// ---- attention --------------------------------------------------------------------------------------
// prefix: causal, and the first P positions (a number of the request) see each other.
enum class MaskKind { causal, bidirectional, prefix };
struct Mask {
  MaskKind kind;
  // Query i sees keys j with i - window < j <= i; bidirectional: with |i - j| < window.
  std::optional<std::size_t> window;
  std::size_t sinks;                  // first keys visible beside the window
};
// What one sum of squares runs over, and the tensors: head: each head, one weight [d_k] for all; all:
// the whole row [n_heads * d_k]; each_head: each head, with a weight of its own [n_heads, d_k].
enum class QkNormOver { head, all, each_head };
struct QkNorm {
  std::string norm;              // name in Contract::norms
  QkNormOver over;
};
// Bias by distance (arXiv 1910.10683): one learned number per bucket and head is added to the scaled score.
struct RelativeBias {
  bool bidirectional;            // keys after the query use the second half of the buckets
  // [buckets of one direction]: the smallest distance of each bucket, ascending from 0.
  std::vector<std::uint32_t> starts;
  bool per_layer;                // every layer has a table; false: one table for the whole stack
};
// Lightning indexer: score(i, j) = sum over h of w_h(x_i) * relu(scale * q_h(x_i) . k(x_j));
// the op sees the top_k best-scored keys among those its mask allows.
struct Indexer {
  std::size_t n_heads, d_k, top_k;
  double scale;
  std::string k_norm;            // name in Contract::norms
  std::optional<std::string> rope;  // name in Contract::ropes; its dims are the first of q_h and k
};
enum class AttentionSource { self, encoder };  // whose stream K and V come from
enum class BiasRound { bf16 };
struct Alibi {
  std::vector<float> slopes;     // [n_heads]
  bool before_scale;             // true: (qk + slope j) * scale
  std::optional<BiasRound> round = {};  // bf16: the bias is bf16(slope * bf16(j))
};
struct Attention {
  AttentionSource source;        // encoder: cross-attention, no mask but the encoder's length
  std::size_t n_heads, n_kv_heads;
  std::size_t d_k, d_v;
  double scale;
  bool bias_q, bias_k, bias_v, bias_o;
  std::optional<QkNorm> qk_norm;
  std::optional<std::string> rope;  // name in Contract::ropes
  Mask mask;
  std::optional<double> softcap;
  std::optional<Alibi> alibi;
  std::optional<RelativeBias> relative_bias;
  std::optional<double> clip_qkv;  // q, k, v clamped to [-clip, clip] before norm and rope
  bool sink_logits;              // one learned logit per head joins each softmax row
  std::optional<std::size_t> kv_from;  // this layer reads the cache of layer kv_from
};

// Multi-head latent attention (arXiv 2405.04434). Per token the cache holds the normed latent
// c [kv_rank] and one roped key [d_rope] for all heads.
struct Mla {
  std::size_t n_heads;
  std::optional<std::size_t> q_rank;  // null: q is one matrix
  std::size_t kv_rank, d_nope, d_rope, d_v;
  double scale;
  bool bias_a, bias_o;           // bias_a: of the down projections q_a and kv_a
  std::optional<std::string> q_norm;  // name in Contract::norms; with q_rank only
  std::string kv_norm;
  std::string rope;              // its dims are d_rope: the last of each query head, and the shared key
  Mask mask;
  std::optional<Indexer> indexer;     // needs q_rank: its queries are made from the normed q latent
};

// Native sparse attention (arXiv 2502.11089): three branches over the same queries, each with K and V of
// its own, mixed by sigmoid gates per query head: compressed blocks, the selected blocks, a window.
struct Nsa {
  std::size_t n_heads, n_kv_heads, d_k, d_v;
  double scale;
  std::optional<std::string> rope;
  std::size_t compress_block, compress_stride;  // l, d: d divides l
  std::size_t compress_hidden;                  // width of the hidden layer of phi
  std::size_t select_block, n_selected;         // l', n; d divides l'
  std::size_t n_initial, n_local;               // blocks always selected: the first ones, the newest ones
  std::size_t window;
};

// ---- feed-forward -----------------------------------------------------------------------------------
enum class Activation { relu, silu, gelu_erf, gelu_tanh, gelu_quick, tanh };
struct Ffn {
  std::size_t d_ff;
  Activation activation;
  bool gated;                    // down(act(gate x) * (up x + up_offset)), else down(act(up x))
  std::optional<double> clamp;   // gated: gate <= clamp, -clamp <= up <= clamp, before the activation
  double up_offset;
  bool bias_in, bias_out;
};

// Mixture of experts: y = sum over the top_k experts of weight_e * expert_e(x) + shared(x).
enum class RouterScore { softmax, softmax_selected, sigmoid };  // softmax_selected: over the chosen only
enum class GroupScore { max, top2_sum };
struct Router {
  RouterScore score;
  bool bias;                     // on the router's logits
  bool select_bias;              // added to the scores for the choice only, not to the weights
  std::size_t n_groups, top_groups;  // experts outside the best groups are not chosen; 1, 1: no groups
  GroupScore group_score;
  bool normalize;                // weights are divided by their sum (+ normalize_eps)
  double normalize_eps;
  double scale;                  // on the weights, last
};
struct SharedExpert {
  Ffn ffn;
  bool gate;                     // its output times sigmoid(gate . x)
};
struct Moe {
  std::size_t n_experts, top_k;
  Ffn expert;
  Router router;
  std::optional<SharedExpert> shared;
};

// ---- embedding ----------------------------------------------------------------------------------------
struct Embedding {
  std::size_t d_embed;
  double scale;
  std::optional<PositionTable> positions;
  std::size_t token_types;
  std::optional<std::string> norm;      // on the sum, width d_embed
  bool project_in, project_bias;        // a matrix d_embed -> d_model; only positions may follow it
};
// The encoder's input where it is not the decoder's: other positions or norm, perhaps another vocabulary.
struct EncoderEmbedding {
  Embedding embedding;
  bool own_tokens;                      // JSON "tokens": "own" | "shared" (with the decoder)
  std::size_t vocab_size;
};

// ---- ops, blocks, stacks ----------------------------------------------------------------------------
enum class OpKind { attention, mla, nsa, ffn, moe };
struct Op {
  OpKind kind;
  std::optional<Attention> attention;  // set by kind
  std::optional<Mla> mla;
  std::optional<Nsa> nsa;
  std::optional<Ffn> ffn;
  std::optional<Moe> moe;
};

inline const std::string kSharedNorm = "shared";  // Branch::norm_in of a parallel block
struct Branch {
  std::optional<std::string> norm_in;   // on the branch's input
  std::string op;                       // name in Contract::ops
  std::optional<std::string> norm_out;  // on its output, before the add
  std::optional<std::string> norm_after;// on the sum (post-norm)
  double in_scale, out_scale;
};
// sequential: each branch reads the stream its predecessor left; parallel: all read the block's input;
// normed: sequential, and what a branch is added to is norm_in of the stream, not the stream.
enum class Residual { sequential, parallel, normed };
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
  std::optional<EncoderEmbedding> embedding;  // encoder of an encoder_decoder only; null: Contract::embedding
};

// ---- ends -------------------------------------------------------------------------------------------
// A layer between the stack and the output matrix, or behind a pooling: norm(act(W x + b)).
struct HeadTransform {
  std::size_t d_out;
  std::optional<Activation> activation;
  bool bias;
  std::optional<std::string> norm;
};
// The kinds with labels: one of them holds (classify), any of them may (multi_label), numbers instead of
// labels (regress), and where an answer begins and ends in the text (span).
enum class HeadKind { lm, classify, none, multi_label, regress, span };
constexpr bool has_labels(HeadKind kind) { return kind != HeadKind::lm && kind != HeadKind::none; }
enum class Pool { first, last, mean };  // which token stands for its sequence
struct Head {
  HeadKind kind;
  bool tied;                            // lm: logits use the token embedding
  bool bias;
  double in_scale, logit_scale;
  std::optional<double> softcap;
  std::optional<HeadTransform> transform;
  std::optional<Pool> pool;             // classify: before the transform; null: every token has its labels
  std::optional<std::size_t> pool_pad;  // last: the last token with another id; the first where all have it
  std::vector<std::string> labels;      // has_labels: names of the outputs
};
// `quern embed`: how a sequence becomes one vector (a default that may be edited by hand, all but `dense`).
struct Pooling {
  Pool mode;
  std::vector<HeadTransform> dense = {};  // layers on the pooled vector, in order
  bool normalize = false;               // to length 1
  std::optional<std::size_t> max_tokens = {};  // a longer text is cut, special tokens included
};

// ---- what is not architecture -------------------------------------------------------------------------
struct Tokens {                         // special ids; absent = the model has none
  std::optional<std::int32_t> bos, pad, unk, mask;
  std::optional<std::int32_t> decoder_start;  // encoder_decoder: what the decoder's input begins with
  std::vector<std::int32_t> eos;        // any of them ends the answer
  bool add_bos = false, add_eos = false;
};
struct Generation {                     // defaults of the checkpoint; absent = quern's own default
  std::optional<bool> sample;           // false: greedy
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int64_t> top_k, max_new_tokens, min_new_tokens;
  // Lengths of the whole decoder input, its start included; where both are given the *_new_* decide.
  std::optional<std::int64_t> max_length, min_length;
  std::optional<std::int64_t> n_beams, no_repeat_ngram;
  std::optional<double> length_penalty;
  std::optional<std::string> early_stopping;  // "true", "false", "never"
  std::optional<std::int32_t> forced_bos, forced_eos;
  std::vector<std::int32_t> suppress, begin_suppress;  // ids never chosen; not as the first
  std::vector<std::vector<std::int32_t>> bad_words;    // sequences never completed
  bool renormalize = false;             // log-probabilities again after the rules above
};

// How text becomes ids; the tables themselves are a section of model.quern (text/tokenizer_tables.hpp).
struct AddedToken {
  std::string content;
  std::int32_t id;
  bool special, normalized, single_word, lstrip, rstrip;
};
// Ids and token types (rows of the type table) of two texts joined: prefix, first, middle, second, suffix.
struct PairTemplate {
  std::vector<std::int32_t> prefix_ids, prefix_types;
  std::int32_t first_type = 0;
  std::vector<std::int32_t> middle_ids, middle_types;
  std::int32_t second_type = 0;
  std::vector<std::int32_t> suffix_ids, suffix_types;
};
struct TokenizerDescription {
  std::string model;                    // kTokenizerModels; "none" for a checkpoint without a tokenizer
  std::vector<std::string> normalizers; // in order; empty = none
  // Pre-tokenizer steps in order: a named scanner (docs/CONTRACT.md lists them) or
  // "regex:PATTERN" (PCRE2).
  std::vector<std::string> pre_tokenizers;
  bool byte_level = false;              // tokens are bytes, not characters (the byte alphabet is undone)
  bool add_prefix_space = false;
  bool ignore_merges = false;           // a whole pre-token found in the vocabulary is taken as it is
  bool byte_fallback = false;           // a character without a token becomes the tokens of its bytes
  bool fuse_unk = false;                // neighbouring unknowns become one
  std::optional<std::int32_t> unk_id;   // stands for a byte or character without a token; null: it is dropped
  std::string subword_prefix;           // of a piece inside a word
  std::string word_suffix;              // of a word's last character (bpe)
  std::size_t max_word_chars = 0;       // wordpiece: longer words are unknown
  std::string score_sum = "f64";        // precision in which scores of pieces are added (unigram)
  std::vector<std::int32_t> user_defined;  // pieces taken whole and never changed by a normalizer
  // Around plain text ($A of the post-processor), with token types.
  std::vector<std::int32_t> prefix_ids, prefix_types;
  std::int32_t text_type = 0;
  std::vector<std::int32_t> suffix_ids, suffix_types;
  std::optional<PairTemplate> pair;     // null: two texts cannot be joined
  std::vector<std::string> decoders;    // steps from token texts to text; empty = concatenated
  std::vector<AddedToken> added;
};

struct ChatDescription {
  std::string jinja;                    // the template's source, "" when there is none
  std::string builtin;                  // "chatml" when quern knows the template's plain form, else ""
  std::string default_system;           // system text the template puts in when the chat has none, else ""
  std::map<std::string, std::string> named;    // further templates by name ("tool_use")
  std::map<std::string, std::string> special;  // texts of special tokens by the names that templates use
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
  std::optional<Pooling> pooling;
  Tokens tokens;
  Generation generation;
  TokenizerDescription tokenizer;
  ChatDescription chat;
  Counts counts{};
  // Reports for people, kept as the converter wrote them (JSON text of one object each): format per
  // tensor role, bits per weight, notices; provenance and adaptations (--rope-*); the weight file's hash.
  std::string quantization_json = "{}", source_json = "{}", weights_json = "{}";
};

enum class StackPlace { encoder, decoder };

// Layer i of a stack, patterns and repetition unrolled.
struct LayerRef {
  const std::string* block_name;
  const Block* block;
  std::size_t weights_of;  // index of the layer whose tensors it uses (itself unless shared)
};
std::vector<LayerRef> unroll(const Contract& contract, const Stack& stack);

}  // namespace quern::contract
