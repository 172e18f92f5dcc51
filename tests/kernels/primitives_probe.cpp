#include "kernels/primitives_probe.hpp"

#include QUERN_PRIMITIVES

#include "kernels/ops/pair_products.hpp"

namespace quern::kernels {

namespace {
// The instruction set under a name of this object's own, so that no kernel over it is defined twice.
struct Probed : QUERN_TAG {};
}  // namespace

template <class P>
struct ProbeOps {
  using V16 = typename P::V16;
  using I16 = typename P::I16;
  using Line = typename P::Line;

  static void put(ProbeOutput& out, ProbeRow row, V16 v) {
    P::store(reinterpret_cast<float*>(out.row[row]), v);
  }
  static void put(ProbeOutput& out, ProbeRow row, I16 v) {
    P::istore(reinterpret_cast<std::int32_t*>(out.row[row]), v);
  }
  static void put(ProbeOutput& out, ProbeRow row, Line v) {
    P::store_line(reinterpret_cast<std::byte*>(out.row[row]), v);
  }

  static void memory(const ProbeInput& in, ProbeOutput& out) {
    put(out, kLoadN, P::load_n(in.a, in.n));
    P::store_n(reinterpret_cast<float*>(out.row[kStoreN]), P::load(in.b), in.n);
    put(out, kLoadF16, P::load_f16(in.half));
    put(out, kLoadBf16, P::load_bf16(in.half));
    put(out, kLoadE4m3, P::load_e4m3(reinterpret_cast<const std::uint8_t*>(in.line)));
    V16 even, odd;
    P::load_f16_pairs(in.half, even, odd);
    put(out, kF16Even, even);
    put(out, kF16Odd, odd);
    P::load_bf16_pairs(in.half, even, odd);
    put(out, kBf16Even, even);
    put(out, kBf16Odd, odd);
    P::store_f16(reinterpret_cast<std::uint16_t*>(out.row[kStoreF16]), P::load(in.a));
  }

  static void floats(const ProbeInput& in, ProbeOutput& out) {
    const V16 a = P::load(in.a), b = P::load(in.b), c = P::load(in.c);
    put(out, kAdd, P::add(a, b));
    put(out, kSub, P::sub(a, b));
    put(out, kMul, P::mul(a, b));
    put(out, kDiv, P::div(a, b));
    put(out, kFma, P::fma(a, b, c));
    put(out, kMax, P::max(a, b));
    put(out, kMin, P::min(a, b));
    put(out, kAbs, P::abs(a));
    put(out, kSelectLess, P::select_less(a, b, c, P::set(1.0f)));
    put(out, kReduceAdd, P::set(P::reduce_add(a)));
    put(out, kReduceMax, P::set(P::reduce_max(a)));
    put(out, kFloatBits, P::bits_float(P::float_bits(a)));
    reduce_eight(a, b, c, out);
    times_power(in, out);
    pairs(in, out);
  }

  // As ops/pair_products.hpp has them. No subnormal products and sums: those an ISA may take for 0.
  using Pairs = PairProducts<Probed>;
  static void pairs(const ProbeInput& in, ProbeOutput& out) {
    const auto bounded = [](V16 x) {
      const V16 some = P::select_less(P::abs(x), P::set(1e-9f), P::zero(), x);
      return P::min(P::set(1e9f), P::max(P::set(-1e9f), some));
    };
    const V16 a = P::load(in.a), b = P::load(in.b), c = P::load(in.c);
    alignas(64) std::byte line[64];
    Pairs::store(line, bounded(a));
    Pairs::store(line + 32, bounded(b));
    put(out, kDotPairs, Pairs::dot(bounded(c), Pairs::template load<Pairs::Form::pairs>(line), Pairs::broadcast(line + 8)));
    // The bits of NaN are an ISA's own.
    Pairs::store(reinterpret_cast<std::byte*>(out.row[kStoreBf16]), P::min(c, P::set(__builtin_inff())));
    converted<CacheType::f16>(reinterpret_cast<const std::byte*>(in.half), out, kF16Pairs);
    converted<CacheType::fp8_e4m3>(reinterpret_cast<const std::byte*>(in.line), out, kE4m3Pairs);
    converted<CacheType::fp8_e5m2>(reinterpret_cast<const std::byte*>(in.line), out, kE5m2Pairs);
  }
  // The values of a line: products of what it is converted to with 1 and 0, and with 0 and 1.
  template <CacheType kType>
  static void converted(const std::byte* line, ProbeOutput& out, ProbeRow first) {
    constexpr std::size_t kBytes = Pairs::bytes_of(Pairs::Form::converted);
    alignas(64) std::byte operands[2 * kBytes];
    Pairs::template convert<kType>(line, operands, kBytes);
    const float one[16] = {1.0f, 0.0f, 0.0f, 1.0f};
    std::byte pair[32];
    Pairs::store(pair, P::load(one));
    for (std::size_t i = 0; i < cache_lane_values(kType); ++i) {
      const auto operand = Pairs::template load<Pairs::Form::converted>(operands + i / 2 * kBytes);
      put(out, static_cast<ProbeRow>(first + i), Pairs::dot(P::zero(), operand, Pairs::broadcast(pair + i % 2 * 4)));
    }
  }

