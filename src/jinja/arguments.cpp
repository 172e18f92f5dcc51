#include "jinja/arguments.hpp"

#include "base/strings.hpp"

namespace quern::jinja {

using base::cat;

void Arguments::bind(std::string_view callee, std::initializer_list<std::string_view> names,
                     std::size_t required) {
  callee_ = callee;
  names_.assign(names.begin(), names.end());
  if (positional.size() > names.size())
    throw Fault(
        cat(callee, " takes at most ", names.size(), " arguments, ", positional.size(), " given"));
  present_.assign(names.size(), false);
  for (std::size_t i = 0; i < positional.size(); ++i) present_[i] = true;
  positional.resize(names.size());
  for (auto& [name, value] : named) {
    std::size_t place = 0;
    while (place < names_.size() && names_[place] != name) ++place;
    if (place == names_.size())
      throw Fault(cat(callee, " has no argument '", base::printable(name, 40), "'"));
    if (present_[place]) throw Fault(cat(callee, " got two values for argument '", name, "'"));
    positional[place] = std::move(value);
    present_[place] = true;
  }
  named.clear();
  for (std::size_t i = 0; i < required; ++i)
    if (!present_[i]) throw Fault(cat(callee, " misses its argument '", names_[i], "'"));
}

void Arguments::only(std::string_view callee, std::size_t least, std::size_t most) {
  callee_ = callee;
  if (!named.empty()) throw Fault(cat(callee, " takes no keyword arguments"));
  if (positional.size() < least || positional.size() > most)
    throw Fault(cat(callee, " takes ", least, least == most ? "" : cat(" to ", most),
                    " arguments, ", positional.size(), " given"));
  present_.assign(most, false);
  for (std::size_t i = 0; i < positional.size(); ++i) present_[i] = true;
  positional.resize(most);
}

const Value* Arguments::get(std::size_t index) const {
  return index < present_.size() && present_[index] ? &positional[index] : nullptr;
}

bool Arguments::given(std::size_t index) const {
  const Value* value = get(index);
  return value != nullptr && !is_none(*value);
}

Value Arguments::get_or(std::size_t index, Value otherwise) const {
  const Value* value = get(index);
  return value != nullptr ? *value : otherwise;
}

std::int64_t need_integer(const Value& value, std::string_view callee) {
  std::int64_t out = 0;
  if (!as_integer(value, out))
    throw Fault(
        cat(callee, ": '", type_name(value), "' object cannot be interpreted as an integer"));
  return out;
}

std::int64_t Arguments::integer_or(std::size_t index, std::int64_t otherwise) const {
  return given(index) ? need_integer(*get(index), callee_) : otherwise;
}

const Text* Arguments::text(std::size_t index) const {
  if (!given(index)) return nullptr;
  const Text* out = as_text(*get(index));
  if (out == nullptr) throw Fault(cat(callee_, ": expected str, got ", type_name(*get(index))));
  return out;
}

const Value* Arguments::find(std::string_view name) const {
  for (const auto& entry : named)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

Value Arguments::take(std::string_view name, Value otherwise) {
  for (std::size_t i = 0; i < named.size(); ++i)
    if (named[i].first == name) {
      otherwise = std::move(named[i].second);
      named.erase(named.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  return otherwise;
}

}  // namespace quern::jinja
