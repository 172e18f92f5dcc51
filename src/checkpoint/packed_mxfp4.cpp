// MXFP4 of Hugging Face: *_blocks u8 [..., out, in/32, 16], *_scales u8 [..., out, in/32]. Byte k of a
// block holds column 2k in its low nibble and 2k + 1 in its high one.
#include <limits>

#include "checkpoint/dequant.hpp"
#include "checkpoint/packed_parts.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::uint64_t kBlock = 32;
constexpr std::uint64_t kBlockBytes = 16;

class Mxfp4Tensor : public PackedTensor {
 public:
  Mxfp4Tensor(PackedShape shape, base::Bytes blocks, base::Bytes scales)
      : PackedTensor(std::move(shape)), blocks_(blocks), scales_(scales) {}

  void codes(std::uint64_t row, std::uint8_t* out) const override {
    const std::uint64_t bytes = n_groups() * kBlockBytes;
    const std::byte* from = blocks_.data() + row * bytes;
    for (std::uint64_t i = 0; i < bytes; ++i) {
      out[2 * i] = static_cast<std::uint8_t>(byte_at(from, i) & 15u);
      out[2 * i + 1] = static_cast<std::uint8_t>(byte_at(from, i) >> 4);
    }
  }
  void scales(std::uint64_t row, float* out) const override {
    const std::byte* from = scales_.data() + row * n_groups();
    for (std::uint64_t g = 0; g < n_groups(); ++g) {
      const unsigned exponent = byte_at(from, g);  // 255 is no number
      out[g] = exponent == 255 ? std::numeric_limits<float>::quiet_NaN() : half_of_e8m0(exponent);
    }
  }

 private:
  base::Bytes blocks_, scales_;
};

constexpr std::string_view kMain = "_blocks";

}  // namespace

std::optional<SourceTensor> join_mxfp4(PackedParts& parts, const SourceTensor& main) {
  if (!main.name.ends_with(kMain) || main.type != DType::u8) return std::nullopt;
  const std::string name = main.name.substr(0, main.name.size() - kMain.size());
  const bool said = parts.config().method == "mxfp4";
  if (!said && parts.find(name + "_scales") == nullptr) return std::nullopt;
  parts.take(main.name);
  const SourceTensor& scales = parts.need(name + "_scales", main.name);
  expect_type(parts, scales, {DType::u8, DType::f8_e8m0});
  if (main.shape.size() < 3 || main.shape.size() > 4 || main.shape.back() != kBlockBytes)
    base::reject(parts.place(main.name), "shape of MXFP4 blocks", shape_text(main.shape),
                 "[..., out, in / 32, 16]");
  std::vector<std::uint64_t> shape = main.shape;
  shape.pop_back();
  expect_shape(parts, scales, shape);
  shape.back() *= kBlock;
  if (main.values == 0) base::reject(parts.place(main.name), "the tensor is empty");
  const std::uint64_t columns = shape.back();
  auto reader = std::make_shared<Mxfp4Tensor>(
      PackedShape{CodeKind::e2m1, scales.values * kBlock / columns, columns, kBlock, "MXFP4"},
      main.bytes, scales.bytes);
  return joined(name, std::move(shape), std::move(reader), main, {&scales});
}

}  // namespace quern::checkpoint
