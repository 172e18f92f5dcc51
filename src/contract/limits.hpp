// Upper bounds of the contract's numbers, so that a hostile contract neither overflows a product nor
// makes quern allocate or loop without end. A branch has less than 2^47 parameters and the stacks at
// most 2^16 branches, so the count of parameters fits in 64 bits and is then held to kMaxParameters;
// the list of tensors is held to kMaxTensors before it is built.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::contract {

inline constexpr std::size_t kMaxWidth = std::size_t{1}
                                         << 20;  // d_model, d_embed, d_ff, heads x width
inline constexpr std::size_t kMaxVocab = std::size_t{1} << 24;
inline constexpr std::size_t kMaxPositions = std::size_t{1} << 26;
inline constexpr std::size_t kMaxTokenTypes = std::size_t{1} << 16;
inline constexpr std::size_t kMaxLayers = std::size_t{1} << 14;
inline constexpr std::size_t kMaxBranchesOfBlock = 8;
inline constexpr std::size_t kMaxBranchesOfStack = std::size_t{1} << 15;
inline constexpr std::size_t kMaxNames = 4096;       // entries of norms, ropes, ops, blocks
inline constexpr std::size_t kMaxNameBytes = 64;     // of such an entry's name
inline constexpr std::size_t kMaxExperts = std::size_t{1} << 12;
inline constexpr std::size_t kMaxExpertsWidth = std::size_t{1} << 24;   // n_experts x d_ff
inline constexpr std::size_t kMaxLatentWidth = std::size_t{1} << 24;    // n_heads x kv_rank
inline constexpr std::size_t kMaxComputedTable = std::size_t{1} << 30;  // values of a sinusoidal table
inline constexpr std::size_t kMaxSelectBlock = std::size_t{1} << 12;    // blocks of sparse attention
inline constexpr std::size_t kMaxTensors = std::size_t{1} << 20;        // sections of the weight file
inline constexpr std::uint64_t kMaxParameters = std::uint64_t{1} << 50;
inline constexpr std::size_t kMaxBuckets = std::size_t{1} << 12;  // of a relative bias
inline constexpr std::size_t kMaxPoolingLayers = 8;               // behind a pooling
inline constexpr std::size_t kMaxLabels = std::size_t{1} << 16;   // of a classifier
inline constexpr std::size_t kMaxLabelBytes = 4096;  // name, family, tokenizer words
inline constexpr std::size_t kMaxAddedTokens = std::size_t{1} << 20;
inline constexpr std::int64_t kMaxBeams = 1024;
inline constexpr std::size_t kMaxIds = 1024;   // eos, prefix_ids, suffix_ids
inline constexpr std::size_t kMaxSteps = 256;  // normalizers, pre_tokenizers

}  // namespace quern::contract
