#include "model/lazy_array.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/strings.hpp"

namespace quern::model {

LazyMemory::LazyMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    base::environment_error("memory", base::cat("cannot reserve ", base::human_bytes(bytes)),
                            errno);
  data_ = static_cast<std::byte*>(memory);
}

LazyMemory::~LazyMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace quern::model
