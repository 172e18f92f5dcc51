#include "eval/choices.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "eval/rows.hpp"

namespace quern::eval {

namespace {

std::size_t common_length(const std::vector<std::vector<std::int32_t>>& lists) {
  std::size_t n = SIZE_MAX;
  for (const auto& list : lists) n = std::min(n, list.size());
  for (std::size_t i = 0; i < n; ++i)
    for (const auto& list : lists)
      if (list[i] != lists.front()[i]) return i;
  return n;
}

bool run_prefix(Subject& subject, std::span<const std::int32_t> ids) {
  while (!ids.empty()) {
    const std::size_t n = std::min(ids.size(), subject.chunk());
    if (!subject.forward(ids.first(n), n == ids.size() ? model::Want::last : model::Want::none)) return false;
    ids = ids.subspan(n);
  }
  return true;
}

double row_log_probability(const Subject& subject, std::size_t row, std::int32_t id, const std::string& where) {
  const float* logits = subject.logits(row);
  const RowScore score = score_row(logits, subject.vocab_size());
  if (!score.finite) base::reject(where, "logits are not finite");
  return log_probability(score, logits, id);
}

// Pieces of continuations that fit into one step.
struct Piece {
  std::size_t choice, first, n;
};

std::vector<Piece> next_pieces(const ChoiceIds& item, std::size_t room, std::size_t& choice, std::size_t& at) {
  std::vector<Piece> pieces;
  while (room > 0 && choice < item.continuations.size()) {
    const std::size_t end = item.continuations[choice].size() - 1;  // the last id predicts nothing
    const std::size_t n = std::min(room, end - at);
    if (n > 0) pieces.push_back({choice, at, n});
    room -= n;
    at += n;
    if (at < end) break;
    ++choice;
    at = 0;
  }
  return pieces;
}

}  // namespace

ChoiceIds split_choices(const std::vector<std::vector<std::int32_t>>& wholes, std::size_t text_length) {
  ChoiceIds item;
  // Each continuation keeps one id at least, and what is scored is not in the prefix.
  std::size_t shared = std::min(common_length(wholes), std::max<std::size_t>(text_length, 1));
  for (const auto& whole : wholes) shared = std::min(shared, whole.size() - 1);
  QUERN_ASSERT(shared > 0);
  const auto cut = static_cast<std::ptrdiff_t>(shared);
  item.prefix.assign(wholes.front().begin(), wholes.front().begin() + cut);
  for (const auto& whole : wholes) {
    item.continuations.emplace_back(whole.begin() + cut, whole.end());
    const std::size_t of_text = text_length > shared ? text_length - shared : 0;
    item.scored.push_back(std::min(of_text, item.continuations.back().size() - 1));
  }
  return item;
}

bool score_choices(Subject& subject, const ChoiceIds& item, std::vector<double>& scores) {
  scores.assign(item.continuations.size(), 0.0);
  subject.clear();
  if (!run_prefix(subject, item.prefix)) return false;
  for (std::size_t c = 0; c < scores.size(); ++c)
    if (item.scored[c] == 0) scores[c] = row_log_probability(subject, 0, item.continuations[c][0], item.where);
  subject.share_first();
  for (std::size_t choice = 0, at = 0; choice < scores.size();) {
    const std::vector<Piece> pieces = next_pieces(item, subject.chunk(), choice, at);
    if (pieces.empty()) break;
    std::vector<model::Slice> slices;
    for (const Piece& piece : pieces)
      slices.push_back({piece.choice, std::span(item.continuations[piece.choice]).subspan(piece.first, piece.n), model::Want::all});
    if (!subject.forward(slices)) return false;
    std::size_t row = 0;
    for (const Piece& piece : pieces)
      for (std::size_t i = 0; i < piece.n; ++i, ++row)
        if (const std::size_t predicted = piece.first + i + 1; predicted >= item.scored[piece.choice])
          scores[piece.choice] += row_log_probability(subject, row, item.continuations[piece.choice][predicted], item.where);
  }
  return true;
}

void add_choice(ChoiceReport& report, const ChoiceIds& item, std::span<const double> scores) {
  std::size_t best = 0, best_norm = 0;
  const auto norm = [&](std::size_t c) { return scores[c] / static_cast<double>(std::max<std::size_t>(item.lengths[c], 1)); };
  for (std::size_t c = 1; c < scores.size(); ++c) {
    if (scores[c] > scores[best]) best = c;
    if (norm(c) > norm(best_norm)) best_norm = c;
  }
  report.acc.add(best == item.right ? 1.0 : 0.0);
  report.acc_norm.add(best_norm == item.right ? 1.0 : 0.0);
}

}  // namespace quern::eval