  // No NaN, no -0: the order of comparisons is an ISA's own.
  static void reduce_eight(V16 a, V16 b, V16 c, ProbeOutput& out) {
    V16 eight[8] = {a, b, c, P::sub(P::zero(), a), P::sub(P::zero(), b), P::sub(P::zero(), c), P::add(a, b), P::sub(a, c)};
    for (V16& x : eight) x = P::max(P::add(x, P::zero()), P::set(-1e30f));
    float lanes[16] = {};
    if constexpr (requires { P::reduce_max8(eight); })
      P::store(lanes, P::reduce_max8(eight));
    else
      for (int i = 0; i < 8; ++i) lanes[i] = P::reduce_max(eight[i]);
    for (int i = 8; i < 16; ++i) lanes[i] = 0.0f;
    put(out, kReduceMax8, P::load(lanes));
  }
  // As ops/exp.hpp has it: of values in [1, 2), down to where all bits are lost.
  static void times_power(const ProbeInput& in, ProbeOutput& out) {
    const I16 mantissa = P::iand(P::float_bits(P::load(in.a)), P::iset(0x7fffff));
    const V16 x = P::bits_float(P::ior(mantissa, P::iset(0x3f800000)));
    const V16 n = P::to_float(P::iadd(P::load_i8(in.line), P::iset(-24)));
    if constexpr (requires { P::times_power(x, n); }) {
      put(out, kTimesPower, P::times_power(x, n));
    } else {
      const V16 half = P::to_float(P::to_int(P::mul(n, P::set(0.5f))));
      const V16 first = P::exp2i(P::to_int(half)), second = P::exp2i(P::to_int(P::sub(n, half)));
      put(out, kTimesPower, P::mul(P::mul(x, first), second));
    }
  }

  static void integers(const ProbeInput& in, ProbeOutput& out) {
    const I16 i = P::iload(in.i), j = P::iload(in.j);
    put(out, kIntAdd, P::iadd(i, j));
    put(out, kIntAnd, P::iand(i, j));
    put(out, kIntOr, P::ior(i, j));
    put(out, kScaleInts, P::scale_ints(P::load_i8(in.line), in.activation[0] * 250));
    put(out, kShiftLeft, P::template shift_left<5>(i));
    put(out, kShiftRight, P::template shift_right<3>(i));
    put(out, kToFloat, P::to_float(i));
    put(out, kIntReduce, P::iset(P::ireduce_add(P::template shift_right<8>(i))));
    put(out, kToInt, P::to_int(P::min(P::set(1e9f), P::max(P::set(-1e9f), P::load(in.c)))));
    const I16 bytes = P::load_i8(in.line);
    put(out, kLoadI8, bytes);
    put(out, kLoadU8, P::load_u8(reinterpret_cast<const std::uint8_t*>(in.line)));
    put(out, kExp2i, P::exp2i(P::iadd(P::iand(bytes, P::iset(127)), P::iset(-64))));
    P::store_i8(reinterpret_cast<std::int8_t*>(out.row[kStoreI8]), bytes);
    const I16 unsigned_bytes = P::load_u8(reinterpret_cast<const std::uint8_t*>(in.line));
    if constexpr (requires { P::kUnsignedShares; })
      P::store_u8(out.row[kStoreU8], unsigned_bytes);
    else
      __builtin_memcpy(out.row[kStoreU8], in.line, 16);
    store_codes(in, out.row[kStoreCodes]);
    sums_of_eight(i, bytes, out);
  }
  // Wrapping sums over the lanes of eight vectors, in their order.
  static void sums_of_eight(I16 i, I16 j, ProbeOutput& out) {
    I16 eight[8] = {i, j};
    for (int v = 2; v < 8; ++v) eight[v] = P::iadd(P::template shift_right<3>(eight[v - 2]), P::iset(v * 1001));
    std::int32_t sums[16] = {};
    if constexpr (requires { P::ireduce_add8(eight); })
      P::istore(sums, P::ireduce_add8(eight));
    else
      for (int v = 0; v < 8; ++v) sums[v] = P::ireduce_add(eight[v]);
    for (int v = 8; v < 16; ++v) sums[v] = 0;
    put(out, kIntReduce8, P::iload(sums));
  }
  // 32 bytes in one go, where an ISA has that.
  static void store_codes(const ProbeInput& in, std::uint8_t* to) {
    const auto* line = reinterpret_cast<const std::uint8_t*>(in.line);
    auto* bytes = reinterpret_cast<std::int8_t*>(to);
    if constexpr (requires(I16 a) { P::store_codes(to, a, a); })
      P::store_codes(to, P::load_u8(line), P::load_u8(line + 16));
    else if constexpr (requires(I16 a) { P::store_codes(bytes, a, a); })
      P::store_codes(bytes, P::load_i8(in.line), P::load_i8(in.line + 16));
    else
      __builtin_memcpy(to, line, 32);
  }

