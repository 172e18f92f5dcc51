#include "jinja/template.hpp"

#include "base/error.hpp"
#include "base/strings.hpp"
#include "jinja/ast.hpp"
#include "jinja/characters.hpp"
#include "jinja/interpreter.hpp"
#include "jinja/parser.hpp"

namespace quern::jinja {

Template::Template(std::string_view source, std::string name, const Limits& limits)
    : name_(std::move(name)) {
  if (source.size() > limits.source_bytes)
    base::reject(name_, "the template is too long", base::cat(source.size(), " bytes"),
                 base::cat("at most ", limits.source_bytes));
  if (!valid_utf8(source)) base::reject(name_, "the template is not valid UTF-8");
  try {
    program_ = Parser(tokenize(source), limits).run();
  } catch (const SyntaxFault& fault) {
    base::reject(base::cat(name_, ": line ", fault.line), fault.what);
  }
}

Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

base::MarkedText Template::render(const Variables& variables, const RenderOptions& options) const {
  // Values refer to the heap inside: nothing of them leaves but the text.
  int line = 1;
  std::string item;
  try {
    Interpreter interpreter(*program_, variables, options);
    try {
      return interpreter.render();
    } catch (const Fault&) {
      line = interpreter.line();
      item = interpreter.blamed_item();
      throw;
    }
  } catch (const Fault& fault) {
    base::reject(base::cat(name_, ": line ", line, item.empty() ? "" : base::cat(", at ", item)),
                 fault.what());
  }
}

}  // namespace quern::jinja
