// The table of foreign tensor types, and to_float through it.
#include <array>
#include <vector>

#include "checkpoint/dequant.hpp"

namespace quern::checkpoint {

namespace {

constexpr std::array kTypes = {
    DTypeInfo{DType::f32, "F32", 1, 4, dequantize_f32},
    DTypeInfo{DType::f16, "F16", 1, 2, dequantize_f16},
    DTypeInfo{DType::bf16, "BF16", 1, 2, dequantize_bf16},
    DTypeInfo{DType::f8_e4m3, "F8_E4M3", 1, 1, dequantize_f8_e4m3},
    DTypeInfo{DType::f8_e5m2, "F8_E5M2", 1, 1, dequantize_f8_e5m2},
    DTypeInfo{DType::f64, "F64", 1, 8, dequantize_number<double>},
    DTypeInfo{DType::i8, "I8", 1, 1, dequantize_number<std::int8_t>},
    DTypeInfo{DType::u8, "U8", 1, 1, dequantize_number<std::uint8_t>},
    DTypeInfo{DType::i16, "I16", 1, 2, dequantize_number<std::int16_t>},
    DTypeInfo{DType::u16, "U16", 1, 2, dequantize_number<std::uint16_t>},
    DTypeInfo{DType::i32, "I32", 1, 4, dequantize_number<std::int32_t>},
    DTypeInfo{DType::u32, "U32", 1, 4, dequantize_number<std::uint32_t>},
    DTypeInfo{DType::i64, "I64", 1, 8, dequantize_number<std::int64_t>},
    DTypeInfo{DType::u64, "U64", 1, 8, dequantize_number<std::uint64_t>},
    DTypeInfo{DType::boolean, "BOOL", 1, 1, dequantize_boolean},
    DTypeInfo{DType::f8_e8m0, "F8_E8M0", 1, 1, dequantize_f8_e8m0},
    DTypeInfo{DType::packed, "packed", 1, 1, nullptr},  // no type of a file: read through its reader
    DTypeInfo{DType::gguf_q4_0, "Q4_0", 32, 18, dequantize_q4_0},
    DTypeInfo{DType::gguf_q4_1, "Q4_1", 32, 20, dequantize_q4_1},
    DTypeInfo{DType::gguf_q5_0, "Q5_0", 32, 22, dequantize_q5_0},
    DTypeInfo{DType::gguf_q5_1, "Q5_1", 32, 24, dequantize_q5_1},
    DTypeInfo{DType::gguf_q8_0, "Q8_0", 32, 34, dequantize_q8_0},
    DTypeInfo{DType::gguf_q8_1, "Q8_1", 32, 36, dequantize_q8_1},
    DTypeInfo{DType::gguf_q2_k, "Q2_K", 256, 84, dequantize_q2_k},
    DTypeInfo{DType::gguf_q3_k, "Q3_K", 256, 110, dequantize_q3_k},
    DTypeInfo{DType::gguf_q4_k, "Q4_K", 256, 144, dequantize_q4_k},
    DTypeInfo{DType::gguf_q5_k, "Q5_K", 256, 176, dequantize_q5_k},
    DTypeInfo{DType::gguf_q6_k, "Q6_K", 256, 210, dequantize_q6_k},
    DTypeInfo{DType::gguf_q8_k, "Q8_K", 256, 292, dequantize_q8_k},
    DTypeInfo{DType::gguf_iq2_xxs, "IQ2_XXS", 256, 66, dequantize_iq2_xxs},
    DTypeInfo{DType::gguf_iq2_xs, "IQ2_XS", 256, 74, dequantize_iq2_xs},
    DTypeInfo{DType::gguf_iq3_xxs, "IQ3_XXS", 256, 98, dequantize_iq3_xxs},
    DTypeInfo{DType::gguf_iq1_s, "IQ1_S", 256, 50, dequantize_iq1_s},
    DTypeInfo{DType::gguf_iq4_nl, "IQ4_NL", 32, 18, dequantize_iq4_nl},
    DTypeInfo{DType::gguf_iq3_s, "IQ3_S", 256, 110, dequantize_iq3_s},
    DTypeInfo{DType::gguf_iq2_s, "IQ2_S", 256, 82, dequantize_iq2_s},
    DTypeInfo{DType::gguf_iq4_xs, "IQ4_XS", 256, 136, dequantize_iq4_xs},
    DTypeInfo{DType::gguf_iq1_m, "IQ1_M", 256, 56, dequantize_iq1_m},
    DTypeInfo{DType::gguf_tq1_0, "TQ1_0", 256, 54, dequantize_tq1_0},
    DTypeInfo{DType::gguf_tq2_0, "TQ2_0", 256, 66, dequantize_tq2_0},
    DTypeInfo{DType::gguf_mxfp4, "MXFP4", 32, 17, dequantize_mxfp4},
};

constexpr std::uint32_t kGgufBlockTypes = 1000;  // DType of a GGUF block type = its number + this

// GGUF numbers of types that are not block types.
struct PlainNumber {
  std::uint32_t number;
  DType type;
};
constexpr std::array<PlainNumber, 8> kGgufPlain = {{{0, DType::f32},
                                                    {1, DType::f16},
                                                    {24, DType::i8},
                                                    {25, DType::i16},
                                                    {26, DType::i32},
                                                    {27, DType::i64},
                                                    {28, DType::f64},
                                                    {30, DType::bf16}}};

// Names of GGUF numbers that quern does not read.
struct NamedNumber {
  std::uint32_t number;
  std::string_view name;
};
constexpr std::array<NamedNumber, 10> kGgufUnread = {{{4, "Q4_2 (removed)"},
                                                      {5, "Q4_3 (removed)"},
                                                      {31, "Q4_0_4_4 (removed)"},
                                                      {32, "Q4_0_4_8 (removed)"},
                                                      {33, "Q4_0_8_8 (removed)"},
                                                      {36, "IQ4_NL_4_4 (removed)"},
                                                      {37, "IQ4_NL_4_8 (removed)"},
                                                      {38, "IQ4_NL_8_8 (removed)"},
                                                      {40, "NVFP4"},
                                                      {41, "Q1_0"}}};

bool is_safetensors_type(const DTypeInfo& info) {
  return info.type != DType::packed && static_cast<std::uint32_t>(info.type) < kGgufBlockTypes;
}

const DTypeInfo* find_type(DType type) {
  for (const DTypeInfo& info : kTypes)
    if (info.type == type) return &info;
  return nullptr;
}

}  // namespace

const DTypeInfo& dtype_info(DType type) {
  const DTypeInfo* info = find_type(type);
  QUERN_ASSERT(info != nullptr);
  return *info;
}

std::string_view dtype_name(DType type) {
  return dtype_info(type).name;
}
std::uint64_t dtype_block_values(DType type) {
  return dtype_info(type).block_values;
}
std::uint64_t dtype_block_bytes(DType type) {
  return dtype_info(type).block_bytes;
}

const DTypeInfo* find_safetensors_type(std::string_view name) {
  for (const DTypeInfo& info : kTypes)
    if (is_safetensors_type(info) && info.name == name) return &info;
  return nullptr;
}

std::string safetensors_type_names() {
  std::vector<std::string_view> names;
  for (const DTypeInfo& info : kTypes)
    if (is_safetensors_type(info)) names.push_back(info.name);
  return base::join(names);
}

const DTypeInfo* find_gguf_type(std::uint32_t number) {
  for (const PlainNumber& plain : kGgufPlain)
    if (plain.number == number) return find_type(plain.type);
  if (number >= kGgufBlockTypes) return nullptr;
  return find_type(static_cast<DType>(number + kGgufBlockTypes));
}

std::string gguf_type_name(std::uint32_t number) {
  if (const DTypeInfo* info = find_gguf_type(number)) return std::string(info->name);
  for (const NamedNumber& named : kGgufUnread)
    if (named.number == number) return std::string(named.name);
  return base::cat("number ", number);
}

void to_float(DType type, base::Bytes blocks, std::uint64_t count, float* out) {
  const DTypeInfo& info = dtype_info(type);
  const std::uint64_t n_blocks = count / info.block_values;
  QUERN_ASSERT(info.dequantize != nullptr && n_blocks * info.block_values == count);
  QUERN_ASSERT(blocks.size() / info.block_bytes >= n_blocks);
  info.dequantize(blocks.data(), n_blocks, out);
}

void to_float(const SourceTensor& tensor, std::uint64_t first, std::uint64_t count, float* out) {
  if (tensor.reader != nullptr) {
    QUERN_ASSERT(first <= tensor.values && count <= tensor.values - first);
    return tensor.reader->read(first, count, out);
  }
  const DTypeInfo& info = dtype_info(tensor.type);
  QUERN_ASSERT(first % info.block_values == 0 && first <= tensor.values &&
               count <= tensor.values - first);
  to_float(tensor.type, tensor.bytes.subspan(first / info.block_values * info.block_bytes), count,
           out);
}

}  // namespace quern::checkpoint
