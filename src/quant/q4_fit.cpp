#include "quant/q4_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "quant/f16_scale.hpp"

namespace quern::quant {

namespace {

constexpr std::size_t kIds = 16;
constexpr std::size_t kCodes = 16;
constexpr std::size_t kGroup = Q4::kIdColumns;
constexpr std::size_t kGroups = Q4Row::kGroups;

// Table values are integers in [-127, 127], so halfway points between neighbours are multiples of
// 1/2: floor(2 * value / scale) decides the nearest code of every id. kCells of them cover the
// range.
constexpr int kCells = 512;
constexpr int cell_of(float real) {
  return static_cast<int>(std::clamp(2 * real + kCells / 2, 0.0F, kCells - 1.0F));
}

struct NearestTables {
  // [cell][id]: all ids of a cell side by side, so that one pass over a group tries the 16
  // sub-scales in vector lanes. 32 KiB, the lines in use are few.
  alignas(64) float value[kCells][kIds];
  std::uint8_t code[kIds][kCells];
};

constexpr NearestTables make_nearest_tables() {
  NearestTables tables{};
  for (unsigned id = 0; id < kIds; ++id)
    for (int cell = 0; cell < kCells; ++cell) {
      const int middle = 2 * (cell - kCells / 2) + 1;  // of the cell, in quarters
      unsigned best = 0;
      int best_distance = std::numeric_limits<int>::max();
      for (unsigned u = 0; u < kCodes; ++u) {
        const int difference = middle - 4 * Q4::table(id, u);
        const int distance = difference < 0 ? -difference : difference;
        if (distance >= best_distance) continue;
        best_distance = distance;
        best = u;
      }
      tables.value[cell][id] = static_cast<float>(Q4::table(id, best));
      tables.code[id][cell] = static_cast<std::uint8_t>(best);
    }
  return tables;
}

constinit const NearestTables kNearest = make_nearest_tables();

constexpr std::size_t kCandidates = 32;
constexpr float kFirstFactor = 0.7F;  // candidate scales, in units of largest value / 127
constexpr float kLastFactor = 1.8F;
constexpr std::size_t kFinalists = 3;
constexpr int kRefits = 5;

struct Row {
  alignas(64) float x[kSuperColumns];
  alignas(64) float weight[kSuperColumns];
  std::size_t n_groups;
};

struct Trial {
  float scale = 0;
  double error = std::numeric_limits<double>::infinity();
  std::array<std::uint8_t, kGroups> ids{};
};

Row prepare(const float* values, std::size_t columns, const float* weights) {
  Row row{};
  row.n_groups = columns / kGroup;
  float largest = 0;
  for (std::size_t k = 0; k < columns; ++k) {
    row.x[k] = representable(values[k]);
    row.weight[k] = weights == nullptr ? 1 : weights[k];
    largest = std::max(largest, row.weight[k]);
  }
  // Relative importance only; without any, every column counts the same.
  for (std::size_t k = 0; k < columns; ++k)
    row.weight[k] = largest > 0 ? row.weight[k] / largest : 1;
  return row;
}

// Squared error of one group for each id, in units of scale^2.
std::array<float, kIds> group_errors(const float* x, const float* weight, float inverse) {
  std::array<float, kIds> errors;
  float real[kGroup];
  int cell[kGroup];
  for (std::size_t k = 0; k < kGroup; ++k) {
    real[k] = x[k] * inverse;
    cell[k] = cell_of(real[k]);
  }
  for (std::size_t id = 0; id < kIds; ++id) {  // the lanes; per lane the order of k is fixed
    float sum = 0;
    for (std::size_t k = 0; k < kGroup; ++k) {
      const float difference = real[k] - kNearest.value[cell[k]][id];
      sum += weight[k] * (difference * difference);
    }
    errors[id] = sum;
  }
  return errors;
}

// The best id of each group for a scale, and the error that leaves.
Trial try_scale(const Row& row, float scale) {
  Trial trial;
  trial.scale = scale;
  const float inverse = 1 / scale;
  double sum = 0;
  for (std::size_t group = 0; group < row.n_groups; ++group) {
    const std::array<float, kIds> errors =
        group_errors(row.x + group * kGroup, row.weight + group * kGroup, inverse);
    const auto best = std::min_element(errors.begin(), errors.end());
    trial.ids[group] = static_cast<std::uint8_t>(best - errors.begin());
    sum += static_cast<double>(*best);
  }
  trial.error = sum * static_cast<double>(scale) * static_cast<double>(scale);
  return trial;
}

// The scale that fits the trial's table values best, as f16; 0 when there is none.
float refit(const Row& row, const Trial& trial) {
  const float inverse = 1 / trial.scale;
  double product = 0, square = 0;
  for (std::size_t k = 0; k < row.n_groups * kGroup; ++k) {
    const float value = kNearest.value[cell_of(row.x[k] * inverse)][trial.ids[k / kGroup]];
    product += static_cast<double>(row.weight[k] * value) * static_cast<double>(row.x[k]);
    square += static_cast<double>(row.weight[k] * value) * static_cast<double>(value);
  }
  return square > 0 ? round_to_f16(static_cast<float>(product / square)) : 0;
}

// Least squares and new codes in turn, for as long as that helps.
Trial improve(const Row& row, Trial trial) {
  for (int round = 0; round < kRefits; ++round) {
    const float scale = refit(row, trial);
    if (scale == 0 || scale == trial.scale) break;
    const Trial next = try_scale(row, scale);
    if (!(next.error < trial.error)) break;
    trial = next;
  }
  return trial;
}

Trial best_trial(const Row& row, float largest) {
  std::array<Trial, kFinalists> finalists;  // ascending by error
  float last = 0;
  for (std::size_t i = 0; i < kCandidates; ++i) {
    const float factor = kFirstFactor + (kLastFactor - kFirstFactor) * static_cast<float>(i) /
                                            static_cast<float>(kCandidates - 1);
    const float scale = std::max(round_to_f16(factor * largest / 127), kSmallestF16);
    if (scale == last) continue;  // among subnormals candidates coincide
    last = scale;
    Trial trial = try_scale(row, scale);
    for (Trial& finalist : finalists)
      if (trial.error < finalist.error) std::swap(trial, finalist);
  }
  Trial best;
  for (const Trial& finalist : finalists) {
    if (finalist.scale == 0) continue;
    const Trial trial = improve(row, finalist);
    if (trial.error < best.error) best = trial;
  }
  return best;
}

}  // namespace

Q4Row fit_q4_row(const float* values, std::size_t columns, const float* weights) {
  const Row row = prepare(values, columns, weights);
  float largest = 0;
  for (const float x : row.x) largest = std::max(largest, std::fabs(x));

  Q4Row result{};
  if (largest == 0) {
    std::fill_n(result.codes, columns, kNearest.code[0][kCells / 2]);  // T = 0 there
    return result;
  }
  const Trial best = best_trial(row, largest);
  result.scale = base::float_to_f16(best.scale);
  std::copy(best.ids.begin(), best.ids.end(), result.ids);
  const float inverse = 1 / best.scale;
  for (std::size_t k = 0; k < columns; ++k)
    result.codes[k] = kNearest.code[best.ids[k / kGroup]][cell_of(row.x[k] * inverse)];
  return result;
}

}  // namespace quern::quant
