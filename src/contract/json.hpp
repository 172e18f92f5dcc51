// JSON <-> Contract: one document, every key always present, nothing optional, nothing unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "contract/contract.hpp"

namespace quern::contract {

inline constexpr int kContractVersion = 1;  // the "quern" key
// Largest model.json that is written or read: room for a tokenizer's additions and a template.
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{64} << 20;

// Reads and validates. Errors: "<where>: ops.attn.rope: unknown value ..." with the allowed values and the
// nearest match; a version from the future says which versions this quern reads.
Contract read_contract(std::string_view json, std::string_view where);
// The same for a document whose derived section "cache" does not say anything yet.
Contract read_draft(std::string_view json, std::string_view where);

// Stable key order, one idea a line, short arrays on one line; ends with a newline.
std::string write_contract(const Contract& contract);

// Hash of the part that decides the numbers (architecture, tokenizer, tensor list), so that chat template,
// generation defaults and labels can be edited by hand without breaking the pair of files.
std::uint64_t structural_hash(const Contract& contract);

// Cross-field rules, one sentence each (d_k even under rope, n_heads a multiple of n_kv_heads, names
// resolve, eos < vocab_size ...). Called by read_contract and by the converter.
void validate(const Contract& contract, std::string_view where);

}  // namespace quern::contract
