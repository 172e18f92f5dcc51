#include "bench/sweep.hpp"

#include <algorithm>
#include <charconv>

#include "base/binary_power.hpp"
#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::bench {

namespace {

constexpr std::string_view kForms = "numbers as in 512, 4k, \"1,8,64\", \"1-4\", \"0-4096+1024\" or \"1-8*2\"";

[[noreturn]] void bad(std::string_view option, std::string_view what, std::string_view got,
                      std::string_view expected) {
  base::usage_error(option, base::cat(what, " (got \"", base::printable(got, 60), "\", expected ", expected, ")"));
}

// One sweep while it is read: what is left, and what was made of it.
struct Reader {
  std::string_view option;
  SweepBounds bounds;
  std::vector<std::size_t> values;

  std::size_t number(std::string_view& rest, std::string_view word) const {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc::invalid_argument) bad(option, "not a number", word, kForms);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const std::size_t power = base::take_binary_power(rest);
    const bool fits = error != std::errc::result_out_of_range && value <= bounds.high / power;
    if (!fits || value * power < bounds.low)
      bad(option, "number out of range", word, base::cat(bounds.low, " to ", bounds.high));
    return value * power;
  }

  void add(std::size_t value) {
    if (values.size() == kMaxSweepValues)
      base::usage_error(option, base::cat("more than ", kMaxSweepValues, " values"));
    values.push_back(value);
  }

  void range(std::size_t first, std::string_view rest, std::string_view word) {
    const std::size_t last = number(rest, word);
    if (last < first) bad(option, "the range ends before it begins", word, "first-last");
    std::size_t step = 1;
    const char kind = rest.empty() ? '+' : rest.front();
    if (!rest.empty()) {
      if (kind != '+' && kind != '*') bad(option, "not a range", word, kForms);
      rest.remove_prefix(1);
      const Reader any{option, {0, bounds.high}, {}};
      step = any.number(rest, word);
      if (!rest.empty()) bad(option, "text behind a range", word, kForms);
    }
    if (kind == '+' ? step == 0 : step < 2 || first == 0) bad(option, "the range never ends", word, "+1 or *2 at least");
    for (std::size_t value = first;; value = kind == '+' ? value + step : value * step) {
      add(value);
      if (value > (kind == '+' ? last - std::min(step, last) : last / step)) break;  // the next lies beyond, or wraps
    }
  }

  void part(std::string_view word) {
    std::string_view rest = word;
    const std::size_t first = number(rest, word);
    if (rest.empty()) return add(first);
    if (rest.front() != '-') bad(option, "not a list of numbers", word, kForms);
    rest.remove_prefix(1);
    range(first, rest, word);
  }
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

}  // namespace

std::vector<std::size_t> parse_sweep(std::string_view option, const std::vector<std::string>& words,
                                     const SweepBounds& bounds) {
  Reader reader{option, bounds, {}};
  for (const std::string& word : words)
    for (const std::string_view part : split(word)) reader.part(part);
  return reader.values;
}

std::vector<std::pair<std::size_t, std::size_t>> parse_pairs(std::string_view option,
                                                             const std::vector<std::string>& words,
                                                             const SweepBounds& bounds) {
  if (words.size() > kMaxSweepValues) base::usage_error(option, base::cat("more than ", kMaxSweepValues, " pairs"));
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const std::string& word : words) {
    const std::vector<std::string_view> parts = split(word);
    if (parts.size() != 2) bad(option, "not a pair", word, "PP,TG");
    Reader reader{option, bounds, {}};
    std::string_view prompt = parts[0], answer = parts[1];
    pairs.emplace_back(reader.number(prompt, word), reader.number(answer, word));
    if (!prompt.empty() || !answer.empty()) bad(option, "not a pair of numbers", word, "PP,TG");
  }
  return pairs;
}

}  // namespace quern::bench
