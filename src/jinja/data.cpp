#include "jinja/data.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json_integers.hpp"
#include "base/strings.hpp"

namespace quern::jinja {

namespace {

Data convert(const base::Json& json, std::string_view where, Trust trust) {
  Data out;
  if (json.is_boolean()) return Data::of(json.get<bool>());
  if (json.is_string()) return Data::of(json.get_ref<const std::string&>(), trust);
  if (json.is_binary()) {
    out.kind = Data::Kind::big;
    out.text.text.assign(json.get_binary().begin(), json.get_binary().end());
    return out;
  }
  if (json.is_number_integer()) return Data::of(json.get<std::int64_t>());
  if (json.is_number_float()) {
    out.kind = Data::Kind::real;
    out.real = json.get<double>();
  } else if (json.is_array()) {
    out.kind = Data::Kind::list;
    for (const base::Json& item : json) out.items.push_back(convert(item, where, trust));
  } else if (json.is_object()) {
    out.kind = Data::Kind::object;
    for (const auto& [key, value] : json.items())
      out.members.emplace_back(marked(key, trust), convert(value, where, trust));
  }
  return out;
}

}  // namespace

base::MarkedText marked(std::string text, Trust trust) {
  base::MarkedText out{std::move(text), {}};
  if (trust == Trust::untrusted && !out.text.empty()) out.untrusted.push_back({0, out.text.size()});
  return out;
}

Data Data::of(bool value) {
  Data out;
  out.kind = Kind::boolean;
  out.boolean = value;
  return out;
}

Data Data::of(std::int64_t value) {
  Data out;
  out.kind = Kind::integer;
  out.integer = value;
  return out;
}

Data Data::of(base::MarkedText value) {
  Data out;
  out.kind = Kind::text;
  out.text = std::move(value);
  return out;
}

Data Data::of(std::vector<Data> items) {
  Data out;
  out.kind = Kind::list;
  out.items = std::move(items);
  return out;
}

Data Data::parse(std::string_view json, std::string_view where, Trust trust) {
  return convert(base::parse_json_of_any_integers(json, where), where, trust);
}

const Data* Data::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.first.text == key) return &member.second;
  return nullptr;
}

void Data::set(std::string_view key, Data value) {
  kind = Kind::object;
  for (Member& member : members)
    if (member.first.text == key) {
      member.second = std::move(value);
      return;
    }
  members.emplace_back(marked(std::string(key), Trust::trusted), std::move(value));
}

void Data::erase(std::string_view key) {
  std::erase_if(members, [&](const Member& member) { return member.first.text == key; });
}

}  // namespace quern::jinja
