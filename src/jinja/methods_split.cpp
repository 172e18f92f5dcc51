// Methods of str that take it apart or put it together, and that ask what it consists of.
#include <algorithm>

#include "base/strings.hpp"
#include "jinja/access.hpp"
#include "jinja/builtins.hpp"
#include "jinja/characters.hpp"
#include "jinja/operators.hpp"
#include "jinja/print.hpp"
#include "jinja/text_tools.hpp"

namespace quern::jinja {

namespace {

struct Piece {
  std::size_t begin, end;
};

// By runs of white space, none at the ends.
std::vector<Piece> split_words(const Text& text, std::int64_t most) {
  std::vector<Piece> out;
  std::size_t at = 0;
  const auto space_at = [&](std::size_t i) { return is_space(character_at(text.bytes, i).code); };
  for (;;) {
    while (at < text.bytes.size() && space_at(at)) at += character_at(text.bytes, at).bytes;
    if (at >= text.bytes.size()) return out;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      std::size_t end = text.bytes.size();  // the rest, without the space at its end
      while (end > at && space_at(character_before(text.bytes, end)))
        end = character_before(text.bytes, end);
      out.push_back({at, end});
      return out;
    }
    const std::size_t begin = at;
    while (at < text.bytes.size() && !space_at(at)) at += character_at(text.bytes, at).bytes;
    out.push_back({begin, at});
  }
}

std::vector<Piece> split_words_last(const Text& text, std::int64_t most) {
  std::vector<Piece> out;
  std::size_t end = text.bytes.size();
  const auto space_before = [&](std::size_t i) {
    return is_space(character_at(text.bytes, character_before(text.bytes, i)).code);
  };
  for (;;) {
    while (end > 0 && space_before(end)) end = character_before(text.bytes, end);
    if (end == 0) break;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      std::size_t begin = 0;
      while (begin < end && is_space(character_at(text.bytes, begin).code))
        begin += character_at(text.bytes, begin).bytes;
      out.push_back({begin, end});
      break;
    }
    const std::size_t stop = end;
    while (end > 0 && !space_before(end)) end = character_before(text.bytes, end);
    out.push_back({end, stop});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Piece> split_by(const Text& text, const std::string& separator, std::int64_t most) {
  std::vector<Piece> out;
  std::size_t at = 0;
  while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
    const std::size_t hit = find_bytes(text.bytes, separator, at);
    if (hit == std::string::npos) break;
    out.push_back({at, hit});
    at = hit + separator.size();
  }
  out.push_back({at, text.bytes.size()});
  return out;
}

std::vector<Piece> split_by_last(const Text& text, const std::string& separator,
                                 std::int64_t most) {
  // One pass over the reversed texts keeps it linear.
  const Text back(std::string(text.bytes.rbegin(), text.bytes.rend()));
  std::vector<Piece> out = split_by(back, std::string(separator.rbegin(), separator.rend()), most);
  for (Piece& p : out) p = {text.bytes.size() - p.end, text.bytes.size() - p.begin};
  std::reverse(out.begin(), out.end());
  return out;
}

template <bool last>
Value method_split(Interpreter& run, const Value& self, Arguments& a) {
  a.bind(last ? "rsplit" : "split", {"sep", "maxsplit"});
  const Text& text = *as_text(self);
  const Text* separator = a.text(0);
  const std::int64_t most = a.integer_or(1, -1);
  if (separator != nullptr && separator->bytes.empty()) throw Fault("empty separator");
  run.heap().burn_bytes(text.bytes.size());
  const std::vector<Piece> pieces =
      separator == nullptr ? (last ? split_words_last(text, most) : split_words(text, most))
                           : (last ? split_by_last(text, separator->bytes, most)
                                   : split_by(text, separator->bytes, most));
  std::vector<Value> out;
  for (const Piece& p : pieces) out.push_back(piece(run, text, p.begin, p.end));
  return static_cast<Object*>(run.heap().list(std::move(out)));
}

template <bool last>
Value method_partition(Interpreter& run, const Value& self, Arguments& a) {
  a.only("partition", 1, 1);
  const Text& text = *as_text(self);
  const Text* separator = as_text(a.positional[0]);
  if (separator == nullptr) throw Fault("partition: must be str");
  if (separator->bytes.empty()) throw Fault("empty separator");
  const std::size_t size = text.bytes.size(), n = separator->bytes.size();
  const std::size_t hit = last ? find_bytes_last(text.bytes, separator->bytes)
                               : find_bytes(text.bytes, separator->bytes, 0);
  std::vector<Value> out;
  if (hit == std::string::npos) {
    out = {piece(run, text, 0, last ? 0 : size), piece(run, text, 0, 0),
           piece(run, text, 0, last ? size : 0)};
  } else {
    out = {piece(run, text, 0, hit), piece(run, text, hit, hit + n),
           piece(run, text, hit + n, size)};
  }
  return static_cast<Object*>(run.heap().list(std::move(out), ObjectKind::tuple));
}

Value method_splitlines(Interpreter& run, const Value& self, Arguments& a) {
  a.bind("splitlines", {"keepends"});
  const Text& text = *as_text(self);
  const bool keep = a.get(0) != nullptr && truth(run, *a.get(0));
  std::vector<Value> out;
  for (const LineRange& line : split_lines(text))
    out.push_back(piece(run, text, line.begin, keep ? line.next : line.end));
  return static_cast<Object*>(run.heap().list(std::move(out)));
}

Value method_join(Interpreter& run, const Value& self, Arguments& a) {
  a.only("join", 1, 1);
  if (!is_iterable(a.positional[0])) throw Fault("can only join an iterable");
  return joined(run, *as_text(self), run.items_of(a.positional[0]));
}

// Every character is one, and there is one.
template <bool (*is)(std::uint32_t)>
Value method_all(Interpreter&, const Value& self, Arguments& a) {
  a.only("predicate", 0, 0);
  const std::string& text = as_text(self)->bytes;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (!is(c.code)) return false;
    at += c.bytes;
  }
  return !text.empty();
}

