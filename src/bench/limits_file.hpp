// The limits that `quern bench --limits` measured on this host, kept for later runs: $XDG_CACHE_HOME/quern/limits.json,
// else ~/.cache/quern/limits.json. One entry per CPU, instruction set and number of threads.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/json_reader.hpp"
#include "bench/limits.hpp"

namespace quern::bench {

// Empty path: the environment names no place.
std::filesystem::path limits_path();

// None when there is no file; an unreadable or damaged one is an input error.
std::vector<Limits> read_limits_file(const std::filesystem::path& path);
const Limits* find_limits(const std::vector<Limits>& all, const std::string& cpu, const std::string& isa,
                          std::size_t n_threads);
// One entry, as limits_json() of report.hpp writes it.
Limits read_limits(base::JsonObject object);
// Replaces the entry of the same key; the file appears whole or not at all.
void store_limits(const std::filesystem::path& path, const Limits& limits);

}  // namespace quern::bench
