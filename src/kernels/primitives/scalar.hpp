// Primitives of the scalar path, and the definition of what every ISA's primitives must provide: sixteen
// float lanes (V16), sixteen int32 lanes (I16) and 64-byte code lines (Line), with the same result bits.
// Only code behind QUERN_ISA includes these headers (ODR: everything is a member of the ISA's tag type).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quern::kernels {

struct Scalar {
  static constexpr const char* kName = "scalar";

  // ---- float lanes ----
  struct V16 { float lane[16]; };
  static V16 zero() { return {}; }
  static V16 set(float x) { V16 r; for (float& v : r.lane) v = x; return r; }
  static V16 load(const float* p) { V16 r; std::memcpy(r.lane, p, 64); return r; }
  // First n lanes (0 < n <= 16), the others zero; nothing beyond p + n is read or written.
  static V16 load_n(const float* p, std::size_t n) { V16 r{}; std::memcpy(r.lane, p, n * 4); return r; }
  static void store(float* p, V16 a) { std::memcpy(p, a.lane, 64); }
  static void store_n(float* p, V16 a, std::size_t n) { std::memcpy(p, a.lane, n * 4); }
  static V16 load_f16(const std::uint16_t* p);    // 16 values
  static V16 load_bf16(const std::uint16_t* p);
  static V16 add(V16 a, V16 b) { for (int i = 0; i < 16; ++i) a.lane[i] += b.lane[i]; return a; }
  static V16 sub(V16 a, V16 b) { for (int i = 0; i < 16; ++i) a.lane[i] -= b.lane[i]; return a; }
  static V16 mul(V16 a, V16 b) { for (int i = 0; i < 16; ++i) a.lane[i] *= b.lane[i]; return a; }
  static V16 div(V16 a, V16 b) { for (int i = 0; i < 16; ++i) a.lane[i] /= b.lane[i]; return a; }
  static V16 fma(V16 a, V16 b, V16 c) {           // a * b + c, rounded once, on every ISA
    for (int i = 0; i < 16; ++i) a.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
    return a;
  }
  static V16 max(V16 a, V16 b) {                  // a > b ? a : b (b when either is NaN), as maxps
    for (int i = 0; i < 16; ++i) a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
  }
  static V16 min(V16 a, V16 b) {
    for (int i = 0; i < 16; ++i) a.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
    return a;
  }
  static V16 abs(V16 a) { for (float& v : a.lane) v = __builtin_fabsf(v); return a; }
  // Horizontal: pairs (0,8)(1,9).. then (0,4).. (0,2).. (0,1): one fixed tree.
  static float reduce_add(V16 a) {
    for (int step = 8; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) a.lane[i] += a.lane[i + step];
    return a.lane[0];
  }
  static float reduce_max(V16 a) {
    for (int step = 8; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) a.lane[i] = a.lane[i] > a.lane[i + step] ? a.lane[i] : a.lane[i + step];
    return a.lane[0];
  }

  // ---- int32 lanes ----
  struct I16 { std::int32_t lane[16]; };
  static I16 izero() { return {}; }
  static I16 iset(std::int32_t x) { I16 r; for (auto& v : r.lane) v = x; return r; }
  static I16 iload(const std::int32_t* p) { I16 r; std::memcpy(r.lane, p, 64); return r; }
  static void istore(std::int32_t* p, I16 a) { std::memcpy(p, a.lane, 64); }
  static I16 iadd(I16 a, I16 b) { for (int i = 0; i < 16; ++i) a.lane[i] += b.lane[i]; return a; }
  static V16 to_float(I16 a) { V16 r; for (int i = 0; i < 16; ++i) r.lane[i] = static_cast<float>(a.lane[i]); return r; }
  static I16 to_int(V16 a) {                      // round to nearest even; |a| < 2^31
    I16 r; for (int i = 0; i < 16; ++i) r.lane[i] = static_cast<std::int32_t>(__builtin_nearbyintf(a.lane[i])); return r;
  }
  static V16 exp2i(I16 a) {                       // 2^a for a in [-126, 127]
    V16 r; for (int i = 0; i < 16; ++i) r.lane[i] = std::bit_cast<float>((a.lane[i] + 127) << 23); return r;
  }
  static void store_i8(std::int8_t* p, I16 a) {   // 16 values already in [-128, 127]
    for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(a.lane[i]);
  }

  // ---- code lines: 16 rows x 4 columns, int8, as signed weights ----
  struct Line { std::int8_t code[64]; };
  static Line load_line(const std::byte* p) { Line r; std::memcpy(r.code, p, 64); return r; }
  // acc[r] += sum over j < 4 of line[4r + j] * a[j]: exact. `a` points to 4 int8 activations.
  static I16 dot4(I16 acc, const Line& w, const std::int8_t* a) {
    for (int r = 0; r < 16; ++r)
      for (int j = 0; j < 4; ++j) acc.lane[r] += std::int32_t{w.code[4 * r + j]} * a[j];
    return acc;
  }
};

}  // namespace quern::kernels
