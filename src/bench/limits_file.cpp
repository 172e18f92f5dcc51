#include "bench/limits_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"
#include "bench/report.hpp"

namespace quern::bench {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxThreads = 1 << 20;

bool same_key(const Limits& a, const std::string& cpu, const std::string& isa, std::size_t n_threads) {
  return a.cpu == cpu && a.isa == isa && a.n_threads == n_threads;
}

}  // namespace

Limits read_limits(base::JsonObject object) {
  Limits limits;
  limits.cpu = object.get_string("cpu");
  limits.isa = object.get_string("isa");
  limits.n_threads = object.get_size("n_threads", 1, kMaxThreads);
  limits.read_bytes_per_s = object.get_double("read_bytes_per_s");
  limits.int8_ops_per_s = object.get_double("int8_ops_per_s");
  limits.bf16_ops_per_s = object.get_double("bf16_ops_per_s");
  limits.f32_ops_per_s = object.get_double("f32_ops_per_s");
  object.finish();
  return limits;
}

std::filesystem::path limits_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "quern" / "limits.json";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache" / "quern" / "limits.json";
}

std::vector<Limits> read_limits_file(const std::filesystem::path& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return {};
  const std::string where = base::printable(path.string());
  const base::Json list = base::parse_json(base::read_text_file(path, kMaxFileBytes), where);
  if (!list.is_array()) base::reject(where, "not a list of limits", list.type_name(), "an array");
  std::vector<Limits> all;
  for (std::size_t i = 0; i < list.size(); ++i) all.push_back(read_limits(base::JsonObject(list[i], base::cat(where, ": ", i))));
  return all;
}

const Limits* find_limits(const std::vector<Limits>& all, const std::string& cpu, const std::string& isa,
                          std::size_t n_threads) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Limits& l) { return same_key(l, cpu, isa, n_threads); });
  return found == all.end() ? nullptr : &*found;
}

void store_limits(const std::filesystem::path& path, const Limits& limits) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) base::environment_error(base::printable(path.parent_path().string()), "cannot make the directory", error.value());
  std::vector<Limits> all = read_limits_file(path);
  std::erase_if(all, [&](const Limits& l) { return same_key(l, limits.cpu, limits.isa, limits.n_threads); });
  all.push_back(limits);
  base::Json list = base::Json::array();
  for (const Limits& one : all) list.push_back(limits_json(one));
  base::write_file_atomically(path, list.dump(2) + "\n");
}

}  // namespace quern::bench
