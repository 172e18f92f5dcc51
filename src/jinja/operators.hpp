// What Python's operators do with values. Faults are its errors: wrong kinds, division by zero,
// integers beyond 64 bits (Python's have no end; here that is an error).
#pragma once

#include "jinja/ast.hpp"
#include "jinja/interpreter.hpp"

namespace quern::jinja {

Value arithmetic(Interpreter& run, Op op, const Value& left, const Value& right);
Value negate(Interpreter& run, const Value& value, bool keep_sign);
bool compare(Interpreter& run, Op op, const Value& left, const Value& right);
bool equal(Interpreter& run, const Value& left, const Value& right);
bool less(Interpreter& run, const Value& left, const Value& right);
bool contains(Interpreter& run, const Value& container, const Value& item);
bool truth(Interpreter& run, const Value& value);

// Dictionaries. Keys that cannot be hashed are Faults.
const Value* find(Interpreter& run, const Dict& dict, const Value& key);
const Value* find(const Dict& dict, std::string_view key);
void insert(Interpreter& run, Dict& dict, const Value& key, Value value);

}  // namespace quern::jinja
