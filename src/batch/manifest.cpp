#include "batch/manifest.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/json_reader.hpp"
#include "base/strings.hpp"

namespace quern::batch {

namespace {

constexpr int kVersion = 1;
constexpr std::size_t kDigits = 20;  // of the largest count
constexpr std::string_view kSynced = "\"synced_bytes\": ", kUnsure = "\"unsure\": ", kAgain = "\"again\": ";

std::string padded(std::uint64_t value) {
  const std::string digits = std::to_string(value);
  return std::string(kDigits - digits.size(), ' ') + digits;
}

std::uint64_t count(base::JsonObject& object, std::string_view key) { return object.get_size(key, 0, INT64_MAX); }

std::string hex(std::uint64_t value) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

[[noreturn]] void differs(std::string_view where, const std::string& what, const std::string& stored,
                          const std::string& now) {
  const auto said = [](const std::string& text) { return text.empty() ? std::string("none") : base::printable(text, 60); };
  base::reject(where, base::cat("output was made with ", what, " ", said(stored), ", this run has ", said(now)), {},
               "the same (or --overwrite)");
}

std::string option_value(const Manifest& manifest, const std::string& name) {
  const auto found = std::find_if(manifest.options.begin(), manifest.options.end(),
                                  [&](const auto& option) { return option.first == name; });
  return found == manifest.options.end() ? std::string() : found->second;
}

// The count behind a key of the second line; none where a power failure tore it: beginning of the new, end of the old
// digits, such as "6 0".
std::optional<std::uint64_t> padded_count(std::string_view line, std::string_view key) {
  std::string_view digits = line.substr(line.find(key) + key.size(), kDigits);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

SyncState parse_sync(std::string_view line, std::string_view where) {
  const std::string shape = sync_line({});
  const auto is_digit = [](char c) { return c == ' ' || (c >= '0' && c <= '9'); };
  const bool same = std::equal(line.begin(), line.end(), shape.begin(), shape.end(),
                               [&](char a, char b) { return is_digit(b) ? is_digit(a) : a == b; });
  if (!same) base::reject(where, "is no manifest of a batch: its second line does not say how far the output is synced");
  const auto synced = padded_count(line, kSynced), again = padded_count(line, kAgain);
  if (!synced || synced != again || *synced > INT64_MAX) return {};  // torn: nothing is known to be synced
  return {*synced, line[line.find(kUnsure) + kUnsure.size()] == '1'};
}

}  // namespace

std::string sync_line(const SyncState& sync) {
  return base::cat("{", kSynced, padded(sync.synced_bytes), ", ", kUnsure, sync.unsure ? "1" : "0", ", ", kAgain,
                   padded(sync.synced_bytes), "}\n");
}

std::string manifest_text(const Manifest& manifest, const SyncState& sync) {
  base::Json options = base::Json::object();
  for (const auto& [name, value] : manifest.options) options[name] = value;
  const base::Json json = {{"quern_batch", kVersion},
                           {"quern", manifest.quern_version},
                           {"model", {{"name", manifest.model_name}, {"hash", manifest.model_hash}}},
                           {"options", options},
                           {"input",
                            {{"format", manifest.format},
                             {"lines", manifest.n_lines},
                             {"digest", hex(manifest.digest)}}},
                           {"now", manifest.now}};
  return json.dump(-1, ' ', false, base::Json::error_handler_t::replace) + "\n" + sync_line(sync);
}

StoredManifest parse_manifest(std::string_view text, std::string_view where) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) base::reject(where, "is no manifest of a batch: no second line");
  StoredManifest stored;
  Manifest& m = stored.manifest;
  const base::Json json = base::parse_json(text.substr(0, end), where);
  base::JsonObject root(json, base::cat(where, ": "));
  root.get_int("quern_batch", kVersion, kVersion);
  m.quern_version = root.get_string("quern");
  base::JsonObject model = root.get_object("model");
  m.model_name = model.get_string("name");
  m.model_hash = model.get_string("hash");
  const base::Json& options = root.get("options");
  if (!options.is_object()) base::reject(where, "options are no object");
  for (const auto& [name, value] : options.items()) {
    if (!value.is_string()) base::reject(where, "an option's value is no string");
    m.options.emplace_back(name, value.get<std::string>());
  }
  base::JsonObject input = root.get_object("input");
  m.format = input.get_string("format");
  m.n_lines = count(input, "lines");
  const std::string digest = input.get_string("digest");
  if (digest.size() != 16 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
    base::reject(where, "the input's digest is not 16 hexadecimal digits");
  m.digest = std::stoull(digest, nullptr, 16);
  m.now = root.get_string("now");
  stored.sync_offset = end + 1;
  stored.sync = parse_sync(text.substr(end + 1), where);
  return stored;
}

void check_same(const Manifest& stored, const Manifest& now, std::string_view where) {
  if (stored.model_hash != now.model_hash)
    differs(where, "the model", base::cat(stored.model_name, " ", stored.model_hash),
            base::cat(now.model_name, " ", now.model_hash));
  for (const Manifest* one : {&stored, &now})
    for (const auto& [name, value] : one->options)
      if (option_value(stored, name) != option_value(now, name))
        differs(where, name, option_value(stored, name), option_value(now, name));
  if (stored.format != now.format) differs(where, "input format", stored.format, now.format);
  if (now.n_lines < stored.n_lines)
    differs(where, "an input of so many lines:", std::to_string(stored.n_lines), std::to_string(now.n_lines));
  if (stored.digest != now.digest)
    base::reject(where, "output was made with another input: its lines changed", {},
                 "the same lines (more of them may follow), or --overwrite");
}

}  // namespace quern::batch
