// The arguments of one call, matched with the names that the callee has for them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/heap.hpp"
#include "jinja/value.hpp"

namespace quern::jinja {

class Arguments {
 public:
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // Puts every named argument in its place. Faults: unknown, twice, too many, fewer than
  // `required`.
  void bind(std::string_view callee, std::initializer_list<std::string_view> names,
            std::size_t required = 0);
  // bind for a callee without named arguments.
  void only(std::string_view callee, std::size_t least, std::size_t most);

  // After bind: what was given, or null.
  const Value* get(std::size_t index) const;
  Value get_or(std::size_t index, Value otherwise) const;
  // None counts as absent. Faults for other kinds.
  std::int64_t integer_or(std::size_t index, std::int64_t otherwise) const;
  const Text* text(std::size_t index) const;  // null when absent or None
  bool given(std::size_t index) const;        // and not None

  const Value* find(std::string_view name) const;      // a named one, before bind
  Value take(std::string_view name, Value otherwise);  // and removes it

 private:
  std::string callee_;
  std::vector<bool> present_;
  std::vector<std::string> names_;
};

std::int64_t need_integer(const Value& value, std::string_view callee);

}  // namespace quern::jinja
