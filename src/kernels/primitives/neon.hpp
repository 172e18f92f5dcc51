// Primitives of the AArch64 path with dot products (scalar.hpp defines them): sixteen lanes are four
// registers of four, rows 0-3, 4-7, 8-11, 12-15; byte products through sdot, signed times signed. Needs
// Armv8.2 with DotProd (Neoverse N1, Apple M1, Raspberry Pi 5 and later).
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace quern::kernels {

struct Neon {
  static constexpr const char* kName = "neon";
  static constexpr int kTileLanes = 4;
  static constexpr const char* kDescription = "AArch64 with DotProd; byte products through sdot";

  // ---- float lanes ----
  struct V16 {
    float32x4_t q[4];
  };
  [[gnu::always_inline]] static V16 zero() { return set(0.0f); }
  [[gnu::always_inline]] static V16 set(float x) {
    const float32x4_t v = vdupq_n_f32(x);
    return {{v, v, v, v}};
  }
  [[gnu::always_inline]] static V16 load(const float* p) {
    return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
  }
  [[gnu::always_inline]] static V16 load_n(const float* p, std::size_t n) {
    float lanes[16] = {};
    std::memcpy(lanes, p, n * 4);
    return load(lanes);
  }
  [[gnu::always_inline]] static void store(float* p, V16 a) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.q[i]);
  }
  [[gnu::always_inline]] static void store_n(float* p, V16 a, std::size_t n) {
    float lanes[16];
    store(lanes, a);
    std::memcpy(p, lanes, n * 4);
  }
  [[gnu::always_inline]] static V16 load_f16(const std::uint16_t* p) {
    return each([&](int i) { return widen_f16(vld1_u16(p + 4 * i)); });
  }
  [[gnu::always_inline]] static V16 load_bf16(const std::uint16_t* p) {
    return each([&](int i) { return widen_bf16(vld1_u16(p + 4 * i)); });
  }
  [[gnu::always_inline]] static void load_f16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    for (int i = 0; i < 4; ++i) {
      const uint16x4x2_t x = vld2_u16(p + 8 * i);
      even.q[i] = widen_f16(x.val[0]);
      odd.q[i] = widen_f16(x.val[1]);
    }
  }
  [[gnu::always_inline]] static void load_bf16_pairs(const std::uint16_t* p, V16& even, V16& odd) {
    for (int i = 0; i < 4; ++i) {
      const uint16x4x2_t x = vld2_u16(p + 8 * i);
      even.q[i] = widen_bf16(x.val[0]);
      odd.q[i] = widen_bf16(x.val[1]);
    }
  }
  [[gnu::always_inline]] static V16 load_e4m3(const std::uint8_t* p) {
    const int8x16_t x = vreinterpretq_s8_u8(vld1q_u8(p));
    const uint16x8_t halves[2] = {e4m3_f16(vget_low_s8(x)), e4m3_f16(vget_high_s8(x))};
    return each([&](int i) {
      const uint16x8_t h = halves[i / 2];
      return vmulq_n_f32(widen_f16(i % 2 == 0 ? vget_low_u16(h) : vget_high_u16(h)), 256.0f);
    });
  }
  [[gnu::always_inline]] static void store_f16(std::uint16_t* p, V16 a) {
    for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.q[i])));
  }
  [[gnu::always_inline]] static V16 add(V16 a, V16 b) {
    return each([&](int i) { return vaddq_f32(a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static V16 sub(V16 a, V16 b) {
    return each([&](int i) { return vsubq_f32(a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static V16 mul(V16 a, V16 b) {
    return each([&](int i) { return vmulq_f32(a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static V16 div(V16 a, V16 b) {
    return each([&](int i) { return vdivq_f32(a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static V16 fma(V16 a, V16 b, V16 c) {
    return each([&](int i) { return vfmaq_f32(c.q[i], a.q[i], b.q[i]); });
  }
  // Not fmax: that one prefers numbers to NaN.
  [[gnu::always_inline]] static V16 max(V16 a, V16 b) {
    return each([&](int i) { return vbslq_f32(vcgtq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static V16 min(V16 a, V16 b) {
    return each([&](int i) { return vbslq_f32(vcltq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static V16 abs(V16 a) {
    return each([&](int i) { return vabsq_f32(a.q[i]); });
  }
  [[gnu::always_inline]] static V16 select_less(V16 a, V16 b, V16 yes, V16 no) {
    return each([&](int i) { return vbslq_f32(vcltq_f32(a.q[i], b.q[i]), yes.q[i], no.q[i]); });
  }
  [[gnu::always_inline]] static float reduce_add(V16 a) {
    const float32x4_t four = vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  [[gnu::always_inline]] static float reduce_max(V16 a) {
    const auto larger = [](float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); };
    const float32x4_t four = larger(larger(a.q[0], a.q[2]), larger(a.q[1], a.q[3]));
    const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
    const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
    const float x = vget_lane_f32(two, 0), y = vget_lane_f32(two, 1);
    return x > y ? x : y;
  }

  // ---- int32 lanes ----
  struct I16 {
    int32x4_t q[4];
  };
  [[gnu::always_inline]] static I16 izero() { return iset(0); }
  [[gnu::always_inline]] static I16 iset(std::int32_t x) {
    const int32x4_t v = vdupq_n_s32(x);
    return {{v, v, v, v}};
  }
  [[gnu::always_inline]] static I16 iload(const std::int32_t* p) {
    return {{vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)}};
  }
  [[gnu::always_inline]] static void istore(std::int32_t* p, I16 a) {
    for (int i = 0; i < 4; ++i) vst1q_s32(p + 4 * i, a.q[i]);
  }
  [[gnu::always_inline]] static I16 iadd(I16 a, I16 b) {
    return ieach([&](int i) { return vaddq_s32(a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static I16 scale_ints(I16 a, std::int32_t s) {
    return ieach([&](int i) { return vmulq_n_s32(a.q[i], s); });
  }
  [[gnu::always_inline]] static I16 iand(I16 a, I16 b) {
    return ieach([&](int i) { return vandq_s32(a.q[i], b.q[i]); });
  }
  [[gnu::always_inline]] static I16 ior(I16 a, I16 b) {
    return ieach([&](int i) { return vorrq_s32(a.q[i], b.q[i]); });
  }
  template <int kShift>
  [[gnu::always_inline]] static I16 shift_left(I16 a) {
    return ieach([&](int i) { return vshlq_n_s32(a.q[i], kShift); });
  }
  template <int kShift>
  [[gnu::always_inline]] static I16 shift_right(I16 a) {
    return ieach([&](int i) {
      return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.q[i]), kShift));
    });
  }
  [[gnu::always_inline]] static I16 float_bits(V16 a) {
    return ieach([&](int i) { return vreinterpretq_s32_f32(a.q[i]); });
  }
  [[gnu::always_inline]] static V16 bits_float(I16 a) {
    return each([&](int i) { return vreinterpretq_f32_s32(a.q[i]); });
  }
  [[gnu::always_inline]] static V16 to_float(I16 a) {
    return each([&](int i) { return vcvtq_f32_s32(a.q[i]); });
  }
  [[gnu::always_inline]] static I16 to_int(V16 a) {
    return ieach([&](int i) { return vcvtnq_s32_f32(a.q[i]); });
  }
  [[gnu::always_inline]] static V16 exp2i(I16 a) {
    return bits_float(shift_left<23>(iadd(a, iset(127))));
  }
  [[gnu::always_inline]] static std::int32_t ireduce_add(I16 a) {
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.q[0], a.q[1]), vaddq_s32(a.q[2], a.q[3])));
  }
  [[gnu::always_inline]] static void store_i8(std::int8_t* p, I16 a) {
    const int16x8_t low = vcombine_s16(vmovn_s32(a.q[0]), vmovn_s32(a.q[1]));
    const int16x8_t high = vcombine_s16(vmovn_s32(a.q[2]), vmovn_s32(a.q[3]));
    vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  }
  [[gnu::always_inline]] static I16 load_i8(const std::int8_t* p) {
    const int8x16_t x = vld1q_s8(p);
    const int16x8_t low = vmovl_s8(vget_low_s8(x)), high = vmovl_s8(vget_high_s8(x));
    return {{vmovl_s16(vget_low_s16(low)), vmovl_s16(vget_high_s16(low)),
             vmovl_s16(vget_low_s16(high)), vmovl_s16(vget_high_s16(high))}};
  }
  [[gnu::always_inline]] static I16 load_u8(const std::uint8_t* p) {
    const uint8x16_t x = vld1q_u8(p);
    const uint16x8_t low = vmovl_u8(vget_low_u8(x)), high = vmovl_u8(vget_high_u8(x));
    const uint16x4_t quarters[4] = {vget_low_u16(low), vget_high_u16(low), vget_low_u16(high),
                                    vget_high_u16(high)};
    return ieach([&](int i) { return vreinterpretq_s32_u32(vmovl_u16(quarters[i])); });
  }

  // ---- code lines ----
  struct Line {
    int8x16_t q[4];  // rows 4i to 4i + 3
  };
  [[gnu::always_inline]] static Line load_line(const std::byte* p) {
    const std::int8_t* codes = reinterpret_cast<const std::int8_t*>(p);
    return {{vld1q_s8(codes), vld1q_s8(codes + 16), vld1q_s8(codes + 32), vld1q_s8(codes + 48)}};
  }
  [[gnu::always_inline]] static void store_line(std::byte* p, Line w) {
    for (int i = 0; i < 4; ++i) vst1q_s8(reinterpret_cast<std::int8_t*>(p) + 16 * i, w.q[i]);
  }
  using Quad = int8x16_t;
  [[gnu::always_inline]] static Quad quad(const std::int8_t* a) {
    std::int32_t four;
    std::memcpy(&four, a, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, Quad a) {
    return ieach([&](int i) { return vdotq_s32(acc.q[i], w.q[i], a); });
  }
  [[gnu::always_inline]] static I16 dot4(I16 acc, Line w, const std::int8_t* a) {
    return dot4(acc, w, quad(a));
  }
  [[gnu::always_inline]] static I16 dot4_unsigned(I16 acc, Line w, Quad a) { return dot4(acc, w, a); }
  static constexpr std::int32_t kBias = 0;
  [[gnu::always_inline]] static Line bias_line(Line w) { return w; }
  [[gnu::always_inline]] static I16 dot4_biased(I16 acc, Line w, Quad a) { return dot4(acc, w, a); }

  // ---- packed code lines ----
  [[gnu::always_inline]] static Line low_nibbles(Line w) {
    return leach([&](int i) { return vandq_s8(w.q[i], vdupq_n_s8(15)); });
  }
  [[gnu::always_inline]] static Line high_nibbles(Line w) {
    return leach([&](int i) { return shifted_right<4>(w.q[i]); });
  }
  [[gnu::always_inline]] static Line or_line(Line a, Line b) {
    return leach([&](int i) { return vorrq_s8(a.q[i], b.q[i]); });
  }
  template <int kPair>
  [[gnu::always_inline]] static Line bit_pair(Line w) {
    return leach([&](int i) {
      int8x16_t moved = w.q[i];
      if constexpr (kPair < 2) moved = vshlq_n_s8(moved, 4 - 2 * kPair);
      if constexpr (kPair > 2) moved = shifted_right<2>(moved);
      return vandq_s8(moved, vdupq_n_s8(0x30));
    });
  }
  [[gnu::always_inline]] static Line bit_line(const std::byte* p, std::int8_t value) {
    constexpr std::uint64_t kBits = 0x8040201008040201u;
    const uint8x16_t select = vreinterpretq_u8_u64(vdupq_n_u64(kBits));
    return leach([&](int i) {
      const uint8x16_t bytes = vcombine_u8(vdup_n_u8(std::to_integer<std::uint8_t>(p[2 * i])),
                                           vdup_n_u8(std::to_integer<std::uint8_t>(p[2 * i + 1])));
      return vandq_s8(vreinterpretq_s8_u8(vtstq_u8(bytes, select)), vdupq_n_s8(value));
    });
  }
  [[gnu::always_inline]] static Line row_low_nibbles(const std::byte* p) {
    return spread_rows(vandq_s8(load_line16(p), vdupq_n_s8(15)));
  }
  [[gnu::always_inline]] static Line row_high_nibbles(const std::byte* p) {
    return spread_rows(shifted_right<4>(load_line16(p)));
  }

  // ---- tables of bytes ----
  [[gnu::always_inline]] static Line lookup16(const std::int8_t* table, Line index) {
    const int8x16_t entries = vld1q_s8(table);
    return leach([&](int i) { return vqtbl1q_s8(entries, vreinterpretq_u8_s8(index.q[i])); });
  }
  using ScaleLine = Line;
  [[gnu::always_inline]] static ScaleLine scale_line(Line s) { return s; }
  [[gnu::always_inline]] static Line scale_eighths(Line a, ScaleLine s) {  // rounding shifts: halves up
    return leach([&](int i) {
      const int16x8_t low = vmull_s8(vget_low_s8(a.q[i]), vget_low_s8(s.q[i]));
      return vrshrn_high_n_s16(vrshrn_n_s16(low, 3), vmull_high_s8(a.q[i], s.q[i]), 3);
    });
  }
  static constexpr bool kHasLookup256 = false;
  static constexpr bool kHasDotEighths = false;

  [[gnu::always_inline]] static void prefetch(const std::byte* p) { __builtin_prefetch(p); }

 private:
  template <class F>
  [[gnu::always_inline]] static V16 each(F&& f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
  template <class F>
  [[gnu::always_inline]] static I16 ieach(F&& f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
  template <class F>
  [[gnu::always_inline]] static Line leach(F&& f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
  template <int kShift>
  [[gnu::always_inline]] static int8x16_t shifted_right(int8x16_t x) {  // logical
    return vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(x), kShift));
  }
  [[gnu::always_inline]] static int8x16_t load_line16(const std::byte* p) {
    return vld1q_s8(reinterpret_cast<const std::int8_t*>(p));
  }
  [[gnu::always_inline]] static float32x4_t widen_f16(uint16x4_t x) {
    return vcvt_f32_f16(vreinterpret_f16_u16(x));
  }
  [[gnu::always_inline]] static float32x4_t widen_bf16(uint16x4_t x) {
    return vreinterpretq_f32_u32(vshll_n_u16(x, 16));
  }
  // The bits of an f16 of 1/256 of the value.
  [[gnu::always_inline]] static uint16x8_t e4m3_f16(int8x8_t x) {
    const int16x8_t wide = vshlq_n_s16(vmovl_s8(x), 7);
    return vandq_u16(vreinterpretq_u16_s16(wide), vdupq_n_u16(0xbf80));
  }
  // Byte r -> bytes 4r..4r+3.
  [[gnu::always_inline]] static Line spread_rows(int8x16_t x) {
    return leach([&](int i) {
      const uint8x16_t four = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
      return vqtbl1q_s8(x, vaddq_u8(four, vdupq_n_u8(static_cast<std::uint8_t>(4 * i))));
    });
  }
};

}  // namespace quern::kernels
