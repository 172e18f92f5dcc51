#include "terminal/history.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.hpp"
#include "catch.hpp"

using namespace quern::terminal;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("quern_history_" + std::to_string(::getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("entries come once, newest last, and survive their file with every line of theirs") {
  const Folder folder;
  const fs::path path = folder.path / "deep" / "history";
  {
    History history;
    const HistoryFile file(path, history);
    for (const char* entry : {"one", "two\nlines\\n", "one", "one", " \n", "\xE5\xAD\x97"})
      if (history.add(entry)) file.append(entry);
    CHECK(history.entries() == std::vector<std::string>{"two\nlines\\n", "one", "\xE5\xAD\x97"});
  }
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  History again;
  const HistoryFile file(path, again);
  CHECK(again.entries() == std::vector<std::string>{"two\nlines\\n", "one", "\xE5\xAD\x97"});
}

TEST_CASE("a history is bounded, in memory and in its file") {
  const Folder folder;
  const fs::path path = folder.path / "history";
  History history;
  const HistoryFile file(path, history);
  for (std::size_t i = 0; i < 3 * History::kMaxEntries; ++i) file.append("entry " + std::to_string(i));
  History again;
  const HistoryFile rewritten(path, again);
  CHECK(again.entries().size() == History::kMaxEntries);
  CHECK(again.entries().back() == "entry " + std::to_string(3 * History::kMaxEntries - 1));
  CHECK(fs::file_size(path) < 20 * History::kMaxEntries);
  CHECK_FALSE(again.add(std::string(History::kMaxEntryBytes + 1, 'x')));
}

TEST_CASE("lines that no history wrote are skipped") {
  History history;
  history.read("good\nbad \\x\nbad \xFF\nbad \\\n\n  \nalso good");
  CHECK(history.entries() == std::vector<std::string>{"good", "also good"});
}

TEST_CASE("a history that is no regular file is an error, and never waited for") {
  const Folder folder;
  fs::create_directories(folder.path);
  const fs::path fifo = folder.path / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  History history;
  CHECK_THROWS_AS(HistoryFile(fifo, history), quern::base::Error);
}
