// A foreign checkpoint, read only: names, types, shapes and bytes of its tensors, its
// configuration, and where its tokenizer lies. Knows file formats (safetensors, GGUF), not model
// families.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace quern::checkpoint {

// Types of foreign tensors. GGUF's block types carry their GGUF number + 1000.
enum class DType : std::uint32_t {
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  f64,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  f8_e8m0,      // a power of two: scales
  packed = 999,  // codes, scales and zero points in tensors of their own (packed_tensor.hpp)
  gguf_q4_0 = 1002,
  gguf_q4_1 = 1003,
  gguf_q5_0 = 1006,
  gguf_q5_1 = 1007,
  gguf_q8_0 = 1008,
  gguf_q8_1 = 1009,
  gguf_q2_k = 1010,
  gguf_q3_k = 1011,
  gguf_q4_k = 1012,
  gguf_q5_k = 1013,
  gguf_q6_k = 1014,
  gguf_q8_k = 1015,
  gguf_iq2_xxs = 1016,
  gguf_iq2_xs = 1017,
  gguf_iq3_xxs = 1018,
  gguf_iq1_s = 1019,
  gguf_iq4_nl = 1020,
  gguf_iq3_s = 1021,
  gguf_iq2_s = 1022,
  gguf_iq4_xs = 1023,
  gguf_iq1_m = 1029,
  gguf_tq1_0 = 1034,
  gguf_tq2_0 = 1035,
  gguf_mxfp4 = 1039,
};
std::string_view dtype_name(DType type);       // "BF16", "Q4_K"
std::uint64_t dtype_block_values(DType type);  // values per block (1 for plain types)
std::uint64_t dtype_block_bytes(DType type);

class PackedTensor;

// Values of a tensor that is more than an array of its type: joined from parts, or changed.
class TensorReader {
 public:
  virtual ~TensorReader() = default;
  virtual void read(std::uint64_t first, std::uint64_t count, float* out) const = 0;
  virtual const PackedTensor* packed() const { return nullptr; }  // its codes, if it has some
};

struct TensorPart {
  std::size_t file = 0;
  base::Bytes bytes;
};

struct SourceTensor {
  std::string name;
  DType type;
  // Outermost first, as in PyTorch (GGUF's order is reversed for you).
  std::vector<std::uint64_t> shape;
  std::uint64_t values = 0;  // product of shape
  std::size_t file = 0;      // index of the file it lies in
  base::Bytes bytes;         // in the mapped file; of the codes, when it is packed
  std::vector<TensorPart> parts{};                 // the other bytes it is made of
  std::shared_ptr<const TensorReader> reader{};  // instead of the bytes, when there is one

  const PackedTensor* packed() const { return reader == nullptr ? nullptr : reader->packed(); }
};

// `count` values from value `first` (both multiples of dtype_block_values) as float32, exactly as
// the reference dequantizes them. Integer types convert their value. f64 rounds.
void to_float(const SourceTensor& tensor, std::uint64_t first, std::uint64_t count, float* out);
void to_float(DType type, base::Bytes blocks, std::uint64_t count, float* out);

enum class SourceKind { hugging_face, gguf };

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  virtual SourceKind kind() const = 0;
  // Configuration as JSON text: config.json, or the GGUF metadata as one flat object
  // {"general.architecture": "x", "x.block_count": 30, ...} without arrays longer than 1,024.
  virtual const std::string& config_json() const = 0;
  virtual std::string_view where() const = 0;  // path, for error lines
  // In the order of their files, and in each file in the order of their bytes.
  virtual const std::vector<SourceTensor>& tensors() const = 0;
  virtual const SourceTensor* find(std::string_view name) const = 0;
  virtual const std::vector<std::string>& notices() const = 0;  // for the user: files ignored, ...

  // Hugging Face: text of a small file beside config.json ("tokenizer.json", ...), "" when it does
  // not exist. GGUF: always "".
  virtual std::string side_file(std::string_view name) const = 0;

  // An input error when a weight file or the configuration is no longer the file that was opened
  // (size, modification time, inode). Call once everything is read.
  virtual void check_unchanged() const = 0;

  // The pages of a tensor are not needed for now: keeps the memory of a long conversion bounded. The
  // bytes stay readable.
  virtual void release(const SourceTensor& tensor) const { static_cast<void>(tensor); }
};

// Opens a Hugging Face directory or a GGUF file (the first of a split or an unsplit one). Rejects
// pickles. Every file is opened once and stays mapped.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace quern::checkpoint
