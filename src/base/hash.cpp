#include "base/hash.hpp"

#include <xxhash.h>

#include <new>

namespace quern::base {

std::uint64_t xxh3(Bytes bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_->xxh);
}
Hasher::~Hasher() = default;
void Hasher::update(Bytes bytes) { XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size()); }
std::uint64_t Hasher::digest() const { return XXH3_64bits_digest(state_->xxh); }

}  // namespace quern::base
