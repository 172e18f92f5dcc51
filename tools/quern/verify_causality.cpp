// What a position may not see changes no bit of its row, and what it may see changes it: order, window, prefix,
// borders of documents.

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/strings.hpp"
#include "verify.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kFar = SIZE_MAX;

// How many positions back (and, both ways, ahead) an input reaches through all layers; kFar: all of them.
struct Reach {
  std::size_t back = 0, ahead = 0;
};

std::size_t added(std::size_t a, std::size_t b) { return a == kFar || b == kFar ? kFar : a + b; }

Reach reach_of(const model::Stack& stack) {
  Reach reach;
  for (const model::Layer& layer : stack.layers)
    for (const model::Branch& branch : layer.branches) {
      if (branch.kind == contract::OpKind::ffn || branch.kind == contract::OpKind::moe) continue;
      if (!branch.attention) {   // another attention: causal, and nothing is said of a window
        reach.back = kFar;
        continue;
      }
      const contract::Attention& spec = *branch.attention->spec;
      if (spec.source == contract::AttentionSource::encoder) continue;
      const std::size_t step = spec.mask.window && spec.mask.sinks == 0 ? *spec.mask.window - 1 : kFar;
      reach.back = added(reach.back, step);
      if (spec.mask.kind == contract::MaskKind::bidirectional) reach.ahead = added(reach.ahead, step);
    }
  return reach;
}

bool has_prefix(const model::Stack& stack) {
  for (const model::Layer& layer : stack.layers)
    for (const model::Branch& branch : layer.branches)
      if (branch.attention && branch.attention->spec->mask.kind == contract::MaskKind::prefix) return true;
  return false;
}

struct Causality {
  const VerifyContext& context;
  std::size_t threads = context.loaded.pool->n_threads();
  std::size_t width = row_width(context);
  std::size_t unseen = 0, changed = 0;
  std::size_t seeing = 0, moved = 0;   // rows that may see a change (their own apart), those that changed

  std::vector<float> rows(const VerifyInput& input) const { return all_rows(context, input, {4096, threads}); }

  void flip(std::int32_t& id) const {
    id = (id + 1) % static_cast<std::int32_t>(context.model().contract.vocab_size);
  }

  // Changes token `at` (counted over all documents); rows outside [first, end) must not change, its own must.
  // "" or what was wrong.
  std::string check(const VerifyInput& input, std::size_t at, std::size_t first, std::size_t end) {
    VerifyInput other = input;
    std::size_t document = 0, within = at;
    while (within >= other.documents[document].size()) within -= other.documents[document++].size();
    flip(other.documents[document][within]);
    const std::vector<float> before = rows(input), after = rows(other);
    const std::size_t n = before.size() / width;
    if (!std::all_of(before.begin(), before.end(), [](float x) { return std::isfinite(x); }))
      return base::cat("results of ", n, " pseudo-random tokens are not all finite");
    for (std::size_t row = 0; row < n; ++row) {
      if (row >= first && row < end) {
        seeing += row == at ? 0 : 1;
        moved += row == at || same_rows(before, after, row, row + 1, width) ? 0 : 1;
        continue;
      }
      if (!same_rows(before, after, row, row + 1, width))
        return base::cat("changing position ", at, " of ", n, " changed position ", row, ", which may not see it");
      ++unseen;
    }
    if (same_rows(before, after, at, at + 1, width))
      return base::cat("changing position ", at, " did not change its own result");
    ++changed;
    return {};
  }
};

// One text: rows before the change (or out of the window's reach) stay.
std::string check_text(Causality& check, const Reach& reach, std::size_t n) {
  const VerifyInput input{{sample_ids(check.context, n)}};
  for (const std::size_t at : std::set<std::size_t>{1, n / 2, n - 1}) {
    const std::size_t first = reach.ahead == kFar || reach.ahead > at ? 0 : at - reach.ahead;
    const std::size_t end = reach.back == kFar ? n : std::min(n, at + reach.back + 1);
    if (std::string wrong = check.check(input, at, first, end); !wrong.empty()) return wrong;
  }
  return {};
}

std::string check_prefix(Causality& check, std::size_t n) {
  VerifyInput input{{sample_ids(check.context, n)}};
  input.prefix_length = n / 2;
  if (std::string wrong = check.check(input, n / 2 + 1, n / 2 + 1, n); !wrong.empty()) return wrong;
  return check.check(input, n / 2 - 1, 0, n);
}

// Documents packed into one step: the others' rows stay.
std::string check_documents(Causality& check, std::size_t n) {
  const VerifyInput input{{sample_ids(check.context, n, 2), sample_ids(check.context, 7, 3), sample_ids(check.context, n, 4)}};
  if (std::string wrong = check.check(input, n / 2, 0, n); !wrong.empty()) return wrong;
  return check.check(input, n + 3, n, n + 7);
}

}  // namespace

CheckResult check_causality(const VerifyContext& context) {
  const contract::Contract& contract = context.model().contract;
  const model::Stack& stack = context.model().output_stack();
  const Reach reach = reach_of(stack);
  // Long enough for a window to end within the text.
  const std::size_t wanted = reach.back < 400 ? 2 * reach.back + 48 : 48;
  const std::size_t n = std::min(wanted, contract.max_positions);
  if (n < 8 || contract.vocab_size < 2)
    return {true, base::cat("nothing to see: ", n, " positions, vocabulary of ", contract.vocab_size)};
  Causality check{context};
  std::string wrong = check_text(check, reach, n);
  std::string seen = reach.ahead > 0 ? "both ways" : "order";
  if (wrong.empty() && reach.back != kFar) seen += base::cat(", window reach ", reach.back);
  if (wrong.empty() && has_prefix(stack)) {
    wrong = check_prefix(check, n);
    seen += ", prefix";
  }
  if (wrong.empty()) wrong = check_documents(check, std::min<std::size_t>(n, 40));
  const bool alone = reach.back == 0 && reach.ahead == 0;   // a window of one key
  if (wrong.empty() && !alone && check.seeing > 0 && check.moved == 0) wrong = "no position sees any other";
  if (!wrong.empty()) return {false, wrong};
  return {true, base::cat(seen, ", documents: ", check.changed, " changed positions of ", n, ": ", check.unseen,
                          " rows that may not see them bit-equal; their own and ", check.moved, " of ", check.seeing,
                          " that see them changed")};
}

}  // namespace quern::tool
