// Compiled once per instruction set (cmake/isa.cmake), with that set's flags and QUERN_ISA = its name:
// gathers the templates over its tag type into one constant table, the only symbol other objects use.
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

#if __has_include("kernels/ops/matmul.hpp")
#include "kernels/ops/matmul.hpp"
#include "kernels/ops/quantize.hpp"
#define QUERN_MATMUL 1
#endif
#if __has_include("kernels/ops/attention.hpp")
#include "kernels/ops/attention.hpp"
#define QUERN_ATTENTION 1
#endif
#if __has_include("kernels/ops/vector_ops.hpp")
#include "kernels/ops/vector_ops.hpp"
#define QUERN_VECTOR 1
#endif

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

extern const Kernels QUERN_TABLE;
const Kernels QUERN_TABLE = {
    .name = Isa::kName,
    .description = Isa::kDescription,
#ifdef QUERN_MATMUL
    .matmul = {},
    .matmul_scratch_bytes = MatmulOps<Isa>::scratch_bytes,
    .quantize = QuantizeOps<Isa>::quantize,
#else
    .matmul = {},
    .matmul_scratch_bytes = nullptr,
    .quantize = nullptr,
#endif
#ifdef QUERN_VECTOR
    .norm = VectorOps<Isa>::norm,
    .rope = VectorOps<Isa>::rope,
    .activate = VectorOps<Isa>::activate,
    .activate_gated = VectorOps<Isa>::activate_gated,
    .scale = VectorOps<Isa>::scale,
    .add = VectorOps<Isa>::add,
    .scaled_add = VectorOps<Isa>::scaled_add,
    .softcap = VectorOps<Isa>::softcap,
#else
    .norm = nullptr,
    .rope = nullptr,
    .activate = nullptr,
    .activate_gated = nullptr,
    .scale = nullptr,
    .add = nullptr,
    .scaled_add = nullptr,
    .softcap = nullptr,
#endif
#ifdef QUERN_ATTENTION
    .store_kv = AttentionOps<Isa>::store_kv,
    .attend = AttentionOps<Isa>::attend,
    .finish_attention = AttentionOps<Isa>::finish_attention,
#else
    .store_kv = nullptr,
    .attend = nullptr,
    .finish_attention = nullptr,
#endif
};

}  // namespace quern::kernels