bool is_alnum(std::uint32_t code) {
  return is_alpha(code) || is_numeric(code);
}
bool is_any_digit(std::uint32_t code) {
  return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 ||
         (code >= 0x2070 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089);
}

Value method_isascii(Interpreter&, const Value& self, Arguments& a) {
  a.only("isascii", 0, 0);
  return as_text(self)->ascii;
}

Value method_isprintable(Interpreter& run, const Value& self, Arguments& a) {
  return as_text(self)->bytes.empty() ? Value(true) : method_all<is_printable>(run, self, a);
}

template <bool upper>
Value method_iscase(Interpreter& run, const Value& self, Arguments& a) {
  return run.apply_test(upper ? "upper" : "lower", self, a);
}

Value method_isidentifier(Interpreter&, const Value& self, Arguments& a) {
  a.only("isidentifier", 0, 0);
  const std::string& text = as_text(self)->bytes;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    if (at == 0 ? c.code != '_' && !is_alpha(c.code) : !is_word(c.code)) return false;
    at += c.bytes;
  }
  return !text.empty();
}

Value method_istitle(Interpreter&, const Value& self, Arguments& a) {
  a.only("istitle", 0, 0);
  const std::string& text = as_text(self)->bytes;
  bool inside = false, any = false;
  for (std::size_t at = 0; at < text.size();) {
    const Character c = character_at(text, at);
    at += c.bytes;
    if (is_upper(c.code) || is_title(c.code)) {
      if (inside) return false;
      inside = any = true;
    } else if (is_lower(c.code)) {
      if (!inside) return false;
    } else {
      inside = false;
    }
  }
  return any;
}

constexpr MethodEntry kSplits[] = {
    {"join", method_join},
    {"partition", method_partition<false>},
    {"rpartition", method_partition<true>},
    {"rsplit", method_split<true>},
    {"split", method_split<false>},
    {"splitlines", method_splitlines},
};

constexpr MethodEntry kPredicates[] = {
    {"isalnum", method_all<is_alnum>},     {"isalpha", method_all<is_alpha>},
    {"isascii", method_isascii},           {"isdecimal", method_all<is_decimal>},
    {"isdigit", method_all<is_any_digit>}, {"isidentifier", method_isidentifier},
    {"islower", method_iscase<false>},     {"isnumeric", method_all<is_numeric>},
    {"isprintable", method_isprintable},   {"isspace", method_all<is_space>},
    {"istitle", method_istitle},           {"isupper", method_iscase<true>},
};

}  // namespace

std::span<const MethodEntry> split_methods() {
  return kSplits;
}

std::span<const MethodEntry> text_predicates() {
  return kPredicates;
}

}  // namespace quern::jinja
