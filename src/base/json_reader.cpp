#include "base/json_reader.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/json_integers.hpp"
#include "base/strings.hpp"

namespace quern::base {

namespace {

constexpr int kMaxDepth = 128;

std::string byte_of(std::string_view where, std::size_t offset) {
  return where.empty() ? cat("byte ", offset) : cat(where, ":", offset);
}

// Builds the document from parse events, so that depth and duplicate keys are checked on the way.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view where, bool any_integers) : where_(where), any_integers_(any_integers) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(Json(nullptr)); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (any_integers_ && value > static_cast<number_unsigned_t>(INT64_MAX)) return add_digits(std::to_string(value));
    return add(Json(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (any_integers_ && text.find_first_of(".eE") == std::string::npos) return add_digits(text);
    if (!std::isfinite(value)) reject(where_, "number out of range", printable(text, 40));
    return add(Json(value));
  }
  bool string(string_t& value) override { return add(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    Level& level = levels_.back();
    // A sorted copy of the names: ordered_json's own look-up is linear.
    if (!level.names.insert(name).second)
      reject(where_, cat("duplicate key \"", printable(name, 80), "\""));
    level.key = name;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string text = error.what();
    const std::size_t cut = text.find(": ");
    if (cut != std::string::npos) text = text.substr(cut + 2);
    reject(byte_of(where_, position), cat("not valid JSON: ", printable(text, 160)));
  }

 private:
  struct Level {
    Json* value;
    std::set<std::string> names;
    std::string key;
  };

  Json* place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return &level.value->back();
    }
    auto& object = level.value->get_ref<Json::object_t&>();
    object.Container::emplace_back(level.key, std::move(value));
    return &object.back().second;
  }
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool add_digits(const std::string& digits) {
    constexpr std::size_t kMaxDigits = 4300;
    if (digits.size() > kMaxDigits) reject(where_, "number out of range", printable(digits, 40));
    return add(Json::binary({digits.begin(), digits.end()}));
  }
  bool open(Json value) {
    if (levels_.size() >= kMaxDepth) reject(where_, cat("nesting > ", kMaxDepth));
    Json* placed = place(std::move(value));
    levels_.push_back({placed, {}, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string where_;
  bool any_integers_;
  Json root_;
  std::vector<Level> levels_;
};

std::string kind_of(const Json& value) { return value.type_name(); }

}  // namespace

namespace {

Json parse(std::string_view text, std::string_view where, bool any_integers) {
  // The parser would take a NUL for the end of the text and ignore what follows.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) reject(byte_of(where, nul), "NUL byte in JSON");
  Builder builder(where, any_integers);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  return parse(text, where, false);
}

Json parse_json_of_any_integers(std::string_view text, std::string_view where) {
  return parse(text, where, true);
}

JsonObject::JsonObject(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {
  if (!value.is_object()) reject(path_, "wrong kind of value", kind_of(value), "object");
}

std::string JsonObject::path_of(std::string_view key) const {
  const bool top = path_.empty() || path_.back() == ':' || path_.find(": ") == std::string::npos;
  return top ? cat(path_, ": ", printable(key, 80)) : cat(path_, ".", printable(key, 80));
}

bool JsonObject::has(std::string_view key) const { return value_->find(key) != value_->end(); }

bool JsonObject::is_null(std::string_view key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_null();
}

const Json* JsonObject::find(std::string_view key) {
  const auto found = value_->find(key);
  if (found == value_->end()) return nullptr;
  used_.emplace_back(key);
  return &*found;
}

const Json& JsonObject::get(std::string_view key) {
  const Json* found = find(key);
  if (found == nullptr) reject(path_of(key), "key is missing");
  return *found;
}

bool JsonObject::get_bool(std::string_view key) {
  const Json& value = get(key);
  if (!value.is_boolean()) reject(path_of(key), "wrong kind of value", kind_of(value), "true or false");
  return value.get<bool>();
}

std::int64_t JsonObject::get_int(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json& value = get(key);
  const std::string range = cat("an integer in [", low, ", ", high, "]");
  if (!value.is_number_integer()) reject(path_of(key), "wrong value", printable(value.dump(), 40), range);
  const bool too_big = value.is_number_unsigned() &&
                       value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  const std::int64_t number = too_big ? 0 : value.get<std::int64_t>();
  if (too_big || number < low || number > high) reject(path_of(key), "out of range", value.dump(), range);
  return number;
}

std::size_t JsonObject::get_size(std::string_view key, std::size_t low, std::size_t high) {
  return static_cast<std::size_t>(
      get_int(key, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
}

double JsonObject::get_double(std::string_view key) {
  const Json& value = get(key);
  if (!value.is_number()) reject(path_of(key), "wrong kind of value", kind_of(value), "a number");
  const double number = value.get<double>();
  if (!std::isfinite(number)) reject(path_of(key), "number is not finite");
  return number;
}

std::string JsonObject::get_string(std::string_view key) {
  const Json& value = get(key);
  if (!value.is_string()) reject(path_of(key), "wrong kind of value", kind_of(value), "a string");
  return value.get<std::string>();
}

JsonObject JsonObject::get_object(std::string_view key) {
  const Json& value = get(key);
  return JsonObject(value, path_of(key));
}

void JsonObject::reject_word(std::string_view key, std::string_view word,
                             const std::vector<std::string_view>& known) const {
  const std::string near = nearest(word, known);
  reject(path_of(key), cat("unknown value \"", printable(word, 60), "\"",
                           near.empty() ? "" : cat(", did you mean \"", near, "\"?"),
                           "; known: ", join(known)));
}

void JsonObject::finish() const {
  const std::vector<std::string_view> known(used_.begin(), used_.end());
  for (const auto& [key, value] : value_->items()) {
    if (std::find(used_.begin(), used_.end(), key) != used_.end()) continue;
    const std::string near = nearest(key, known);
    reject(path_of(key), cat("unknown key", near.empty() ? "" : cat(", did you mean \"", near, "\"?"),
                             " (known: ", join(known), ")"));
  }
}

}  // namespace quern::base
