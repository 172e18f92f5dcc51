// AWQ, layout "gemm": X.qweight i32 [in, out / 8], X.qzeros i32 [groups, out / 8], X.scales
// [groups, out]. The nibble at bits 4k of a word belongs to output 8c + {0, 2, 4, 6, 1, 3, 5, 7}[k].
#include "checkpoint/packed_parts.hpp"
#include "checkpoint/packed_words.hpp"

namespace quern::checkpoint {

namespace {

// Where output 8c + j lies in its word.
constexpr unsigned kShift[8] = {0, 16, 4, 20, 8, 24, 12, 28};

class AwqTensor : public PackedTensor {
 public:
  AwqTensor(PackedShape shape, const SourceTensor& words, const SourceTensor& zeros,
            const SourceTensor& scales)
      : PackedTensor(std::move(shape)), words_(words.bytes), zeros_(zeros.bytes), scales_(scales) {}

  void codes(std::uint64_t row, std::uint8_t* out) const override {
    for (std::uint64_t k = 0; k < shape().columns; ++k)
      out[k] = static_cast<std::uint8_t>(nibble(words_, k, row));
  }
  void scales(std::uint64_t row, float* out) const override {
    for (std::uint64_t g = 0; g < n_groups(); ++g) out[g] = float_at(scales_, g * shape().rows + row);
  }
  void zeros(std::uint64_t row, std::int16_t* out) const override {
    for (std::uint64_t g = 0; g < n_groups(); ++g)
      out[g] = static_cast<std::int16_t>(nibble(zeros_, g, row));
  }

 private:
  unsigned nibble(base::Bytes array, std::uint64_t line, std::uint64_t output) const {
    const PackedWords words{array, 1, line * (shape().rows / 8)};
    return words.word(output / 8) >> kShift[output % 8] & 15u;
  }
  base::Bytes words_, zeros_;
  SourceTensor scales_;
};

constexpr std::string_view kMain = ".qweight";

}  // namespace

std::optional<SourceTensor> join_awq(PackedParts& parts, const SourceTensor& main) {
  if (parts.config().method != "awq" || !main.name.ends_with(kMain)) return std::nullopt;
  const std::string module = main.name.substr(0, main.name.size() - kMain.size());
  parts.take(main.name);
  const SourceTensor& qzeros = parts.need(module + ".qzeros", main.name);
  const SourceTensor& scales = parts.need(module + ".scales", main.name);
  expect_type(parts, main, {DType::i32});
  expect_type(parts, qzeros, {DType::i32});
  expect_type(parts, scales, {DType::f16, DType::bf16, DType::f32});
  if (main.shape.size() != 2 || main.values == 0 || scales.shape.size() != 2)
    base::reject(parts.place(main.name), "shapes of codes and scales",
                 base::cat(shape_text(main.shape), " and ", shape_text(scales.shape)),
                 "[in, out / 8] and [groups, out]");
  const std::uint64_t columns = main.shape[0], out = main.shape[1] * 8, n_groups = scales.shape[0];
  expect_shape(parts, scales, {n_groups, out});
  expect_shape(parts, qzeros, {n_groups, out / 8});
  const std::uint64_t group = group_of(parts, scales, columns, n_groups);
  const std::string name = base::cat("AWQ int4, ", group_name(group, columns));
  auto reader = std::make_shared<AwqTensor>(PackedShape{CodeKind::int4, out, columns, group, name},
                                            main, qzeros, scales);
  return joined(module + ".weight", {out, columns}, std::move(reader), main, {&qzeros, &scales});
}

}  // namespace quern::checkpoint
