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

std::string scientific(double value);  // "1.2e-05"; verify_run.cpp

// verify_run.cpp: pseudo-random inputs, the same on every run.
std::vector<std::int32_t> sample_ids(const VerifyContext& context, std::size_t n, unsigned seed = 1);
// Of the encoder beside a decoder; empty without one.
std::vector<std::int32_t> sample_source(const VerifyContext& context);
void encode_sample(model::Runner& runner, const VerifyContext& context, std::size_t sequence);

struct VerifyInput {
  std::vector<std::vector<std::int32_t>> documents;   // packed, each a sequence of its own
  std::size_t prefix_length = 0;
};
struct VerifyWay {
  std::size_t chunk, threads;
};
// A row per position: logits, or hidden states where there is no head or it reads whole texts.
std::size_t row_width(const VerifyContext& context);
void append_rows(const VerifyContext& context, const model::Runner& runner, std::vector<float>& rows);
std::vector<float> all_rows(const VerifyContext& context, const VerifyInput& input, const VerifyWay& way);
std::vector<float> all_rows(const VerifyContext& context, const std::vector<std::int32_t>& ids, std::size_t chunk,
                            std::size_t threads);
// Rows [first, end), bit for bit.
bool same_rows(const std::vector<float>& a, const std::vector<float>& b, std::size_t first, std::size_t end,
               std::size_t width);

// verify_file.cpp
CheckResult check_parameters(const VerifyContext& context);   // formula = tensors = contract
CheckResult check_checksums(const VerifyContext& context);
// verify_causality.cpp
CheckResult check_causality(const VerifyContext& context);    // what a position may not see changes no bit
// verify_model.cpp
CheckResult check_decode(const VerifyContext& context);       // token by token = one prefill, in bits
CheckResult check_threads(const VerifyContext& context);      // 1, 2, 3 threads and chunks, in bits
CheckResult check_cache_bytes(const VerifyContext& context);  // measured = formula
CheckResult check_positions(const VerifyContext& context);    // trained length and both neighbours, prefix offset
// verify_kernels.cpp
CheckResult check_matmul(const VerifyContext& context);       // active ISA against float64, this model's shapes
// verify_attention.cpp: the same of attention, latent attention and the branches of sparse attention
CheckResult check_attention(const VerifyContext& context);

}  // namespace quern::tool
