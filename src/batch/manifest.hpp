// What an output was made with: model, options, input. It lies beside the output as OUT.manifest (docs/BATCH.md), is
// written whole before the first answer, and is what a resumed run is compared with. Its second line says how far the
// output is known to be on the disk; it has a fixed width and is rewritten in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quern::batch {

struct Manifest {
  std::string model_name, model_hash;  // for people; of weights, contract and tokenizer
  std::string quern_version;           // for people, not compared
  std::vector<std::pair<std::string, std::string>> options;  // that change answers or their order, as they were given
  std::string format;                  // of the input
  std::uint64_t n_lines = 0, digest = 0;
  std::string now;                     // what templates take for the current time; a resumed run keeps it
};

struct SyncState {
  std::uint64_t synced_bytes = 0;  // of the output
  bool unsure = false;             // a sync failed after them: what follows is not to be trusted
};

std::string manifest_text(const Manifest& manifest, const SyncState& sync);
std::string sync_line(const SyncState& sync);  // of fixed width, with its line end
struct StoredManifest {
  Manifest manifest;
  SyncState sync;
  std::uint64_t sync_offset = 0;  // where sync_line() lies
};
// Input errors name the place.
StoredManifest parse_manifest(std::string_view text, std::string_view where);

// Input error "output was made with ..." for the first difference but for what a resumed run may have: more lines.
void check_same(const Manifest& stored, const Manifest& now, std::string_view where);

}  // namespace quern::batch
