// How much a model has to do for a case: operations and bytes, counted from its matrices and attention layers. Not
// counted: norms, activations, positions, softmax; what the sparse kinds of attention leave out is counted as seen.
#pragma once

#include "bench/case.hpp"
#include "model/model.hpp"

namespace quern::bench {

struct WorkCounts {
  double operations = 0;       // of matrices and attention: 2 for a multiplication with its addition
  double weight_bytes = 0;     // read from memory: every step reads each matrix once
  bool integer = false;        // most operations are byte products
};

// One repetition of the case, prompt and answer apart. n_source: ids of the encoder that an answer reads.
struct CaseWork {
  WorkCounts prompt, gen;
};
CaseWork count_work(const model::Model& model, const Case& one, std::size_t n_source);

}  // namespace quern::bench
