#include "batch/line_index.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/strings.hpp"

namespace quern::batch {

namespace {

// Two lines really have one custom_id, not only one hash of it.
void reject_if_twice(const InputFile& file, InputFormat format, std::uint64_t hash) {
  LineReader reader(file);
  Line line;
  std::vector<std::pair<std::uint64_t, std::string>> seen;
  while (reader.next(line)) {
    LineIdentity identity = identify(line, format);
    if (!identity.custom_id || base::xxh3(base::as_bytes(*identity.custom_id)) != hash) continue;
    for (const auto& [number, id] : seen)
      if (id == *identity.custom_id)
        base::reject(base::cat(file.name(), ":", line.number),
                     base::cat("custom_id \"", base::printable(id, 80), "\" is that of line ", number, " too"));
    seen.emplace_back(line.number, std::move(*identity.custom_id));
  }
}

}  // namespace

LineIndex::LineIndex(const InputFile& file, InputFormat format) {
  std::vector<std::uint64_t> ids;  // hashes of custom_ids
  LineReader reader(file);
  Line line;
  while (reader.next(line)) {
    const LineIdentity identity = identify(line, format);
    keys_.push_back(identity.key);
    if (identity.custom_id) ids.push_back(base::xxh3(base::as_bytes(*identity.custom_id)));
  }
  std::sort(ids.begin(), ids.end());
  for (auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end();
       twice = std::adjacent_find(twice + 1, ids.end()))
    reject_if_twice(file, format, *twice);
  done_.resize(keys_.size());
}

std::uint64_t LineIndex::digest(std::size_t n) const {
  return base::xxh3(std::as_bytes(std::span(keys_).first(n)));
}

}  // namespace quern::batch
