#include "base/error.hpp"
#include "base/strings.hpp"
#include "contract/contract.hpp"

namespace quern::contract {

std::vector<LayerRef> unroll(const Contract& contract, const Stack& stack) {
  std::vector<LayerRef> layers;
  for (const LayerGroup& group : stack.layers) {
    const std::size_t first = layers.size();
    for (std::size_t repetition = 0; repetition < group.repeat; ++repetition) {
      for (std::size_t place = 0; place < group.pattern.size(); ++place) {
        const auto block = contract.blocks.find(group.pattern[place]);
        if (block == contract.blocks.end())
          base::reject("blocks", base::cat("no block named \"",
                                           base::printable(group.pattern[place], 60), "\""));
        layers.push_back(
            {&block->first, &block->second, group.share_weights ? first + place : layers.size()});
      }
    }
  }
  return layers;
}

}  // namespace quern::contract
