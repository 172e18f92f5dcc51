// A chat template: Jinja source, parsed once, rendered as jinja2's ImmutableSandboxedEnvironment
// with trim_blocks, lstrip_blocks, loop controls and `{% generation %}` renders it, byte for byte.
// No input or output, no include, import or extends, no changing of lists or dictionaries. Not
// here: what a chat is (chat/format.hpp).
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/marked_text.hpp"
#include "jinja/data.hpp"
#include "jinja/limits.hpp"

namespace quern::jinja {

struct RenderOptions {
  std::tm now{};  // what strftime_now shows
  Limits limits;
  // Name of a variable that is a list: an error raised while a loop is at one of its items names
  // the item ("messages[3]").
  std::string blamed = "messages";
};

struct Program;  // the parsed source

class Template {
 public:
  // Input errors name `name`, the line and what is wrong.
  Template(std::string_view source, std::string name, const Limits& limits = {});
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  using Variables = std::vector<std::pair<std::string, Data>>;  // the last of a name counts

  // Template text, its literals and trusted variables are trusted in the result, what comes of
  // untrusted ones is not. Input errors as above; raise_exception's message comes as it is.
  base::MarkedText render(const Variables& variables, const RenderOptions& options) const;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::unique_ptr<Program> program_;
};

}  // namespace quern::jinja
