// What a caller gives a template: a tree of plain values. Texts carry their marks
// (base/marked_text.hpp). Not here: the values inside a rendering (value.hpp), files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/marked_text.hpp"

namespace quern::jinja {

// Who wrote a text: the caller and the template, or a person or a tool.
enum class Trust { trusted, untrusted };

base::MarkedText marked(std::string text, Trust trust);

struct Data {
  // big: an integer that 64 bits do not hold; its digits are in `text`.
  enum class Kind { none, boolean, integer, real, text, list, object, big };
  using Member = std::pair<base::MarkedText, Data>;

  Data() = default;
  static Data of(bool value);
  static Data of(std::int64_t value);
  static Data of(base::MarkedText value);
  static Data of(std::string value, Trust trust) { return of(marked(std::move(value), trust)); }
  static Data of(std::vector<Data> items);

  // JSON text; its strings, keys too, get `trust`. Input errors name `where`: base/json_reader.hpp.
  static Data parse(std::string_view json, std::string_view where, Trust trust);

  const Data* find(std::string_view key) const;  // member of an object, nullptr when absent
  void set(std::string_view key, Data value);    // replaces or appends; a new key is trusted
  void erase(std::string_view key);

  Kind kind = Kind::none;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  base::MarkedText text;
  std::vector<Data> items;
  std::vector<Member> members;  // keys differ
};

}  // namespace quern::jinja
