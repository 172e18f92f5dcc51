// Short names of norms and ops for the equations: RMS, LN, Attn, FFN; with the entry's name when
// there are several of one kind. Internal to contract/.
#pragma once

#include <map>
#include <string>

#include "base/strings.hpp"
#include "contract/contract.hpp"

namespace quern::contract {

class EquationNames {
 public:
  explicit EquationNames(const Contract& contract) : contract_(contract) {
    for (const auto& [name, norm] : contract.norms) ++count_[word_of(norm)];
    for (const auto& [name, op] : contract.ops) ++count_[word_of(op)];
  }
  std::string norm(const std::string& name) const {
    return named(word_of(contract_.norms.at(name)), name);
  }
  std::string op(const std::string& name) const {
    return named(word_of(contract_.ops.at(name)), name);
  }

 private:
  static std::string word_of(const Norm& norm) {
    return norm.kind == NormKind::rms_norm ? "RMS" : "LN";
  }
  static std::string word_of(const Op& op) {
    switch (op.kind) {
      case OpKind::attention:
        return op.attention->source == AttentionSource::encoder ? "Cross" : "Attn";
      case OpKind::mla:
        return "MLA";
      case OpKind::nsa:
        return "NSA";
      case OpKind::ffn:
        return "FFN";
      case OpKind::moe:
        return "MoE";
    }
    return "Op";
  }
  std::string named(const std::string& word, const std::string& name) const {
    return count_.at(word) > 1 ? base::cat(word, "_", name) : word;
  }

  const Contract& contract_;
  std::map<std::string, int> count_;
};

inline std::string applied(const std::string& function, const std::string& argument) {
  return base::cat(function, "(", argument, ")");
}

}  // namespace quern::contract
