// Compiled once per instruction set (cmake/isa.cmake), with that set's flags, its header of primitives
// (QUERN_PRIMITIVES), their tag type (QUERN_TAG) and the name of its table (QUERN_TABLE): gathers the
// templates over the tag into one constant table, the only symbol other objects use.
#include QUERN_PRIMITIVES

#include "kernels/kernels.hpp"
#include "kernels/ops/attention.hpp"
#include "kernels/ops/matmul.hpp"
#include "kernels/ops/quantize.hpp"
#include "kernels/ops/score_ops.hpp"
#include "kernels/ops/vector_ops.hpp"
#include "quant/formats.hpp"

namespace quern::kernels {

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
      .store_query = AttentionQueries<P>::store,
      .attend = AttentionOps<P>::attend,
      .score_keys = AttentionOps<P>::score_keys,
      .latent_rows = AttentionTile<P>::latent_rows,
      .merge_attention = AttentionOps<P>::merge_attention,
      .finish_attention = AttentionOps<P>::finish_attention,
  };
}

extern const Kernels QUERN_TABLE;
constinit const Kernels QUERN_TABLE = make_table<QUERN_TAG>(quant::Formats{});

}  // namespace quern::kernels
