// GPTQ: X.qweight i32 [in * bits / 32, out], consecutive inputs in a word, low first; X.qzeros i32
// [groups, out * bits / 32], consecutive outputs in a word; X.scales [groups, out]; X.g_idx i32 [in],
// the group of each input (activation order; absent: input / group). The stored zero point of the
// first version is one too small.
#include "checkpoint/packed_parts.hpp"
#include "checkpoint/packed_words.hpp"

namespace quern::checkpoint {

namespace {

struct GptqParts {
  base::Bytes words, zeros;
  const SourceTensor* scales;
  std::uint64_t out, bits;
  int zero_offset;  // 1 in the first version
  std::vector<std::uint32_t> order{};
};

class GptqTensor : public PackedTensor {
 public:
  GptqTensor(PackedShape shape, GptqParts parts)
      : PackedTensor(std::move(shape)), parts_(std::move(parts)), scales_(*parts_.scales) {}

  void codes(std::uint64_t row, std::uint8_t* out) const override {
    const PackedWords words{parts_.words, parts_.out, row};
    const unsigned flip = shape().kind == CodeKind::int8 ? 0x80 : 0;  // u - 128 as an int8
    for (std::uint64_t k = 0; k < shape().columns; ++k)
      out[k] = static_cast<std::uint8_t>(words.bits(k * parts_.bits, parts_.bits) ^ flip);
  }
  void scales(std::uint64_t row, float* out) const override {
    for (std::uint64_t g = 0; g < n_groups(); ++g)
      out[g] = float_at(scales_, g * parts_.out + row);
  }
  void zeros(std::uint64_t row, std::int16_t* out) const override {
    const std::uint64_t row_words = parts_.out * parts_.bits / 32;
    const int base = shape().kind == CodeKind::int8 ? parts_.zero_offset - 128 : parts_.zero_offset;
    for (std::uint64_t g = 0; g < n_groups(); ++g) {
      const PackedWords words{parts_.zeros, 1, g * row_words};
      out[g] = static_cast<std::int16_t>(
          static_cast<int>(words.bits(row * parts_.bits, parts_.bits)) + base);
    }
  }
  const std::uint32_t* group_of_column() const override {
    return parts_.order.empty() ? nullptr : parts_.order.data();
  }

 private:
  GptqParts parts_;
  SourceTensor scales_;
};

constexpr std::string_view kMain = ".qweight";

// Bits of a code: what the zero points need for the outputs.
std::uint64_t bits_of(const PackedParts& parts, const SourceTensor& qzeros, std::uint64_t out) {
  const std::uint64_t bits = qzeros.shape.size() == 2 ? qzeros.shape[1] * 32 / out : 0;
  const bool known = bits == 2 || bits == 3 || bits == 4 || bits == 8;
  if (!known || qzeros.shape[1] * 32 != out * bits)
    base::reject(parts.place(qzeros.name), base::cat("shape of the zero points of ", out, " outputs"),
                 shape_text(qzeros.shape), "[groups, outputs * bits / 32] with 2, 3, 4 or 8 bits");
  if (parts.config().bits != 0 && parts.config().bits != bits)
    base::reject(parts.place(qzeros.name), "bits of a code", base::cat(bits),
                 base::cat(parts.config().bits, " by quantization_config"));
  return bits;
}

// Stored zero points of all ones. One more needs another bit: most implementations take 2^bits, old kernels
// of the tool that writes this format wrapped it to 0. Only the first version adds one.
std::uint64_t doubtful_zeros(const GptqParts& parts, std::uint64_t n_groups) {
  std::uint64_t n = 0;
  for (std::uint64_t g = 0; parts.zero_offset != 0 && g < n_groups; ++g) {
    const PackedWords words{parts.zeros, 1, g * (parts.out * parts.bits / 32)};
    for (std::uint64_t row = 0; row < parts.out; ++row)
      n += words.bits(row * parts.bits, parts.bits) == (1u << parts.bits) - 1;
  }
  return n;
}

}  // namespace

std::optional<SourceTensor> join_gptq(PackedParts& parts, const SourceTensor& main) {
  if (parts.config().method != "gptq" || !main.name.ends_with(kMain)) return std::nullopt;
  const std::string module = main.name.substr(0, main.name.size() - kMain.size());
  parts.take(main.name);
  const SourceTensor& qzeros = parts.need(module + ".qzeros", main.name);
  const SourceTensor& scales = parts.need(module + ".scales", main.name);
  const SourceTensor* g_idx = parts.take(module + ".g_idx");
  expect_type(parts, main, {DType::i32});
  expect_type(parts, qzeros, {DType::i32});
  expect_type(parts, scales, {DType::f16, DType::bf16, DType::f32});
  if (main.shape.size() != 2 || main.values == 0 || scales.shape.size() != 2)
    base::reject(parts.place(main.name), "shapes of codes and scales",
                 base::cat(shape_text(main.shape), " and ", shape_text(scales.shape)),
                 "[in * bits / 32, out] and [groups, out]");
  const std::uint64_t out = main.shape[1], n_groups = scales.shape[0];
  const std::uint64_t bits = bits_of(parts, qzeros, out);
  const std::uint64_t columns = main.shape[0] * 32 / bits;
  if (columns * bits != main.shape[0] * 32)
    base::reject(parts.place(main.name), "rows of packed codes", base::cat(main.shape[0]),
                 base::cat("inputs * ", bits, " / 32"));
  expect_shape(parts, scales, {n_groups, out});
  expect_shape(parts, qzeros, {n_groups, out * bits / 32});
  const std::uint64_t group = group_of(parts, scales, columns, n_groups);
  GptqParts all{.words = main.bytes, .zeros = qzeros.bytes, .scales = &scales, .out = out,
                .bits = bits, .zero_offset = parts.config().format == "gptq_v2" ? 0 : 1};
  parts.count_doubtful_zeros(doubtful_zeros(all, n_groups));
  if (g_idx != nullptr) all.order = column_order(parts, *g_idx, columns, group, n_groups);
  const std::string name = base::cat("GPTQ int", bits, ", ", group_name(group, columns),
                                     all.order.empty() ? "" : " in activation order");
  const CodeKind kind = bits == 8 ? CodeKind::int8 : CodeKind::int4;
  auto reader =
      std::make_shared<GptqTensor>(PackedShape{kind, out, columns, group, name}, std::move(all));
  return joined(module + ".weight", {out, columns}, std::move(reader), main,
                {&qzeros, &scales, g_idx});
}

}  // namespace quern::checkpoint
