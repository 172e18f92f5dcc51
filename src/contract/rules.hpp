// Small vocabulary of checks for validate*.cpp. Internal to contract/.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "contract/contract.hpp"
#include "contract/limits.hpp"

namespace quern::contract {

// Checks of one contract; every failure is an input error "<where>: <path>: ...".
class Rules {
 public:
  Rules(const Contract& subject, std::string_view where) : contract(subject), where_(where) {}

  const Contract& contract;

  [[noreturn]] void fail(std::string_view path, std::string_view what, std::string_view got = {},
                         std::string_view expected = {}) const {
    base::reject(base::cat(where_, ": ", path), what, got, expected);
  }
  void require(bool holds, std::string_view path, std::string_view sentence) const {
    if (!holds) fail(path, sentence);
  }
  void range(std::string_view path, std::size_t value, std::size_t low, std::size_t high) const {
    if (value < low || value > high)
      fail(path, "out of range", base::cat(value),
           base::cat("an integer in [", low, ", ", high, "]"));
  }
  void positive(std::string_view path, double value) const {
    if (!(std::isfinite(value) && value > 0))
      fail(path, "must be finite and above 0", base::cat(value));
  }
  void between(std::string_view path, double value, double low, double high) const {
    if (!(value >= low && value <= high))
      fail(path, "out of range", base::cat(value),
           base::cat("a number in [", low, ", ", high, "]"));
  }
  // A factor of the numbers: any finite value but 0 whose float32 is not 0 or infinite.
  void factor(std::string_view path, double value) const {
    const float rounded = static_cast<float>(value);
    if (!std::isfinite(rounded) || rounded == 0)
      fail(path, "must be a finite float32 other than 0", base::cat(value));
  }
  void label(std::string_view path, std::string_view text) const {
    if (text.size() > kMaxLabelBytes)
      fail(path, "too long", base::cat(text.size(), " bytes"),
           base::cat("at most ", kMaxLabelBytes));
  }
  void token_id(std::string_view path, std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= contract.vocab_size)
      fail(path, "token id outside the vocabulary", base::cat(id),
           base::cat("an id in [0, ", contract.vocab_size, ")"));
  }

  // Two factors in range by themselves, whose product has a bound of its own.
  struct Product {
    std::string_view name;
    std::size_t a, b;
  };
  void product(std::string_view path, const Product& product, std::size_t high) const {
    if (product.a > high / product.b)
      fail(path, base::cat(product.name, " is too large"),
           base::cat(product.a, " x ", product.b), base::cat("at most ", high));
  }

  // Names of the model's own, keys of a section: short words of letters, digits and "_".
  template <class Items>
  void names(std::string_view section, const Items& items) const {
    if (items.size() > kMaxNames)
      fail(section, "too many entries", base::cat(items.size()), base::cat("at most ", kMaxNames));
    for (const auto& item : items)
      if (!is_plain_name(item.first))
        fail(base::cat(section, ".", base::printable(item.first, kMaxNameBytes)),
             "a name is 1 to 64 letters, digits and underscores");
  }

  // `name` must be a key of `items` (the contract's section `section`).
  template <class Items>
  void resolves(std::string_view path, const std::string& name, const Items& items,
                std::string_view section) const {
    if (items.count(name) != 0) return;
    std::vector<std::string_view> known;
    for (const auto& item : items) known.push_back(item.first);
    const std::string near = base::nearest(name, known);
    fail(path, base::cat("no entry \"", base::printable(name, kMaxNameBytes), "\" in ", section,
                         near.empty() ? "" : base::cat(", did you mean \"", near, "\"?"),
                         "; known: ", base::printable(base::join(known), 400)));
  }
  void norm_resolves(std::string_view path, const std::optional<std::string>& name) const {
    if (name) resolves(path, *name, contract.norms, "norms");
  }

 private:
  static bool is_plain_name(const std::string& name) {
    for (const char c : name) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter && !(c >= '0' && c <= '9') && c != '_') return false;
    }
    return !name.empty() && name.size() <= kMaxNameBytes;
  }

  std::string where_;
};

// validate_text.cpp: tokens, generation, tokenizer. validate_ops.cpp: norms, ropes, ops.
// validate_attention.cpp: the three kinds of attention. validate_layers.cpp: blocks, stacks, kv_from.
// validate_ends.cpp: embedding, head. validate_size.cpp: what all of it adds up to.
void check_embeddings(const Rules& rules);
void check_head(const Rules& rules);
void check_norms(const Rules& rules);
void check_ropes(const Rules& rules);
void check_ops(const Rules& rules);
void check_attention(const Rules& rules, const std::string& path, const Attention& op);
void check_mla(const Rules& rules, const std::string& path, const Mla& op);
void check_nsa(const Rules& rules, const std::string& path, const Nsa& op);
void check_blocks(const Rules& rules);
void check_stacks(const Rules& rules);
void check_size(const Rules& rules);  // the whole model: tensors, parameters, counts
void check_tokens(const Rules& rules);
void check_generation(const Rules& rules);
void check_tokenizer(const Rules& rules);

}  // namespace quern::contract
