#include "manual_files.hpp"

#include <system_error>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "base/strings.hpp"

namespace quern::tool {

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) base::environment_error(base::printable(path.parent_path().string()), "cannot make the directory", error.value());
  base::write_file_atomically(path, text);
  std::filesystem::permissions(path, std::filesystem::perms(0644), error);
}

const CommandText& find(const ProgramText& program, const std::string& name) {
  std::vector<std::string_view> known;
  for (const CommandText& command : program.commands) {
    if (command.name == name) return command;
    known.push_back(command.name);
  }
  const std::string near = base::nearest(name, known);
  base::usage_error("", base::cat("unknown command \"", base::printable(name, 60), "\"",
                                  near.empty() ? "" : base::cat(", did you mean \"", near, "\"?"), "; known: ",
                                  base::join(known)));
}

}  // namespace

std::string manual_text(ManualFormat format, const ProgramText& program, const std::string& command) {
  const bool one = program.commands.size() == 1 && program.commands.front().name.empty();
  switch (format) {
    case ManualFormat::bash: return bash_completion(program);
    case ManualFormat::zsh: return zsh_completion(program);
    case ManualFormat::fish: return fish_completion(program);
    case ManualFormat::man:
      if (command.empty() && !one) return man_overview(program);
      return man_page(find(program, command), program);
    case ManualFormat::markdown: break;
  }
  if (!command.empty() || one) return markdown_page(find(program, command));
  std::string out;
  for (const CommandText& each : program.commands) out += markdown_page(each) + "\n";
  return out;
}

void write_manuals(const std::filesystem::path& folder, const ProgramText& program) {
  for (const CommandText& command : program.commands)
    write(folder / "man1" / (command.full_name('-') + ".1"), man_page(command, program));
  if (!program.commands.front().name.empty()) write(folder / "man1" / (program.name + ".1"), man_overview(program));
  write(folder / "bash" / program.name, bash_completion(program));
  write(folder / "zsh" / ("_" + program.name), zsh_completion(program));
  write(folder / "fish" / (program.name + ".fish"), fish_completion(program));
}

}  // namespace quern::tool
