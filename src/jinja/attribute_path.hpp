// "address.city", 0 or "name,age" as filters take them: what to read of each item.
#pragma once

#include <vector>

#include "jinja/interpreter.hpp"

namespace quern::jinja {

class AttributePath {
 public:
  // None: the item itself.
  AttributePath(Interpreter& run, const Value& attribute);
  // An undefined value on the way becomes `otherwise` unless that is None.
  Value read(Interpreter& run, Value item, const Value& otherwise = None{}) const;

 private:
  std::vector<Value> parts_;
};

// What a sort compares: texts in lower case unless `case_sensitive`.
class SortKey {
 public:
  SortKey(Interpreter& run, const Value& attribute, bool case_sensitive, bool several);
  Value of(Interpreter& run, const Value& item, const Value& otherwise = None{}) const;

 private:
  std::vector<AttributePath> paths_;  // several: the key is a list
  bool case_sensitive_, several_;
};

}  // namespace quern::jinja
