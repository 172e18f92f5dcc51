// Outputs that appear whole or not at all: links, streams, failures of the disk, dead processes, signals.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/file_lock.hpp"
#include "base/mapped_file.hpp"
#include "base/output_directory.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"
#include "catch.hpp"

using namespace quern::base;
namespace fs = std::filesystem;

namespace {

std::optional<int> g_failing_sync;  // 0: the next fsync() is an EIO, 1: the one after it, ...

// An empty directory, gone at the end of the test.
struct TempDir {
  TempDir() {
    std::string pattern = (fs::temp_directory_path() / "quern-test-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TempDir() { fs::remove_all(path); }
  std::size_t n_entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
  fs::path path;
};

void put(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }
std::string get(const fs::path& path) { return read_text_file(path, 1 << 20); }

void replace_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path, AtomicFile::Access::shared);
  file.file().write(as_bytes(text));
  file.publish();
}

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

}  // namespace

// Takes the place of libc's in this program.
extern "C" int fsync(int fd) {
  if (g_failing_sync && (*g_failing_sync)-- == 0) {
    g_failing_sync.reset();
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

TEST_CASE("output: a link stays a link, and what it points to is replaced") {
  const TempDir dir;
  fs::create_directory(dir.path / "sub");
  put(dir.path / "sub" / "file", "old");
  fs::create_symlink("sub/file", dir.path / "one");
  fs::create_symlink(dir.path / "one", dir.path / "two");
  fs::create_symlink("sub/new", dir.path / "dangling");
  for (const char* link : {"one", "two"}) {
    replace_file(dir.path / link, link);
    CHECK(fs::is_symlink(dir.path / link));
    CHECK(get(dir.path / "sub" / "file") == link);
  }
  replace_file(dir.path / "dangling", "made");
  CHECK(get(dir.path / "sub" / "new") == "made");
  fs::create_symlink("loop", dir.path / "loop");
  CHECK_THROWS_AS(replace_file(dir.path / "loop", "x"), Error);
  CHECK_THROWS_AS(replace_file(dir.path / "sub", "x"), Error);
  CHECK(dir.n_entries() == 5);  // sub and four links
}

TEST_CASE("output: a locked file has one holder") {
  const TempDir dir;
  const fs::path file = dir.path / "chat", lock = dir.path / ".chat.lock";
  {
    const FileLock first(file);
    CHECK(fs::exists(lock));
    try {
      const FileLock second(dir.path / "." / "chat");
      FAIL("locked twice");
    } catch (const Error& error) {
      CHECK(error.code() == ExitCode::environment);
      CHECK(std::string(error.what()).find(cat("process ", ::getpid())) != std::string::npos);
    }
    CHECK(fs::exists(lock));
    put(file, "text");
    fs::create_symlink("chat", dir.path / "link");
    CHECK_THROWS_AS(FileLock(dir.path / "link"), Error);
    replace_file(file, "replaced");  // the lock does not belong to the file that was
    CHECK_THROWS_AS(FileLock(file), Error);
    const FileLock other(dir.path / "other");
  }
  CHECK_FALSE(fs::exists(lock));
  put(lock, "77777\n");  // of a process that was killed
  const FileLock again(file);
  CHECK_THROWS_AS(FileLock(file), Error);
  CHECK_THROWS_AS(FileLock(dir.path / "none" / "chat"), Error);
}

TEST_CASE("output: what is no regular file is written into") {
  const TempDir dir;
  const fs::path fifo = dir.path / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const Descriptor reader{::open(fifo.c_str(), O_RDONLY | O_NONBLOCK)};
  fs::create_symlink("fifo", dir.path / "link");
  for (const char* name : {"fifo", "link"}) {
    replace_file(dir.path / name, "through");
    char buffer[16] = {};
    CHECK(::read(reader.fd, buffer, sizeof buffer) == 7);
    CHECK(std::string(buffer) == "through");
    CHECK(fs::is_fifo(dir.path / name));
  }
  CHECK_NOTHROW(replace_file("/dev/null", "gone"));
  CHECK_THROWS_WITH(replace_file("/dev/full", "x"), Catch::Contains("No space left"));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_WITH(AtomicFile(fifo), Catch::Contains("not a regular file"));  // private files are no streams
  CHECK(dir.n_entries() == 2);
}

TEST_CASE("output: a descriptor of a file is written where it stands, and the file stays the same one") {
  const TempDir dir;
  put(dir.path / "log", "before\n");
  struct stat before{}, after{};
  REQUIRE(::stat((dir.path / "log").c_str(), &before) == 0);
  const Descriptor log{::open((dir.path / "log").c_str(), O_WRONLY | O_APPEND)};
  fs::create_symlink(cat("/proc/self/fd/", log.fd), dir.path / "link");
  for (const fs::path& path : {fs::path(cat("/dev/fd/", log.fd)), fs::path(cat("/proc/self/fd/", log.fd)), dir.path / "link"})
    replace_file(path, "more\n");
  CHECK(get(dir.path / "log") == "before\nmore\nmore\nmore\n");
  REQUIRE(::stat((dir.path / "log").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK_THROWS_AS(replace_file("/proc/self/fd/999999", "x"), Error);
}

TEST_CASE("output: an existing file keeps its permissions, a private one has none for others") {
  const TempDir dir;
  put(dir.path / "f", "old");
  fs::permissions(dir.path / "f", fs::perms(0640));
  replace_file(dir.path / "f", "new");
  CHECK(fs::status(dir.path / "f").permissions() == fs::perms(0640));
  AtomicFile file(dir.path / "f");
  file.publish();
  CHECK(fs::status(dir.path / "f").permissions() == fs::perms(0600));
}

TEST_CASE("output: a sync that fails leaves the old one in its place and nothing else") {
  const TempDir dir;
  const auto try_file = [&] { replace_file(dir.path / "file", "new"); };
  const auto try_directory = [&] {
    OutputDirectory output(dir.path / "directory", true);
    put(output.path() / "a", "new");
    output.publish();
  };
  for (const bool existing : {false, true}) {
    if (existing) {
      put(dir.path / "file", "old");
      fs::create_directory(dir.path / "directory");
      put(dir.path / "directory" / "a", "old");
    }
    for (int n = 0; n < 2; ++n) {  // of the thing itself, of its parent
      g_failing_sync = n;
      CHECK_THROWS_WITH(try_file(), Catch::Contains("cannot sync"));
      g_failing_sync = n;
      CHECK_THROWS_WITH(try_directory(), Catch::Contains("cannot sync"));
      g_failing_sync.reset();
      CHECK(dir.n_entries() == (existing ? 2 : 0));
      if (!existing) continue;
      CHECK(get(dir.path / "file") == "old");
      CHECK(get(dir.path / "directory" / "a") == "old");
    }
  }
  CHECK_NOTHROW(try_file());
  CHECK_NOTHROW(try_directory());
  CHECK(get(dir.path / "directory" / "a") == "new");
  CHECK(dir.n_entries() == 2);
}

TEST_CASE("output: temporaries of dead processes go, those of living ones and look-alikes stay") {
  const TempDir dir;
  const auto make_all = [&] {
    put(dir.path / ".out.quern-abc123", "torn");
    fs::create_directory(dir.path / ".out.quern-dead00");
    put(dir.path / ".out.quern-dead00" / "model.quern", "torn");
  };
  for (const char* name : {".out.backup", ".out.quern-ABC123", ".out.quern-abc12", ".out.quern-abc1234",
                           ".out2.quern-abc123", "out.quern-abc123"})
    put(dir.path / name, "mine");
  put(dir.path / ".out.quern-living", "busy");
  fs::create_symlink(".out.backup", dir.path / ".out.quern-linked");
  const Descriptor living{::open((dir.path / ".out.quern-living").c_str(), O_RDONLY)};
  REQUIRE(::flock(living.fd, LOCK_EX) == 0);
  const std::size_t n_kept = dir.n_entries();
  make_all();
  {
    const OutputDirectory output(dir.path / "out", false);
    CHECK(dir.n_entries() == n_kept + 1);
    make_all();
    const AtomicFile second(dir.path / "out");  // does not take the first one for stale
    CHECK(fs::is_directory(output.path()));
    CHECK(dir.n_entries() == n_kept + 2);
  }
  CHECK(dir.n_entries() == n_kept);
  CHECK(get(dir.path / ".out.backup") == "mine");
}

TEST_CASE("output: a handler removes temporaries with what is in them, published ones stay") {
  const TempDir dir;
  replace_file(dir.path / "done", "x");
  CHECK(!remove_temporaries_in_handler());
  {
    const OutputDirectory output(dir.path / "out", false);
    const AtomicFile file(dir.path / "file");
    fs::create_directory(output.path() / "inner");
    for (int i = 0; i < 200; ++i) put(output.path() / "inner" / cat("a_file_of_some_length_", i), "1");
    put(output.path() / "model.quern", "1");
    CHECK(dir.n_entries() == 3);
    CHECK(remove_temporaries_in_handler());
    CHECK(dir.n_entries() == 1);
  }
  const std::string long_name(250, 'n');
  replace_file(dir.path / long_name, "y");
  CHECK(get(dir.path / long_name) == "y");
  CHECK(dir.n_entries() == 2);
}
