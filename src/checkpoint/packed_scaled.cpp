// Matrices of 8-bit codes that lie as they are, with scales beside them: W i8 or F8 [..., out, in] and
// W_scale (compressed-tensors, fbgemm) or W_scale_inv (the other spelling; it multiplies all the same): one
// scale, one per row, per row and group of columns, or per block of rows and columns, whose last
// blocks may be partial. i8 may have W_zero_point.
#include <cstring>

#include "checkpoint/packed_parts.hpp"

namespace quern::checkpoint {

namespace {

// The scales as a grid over each matrix [out, in].
struct ScaleGrid {
  std::uint64_t rows = 1, columns = 1;  // scales of a matrix
  std::uint64_t block_rows = 0;         // rows of the matrix that share a scale
  std::uint64_t block_columns = 0;
  bool one = false;  // one scale for all matrices
};

class ScaledTensor : public PackedTensor {
 public:
  ScaledTensor(PackedShape shape, base::Bytes codes, std::uint64_t out, const ScaleGrid& grid)
      : PackedTensor(std::move(shape)), codes_(codes), out_(out), grid_(grid) {}
  void set_scales(const SourceTensor& scales) { scales_ = scales; }
  void set_zeros(const SourceTensor& zeros) { zeros_ = zeros; }

  void codes(std::uint64_t row, std::uint8_t* out) const override {
    std::memcpy(out, codes_.data() + row * shape().columns, shape().columns);
  }
  void scales(std::uint64_t row, float* out) const override {
    for (std::uint64_t g = 0; g < n_groups(); ++g)
      out[g] = scales_ ? float_at(*scales_, place(row, g)) : 1.0F;
  }
  void zeros(std::uint64_t row, std::int16_t* out) const override {
    for (std::uint64_t g = 0; g < n_groups(); ++g)
      out[g] = zeros_ ? static_cast<std::int16_t>(integer_at(*zeros_, place(row, g))) : std::int16_t{0};
  }

 private:
  std::uint64_t place(std::uint64_t row, std::uint64_t group) const {
    const std::uint64_t matrix = grid_.one ? 0 : row / out_;
    return (matrix * grid_.rows + row % out_ / grid_.block_rows) * grid_.columns + group;
  }
  base::Bytes codes_;
  std::uint64_t out_;
  ScaleGrid grid_;
  std::optional<SourceTensor> scales_, zeros_;
};

[[noreturn]] void reject_scales(const PackedParts& parts, const SourceTensor& main,
                                const SourceTensor& scales) {
  const PackedConfig& config = parts.config();
  base::reject(parts.place(scales.name),
               base::cat("shape of the scales of a matrix ", shape_text(main.shape)),
               shape_text(scales.shape),
               base::cat("one, one per row, or blocks of ", config.block_rows, " x ",
                         config.block_columns));
}

// main has two or three dimensions.
ScaleGrid grid_of(const PackedParts& parts, const SourceTensor& main, const SourceTensor& scales) {
  const std::uint64_t columns = main.shape.back(), out = main.shape[main.shape.size() - 2];
  const std::uint64_t matrices = main.shape.size() == 3 ? main.shape[0] : 1;
  if (scales.values == 1)
    return {.block_rows = out, .block_columns = columns, .one = true};
  std::vector<std::uint64_t> shape = scales.shape;
  if (shape.size() == 1) shape.push_back(1);
  if (main.shape.size() == 3 && shape.size() == 3) {
    if (shape[0] != matrices) reject_scales(parts, main, scales);
    shape.erase(shape.begin());
  } else if (main.shape.size() == 3) {
    reject_scales(parts, main, scales);
  }
  if (shape.size() != 2) reject_scales(parts, main, scales);
  ScaleGrid grid{.rows = shape[0], .columns = shape[1]};
  const PackedConfig& config = parts.config();
  grid.block_rows = grid.rows == out ? 1 : grid.rows == 1 ? out : config.block_rows;
  grid.block_columns = grid.columns == 1 ? columns
                       : grid.rows == out && out != 1
                           ? group_of(parts, scales, columns, grid.columns)
                           : config.block_columns;
  if (divide_up(out, grid.block_rows) != grid.rows ||
      divide_up(columns, grid.block_columns) != grid.columns)
    reject_scales(parts, main, scales);
  return grid;
}

CodeKind kind_of(DType type) {
  return type == DType::i8        ? CodeKind::int8
         : type == DType::f8_e4m3 ? CodeKind::f8_e4m3
                                  : CodeKind::f8_e5m2;
}

std::string grid_name(const ScaleGrid& grid, std::uint64_t columns) {
  if (grid.one) return "one scale";
  if (grid.block_rows == 1) return group_name(grid.block_columns, columns);
  return base::cat("blocks of ", grid.block_rows, " x ", grid.block_columns);
}

}  // namespace

std::optional<SourceTensor> join_scaled(PackedParts& parts, const SourceTensor& main) {
  if (main.type != DType::i8 && main.type != DType::f8_e4m3 && main.type != DType::f8_e5m2)
    return std::nullopt;
  if (main.shape.size() < 2 || main.shape.size() > 3 || main.values == 0) return std::nullopt;
  if (main.name.ends_with("_zero_point")) return std::nullopt;
  const SourceTensor* scales = parts.take(main.name + "_scale_inv");
  if (scales == nullptr) scales = parts.take(main.name + "_scale");
  if (scales == nullptr && main.type != DType::f8_e4m3) {
    if (parts.config().method.empty() || main.type == DType::f8_e5m2) return std::nullopt;
    base::reject(parts.place(main.name), "matrix of int8 codes without its part W_scale");
  }
  if (scales == nullptr && !parts.config().method.empty())
    base::reject(parts.place(main.name), "matrix of 8-bit floats without its scales",
                 parts.config().method, "W_scale or W_scale_inv beside it");
  const std::uint64_t columns = main.shape.back(), out = main.shape[main.shape.size() - 2];
  ScaleGrid grid{.block_rows = out, .block_columns = columns, .one = true};
  if (scales != nullptr) {
    expect_type(parts, *scales, {DType::f32, DType::bf16, DType::f16, DType::f8_e8m0});
    grid = grid_of(parts, main, *scales);
  }
  parts.take(main.name);
  const std::string name =
      base::cat(dtype_name(main.type), ", ", scales == nullptr ? "no scale" : grid_name(grid, columns));
  auto reader = std::make_shared<ScaledTensor>(
      PackedShape{kind_of(main.type), main.values / columns, columns, grid.block_columns, name},
      main.bytes, out, grid);
  if (scales != nullptr) reader->set_scales(*scales);
  const SourceTensor* zeros =
      main.type == DType::i8 ? parts.take(main.name + "_zero_point") : nullptr;
  if (zeros != nullptr) {
    expect_type(parts, *zeros, {DType::i8});
    expect_shape(parts, *zeros, scales->shape);
    reader->set_zeros(*zeros);
  }
  return joined(main.name, main.shape, std::move(reader), main, {scales, zeros});
}

}  // namespace quern::checkpoint
