#include "base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/temporary.hpp"

namespace quern::base {

namespace {

// Mappings the SIGBUS handler knows; a slot is free when its begin is null.
struct Range {
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<std::size_t> size{0};
};
constexpr std::size_t kMaxMappings = 4096;
std::array<Range, kMaxMappings> g_mappings;

void remember(const std::byte* begin, std::size_t size) {
  for (Range& range : g_mappings) {
    const std::byte* expected = nullptr;
    if (range.begin.compare_exchange_strong(expected, begin)) {
      range.size = size;
      return;
    }
  }
}

void forget(const std::byte* begin) {
  for (Range& range : g_mappings) {
    if (range.begin.load() != begin) continue;
    range.size = 0;
    range.begin = nullptr;
    return;
  }
}

void on_bus_error(int, siginfo_t* info, void*) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  for (const Range& range : g_mappings) {
    const std::byte* begin = range.begin.load();
    if (begin == nullptr || address < begin || address >= begin + range.size.load()) continue;
    static constexpr char kLine[] = "quern: error: model file changed while in use\n";
    [[maybe_unused]] const ssize_t written = ::write(2, kLine, sizeof(kLine) - 1);
    remove_temporaries_in_handler();
    ::_exit(static_cast<int>(ExitCode::environment));
  }
  std::signal(SIGBUS, SIG_DFL);  // the faulting instruction runs again and ends the process
}

// Closes the descriptor at the end of the scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

int open_regular(const std::filesystem::path& path, struct stat& status) {
  const std::string where = printable(path.string());
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP || error == ENXIO)
      reject(where, cat("cannot open: ", std::strerror(error)));
    environment_error(where, "cannot open", error);
  }
  if (::fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    environment_error(where, "cannot stat", error);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    reject(where, S_ISDIR(status.st_mode) ? "is a directory" : "not a regular file");
  }
  return fd;
}

void read_fully(int fd, std::byte* target, std::size_t size, const std::string& where) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::pread(fd, target + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) environment_error(where, "cannot read", errno);
    if (n == 0) reject(where, "file shrank while it was read");
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status{};
  const Descriptor file{open_regular(path, status)};
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd, 0);
  if (memory != MAP_FAILED) {
    data_ = static_cast<const std::byte*>(memory);
    remember(data_, size_);
    return;
  }
  memory = std::aligned_alloc(64, (size_ + 63) / 64 * 64);
  if (memory == nullptr) environment_error(printable(path.string()), "cannot map or read: out of memory");
  data_ = static_cast<const std::byte*>(memory);
  heap_ = true;
  read_fully(file.fd, static_cast<std::byte*>(memory), size_, printable(path.string()));
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(heap_, other.heap_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  void* memory = const_cast<std::byte*>(data_);  // NOLINT: the mapping is ours to end
  if (heap_) {
    std::free(memory);
    return;
  }
  forget(data_);
  ::munmap(memory, size_);
}

namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

MappedFile::Pages MappedFile::pages_of(std::size_t offset, std::size_t length) const {
  if (heap_ || data_ == nullptr || offset >= size_) return {nullptr, 0};
  const std::size_t begin = offset / page_bytes() * page_bytes();
  const std::size_t end = std::min(size_, offset + std::min(length, size_ - offset));
  return {const_cast<std::byte*>(data_ + begin), end - begin};  // NOLINT: nobody changes a byte
}

void MappedFile::advise(Advice advice, std::size_t offset, std::size_t length) const {
  static constexpr std::array<int, 5> kFlags = {MADV_SEQUENTIAL, MADV_RANDOM, MADV_WILLNEED,
                                                MADV_DONTNEED, MADV_HUGEPAGE};
  const Pages pages = pages_of(offset, length);
  if (pages.bytes != 0) ::madvise(pages.begin, pages.bytes, kFlags[static_cast<std::size_t>(advice)]);
}

void MappedFile::populate(std::size_t offset, std::size_t length) const {
  const Pages pages = pages_of(offset, length);
  if (pages.bytes == 0) return;
#if defined(MADV_POPULATE_READ)
  if (::madvise(pages.begin, pages.bytes, MADV_POPULATE_READ) == 0) return;
#endif
  for (std::size_t at = 0; at < pages.bytes; at += page_bytes())  // Linux before 5.14
    static_cast<void>(*static_cast<const volatile std::byte*>(static_cast<const std::byte*>(pages.begin) + at));
}

// Of files above 4 GiB a sample, a MiB here and there: asking for every page takes a millisecond a GiB, and timings ask
// after every answer.
std::size_t MappedFile::resident_bytes() const {
  if (heap_) return size_;
  constexpr std::size_t kPagesAtOnce = 256, kMaxParts = 4096;
  const std::size_t part_bytes = kPagesAtOnce * page_bytes();
  const std::size_t n_parts = (size_ + part_bytes - 1) / part_bytes, n_asked = std::min(n_parts, kMaxParts);
  std::array<unsigned char, kPagesAtOnce> in_memory{};
  std::size_t resident = 0, asked = 0;
  for (std::size_t i = 0; i < n_asked; ++i) {
    const Pages pages = pages_of(i * n_parts / n_asked * part_bytes, part_bytes);
    if (::mincore(pages.begin, pages.bytes, in_memory.data()) != 0) break;
    asked += pages.bytes;
    for (std::size_t page = 0; page * page_bytes() < pages.bytes; ++page)
      if ((in_memory[page] & 1U) != 0) resident += std::min(page_bytes(), pages.bytes - page * page_bytes());
  }
  if (asked == size_ || asked == 0) return resident;
  return static_cast<std::size_t>(static_cast<double>(size_) * static_cast<double>(resident) / static_cast<double>(asked));
}

void install_mapping_fault_handler() {
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  struct stat status{};
  const Descriptor file{open_regular(path, status)};
  const auto size = static_cast<std::size_t>(status.st_size);
  const std::string where = printable(path.string());
  if (size > limit_bytes)
    reject(where, "file is too large", cat(size, " bytes"), cat("at most ", limit_bytes));
  std::string text(size, '\0');
  read_fully(file.fd, reinterpret_cast<std::byte*>(text.data()), size, where);
  return text;
}

}  // namespace quern::base
