#include "batch/json_scan.hpp"

#include <cstdint>

namespace quern::batch {

namespace {

constexpr int kMaxDepth = 128;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Recursive descent; the depth is bounded, so the stack is.
class Scanner {
 public:
  Scanner(std::string_view text, std::vector<JsonMember>& members) : text_(text), members_(members) {}

  std::optional<JsonFault> run() {
    space();
    if (!value(0)) return fault_;
    space();
    if (at_ != text_.size()) fail("text behind the value");
    return fault_;
  }

 private:
  bool fail(const char* what) {
    fault_ = JsonFault{at_, what};
    return false;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n')) ++at_;
  }

  bool value(int depth) {
    switch (peek()) {
      case '{': return object(depth);
      case '[': return array(depth);
      case '"': return string();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return fail("not a value");
    at_ += expected.size();
    return true;
  }

  bool digits() {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ > begin;
  }

  bool number() {
    if (peek() == '-') ++at_;
    if (peek() == '0') ++at_;
    else if (!digits()) return fail("not a value");
    if (peek() == '.') {
      ++at_;
      if (!digits()) return fail("not a number");
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return fail("not a number");
    }
    return true;
  }

  std::optional<unsigned> hex4() {
    if (at_ + 4 > text_.size()) return std::nullopt;
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      const int digit = hex_digit(text_[at_++]);
      if (digit < 0) return std::nullopt;
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return code;
  }

  bool escape() {  // behind the backslash
    const char c = peek();
    ++at_;
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos || fail("unknown escape");
    const auto code = hex4();
    if (!code) return fail("not four hexadecimal digits");
    if (*code < 0xD800 || *code > 0xDFFF) return true;
    if (*code > 0xDBFF || text_.substr(at_, 2) != "\\u") return fail("half of a surrogate pair");
    at_ += 2;
    const auto low = hex4();
    return (low && *low >= 0xDC00 && *low <= 0xDFFF) || fail("half of a surrogate pair");
  }

  bool utf8() {  // at a byte of 0x80 or above
    const auto byte = [&](std::size_t i) -> unsigned {
      return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0;
    };
    const unsigned lead = byte(0);
    const std::size_t n = lead >= 0xC2 && lead <= 0xDF ? 2 : (lead & 0xF0u) == 0xE0 ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
    if (n == 0) return fail("not UTF-8");
    const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(1) < low || byte(1) > high) return fail("not UTF-8");
    for (std::size_t i = 2; i < n; ++i)
      if (byte(i) < 0x80 || byte(i) > 0xBF) return fail("not UTF-8");
    at_ += n;
    return true;
  }

  bool string() {
    ++at_;
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return fail("a control byte in a string");
      if (c >= 0x80) {
        if (!utf8()) return false;
      } else {
        ++at_;
        if (c == '\\' && !escape()) return false;
      }
    }
    return fail("a string without its end");
  }

  bool array(int depth) {
    if (depth >= kMaxDepth) return fail("nesting > 128");
    ++at_;
    space();
    if (peek() == ']') return ++at_, true;
    for (;;) {
      space();
      if (!value(depth + 1)) return false;
      space();
      const char c = peek();
      if (c != ',' && c != ']') return fail("no , or ]");
      ++at_;
      if (c == ']') return true;
    }
  }

  bool object(int depth) {
    if (depth >= kMaxDepth) return fail("nesting > 128");
    ++at_;
    space();
    if (peek() == '}') return ++at_, true;
    for (;;) {
      space();
      const std::size_t key = at_;
      if (peek() != '"') return fail("no key");
      if (!string()) return false;
      const std::size_t key_end = at_;
      space();
      if (peek() != ':') return fail("no :");
      ++at_;
      space();
      const std::size_t begin = at_;
      if (!value(depth + 1)) return false;
      if (depth == 0) members_.push_back({text_.substr(key + 1, key_end - key - 2), text_.substr(begin, at_ - begin)});
      space();
      const char c = peek();
      if (c != ',' && c != '}') return fail("no , or }");
      ++at_;
      if (c == '}') return true;
    }
  }

  std::string_view text_;
  std::vector<JsonMember>& members_;
  std::size_t at_ = 0;
  std::optional<JsonFault> fault_;
};

void append_utf8(std::string& out, unsigned code) {
  const auto add = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    }
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

unsigned code_at(std::string_view digits) {
  unsigned code = 0;
  for (const char c : digits.substr(0, 4)) code = code * 16 + static_cast<unsigned>(hex_digit(c));
  return code;
}

}  // namespace

std::optional<JsonFault> scan_json(std::string_view text, std::vector<JsonMember>& members) {
  members.clear();
  auto fault = Scanner(text, members).run();
  if (fault) members.clear();
  return fault;
}

const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key) {
  for (const JsonMember& member : members)
    if (member.key == key) return &member;
  return nullptr;
}

std::optional<std::string> json_string(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return std::nullopt;
  value = value.substr(1, value.size() - 2);
  std::string out;
  out.reserve(value.size());
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value[at] != '\\') {
      out += value[at];
      continue;
    }
    const char c = value[++at];
    static constexpr std::string_view kEscapes = "bfnrt", kMeanings = "\b\f\n\r\t";
    const std::size_t known = kEscapes.find(c);
    if (c != 'u') {
      out += known == std::string_view::npos ? c : kMeanings[known];
      continue;
    }
    unsigned code = code_at(value.substr(at + 1));
    at += 4;
    if (code >= 0xD800 && code < 0xDC00) {
      code = 0x10000 + ((code - 0xD800) << 10) + (code_at(value.substr(at + 3)) - 0xDC00);
      at += 6;
    }
    append_utf8(out, code);
  }
  return out;
}

}  // namespace quern::batch
