#include "base/hash.hpp"
#include "contract/document.hpp"
#include "contract/json.hpp"
#include "contract/json_printer.hpp"

namespace quern::contract {

std::string write_contract(const Contract& contract) {
  return print_json(contract_document(contract));
}

// Over the one-line text of the document without the keys that do not decide the numbers, so that
// layout and key order of an edited file do not matter. The cache section is derived from what is
// hashed already.
std::uint64_t structural_hash(const Contract& contract) {
  base::Json document = contract_document(contract);
  const base::Json dense = contract.pooling ? document["pooling"]["dense"] : base::Json::array();
  for (const char* key : {"name", "family", "cache", "pooling", "generation", "chat", "quantization", "counts",
                          "source", "weights"})
    document.erase(key);
  if (!dense.empty()) document["dense"] = dense;
  for (auto& rope : document["ropes"]) {
    rope.erase("rule");
    rope.erase("base");
  }
  const std::string text = print_json_inline(document);
  return base::xxh3(base::as_bytes(text));
}

}  // namespace quern::contract
