// Contract -> JSON tree, in the key order of model.json. Internal to contract/ (writer, hash,
// report).
#pragma once

#include "base/json_reader.hpp"
#include "contract/contract.hpp"

namespace quern::contract {

// document.cpp: everything. document_ops.cpp, document_attention.cpp, document_text.cpp: its parts.
base::Json contract_document(const Contract& contract);

base::Json norm_document(const Norm& norm);
base::Json rope_document(const Rope& rope);
base::Json op_document(const Op& op);
base::Json floats_document(const std::vector<float>& values);
// Keys of one kind of op, into its object.
void add_attention(const Attention& op, base::Json& out);
void add_mla(const Mla& op, base::Json& out);
void add_nsa(const Nsa& op, base::Json& out);

base::Json tokens_document(const Tokens& tokens);
base::Json generation_document(const Generation& generation);
base::Json tokenizer_document(const TokenizerDescription& tokenizer);
base::Json chat_document(const ChatDescription& chat);

// null when absent
template <class T>
base::Json optional_document(const std::optional<T>& value) {
  return value ? base::Json(*value) : base::Json(nullptr);
}

}  // namespace quern::contract
