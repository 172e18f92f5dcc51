#include "model/position.hpp"

#include <algorithm>
#include <cmath>

#include "base/hash.hpp"

namespace quern::model {

namespace {

// Dynamic NTK: the base grows with the length, theta' = theta * (f * L / original - (f - 1))^(D /
// (D - 2)).
std::vector<float> dynamic_ntk(const contract::Rope& rope, const contract::RopeSwitch& rule,
                               std::size_t total_length) {
  const auto dims = static_cast<double>(rope.dims);
  const double growth =
      rule.factor * static_cast<double>(total_length) / static_cast<double>(rule.original_length) -
      (rule.factor - 1);
  const double base = rule.base * std::pow(growth, dims / (dims - 2));
  std::vector<float> inv_freq(rope.dims / 2);
  for (std::size_t i = 0; i < inv_freq.size(); ++i)
    inv_freq[i] = static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / dims));
  return inv_freq;
}

}  // namespace

RopeFrequencies rope_frequencies(const contract::Rope& rope, std::size_t total_length) {
  RopeFrequencies result{rope.inv_freq, rope.mscale};
  if (!rope.switch_rule || total_length <= rope.switch_rule->original_length) return result;
  const contract::RopeSwitch& rule = *rope.switch_rule;
  switch (rule.kind) {
    case contract::RopeSwitchKind::dynamic_ntk:
      result.inv_freq = dynamic_ntk(rope, rule, total_length);
      break;
    case contract::RopeSwitchKind::longrope:
      result.inv_freq = rule.long_inv_freq;
      result.mscale = rule.long_mscale;
      break;
  }
  return result;
}

std::uint64_t length_hash(const Model& model, std::size_t total_length, std::size_t context) {
  base::Hasher hasher;
  const auto add = [&](const auto& values) { hasher.update(std::as_bytes(std::span(values))); };
  for (const contract::Rope* rope : model.ropes) {
    if (!rope->switch_rule) continue;
    const RopeFrequencies frequencies = rope_frequencies(*rope, total_length);
    add(frequencies.inv_freq);
    const double mscale[] = {frequencies.mscale};
    add(mscale);
  }
  bool indexed = false;
  for_branches(model, [&](const Branch& b) { indexed = indexed || (b.mla && b.mla->indexer); });
  const std::uint64_t length[] = {indexed ? std::min(total_length, context) : 0};
  add(length);
  return hasher.digest();
}

std::size_t declared_length_for(const Model& model, std::size_t n_tokens, std::size_t context) {
  std::size_t length = context;
  for (const contract::Rope* rope : model.ropes)
    if (rope->switch_rule && rope->switch_rule->original_length >= n_tokens)
      length = std::min(length, rope->switch_rule->original_length);
  return length;
}

void rope_angles(const RopeFrequencies& frequencies, std::size_t position, float* cosine,
                 float* sine) {
  for (std::size_t i = 0; i < frequencies.inv_freq.size(); ++i) {
    const double angle =
        static_cast<double>(position) * static_cast<double>(frequencies.inv_freq[i]);
    cosine[i] = static_cast<float>(std::cos(angle) * frequencies.mscale);
    sine[i] = static_cast<float>(std::sin(angle) * frequencies.mscale);
  }
}

PositionTables::PositionTables(const Model& model, std::size_t max_chunk,
                               std::size_t total_length)
    : total_length_(total_length) {
  for (const contract::Rope* rope : model.ropes) {
    Table table;
    table.frequencies = rope_frequencies(*rope, total_length);
    table.cosine = LazyArray<float>(max_chunk * table.frequencies.inv_freq.size());
    table.sine = LazyArray<float>(max_chunk * table.frequencies.inv_freq.size());
    tables_.push_back(std::move(table));
  }
}

void PositionTables::declare(const Model& model, std::size_t total_length) {
  if (total_length == total_length_) return;
  total_length_ = total_length;
  for (std::size_t rope = 0; rope < tables_.size(); ++rope)
    if (model.ropes[rope]->switch_rule)
      tables_[rope].frequencies = rope_frequencies(*model.ropes[rope], total_length);
}

void PositionTables::set(std::size_t token, std::size_t position) const {
  for (std::size_t rope = 0; rope < tables_.size(); ++rope) {
    const Table& table = tables_[rope];
    rope_angles(table.frequencies, position, table.cosine.data() + token * half(rope),
                table.sine.data() + token * half(rope));
  }
}

void PositionTables::copy(std::size_t from, std::size_t to) const {
  if (from == to) return;
  for (std::size_t rope = 0; rope < tables_.size(); ++rope) {
    const Table& table = tables_[rope];
    for (float* angles : {table.cosine.data(), table.sine.data()})
      std::copy_n(angles + from * half(rope), half(rope), angles + to * half(rope));
  }
}

}  // namespace quern::model
