// pack-quantized of compressed-tensors: X.weight_packed i32 [out, ceil(in / (32 / bits))], low first,
// codes + 2^(bits - 1); X.weight_scale [out, groups]; X.weight_shape [2]; X.weight_zero_point, where
// there is one, packed in the same way along the outputs [ceil(out / (32 / bits)), groups], or i8
// [out, groups]; X.weight_g_idx [in], the group of each input.
#include "checkpoint/packed_parts.hpp"
#include "checkpoint/packed_words.hpp"

namespace quern::checkpoint {

namespace {

struct IntegerParts {
  base::Bytes words;
  std::uint64_t row_words, bits;
  std::optional<SourceTensor> zeros{};
  std::vector<std::uint32_t> order{};
};

class PackedIntegers : public PackedTensor {
 public:
  PackedIntegers(PackedShape shape, const SourceTensor& scales, IntegerParts parts)
      : PackedTensor(std::move(shape)), parts_(std::move(parts)), scales_(scales) {}

  void codes(std::uint64_t row, std::uint8_t* out) const override {
    const PackedWords words{parts_.words, 1, row * parts_.row_words};
    const std::uint64_t bits = parts_.bits;
    const unsigned flip = bits == 8 ? 0x80 : 0;  // u - 128 as an int8
    for (std::uint64_t k = 0; k < shape().columns; ++k)
      out[k] = static_cast<std::uint8_t>(words.bits(k * bits, bits) ^ flip);
  }
  void scales(std::uint64_t row, float* out) const override {
    for (std::uint64_t g = 0; g < n_groups(); ++g) out[g] = float_at(scales_, row * n_groups() + g);
  }
  void zeros(std::uint64_t row, std::int16_t* out) const override {
    const int middle = parts_.bits == 8 ? 0 : 8;  // int4 codes are unsigned here
    for (std::uint64_t g = 0; g < n_groups(); ++g)
      out[g] = static_cast<std::int16_t>(zero(row, g) + middle);
  }
  const std::uint32_t* group_of_column() const override {
    return parts_.order.empty() ? nullptr : parts_.order.data();
  }

 private:
  int zero(std::uint64_t row, std::uint64_t group) const {  // signed
    if (!parts_.zeros) return 0;
    if (parts_.zeros->type == DType::i8)
      return static_cast<int>(integer_at(*parts_.zeros, row * n_groups() + group));
    const PackedWords words{parts_.zeros->bytes, n_groups(), group};
    return static_cast<int>(words.bits(row * parts_.bits, parts_.bits)) - (1 << (parts_.bits - 1));
  }
  IntegerParts parts_;
  SourceTensor scales_;
};

constexpr std::string_view kMain = ".weight_packed";

std::uint64_t side(const PackedParts& parts, const SourceTensor& shape, std::uint64_t index) {
  const std::int64_t n = integer_at(shape, index);
  if (n < 1 || n > (std::int64_t{1} << 32))
    base::reject(parts.place(shape.name), "size of a quantized matrix", base::cat(n), "1 to 2^32");
  return static_cast<std::uint64_t>(n);
}

// Bits of a code, from the number of words of a row.
std::uint64_t bits_of(const PackedParts& parts, const SourceTensor& main, std::uint64_t columns) {
  const std::uint64_t said = parts.config().bits;
  for (const std::uint64_t bits : {std::uint64_t{4}, std::uint64_t{8}})
    if ((said == 0 || said == bits) && main.shape[1] == divide_up(columns, 32 / bits)) return bits;
  base::reject(parts.place(main.name), base::cat("words of ", columns, " codes"),
               base::cat(main.shape[1]),
               base::cat(divide_up(columns, 8), " of 4 bits or ", divide_up(columns, 4), " of 8 bits",
                         said == 0 ? "" : base::cat("; the configuration says ", said, " bits")));
}

void check_zeros(const PackedParts& parts, const SourceTensor& zeros, std::uint64_t out,
                 std::uint64_t bits, std::uint64_t n_groups) {
  expect_type(parts, zeros, {DType::i32, DType::i8});
  const bool plain = zeros.type == DType::i8;
  expect_shape(parts, zeros, {plain ? out : divide_up(out, 32 / bits), n_groups});
}

}  // namespace

std::optional<SourceTensor> join_pack_quantized(PackedParts& parts, const SourceTensor& main) {
  if (!main.name.ends_with(kMain) || main.type != DType::i32) return std::nullopt;
  const std::string module = main.name.substr(0, main.name.size() - kMain.size());
  parts.take(main.name);
  const SourceTensor& scales = parts.need(module + ".weight_scale", main.name);
  const SourceTensor& shape = parts.need(module + ".weight_shape", main.name);
  const SourceTensor* zeros = parts.take(module + ".weight_zero_point");
  const SourceTensor* g_idx = parts.take(module + ".weight_g_idx");
  expect_type(parts, scales, {DType::f16, DType::bf16, DType::f32});
  expect_type(parts, shape, {DType::i32, DType::i64});
  expect_shape(parts, shape, {2});
  const std::uint64_t out = side(parts, shape, 0), columns = side(parts, shape, 1);
  if (main.shape.size() != 2 || main.shape[0] != out || scales.shape.size() != 2)
    base::reject(parts.place(main.name), "shapes of codes and scales",
                 base::cat(shape_text(main.shape), " and ", shape_text(scales.shape)),
                 base::cat("[", out, ", words] and [", out, ", groups]"));
  const std::uint64_t bits = bits_of(parts, main, columns), n_groups = scales.shape[1];
  expect_shape(parts, scales, {out, n_groups});
  const std::uint64_t group = group_of(parts, scales, columns, n_groups);
  IntegerParts all{.words = main.bytes, .row_words = main.shape[1], .bits = bits};
  if (zeros != nullptr) {
    check_zeros(parts, *zeros, out, bits, n_groups);
    all.zeros = *zeros;
  }
  if (g_idx != nullptr) all.order = column_order(parts, *g_idx, columns, group, n_groups);
  const std::string name = base::cat("packed int", bits, ", ", group_name(group, columns),
                                     all.order.empty() ? "" : " in activation order");
  const CodeKind kind = bits == 8 ? CodeKind::int8 : CodeKind::int4;
  auto reader = std::make_shared<PackedIntegers>(PackedShape{kind, out, columns, group, name},
                                                 scales, std::move(all));
  return joined(module + ".weight", {out, columns}, std::move(reader), main,
                {&scales, &shape, zeros, g_idx});
}

}  // namespace quern::checkpoint
