// What was typed before: the entries, their file, and walking through them. An entry may have several
// lines; in the file it is one line, with \ and line end written as \\ and \n.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace quern::terminal {

class History {
 public:
  static constexpr std::size_t kMaxEntries = 1000;
  static constexpr std::size_t kMaxEntryBytes = 65536;  // longer ones are not kept

  // Newest last. An entry that is there already moves to the end; blank and overlong ones are not kept.
  // True when it is the newest entry now and was not before.
  bool add(std::string_view entry);
  const std::vector<std::string>& entries() const { return entries_; }

  // The file's text; lines that no history could have written are skipped.
  void read(std::string_view file_text);
  std::string write() const;
  static std::string escaped(std::string_view entry);

 private:
  std::vector<std::string> entries_;
};

// The file of a history: mode 0600, appended to at once so that neither a crash nor a second program
// loses an entry, rewritten when it has grown to twice what is kept.
class HistoryFile {
 public:
  // Reads into `history`; a missing file is an empty one. Environment error when it cannot be read.
  HistoryFile(std::filesystem::path path, History& history);
  void append(std::string_view entry) const;  // environment error

 private:
  std::filesystem::path path_;
};

// $XDG_STATE_HOME/quern/history or ~/.local/state/quern/history; "" without a home.
std::filesystem::path default_history_path();

}  // namespace quern::terminal
