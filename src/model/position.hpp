// Rotary positions: the frequency table a request uses, and cosine and sine of every new token's
// angles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/lazy_array.hpp"
#include "model/model.hpp"

namespace quern::model {

// The frequencies and the factor on cosine and sine, for a declared total length
// (contract::RopeSwitch).
struct RopeFrequencies {
  std::vector<float> inv_freq;  // [dims / 2]
  double mscale = 1;
};
RopeFrequencies rope_frequencies(const contract::Rope& rope, std::size_t total_length);

// Hash of what the declared length decides in this model (frequencies of ropes with a switch; the
// tie order of an indexer, which knows the context at most): equal hashes, equal numbers.
std::uint64_t length_hash(const Model& model, std::size_t total_length, std::size_t context);
// The shortest length to declare for a text of n_tokens, so that a growing text changes its tables
// seldom: up to where a switch acts, then the context.
std::size_t declared_length_for(const Model& model, std::size_t n_tokens, std::size_t context);

// cosine[i] and sine[i] of double(position) * double(inv_freq[i]), times mscale, rounded once to
// float.
void rope_angles(const RopeFrequencies& frequencies, std::size_t position, float* cosine,
                 float* sine);

// Tables of every rope of the model for the tokens of one forward(), [max_chunk, dims / 2] each.
class PositionTables {
 public:
  PositionTables(const Model& model, std::size_t max_chunk, std::size_t total_length);

  // The declared length of rows set() from now on; costs nothing when it is the one before.
  void declare(const Model& model, std::size_t total_length);

  // Fills row `token` of every table.
  void set(std::size_t token, std::size_t position) const;
  void copy(std::size_t from, std::size_t to) const;  // of every table

  std::size_t half(std::size_t rope) const { return tables_[rope].frequencies.inv_freq.size(); }
  const float* cosine(std::size_t rope, std::size_t token) const {
    return tables_[rope].cosine.data() + token * half(rope);
  }
  const float* sine(std::size_t rope, std::size_t token) const {
    return tables_[rope].sine.data() + token * half(rope);
  }

 private:
  struct Table {
    RopeFrequencies frequencies;
    LazyArray<float> cosine, sine;
  };
  std::vector<Table> tables_;
  std::size_t total_length_;
};

}  // namespace quern::model
