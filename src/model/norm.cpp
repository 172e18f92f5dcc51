#include "model/norm.hpp"

namespace quern::model {

void normalize(Step& step, const Norm& norm, const Rows& x, const Rows& y) {
  auto work = [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i)
      step.model.kernels->norm(norm.args, x.row(i), y.row(i));
  };
  for_tokens(step, x.n, work);
}

}  // namespace quern::model
