// One tensor: rows of the source -> panels of its format, in parallel, appended in order. Checks
// every value on the way in (finite) and on the way out (decoded, compared).
// Memory: one panel of floats per thread and a batch of encoded panels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/thread_pool.hpp"
#include "contract/tensors.hpp"
#include "convert/transform.hpp"
#include "quant/format.hpp"
#include "weights/writer.hpp"

namespace quern::convert {

struct PlannedTensor {
  contract::TensorSpec spec;
  RowView view;
  const quant::FormatTraits* format;
  bool kept;            // pack the source's blocks as they are
  std::uint64_t bytes;  // of the section
};

// Sums over a tensor, in a fixed order.
struct TensorError {
  double squared_error = 0;
  double squared_sum = 0;
};

class TensorEncoder {
 public:
  // advance(bytes): that many more bytes were written; from the calling thread.
  TensorEncoder(base::ThreadPool& pool, weights::WeightWriter& writer, bool allow_nonfinite,
                std::function<void(std::uint64_t)> advance);

  // Input errors name `where` and the source tensor: values that are not finite (first index,
  // count), and values too large for the format. Non-finite values pass into float formats when
  // they are allowed; the notice then says how many.
  TensorError write(const PlannedTensor& tensor, std::string_view where, std::string& notice);

 private:
  base::ThreadPool& pool_;
  weights::WeightWriter& writer_;
  bool allow_nonfinite_;
  std::function<void(std::uint64_t)> advance_;
};

}  // namespace quern::convert
