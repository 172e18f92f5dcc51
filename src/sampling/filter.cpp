#include "sampling/filter.hpp"

namespace quern::sampling {

std::unique_ptr<Filter> make_filter(SamplerKind kind, const SamplerOptions& options,
                                    std::size_t vocab_size) {
  switch (kind) {
    case SamplerKind::penalties: return make_penalties(options, vocab_size);
    case SamplerKind::dry: return make_dry(options, vocab_size);
    case SamplerKind::top_n_sigma: return make_top_n_sigma(options);
    case SamplerKind::top_k: return make_top_k(options);
    case SamplerKind::typ_p: return make_typical(options, vocab_size);
    case SamplerKind::top_p: return make_top_p(options, vocab_size);
    case SamplerKind::min_p: return make_min_p(options);
    case SamplerKind::xtc: return make_xtc(options);
    case SamplerKind::temperature: return make_temperature(options);
  }
  return nullptr;
}

}  // namespace quern::sampling
