#include "model/step.hpp"

#include <algorithm>
#include <cstring>

namespace quern::model {

namespace {

void keep_rows(Rows& rows, std::span<const std::size_t> kept) {
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i] != i) std::memcpy(rows.row(i), rows.row(kept[i]), rows.width * sizeof(float));
  rows.n = kept.size();
}

}  // namespace

void Step::keep_wanted(std::initializer_list<Rows*> rows) {
  for (auto one = rows.begin(); one != rows.end(); ++one) {
    const auto same = std::find_if(rows.begin(), one, [&](const Rows* before) { return before->data == (*one)->data; });
    if (same == one)
      keep_rows(**one, wanted.rows);
    else
      (*one)->n = wanted.rows.size();
  }
  for (std::size_t i = 0; i < wanted.rows.size(); ++i) positions.copy(wanted.rows[i], i);
  tokens = wanted.tokens;
  runs = wanted.runs;
}

}  // namespace quern::model
