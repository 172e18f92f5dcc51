#include "text/added_tokens.hpp"

#include <algorithm>

#include "text/unicode.hpp"

namespace quern::text {

namespace {

// Start of the character that ends right before `end` (> 0).
std::size_t char_before(std::string_view text, std::size_t end) {
  std::size_t start = end - 1;
  while (start > 0 && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
    --start;
  return decode_char(text, start).bytes == end - start ? start : end - 1;
}

bool word_before(std::string_view text, std::size_t at) {
  if (at == 0) return false;
  const Char c = decode_char(text, char_before(text, at));
  return c.code != Char::kInvalid && is_word_code(c.code);
}

bool word_after(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  const Char c = decode_char(text, at);
  return c.code != Char::kInvalid && is_word_code(c.code);
}

std::size_t spaces_before(std::string_view text, std::size_t at, std::size_t floor) {
  while (at > floor) {
    const std::size_t start = char_before(text, at);
    if (start < floor || !is_space_code(decode_char(text, start).code)) break;
    at = start;
  }
  return at;
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Char c = decode_char(text, at);
    if (!is_space_code(c.code)) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

AddedMatcher::AddedMatcher(std::vector<AddedEntry> entries) : entries_(std::move(entries)) {
  // Of two tokens with one content the first in the list counts.
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const AddedEntry& a, const AddedEntry& b) { return a.content < b.content; });
  const auto last =
      std::unique(entries_.begin(), entries_.end(),
                  [](const AddedEntry& a, const AddedEntry& b) { return a.content == b.content; });
  entries_.erase(last, entries_.end());
  for (const AddedEntry& entry : entries_)
    starts_[static_cast<unsigned char>(entry.content[0])] = true;
  if (!entries_.empty()) build();
}

// Breadth first, so that the edges of a node lie together and no content is too long for the stack.
void AddedMatcher::build() {
  struct Range {  // entries that share the bytes on the way to a node
    std::size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, entries_.size(), 0}};
  nodes_.emplace_back();
  for (std::size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    if (entries_[begin].content.size() == depth)
      nodes_[node].entry = static_cast<std::int32_t>(begin++);
    nodes_[node].first_edge = static_cast<std::uint32_t>(edges_.size());
    while (begin < end) {
      const char byte = entries_[begin].content[depth];
      std::size_t stop = begin + 1;
      while (stop < end && entries_[stop].content[depth] == byte) ++stop;
      edges_.push_back(
          {static_cast<unsigned char>(byte), static_cast<std::uint32_t>(nodes_.size())});
      nodes_.emplace_back();
      ranges.push_back({begin, stop, depth + 1});
      begin = stop;
    }
    nodes_[node].n_edges = static_cast<std::uint32_t>(edges_.size()) - nodes_[node].first_edge;
  }
}

std::int32_t AddedMatcher::child(std::uint32_t node, unsigned char byte) const {
  const Edge* first = edges_.data() + nodes_[node].first_edge;
  const Edge* last = first + nodes_[node].n_edges;
  const Edge* found = std::lower_bound(first, last, byte,
                                       [](const Edge& e, unsigned char b) { return e.byte < b; });
  return found != last && found->byte == byte ? static_cast<std::int32_t>(found->node) : -1;
}

std::int32_t AddedMatcher::match_at(std::string_view text, std::size_t at,
                                    std::size_t control_end) const {
  std::int32_t best = -1;
  std::uint32_t node = 0;
  for (; at < text.size(); ++at) {
    const std::int32_t next = child(node, static_cast<unsigned char>(text[at]));
    if (next < 0) break;
    node = static_cast<std::uint32_t>(next);
    const std::int32_t entry = nodes_[node].entry;
    if (entry >= 0 && (at < control_end || !entries_[static_cast<std::size_t>(entry)].control))
      best = entry;
  }
  return best;
}

std::size_t AddedMatcher::match_bytes(std::string_view text, std::size_t at) const {
  if (entries_.empty() || !starts_[static_cast<unsigned char>(text[at])]) return 0;
  const std::int32_t entry = match_at(text, at);
  return entry < 0 ? 0 : entries_[static_cast<std::size_t>(entry)].content.size();
}

namespace {

// The end of the trusted bytes that begin at an ascending place; the place itself when it is not.
class TrustedEnds {
 public:
  explicit TrustedEnds(const ControlRule& rule) : rule_(rule) {}
  std::size_t from(std::size_t at) {
    if (rule_.kind != ControlRule::Kind::trusted) return SIZE_MAX;
    const auto& ranges = *rule_.untrusted;
    while (next_ < ranges.size() && ranges[next_].end <= at) ++next_;
    return next_ == ranges.size() ? SIZE_MAX : std::max(at, ranges[next_].begin);
  }

 private:
  const ControlRule& rule_;
  std::size_t next_ = 0;
};

}  // namespace

bool AddedMatcher::has_control() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const AddedEntry& entry) { return entry.control; });
}

std::vector<base::MarkedText::Range> AddedMatcher::control_places(std::string_view text) const {
  std::vector<base::MarkedText::Range> places;
  for (std::size_t at = 0; at < text.size() && !entries_.empty();) {
    const std::int32_t hit =
        starts_[static_cast<unsigned char>(text[at])] ? match_at(text, at) : -1;
    if (hit < 0) {
      ++at;
      continue;
    }
    const AddedEntry& entry = entries_[static_cast<std::size_t>(hit)];
    if (entry.control) places.push_back({at, at + entry.content.size()});
    at += entry.content.size();
  }
  return places;
}

void AddedMatcher::split(std::string_view text, const ControlRule& rule,
                         std::vector<AddedPiece>& out) const {
  std::size_t done = 0;  // up to here the text is in `out`
  std::size_t n_control = 0;
  TrustedEnds trusted(rule);
  for (std::size_t at = 0; at < text.size() && !entries_.empty();) {
    const std::int32_t hit =
        starts_[static_cast<unsigned char>(text[at])] ? match_at(text, at, trusted.from(at)) : -1;
    if (hit < 0) {
      ++at;
      continue;
    }
    const AddedEntry& entry = entries_[static_cast<std::size_t>(hit)];
    std::size_t start = at, stop = at + entry.content.size();
    at = stop;
    if (entry.control && rule.kind == ControlRule::Kind::none) continue;
    if (entry.control && rule.kind == ControlRule::Kind::listed && !(*rule.allowed)[n_control++])
      continue;
    if (entry.single_word && (word_before(text, start) || word_after(text, stop))) continue;
    if (entry.lstrip) start = std::max(done, spaces_before(text, start, std::min(start, done)));
    if (entry.rstrip) stop = spaces_after(text, stop);
    if (done < start) out.push_back({text.substr(done, start - done), -1});
    out.push_back({text.substr(std::min(start, stop), stop - std::min(start, stop)), entry.id});
    done = stop;
  }
  if (done < text.size()) out.push_back({text.substr(done), -1});
}

}  // namespace quern::text
