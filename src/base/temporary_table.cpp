#include "base/temporary_table.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>

#include "base/temporary.hpp"

namespace quern::base {

namespace {

enum : int { kFree, kFilling, kUsed };
struct Slot {
  std::atomic<int> state{kFree};
  char path[PATH_MAX];
};
std::array<Slot, 16> g_slots;  // a command has one or two at a time

// Temporary directories hold files, or one directory of files (quern-convert --verify).
constexpr int kMaxDepth = 3;

// Where getdents64(2) puts the length of an entry and its name; readdir() allocates and is not for handlers.
constexpr long kLengthOffset = 16, kNameOffset = 19;

void remove_tree(int parent, const char* name, int depth);  // recursion: kMaxDepth

// One pass over a directory; true when something in it was removed.
bool remove_entries(int fd, int depth) {
  char buffer[2048];
  bool removed = false;
  for (;;) {
    const long n = ::syscall(SYS_getdents64, fd, buffer, sizeof buffer);
    if (n <= 0) return removed;
    for (long at = 0; at < n;) {
      std::uint16_t length = 0;
      std::memcpy(&length, buffer + at + kLengthOffset, sizeof length);
      const char* name = buffer + at + kNameOffset;
      at += length;
      if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) continue;
      remove_tree(fd, name, depth + 1);
      removed = true;
    }
  }
}

void remove_tree(int parent, const char* name, int depth) {
  if (::unlinkat(parent, name, 0) == 0 || depth >= kMaxDepth) return;
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  // Some file systems skip entries while others are removed, so from the start again, a few times.
  for (int pass = 0; pass < 4 && remove_entries(fd, depth); ++pass) ::lseek(fd, 0, SEEK_SET);
  ::close(fd);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

int enter_temporary(const char* path) {
  const std::size_t bytes = std::strlen(path) + 1;
  if (bytes > sizeof(Slot::path)) return -1;
  for (std::size_t i = 0; i < g_slots.size(); ++i) {
    int expected = kFree;
    if (!g_slots[i].state.compare_exchange_strong(expected, kFilling)) continue;
    std::memcpy(g_slots[i].path, path, bytes);
    g_slots[i].state = kUsed;
    return static_cast<int>(i);
  }
  return -1;
}

void leave_temporary(int slot) {
  if (slot >= 0) g_slots[static_cast<std::size_t>(slot)].state = kFree;
}

bool remove_temporaries_in_handler() {
  bool any = false;
  for (Slot& slot : g_slots) {
    if (slot.state != kUsed) continue;
    remove_tree(AT_FDCWD, slot.path, 0);
    any = true;
  }
  return any;
}

}  // namespace quern::base
