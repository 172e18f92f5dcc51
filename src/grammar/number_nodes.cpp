#include "grammar/number_nodes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "grammar/limits.hpp"
#include "grammar/nfa_builder.hpp"
#include "grammar/regex.hpp"

namespace quern::grammar {

namespace {

// Digits from the left; "tight" sides are those on which all digits so far are the bound's own.
class DecimalNetwork {
 public:
  DecimalNetwork(Grammar& grammar, const DecimalRange& range) : grammar_(grammar), range_(range) {}

  NodeId build() {
    const std::size_t least = range_.low.whole.size();
    const std::size_t most = range_.high ? range_.high->whole.size() : std::max(range_.max_whole, least);
    for (std::size_t length = least; length <= most; ++length)
      add_whole(length, length == least, range_.high && length == most);
    return grammar_.network(n_places_, std::move(arcs_));
  }

 private:
  struct Tight {
    bool low, high;
    auto operator<=>(const Tight&) const = default;
  };

  static char digit(const std::string& digits, std::size_t i) { return i < digits.size() ? digits[i] : '0'; }

  // Calls f(first, last, tight) for the digits that may come, in runs of the same future.
  template <class F>
  void each_run(char low, char high, Tight tight, char bound_low, char bound_high, F f) const {
    for (char first = low; first <= high;) {
      const auto after = [&](char d) { return Tight{tight.low && d == bound_low, tight.high && d == bound_high}; };
      char last = first;
      while (last < high && after(static_cast<char>(last + 1)) == after(first)) ++last;
      f(first, last, after(first));
      first = static_cast<char>(last + 1);
    }
  }

  void arc(std::uint32_t from, std::uint32_t to, char first, char last) {
    arcs_.push_back({from, to, grammar_.chars(CharSet{{static_cast<char32_t>(first), static_cast<char32_t>(last)}})});
  }

  void add_whole(std::size_t length, bool tight_low, bool tight_high) {
    std::map<Tight, std::uint32_t> places{{{tight_low, tight_high}, 0}};
    for (std::size_t i = 0; i < length; ++i) {
      std::map<Tight, std::uint32_t> next;
      for (const auto& [tight, from] : places) {
        const char bound_low = digit(range_.low.whole, i);
        const char bound_high = range_.high ? digit(range_.high->whole, i) : '9';
        char low = tight.low ? bound_low : '0';
        if (i == 0 && length > 1) low = std::max(low, '1');
        each_run(low, tight.high ? bound_high : '9', tight, bound_low, bound_high,
                 [&, start = from](char first, char last, Tight after) {
                   const auto [found, added] = next.try_emplace(after, n_places_);
                   if (added) ++n_places_;
                   arc(start, found->second, first, last);
                 });
      }
      places = std::move(next);
    }
    for (const auto& [tight, place] : places) {
      finish(place, tight, 0);
      if (range_.max_fraction == 0) continue;
      const auto [found, added] = points_.try_emplace(tight, n_places_);
      if (added) {
        ++n_places_;
        add_fraction(tight, found->second);
      }
      arc(place, found->second, '.', '.');
    }
  }

  void add_fraction(Tight start, std::uint32_t point) {
    std::map<Tight, std::uint32_t> places{{start, point}};
    for (std::size_t i = 0; i < range_.max_fraction; ++i) {
      std::map<Tight, std::uint32_t> next;
      for (const auto& [tight, from] : places) {
        const char bound_low = digit(range_.low.fraction, i);
        const char bound_high = range_.high ? digit(range_.high->fraction, i) : '9';
        each_run(tight.low ? bound_low : '0', tight.high ? bound_high : '9', tight, bound_low, bound_high,
                 [&, begin = from](char first, char last, Tight after) {
                   const auto [found, added] = next.try_emplace(after, n_places_);
                   if (added) {
                     ++n_places_;
                     finish(found->second, after, i + 1);
                   }
                   arc(begin, found->second, first, last);
                 });
      }
      places = std::move(next);
    }
  }

  // The number may end after `n` digits of its fraction.
  void finish(std::uint32_t place, Tight tight, std::size_t n) {
    const auto rest_is_zero = [n](const Decimal& bound) {
      return bound.fraction.find_first_not_of('0', std::min(n, bound.fraction.size())) == std::string::npos;
    };
    if (tight.low && (!rest_is_zero(range_.low) || range_.low.exclusive)) return;
    if (tight.high && rest_is_zero(*range_.high) && range_.high->exclusive) return;
    arcs_.push_back({place, 1, std::nullopt});
  }

  Grammar& grammar_;
  const DecimalRange& range_;
  std::vector<Arc> arcs_;
  std::uint32_t n_places_ = 2;
  std::map<Tight, std::uint32_t> points_;  // behind the point
};

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

NodeId natural_node(Grammar& grammar, std::uint64_t low, std::uint64_t high) {
  DecimalRange range;
  range.low.whole = std::to_string(low);
  range.high.emplace();
  range.high->whole = std::to_string(high);
  return decimal_node(grammar, range);
}

NodeId range_node(Grammar& grammar, std::int64_t low, std::int64_t high) {
  std::vector<NodeId> parts;
  if (high >= 0) parts.push_back(natural_node(grammar, magnitude(std::max<std::int64_t>(low, 0)), magnitude(high)));
  if (low < 0)
    parts.push_back(grammar.sequence(
        {grammar.text("-"), natural_node(grammar, magnitude(std::min<std::int64_t>(high, -1)), magnitude(low))}));
  return grammar.choice(std::move(parts));
}

// Decimal numbers that m divides: states are the sign's two and one per remainder.
Dfa multiples_of(std::int64_t m) {
  Dfa dfa;
  dfa.states.resize(static_cast<std::size_t>(m) + 2);
  const auto add_digits = [&](Dfa::State& state, std::int64_t remainder) {
    for (std::int64_t d = 0; d <= 9; ++d) {
      const auto symbol = static_cast<Symbol>('0' + d);
      state.edges.push_back({symbol, symbol, static_cast<std::uint32_t>((remainder * 10 + d) % m + 2)});
    }
  };
  dfa.states[0].edges.push_back({'-', '-', 1});
  add_digits(dfa.states[0], 0);
  add_digits(dfa.states[1], 0);
  for (std::int64_t r = 0; r < m; ++r) add_digits(dfa.states[static_cast<std::size_t>(r) + 2], r);
  dfa.states[2].final = true;
  return dfa;
}

}  // namespace

NodeId decimal_node(Grammar& grammar, const DecimalRange& range) {
  return DecimalNetwork(grammar, range).build();
}

NodeId integer_node(Grammar& grammar, const IntegerBounds& bounds) {
  if (bounds.low > bounds.high) return grammar.nothing();
  const NodeId plain = range_node(grammar, bounds.low, bounds.high);
  if (bounds.multiples.empty()) return plain;
  const FiniteLimits limits{grammar.where(), kMaxDfaStates};
  const std::vector<std::uint8_t> none;
  Dfa dfa = determinize(NfaBuilder(grammar, Alphabet::characters, none, limits).build(plain), limits);
  for (const std::int64_t m : bounds.multiples)
    dfa = product(dfa, multiples_of(m), Product::both, limits);
  return automaton_node(grammar, dfa, [&](const CharSet& set) { return grammar.chars(set); });
}

}  // namespace quern::grammar
