// Which number format a tensor gets: the user's type, the overrides, and the steps between roles.
//
//   keep   the source's own codes and scales where a keep format holds them, else the nearest
//   q4     matrices q4; token embedding, head and attention v one step higher (q8)
//   q8     matrices q8; attention v one step higher (bf16)
//          a step higher than a quantized source is the source's own format, where that takes no more bits
//
// Vectors and position tables always stay float (rows_f32).
//
// Not here: encoding (tensor_encoder.hpp).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "contract/tensors.hpp"
#include "convert/convert.hpp"
#include "quant/format.hpp"

namespace quern::convert {

struct FormatChoice {
  const quant::FormatTraits* format = nullptr;
  bool kept = false;  // the source's codes and scales exactly
  std::string note{};
};

class Policy {
 public:
  // quantized_source: some matrix of the source is quantized. Unknown types and malformed patterns
  // are usage errors.
  Policy(const ConvertOptions& options, bool quantized_source);
  ~Policy();
  Policy(Policy&&) noexcept;

  // source: the tensor it is made of; transposed sources cannot be kept.
  FormatChoice choose(const contract::TensorSpec& spec, const checkpoint::SourceTensor& source,
                      bool tied_head, bool transposed) const;

  // Usage error for a --tensor-type whose pattern matches none of the names (quern's and the source's).
  void check_patterns(const std::vector<std::string_view>& names) const;

  std::string_view type() const { return type_; }  // "q4", "keep", ... in lower case
  std::string describe() const;                    // one line for the report

 private:
  struct Override;
  std::string type_for(const contract::TensorSpec& spec, std::string_view source, bool tied_head,
                       std::string& note) const;

  std::string type_, output_, embedding_;
  std::vector<Override> overrides_;
};

// The format that holds a tensor's numbers exactly, nullptr when there is none.
const quant::FormatTraits* keep_format(const checkpoint::SourceTensor& source);

// Whether the tensor is made of codes and scales.
bool is_quantized(const checkpoint::SourceTensor& source);

}  // namespace quern::convert
