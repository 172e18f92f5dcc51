// Compiled once per instruction set (cmake/isa.cmake), with that set's flags and QUERN_ISA = its
// name: gathers the templates over its tag type into one constant table, the only symbol other
// objects use.
#include "kernels/kernels.hpp"

#if defined(QUERN_ISA_avx2)
#include "kernels/primitives/avx2.hpp"
#elif defined(QUERN_ISA_avx512)
#include "kernels/primitives/avx512.hpp"
#elif defined(QUERN_ISA_avx512vnni)
#include "kernels/primitives/avx512vnni.hpp"
#else
#include "kernels/primitives/scalar.hpp"
#endif

#include "kernels/ops/attention.hpp"
#include "kernels/ops/matmul.hpp"
#include "kernels/ops/quantize.hpp"
#include "kernels/ops/score_ops.hpp"
#include "kernels/ops/vector_ops.hpp"
#include "quant/formats.hpp"

namespace quern::kernels {

#if defined(QUERN_ISA_avx2)
using Isa = Avx2;
#define QUERN_TABLE kernels_avx2
#elif defined(QUERN_ISA_avx512)
using Isa = Avx512;
#define QUERN_TABLE kernels_avx512
#elif defined(QUERN_ISA_avx512vnni)
using Isa = Avx512Vnni;
#define QUERN_TABLE kernels_avx512vnni
#else
using Isa = Scalar;
#define QUERN_TABLE kernels_scalar
#endif

template <class P, class... F>
constexpr Kernels make_table(quant::FormatList<F...>) {
  static_assert(sizeof...(F) == quant::kFormatCount && sizeof...(F) <= kMaxFormats);
  return {
      .name = P::kName,
      .description = P::kDescription,
      .matmul = {&MatmulOps<P>::template run<F>...},
      .transposed = {MatmulOps<P>::template transposed<F>()...},
      .matmul_scratch_bytes = MatmulOps<P>::scratch_bytes,
      .quantize = QuantizeOps<P>::quantize,
      .norm = VectorOps<P>::norm,
      .rope = VectorOps<P>::rope,
      .activate = VectorOps<P>::activate,
      .activate_gated = VectorOps<P>::activate_gated,
      .softmax = ScoreOps<P>::softmax,
      .sigmoid = ScoreOps<P>::sigmoid,
      .add_relu = ScoreOps<P>::add_relu,
      .scale = VectorOps<P>::scale,
      .add = VectorOps<P>::add,
      .scaled_add = VectorOps<P>::scaled_add,
      .clamp = VectorOps<P>::clamp,
      .shift = VectorOps<P>::shift,
      .softcap = VectorOps<P>::softcap,
      .store_kv = AttentionOps<P>::store_kv,
      .attend = AttentionOps<P>::attend,
      .score_keys = AttentionOps<P>::score_keys,
      .latent_rows = AttentionTile<P>::latent_rows,
      .merge_attention = AttentionOps<P>::merge_attention,
      .finish_attention = AttentionOps<P>::finish_attention,
  };
}

extern const Kernels QUERN_TABLE;
constinit const Kernels QUERN_TABLE = make_table<Isa>(quant::Formats{});

}  // namespace quern::kernels
