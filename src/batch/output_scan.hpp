// The lines that an output holds when a run is resumed: whose answers they are, and where a torn end begins. Nothing
// is changed here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "batch/line_index.hpp"
#include "batch/manifest.hpp"

namespace quern::batch {

struct OutputScan {
  std::uint64_t good_bytes = 0;  // whole lines of this input
  std::uint64_t torn_bytes = 0;  // behind them, to be cut off
  std::size_t n_done = 0, n_failed = 0;  // lines; the failed ones are not among the done
  bool unsure = false;           // whole lines were counted as torn: they may never have reached the disk
};

// Marks what is done in `index`. Torn: a last line without its end; from where a sync failed; behind what was synced
// also lines with NUL bytes (pages that a power failure lost). Any other line that is no answer to a line of the index,
// is there twice or (ordered) out of order is an input error that names it.
OutputScan scan_output(int descriptor, const std::string& name, const SyncState& sync, bool ordered, LineIndex& index);

}  // namespace quern::batch
