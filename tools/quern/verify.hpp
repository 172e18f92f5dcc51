// The validation list of `quern verify`: each check runs on the user's own model and says what it measured.
#pragma once

#include <string>
#include <vector>

#include "model_options.hpp"

namespace quern::tool {

struct CheckResult {
  bool passed;
  std::string detail;   // one line: what was compared, with figures
};

struct VerifyContext {
  const LoadedModel& loaded;
  ModelOptions options;
  bool full = false;    // also the checks that prefill the whole trained length

  const model::Model& model() const { return *loaded.model; }
};

// worst <- max(worst, error), where NaN is the worst of all and stays.
inline void raise_to(double& worst, double error) {
  if (!(error <= worst)) worst = error;
}

// Pseudo-random ids, the same on every run.
std::vector<std::int32_t> sample_ids(const VerifyContext& context, std::size_t n, unsigned seed = 1);

// Logits of all positions [ids, vocab_size], computed in chunks of `chunk` on `threads` threads.
std::vector<float> all_logits(const VerifyContext& context, const std::vector<std::int32_t>& ids,
                              std::size_t chunk, std::size_t threads);

// verify_file.cpp
CheckResult check_parameters(const VerifyContext& context);   // formula = tensors = contract
CheckResult check_checksums(const VerifyContext& context);
// verify_model.cpp
CheckResult check_causality(const VerifyContext& context);    // what a position may not see changes no bit
CheckResult check_decode(const VerifyContext& context);       // token by token = one prefill, in bits
CheckResult check_threads(const VerifyContext& context);      // 1, 2, 3 threads and chunks, in bits
CheckResult check_cache_bytes(const VerifyContext& context);  // measured = formula
CheckResult check_positions(const VerifyContext& context);    // trained length and both neighbours, prefix offset
// verify_kernels.cpp
CheckResult check_matmul(const VerifyContext& context);       // active ISA against float64, this model's shapes
CheckResult check_attention(const VerifyContext& context);

}  // namespace quern::tool
