// Primitives of the scalar path, and the definition of what every ISA's primitives must provide:
// sixteen float lanes (V16), sixteen int32 lanes (I16) and 64-byte code lines (Line), with the same
// result bits. Only code behind QUERN_ISA includes these headers (ODR: everything is a member of
// the ISA's tag type).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quern::kernels {

struct Scalar {
  static constexpr const char* kName = "scalar";
  static constexpr int kTileLanes = 4;  // V16 accumulators that fit the registers: sizes the tiles
  static constexpr const char* kDescription = "portable C++, one lane at a time";

  // ---- float lanes ----
  struct V16 {
    float lane[16];
  };
  static V16 zero() { return {}; }
  static V16 set(float x) {
    V16 r;
    for (float& v : r.lane) v = x;
    return r;
  }
  static V16 load(const float* p) {
    V16 r;
    std::memcpy(r.lane, p, 64);
    return r;
  }
  // First n lanes (0 < n <= 16), the others zero; nothing beyond p + n is read or written.
  static V16 load_n(const float* p, std::size_t n) {
    V16 r{};
    std::memcpy(r.lane, p, n * 4);
    return r;
  }
  static void store(float* p, V16 a) { std::memcpy(p, a.lane, 64); }
  static void store_n(float* p, V16 a, std::size_t n) { std::memcpy(p, a.lane, n * 4); }
  static V16 load_f16(const std::uint16_t* p) {  // 16 values; a signalling NaN becomes quiet
    V16 r;
    for (int i = 0; i < 16; ++i) r.lane[i] = f16_lane(p[i]);
    return r;
  }
  static V16 load_bf16(const std::uint16_t* p) {
    V16 r;
    for (int i = 0; i < 16; ++i) r.lane[i] = std::bit_cast<float>(std::uint32_t{p[i]} << 16);
    return r;
  }
  // 16 column pairs as the 2-byte panels have them, lane r = p[2r], p[2r + 1].
  static void load_f16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    for (int i = 0; i < 16; ++i) {
      even.lane[i] = f16_lane(p[2 * i]);
      odd.lane[i] = f16_lane(p[2 * i + 1]);
    }
  }
  static void load_bf16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    for (int i = 0; i < 16; ++i) {
      even.lane[i] = std::bit_cast<float>(std::uint32_t{p[2 * i]} << 16);
      odd.lane[i] = std::bit_cast<float>(std::uint32_t{p[2 * i + 1]} << 16);
    }
  }
  // 16 floats of 8 bits (4 exponent, 3 mantissa bits); the codes 0x7f and 0xff, which are no numbers, give
  // 480 and -480.
  static V16 load_e4m3(const std::uint8_t* p) {
    V16 r;
    for (int i = 0; i < 16; ++i)  // the bits of an f16 of 1/256 of the value
      r.lane[i] = f16_lane((p[i] & 0x80u) << 8 | (p[i] & 0x7fu) << 7) * 256.0f;
    return r;
  }
  // 16 values, round to nearest even, overflow to infinity; NaN becomes quiet.
  static void store_f16(std::uint16_t* p, V16 a) {
    for (int i = 0; i < 16; ++i) p[i] = to_f16(a.lane[i]);
  }
  static V16 add(V16 a, V16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] += b.lane[i];
    return a;
  }
  static V16 sub(V16 a, V16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] -= b.lane[i];
    return a;
  }
  static V16 mul(V16 a, V16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] *= b.lane[i];
    return a;
  }
  static V16 div(V16 a, V16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] /= b.lane[i];
    return a;
  }
  static V16 fma(V16 a, V16 b, V16 c) {  // a * b + c, rounded once, on every ISA
    for (int i = 0; i < 16; ++i) a.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
    return a;
  }
  static V16 max(V16 a, V16 b) {  // a > b ? a : b (b when either is NaN), as maxps
    for (int i = 0; i < 16; ++i) a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
  }
  static V16 min(V16 a, V16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
  }
  static V16 abs(V16 a) {
    for (float& v : a.lane) v = __builtin_fabsf(v);
    return a;
  }
  // Horizontal: pairs (0,8)(1,9).. then (0,4).. (0,2).. (0,1): one fixed tree.
  static float reduce_add(V16 a) {
    for (int step = 8; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) a.lane[i] += a.lane[i + step];
    return a.lane[0];
  }
  static float reduce_max(V16 a) {
    for (int step = 8; step > 0; step /= 2)
      for (int i = 0; i < step; ++i)
        a.lane[i] = a.lane[i] > a.lane[i + step] ? a.lane[i] : a.lane[i + step];
    return a.lane[0];
  }

  // ---- int32 lanes ----
  struct I16 {
    std::int32_t lane[16];
  };
  static I16 izero() { return {}; }
  static I16 iset(std::int32_t x) {
    I16 r;
    for (auto& v : r.lane) v = x;
    return r;
  }
  static I16 iload(const std::int32_t* p) {
    I16 r;
    std::memcpy(r.lane, p, 64);
    return r;
  }
  static void istore(std::int32_t* p, I16 a) { std::memcpy(p, a.lane, 64); }
  static I16 iadd(I16 a, I16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] += b.lane[i];
    return a;
  }
  // a * s for |a| < 2^15 and |s| <= 2^15.
  static I16 scale_ints(I16 a, std::int32_t s) {
    for (auto& v : a.lane) v *= s;
    return a;
  }
  static V16 to_float(I16 a) {
    V16 r;
    for (int i = 0; i < 16; ++i) r.lane[i] = static_cast<float>(a.lane[i]);
    return r;
  }
  static I16 to_int(V16 a) {  // round to nearest even; |a| < 2^31
    I16 r;
    for (int i = 0; i < 16; ++i)
      r.lane[i] = static_cast<std::int32_t>(__builtin_nearbyintf(a.lane[i]));
    return r;
  }
  static V16 exp2i(I16 a) {  // 2^a for a in [-126, 127]
    V16 r;
    for (int i = 0; i < 16; ++i) r.lane[i] = std::bit_cast<float>((a.lane[i] + 127) << 23);
    return r;
  }
  static void store_i8(std::int8_t* p, I16 a) {  // 16 values already in [-128, 127]
    for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(a.lane[i]);
  }
  static I16 load_i8(const std::int8_t* p) {
    I16 r;
    for (int i = 0; i < 16; ++i) r.lane[i] = p[i];
    return r;
  }
  static I16 load_u8(const std::uint8_t* p) {
    I16 r;
    for (int i = 0; i < 16; ++i) r.lane[i] = p[i];
    return r;
  }
  static I16 iand(I16 a, I16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] &= b.lane[i];
    return a;
  }
  static I16 ior(I16 a, I16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] |= b.lane[i];
    return a;
  }
  template <int kShift>
  static I16 shift_left(I16 a) {
    for (auto& v : a.lane) v = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << kShift);
    return a;
  }
  template <int kShift>
  static I16 shift_right(I16 a) {  // logical
    for (auto& v : a.lane) v = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) >> kShift);
    return a;
  }
  static I16 float_bits(V16 a) { return std::bit_cast<I16>(a); }
  static V16 bits_float(I16 a) { return std::bit_cast<V16>(a); }
  static V16 select_less(V16 a, V16 b, V16 yes,
                         V16 no) {  // a < b ? yes : no (no when either is NaN)
    for (int i = 0; i < 16; ++i) yes.lane[i] = a.lane[i] < b.lane[i] ? yes.lane[i] : no.lane[i];
    return yes;
  }
  static std::int32_t ireduce_add(I16 a) {
    std::int32_t sum = 0;
    for (auto v : a.lane) sum += v;
    return sum;
  }

  // ---- code lines: 16 rows x 4 columns of 8-bit codes ----
  struct Line {
    std::int8_t code[64];
  };
  static Line load_line(const std::byte* p) {
    Line r;
    std::memcpy(r.code, p, 64);
    return r;
  }
  static void store_line(std::byte* p, const Line& w) { std::memcpy(p, w.code, 64); }
  // Four int8 activations in [-127, 127], to be met by every row of a line.
  struct Quad {
    std::int8_t code[4];
  };
  static Quad quad(const std::int8_t* a) {
    Quad r;
    std::memcpy(r.code, a, 4);
    return r;
  }
  // acc[r] += sum over j < 4 of line[4r + j] * a[j], exact.
  static I16 dot4(I16 acc, const Line& w, Quad a) {
    for (int r = 0; r < 16; ++r)
      for (int j = 0; j < 4; ++j) acc.lane[r] += std::int32_t{w.code[4 * r + j]} * a.code[j];
    return acc;
  }
  static I16 dot4(I16 acc, const Line& w, const std::int8_t* a) { return dot4(acc, w, quad(a)); }
  // The same for codes known to be in [0, 127]: cheaper where the dot product wants unsigned
  // weights.
  static I16 dot4_unsigned(I16 acc, const Line& w, Quad a) { return dot4(acc, w, a); }
  // The same for signed codes stored as code + kBias (0: as they are; 128: as the unsigned byte
  // code ^ 0x80). The caller takes kBias * sum(a) off the result.
  static constexpr std::int32_t kBias = 0;
  static Line bias_line(Line w) { return w; }
  static I16 dot4_biased(I16 acc, const Line& w, Quad a) { return dot4(acc, w, a); }

  // ---- packed code lines ----
  static Line low_nibbles(const Line& w) {
    return map(w, [](std::uint8_t b) { return b & 15; });
  }
  static Line high_nibbles(const Line& w) {
    return map(w, [](std::uint8_t b) { return b >> 4; });
  }
  static Line or_line(const Line& a, const Line& b) {
    Line r;
    for (int i = 0; i < 64; ++i) r.code[i] = static_cast<std::int8_t>(a.code[i] | b.code[i]);
    return r;
  }
  // Bits 2 kPair and 2 kPair + 1 of each byte, moved to bits 4 and 5.
  template <int kPair>
  static Line bit_pair(const Line& w) {
    return map(w, [](std::uint8_t b) { return (b >> (2 * kPair) & 3) << 4; });
  }
  // Byte i = `value` where bit i of the 64 little-endian bits at p is set, else 0.
  static Line bit_line(const std::byte* p, std::int8_t value) {
    Line r;
    for (int i = 0; i < 64; ++i)
      r.code[i] = (std::to_integer<int>(p[i / 8]) >> (i % 8) & 1) != 0 ? value : std::int8_t{0};
    return r;
  }
  // Byte 4r + j = ids[r]: one 4-bit table id per row, from the low or the high nibbles of 16 bytes.
  static Line row_low_nibbles(const std::byte* p) { return row_line(p, 0); }
  static Line row_high_nibbles(const std::byte* p) { return row_line(p, 4); }

  // ---- tables of bytes ----
  // Byte i = table[index[i]], indices in [0, 15].
  static Line lookup16(const std::int8_t* table, const Line& index) {
    Line r;
    for (int i = 0; i < 64; ++i) r.code[i] = table[index.code[i]];
    return r;
  }
  // Byte-wise a * s / 8 rounded to nearest, halves up; s in [-8, 8], the result fits a byte.
  // ScaleLine: s prepared, where four bytes of a row are equal.
  using ScaleLine = Line;
  static ScaleLine scale_line(Line s) { return s; }
  static Line scale_eighths(const Line& a, const ScaleLine& s) {
    Line r;
    for (int i = 0; i < 64; ++i)
      r.code[i] = static_cast<std::int8_t>((int{a.code[i]} * s.code[i] + 4) >> 3);
    return r;
  }
  // Whether row_select(ids) and lookup256_low/high(table of 256 bytes, rows, packed) exist: the
  // byte at 16 * id of the row + low (high) nibble.
  static constexpr bool kHasLookup256 = false;
  // Whether dot4_eighths(acc, codes, s, a) exists: dot4(acc, scale_eighths(codes, s), a), cheaper.
  static constexpr bool kHasDotEighths = false;

  static void prefetch(const std::byte* p) { __builtin_prefetch(p); }

 private:
  template <class F>
  static Line map(const Line& w, F f) {
    Line r;
    for (int i = 0; i < 64; ++i)
      r.code[i] = static_cast<std::int8_t>(f(static_cast<std::uint8_t>(w.code[i])));
    return r;
  }
  static Line row_line(const std::byte* p, int shift) {
    Line r;
    for (int i = 0; i < 64; ++i)
      r.code[i] = static_cast<std::int8_t>(std::to_integer<int>(p[i / 4]) >> shift & 15);
    return r;
  }
  static float f16_lane(std::uint32_t h) {
    const std::uint32_t sign = (h & 0x8000u) << 16;
    std::uint32_t bits = (h & 0x7fffu) << 13;
    if ((h & 0x7c00u) == 0x7c00u) {
      bits |= 0x7f800000u | ((h & 0x3ffu) != 0 ? 0x00400000u : 0u);
    } else {  // times 2^112: also right for subnormals
      bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) * 0x1p112f);
    }
    return std::bit_cast<float>(sign | bits);
  }
  static std::uint16_t to_f16(float x) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = all >> 16 & 0x8000u;
    const std::uint32_t bits = all & 0x7fffffffu;
    std::uint32_t r;
    if (bits > 0x7f800000u) {  // NaN: upper bits kept, quiet
      r = 0x7e00u | (bits >> 13 & 0x1ffu);
    } else if (bits >= 0x477ff000u) {  // rounds to 65536 or more
      r = 0x7c00u;
    } else if (bits < 0x38800000u) {  // subnormal: adding 0.5 rounds at 2^-24
      r = std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3f000000u;
    } else {
      r = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    }
    return static_cast<std::uint16_t>(sign | r);
  }
};

}  // namespace quern::kernels
