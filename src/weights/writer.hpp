// Writes model.quern section by section, streaming: memory does not grow with the model.
// The caller puts the file in place (base::OutputDirectory).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "base/bytes.hpp"
#include "quant/format.hpp"

namespace quern::weights {

class WeightWriter {
 public:
  explicit WeightWriter(const std::filesystem::path& path);
  ~WeightWriter();

  // Opens a tensor section; then append() its tensor_bytes() in order; then end_tensor().
  void begin_tensor(std::string_view name, const quant::FormatTraits& format, std::size_t rows,
                    std::size_t columns);
  void append(base::Bytes bytes);
  void end_tensor();

  void write_tokenizer(base::Bytes tables);

  // The contract, the directory and the header; syncs. Returns the file's checksum of checksums,
  // which model.json records under "weights". Same calls, same bytes.
  std::uint64_t finish(std::string_view contract_json, std::uint64_t contract_hash);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::weights
