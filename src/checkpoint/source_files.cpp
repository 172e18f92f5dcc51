#include "checkpoint/source_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace quern::checkpoint {

namespace {

constexpr std::size_t kMaxNameBytes = 255;  // what Linux file systems allow
constexpr std::size_t kMaxEntries = 100'000;

// False with errno set when the file cannot be looked at.
bool identify(const std::filesystem::path& path, FileIdentity& identity) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  identity = {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
              static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec,
              status.st_mtim.tv_nsec};
  return true;
}

bool is_within(const std::filesystem::path& file, const std::filesystem::path& directory) {
  const auto [rest, _] =
      std::mismatch(directory.begin(), directory.end(), file.begin(), file.end());
  return rest == directory.end();
}

// The blobs of the hub cache that `real` is a snapshot of; empty when it is none.
std::filesystem::path cache_blobs(const std::filesystem::path& real) {
  if (real.parent_path().filename() != "snapshots") return {};
  return real.parent_path().parent_path() / "blobs";
}

}  // namespace

SourceFile::SourceFile(const std::filesystem::path& path) : path_(path) {
  FileIdentity before;
  identify(path, before);  // a missing file is reported by the mapping below
  file_ = base::MappedFile(path);
  if (!identify(path, identity_) || identity_ != before || identity_.size != file_.bytes().size())
    base::reject(base::printable(path.string()), "source changed while it was opened");
}

void SourceFile::release(base::Bytes part) const {
  const auto offset = static_cast<std::size_t>(part.data() - file_.bytes().data());
  file_.advise(base::MappedFile::Advice::dont_need, offset, part.size());
}

void SourceFile::check_unchanged() const {
  FileIdentity now;
  if (!identify(path_, now) || now != identity_)
    base::reject(base::printable(path_.string()), "source changed during conversion");
}

bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
}

namespace {

// A file of the directory, or of a directory in it.
bool is_inside(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_plain_file_name(name);
  return is_plain_file_name(name.substr(0, slash)) && is_plain_file_name(name.substr(slash + 1));
}

}  // namespace

SourceDirectory::SourceDirectory(const std::filesystem::path& path) : shown_(path) {
  std::error_code error;
  real_ = std::filesystem::canonical(path.empty() ? "." : path, error);
  if (error)
    base::reject(base::printable(path.string()), base::cat("cannot open: ", error.message()));
  if (!std::filesystem::is_directory(real_, error))
    base::reject(base::printable(path.string()), "not a directory");
}

std::string SourceDirectory::where(std::string_view name) const {
  return base::printable((shown_ / name).string());
}

bool SourceDirectory::has(std::string_view name) const {
  if (!is_inside(name)) return false;
  std::error_code error;
  const auto kind = std::filesystem::symlink_status(real_ / name, error).type();
  return kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::none;
}

std::vector<std::string> SourceDirectory::names() const {
  std::vector<std::string> found;
  std::error_code error;
  std::filesystem::directory_iterator entry(real_, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    found.push_back(entry->path().filename().string());
    if (found.size() > kMaxEntries)
      base::reject(base::printable(shown_.string()), "directory has too many entries");
  }
  if (error)
    base::environment_error(base::printable(shown_.string()), "cannot list", error.value());
  std::sort(found.begin(), found.end());
  return found;
}

std::filesystem::path SourceDirectory::resolve(std::string_view name) const {
  if (!is_inside(name))
    base::reject(base::printable(shown_.string()), "not a plain file name",
                 base::cat("\"", base::printable(name, 80), "\""));
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(real_ / name, error);
  if (error) base::reject(where(name), base::cat("cannot open: ", error.message()));
  const std::filesystem::path blobs = cache_blobs(real_);
  if (!is_within(real, real_) && (blobs.empty() || real.parent_path() != blobs))
    base::reject(where(name), "link leads out of the checkpoint's directory",
                 base::printable(real.string()), "a file in it or in its hub cache");
  return real;
}

}  // namespace quern::checkpoint