  // Table entries picked by the low (high) nibbles and one id per row.
  static Line lookup256(const ProbeInput& in, Line packed, bool low) {
    const std::byte* ids = reinterpret_cast<const std::byte*>(in.line);
    if constexpr (P::kHasLookup256) {
      const auto row = P::row_selects(ids).high;
      return low ? P::lookup256_low(in.table, row, packed)
                 : P::lookup256_high(in.table, row, packed);
    } else {
      alignas(64) std::uint8_t bytes[64];
      P::store_line(reinterpret_cast<std::byte*>(bytes), packed);
      for (std::size_t i = 0; i < 64; ++i) {
        const unsigned id = std::to_integer<unsigned>(ids[i / 4]) >> 4;
        const unsigned u = low ? bytes[i] & 15u : bytes[i] >> 4;
        bytes[i] = static_cast<std::uint8_t>(in.table[16 * id + u]);
      }
      return P::load_line(reinterpret_cast<const std::byte*>(bytes));
    }
  }

  // Products of operands of 4 bits summed over two lines in 16 bits; in 32 where an ISA has no such sums.
  static void words(const ProbeInput& in, Line w, I16 acc, ProbeOutput& out) {
    const Line low = P::low_nibbles(w), high = P::high_nibbles(w);
    const typename P::Quad a = P::quad(in.activation);
    if constexpr (requires { requires P::kWordSums; })
      put(out, kWordSums, P::add_words(acc, P::add_word_products(P::word_products(low, a), high, a)));
    else
      put(out, kWordSums, P::dot4_unsigned(P::dot4_unsigned(acc, low, a), high, a));
  }

  // Signed weights times unsigned bytes; in plain integers where an ISA has no such product.
  static void shares(const ProbeInput& in, Line w, I16 acc, ProbeOutput& out) {
    std::int8_t four[4];
    for (int k = 0; k < 4; ++k) four[k] = static_cast<std::int8_t>(2 * in.activation[k]);
    if constexpr (requires { P::kUnsignedShares; }) {
      put(out, kDot4Shares, P::dot4_shares(acc, w, P::quad(four)));
    } else {
      std::int32_t sums[16];
      P::istore(sums, acc);
      for (int i = 0; i < 64; ++i) sums[i / 4] += in.line[i] * static_cast<std::uint8_t>(four[i % 4]);
      put(out, kDot4Shares, P::iload(sums));
    }
  }

  static constexpr std::int8_t kEighths[16] = {1,  2,  3,  4,  5,  6,  7,  8,
                                               -1, -2, -3, -4, -5, -6, -7, 0};

  static void lines(const ProbeInput& in, ProbeOutput& out) {
    const std::byte* bytes = reinterpret_cast<const std::byte*>(in.line);
    const Line w = P::load_line(bytes);
    const I16 acc = P::template shift_right<8>(P::iload(in.i));
    put(out, kDot4, P::dot4(acc, w, in.activation));
    put(out, kDot4Unsigned, P::dot4_unsigned(acc, P::low_nibbles(w), P::quad(in.activation)));
    std::int32_t sum = 0;
    for (int k = 0; k < 4; ++k) sum += in.activation[k];
    const I16 start = P::iadd(acc, P::iset(-P::kBias * sum));
    put(out, kDot4Biased, P::dot4_biased(start, P::bias_line(w), P::quad(in.activation)));
    put(out, kLowNibbles, P::low_nibbles(w));
    put(out, kHighNibbles, P::high_nibbles(w));
    put(out, kBitLine, P::bit_line(bytes, 16));
    put(out, kOrLine, P::or_line(P::low_nibbles(w), P::bit_line(bytes, 16)));
    put(out, kBitPair0, P::template bit_pair<0>(w));
    put(out, kBitPair1, P::template bit_pair<1>(w));
    put(out, kBitPair2, P::template bit_pair<2>(w));
    put(out, kBitPair3, P::template bit_pair<3>(w));
    put(out, kRowLow, P::row_low_nibbles(bytes));
    put(out, kRowHigh, P::row_high_nibbles(bytes));
    const Line picked = P::lookup16(in.line, P::low_nibbles(w));
    put(out, kLookup16, picked);
    const Line scales = P::lookup16(kEighths, P::row_high_nibbles(bytes));
    put(out, kScaleEighths, P::scale_eighths(picked, P::scale_line(scales)));
    if constexpr (P::kHasDotEighths)
      put(out, kDot4Eighths, P::dot4_eighths(acc, picked, P::scale_line(scales), P::quad(in.activation)));
    else
      put(out, kDot4Eighths, P::dot4(acc, P::scale_eighths(picked, P::scale_line(scales)), in.activation));
    shares(in, w, acc, out);
    words(in, w, acc, out);
    put(out, kLookup256Low, lookup256(in, w, true));
    put(out, kLookup256High, lookup256(in, w, false));
  }

  static void run(const ProbeInput& in, ProbeOutput& out) {
    memory(in, out);
    floats(in, out);
    integers(in, out);
    lines(in, out);
  }
};

const Probe QUERN_PROBE = {QUERN_TAG::kName, ProbeOps<QUERN_TAG>::run};

}  // namespace quern::kernels
