// The user's own editor on a message: Ctrl-G and /edit.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"
#include "base/temporary.hpp"
#include "chat_input.hpp"
#include "text/stream_decoder.hpp"

namespace quern::tool {

namespace {

constexpr std::size_t kMaxEditedBytes = std::size_t{16} << 20;

std::string editor_command() {
  for (const char* name : {"VISUAL", "EDITOR"})
    if (const char* value = std::getenv(name); value != nullptr && value[0] != '\0') return value;
  return "vi";
}

std::filesystem::path temporary_place() {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::temp_directory_path(error);
  return error ? std::filesystem::path("/tmp") : place;
}

// In a folder of its own: editors write backups and swap files beside the file. Whatever ends quern, it goes.
struct PrivateFile {
  base::Temporary folder{temporary_place() / "message", base::Temporary::Kind::directory, 0700};
  std::filesystem::path path = folder.path() / "message.txt";

  explicit PrivateFile(const std::string& text) { base::OutputFile(path, 0600).write(base::as_bytes(text)); }
};

// Through the shell, as EDITOR may have arguments. Ctrl-C belongs to the editor meanwhile.
int run_command(const std::string& command, const std::string& path) {
  struct sigaction ignore {
  }, old{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &old);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTSTP, SIG_DFL);
    const std::string script = command + " \"$1\"";
    ::execl("/bin/sh", "sh", "-c", script.c_str(), "sh", path.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ::sigaction(SIGINT, &old, nullptr);
  return child < 0 ? -1 : status;
}

}  // namespace

std::string run_editor(const std::string& text) {
  const PrivateFile file(text);
  const std::string command = editor_command();
  const int status = run_command(command, file.path.string());
  if (status != 0) base::environment_error(base::printable(command), "the editor failed; the text is as it was");
  std::string edited = base::read_text_file(file.path, kMaxEditedBytes);
  while (edited.ends_with('\n') || edited.ends_with('\r')) edited.pop_back();
  return text::utf8_lossy(edited);
}

}  // namespace quern::tool
