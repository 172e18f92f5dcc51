// Reading the members of one JSON object that a user wrote, null as absent; everything wrong is an ItemError that
// names the member. Shared by the readers of request.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_reader.hpp"
#include "batch/item_error.hpp"

namespace quern::batch {

class Fields {
 public:
  // `where` names the object in messages: "body". Input errors for what is no object.
  Fields(const base::Json& object, std::string where);

  bool has(std::string_view key) const { return object_.has(key); }
  const base::Json* find(std::string_view key) { return object_.find(key); }
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::size_t> count(std::string_view key, std::size_t low, std::size_t high);
  std::optional<bool> boolean(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  // A string or a list of strings; of at most `most`.
  std::vector<std::string> texts(std::string_view key, std::size_t most);
  std::vector<std::int32_t> ids(std::string_view key);

  // Taken, whatever it says: it has no effect on an answer of ours.
  void ignore(std::initializer_list<std::string_view> keys);
  // Absent, or exactly this; anything else would change the answer in a way that is not there.
  void only(std::string_view key, const base::Json& value, std::string_view why);
  // Members that nobody took are unsupported: an ItemError that names the first.
  void finish();

  [[noreturn]] void wrong(std::string_view key, std::string_view what) const;
  [[noreturn]] void unsupported(std::string_view key, std::string_view why) const;
  const std::string& where() const { return where_; }
  const base::Json& json() const { return json_; }

 private:
  base::Json json_;  // without its nulls
  std::string where_;
  base::JsonObject object_;
};

std::int32_t token_id_of(const base::Json& value, const std::string& where);

}  // namespace quern::batch
