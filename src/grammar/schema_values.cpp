#include <array>
#include <cstdio>

#include "grammar/schema.hpp"

namespace quern::grammar {

bool equal(const Value& a, const Value& b) {
  const bool numbers = (a.kind & kNumber) != 0 && (b.kind & kNumber) != 0;
  if (numbers) return a.number == b.number;
  if (a.kind != b.kind || a.text != b.text) return false;
  if (a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!equal(a.items[i], b.items[i])) return false;
  for (const auto& [name, value] : a.members) {
    bool found = false;
    for (const auto& [other, other_value] : b.members)
      found = found || (name == other && equal(value, other_value));
    if (!found) return false;
  }
  return true;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    const std::size_t index = kSpecial.find(c);
    if (index != std::string_view::npos) {
      out += '\\';
      out += kLetters[index];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> hex{};
      std::snprintf(hex.data(), hex.size(), "\\u%04x", static_cast<unsigned>(c));
      out += hex.data();
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string json_text(const Value& value) {
  if (value.kind == kString) return json_quoted(value.text);
  if (value.kind != kArray && value.kind != kObject) return value.text;
  std::string out(1, value.kind == kArray ? '[' : '{');
  for (const Value& item : value.items) {
    if (out.size() > 1) out += ',';
    out += json_text(item);
  }
  for (const auto& [name, member] : value.members) {
    if (out.size() > 1) out += ',';
    out += json_quoted(name) + ":" + json_text(member);
  }
  return out += value.kind == kArray ? ']' : '}';
}

const SchemaId* Schema::property(std::string_view name) const {
  for (const auto& [known, id] : properties)
    if (known == name) return &id;
  return nullptr;
}

}  // namespace quern::grammar
