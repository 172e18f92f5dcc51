#include "checkpoint/safetensors_header.hpp"

#include <unordered_set>

#include "base/json_reader.hpp"
#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

using base::cat;
using base::printable;
using base::reject;

constexpr std::size_t kMaxRank = 8;
constexpr std::string_view kMetadata = "__metadata__";

// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"key":
// "text"}} What may come next follows from place_ alone, so nesting never goes deeper than an
// entry's arrays.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::uint64_t header_offset, std::string_view where)
      : header_offset_(header_offset), where_(where) {}
  std::vector<HeaderEntry> take() { return std::move(entries_); }

  bool null() override { wrong_kind("null"); }
  bool boolean(bool) override { wrong_kind("true or false"); }
  bool number_integer(number_integer_t value) override { wrong_kind(cat(value)); }
  bool number_float(number_float_t, const string_t& text) override { wrong_kind(text); }
  bool binary(binary_t&) override { wrong_kind("binary"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool string(string_t& value) override;
  bool start_object(std::size_t) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override;

 private:
  enum class Place { outside, header, entry, numbers, metadata };
  enum class Field { none, dtype, shape, data_offsets };

  [[noreturn]] void wrong_kind(std::string_view got) const;
  // "model.safetensors: \"name\".dtype", for error lines
  std::string place() const;
  void finish_entry();

  std::uint64_t header_offset_;
  std::string where_;
  std::vector<HeaderEntry> entries_;
  std::unordered_set<std::string> names_;  // of tensors and __metadata__
  std::unordered_set<std::string> metadata_keys_;
  Place place_ = Place::outside;
  Field field_ = Field::none;
  bool in_metadata_next_ = false;
  unsigned seen_ = 0;                   // bit per Field of the current entry
  std::vector<std::uint64_t> numbers_;  // of the current array
};

std::string HeaderReader::place() const {
  if (place_ == Place::metadata || in_metadata_next_) return cat(where_, ": ", kMetadata);
  if (entries_.empty() || place_ == Place::outside) return where_;
  std::string text = cat(where_, ": tensor \"", printable(entries_.back().name, 100), "\"");
  if (field_ == Field::dtype) text += ".dtype";
  if (field_ == Field::shape) text += ".shape";
  if (field_ == Field::data_offsets) text += ".data_offsets";
  return text;
}

void HeaderReader::wrong_kind(std::string_view got) const {
  std::string_view expected = "an object";
  if (place_ == Place::metadata || field_ == Field::dtype) expected = "a string";
  if (place_ == Place::entry && (field_ == Field::shape || field_ == Field::data_offsets))
    expected = "an array";
  if (place_ == Place::numbers) expected = "an integer in [0, 2^64)";
  reject(place(), "wrong kind of value", printable(got, 40), expected);
}

bool HeaderReader::number_unsigned(number_unsigned_t value) {
  if (place_ != Place::numbers) wrong_kind(cat(value));
  const std::size_t limit = field_ == Field::shape ? kMaxRank : 2;
  if (numbers_.size() == limit) reject(place(), "too many numbers", "", cat("at most ", limit));
  numbers_.push_back(value);
  return true;
}

bool HeaderReader::string(string_t& value) {
  if (place_ == Place::metadata) return true;
  if (place_ != Place::entry || field_ != Field::dtype) wrong_kind(cat("\"", value, "\""));
  const DTypeInfo* info = find_safetensors_type(value);
  if (info == nullptr)
    reject(place(), "unknown dtype", cat("\"", printable(value, 40), "\""),
           safetensors_type_names());
  entries_.back().type = info->type;
  return true;
}

bool HeaderReader::start_object(std::size_t) {
  switch (place_) {
    case Place::outside:
      place_ = Place::header;
      return true;
    case Place::header:
      place_ = in_metadata_next_ ? Place::metadata : Place::entry;
      field_ = Field::none;
      seen_ = 0;
      return true;
    default:
      wrong_kind("an object");
  }
}

bool HeaderReader::key(string_t& name) {
  if (place_ == Place::header) {
    if (!names_.insert(name).second)
      reject(where_, cat("duplicate key \"", printable(name, 100), "\""));
    if (name.empty()) reject(where_, "a tensor's name is empty");
    in_metadata_next_ = name == kMetadata;
    if (!in_metadata_next_) entries_.push_back({std::move(name), {}, {}, 0, 0});
    return true;
  }
  if (place_ == Place::metadata) {
    if (!metadata_keys_.insert(name).second)
      reject(place(), cat("duplicate key \"", printable(name, 100), "\""));
    return true;
  }
  field_ = Field::none;
  if (name == "dtype") field_ = Field::dtype;
  if (name == "shape") field_ = Field::shape;
  if (name == "data_offsets") field_ = Field::data_offsets;
  if (field_ == Field::none)
    reject(place(), cat("unknown key \"", printable(name, 60), "\""), "",
           "dtype, shape, data_offsets");
  const unsigned bit = 1u << static_cast<unsigned>(field_);
  if ((seen_ & bit) != 0) reject(place(), cat("duplicate key \"", name, "\""));
  seen_ |= bit;
  return true;
}

void HeaderReader::finish_entry() {
  field_ = Field::none;
  static constexpr std::pair<Field, std::string_view> kRequired[] = {
      {Field::dtype, "dtype"}, {Field::shape, "shape"}, {Field::data_offsets, "data_offsets"}};
  for (const auto& [field, name] : kRequired)
    if ((seen_ & 1u << static_cast<unsigned>(field)) == 0)
      reject(place(), cat("key \"", name, "\" is missing"));
}

bool HeaderReader::end_object() {
  if (place_ == Place::entry) finish_entry();
  place_ = place_ == Place::header ? Place::outside : Place::header;
  in_metadata_next_ = false;
  return true;
}

bool HeaderReader::start_array(std::size_t) {
  if (place_ != Place::entry || (field_ != Field::shape && field_ != Field::data_offsets))
    wrong_kind("an array");
  place_ = Place::numbers;
  numbers_.clear();
  return true;
}

bool HeaderReader::end_array() {
  HeaderEntry& entry = entries_.back();
  if (field_ == Field::shape) {
    entry.shape = numbers_;
  } else {
    if (numbers_.size() != 2) reject(place(), "wrong count", cat(numbers_.size()), "2");
    entry.begin = numbers_[0];
    entry.end = numbers_[1];
  }
  place_ = Place::entry;
  return true;
}

bool HeaderReader::parse_error(std::size_t position, const std::string&,
                               const nlohmann::detail::exception& error) {
  std::string text = error.what();
  const std::size_t cut = text.find(": ");
  if (cut != std::string::npos) text = text.substr(cut + 2);
  reject(cat(where_, ":", header_offset_ + position),
         cat("header is not valid JSON: ", printable(text, 160)));
}

}  // namespace

std::vector<HeaderEntry> parse_safetensors_header(std::string_view text,
                                                  std::uint64_t header_offset,
                                                  std::string_view where) {
  // The parser would take a NUL for the end of the text.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos)
    reject(cat(where, ":", header_offset + nul), "NUL in the header");
  HeaderReader reader(header_offset, where);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace quern::checkpoint
