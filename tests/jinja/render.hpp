// Rendering for tests: variables as JSON, untrusted; a frozen clock.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "jinja/template.hpp"

namespace test {

inline quern::jinja::RenderOptions render_options() {
  quern::jinja::RenderOptions options;
  options.now.tm_year = 126;
  options.now.tm_mon = 0;
  options.now.tm_mday = 15;
  options.now.tm_hour = 12;
  options.now.tm_wday = 4;
  options.now.tm_yday = 14;
  return options;
}

inline quern::base::MarkedText render_marked(std::string_view source, std::string_view variables = "{}",
                                             const quern::jinja::RenderOptions& options = render_options()) {
  using namespace quern::jinja;
  Template::Variables list;
  for (const auto& [name, value] : Data::parse(variables, "test", Trust::untrusted).members)
    list.emplace_back(name.text, value);
  return Template(source, "test").render(list, options);
}

// The text, or "!" and the message of the error.
inline std::string render(std::string_view source, std::string_view variables = "{}",
                          const quern::jinja::RenderOptions& options = render_options()) {
  try {
    return render_marked(source, variables, options).text;
  } catch (const quern::base::Error& error) {
    if (error.code() != quern::base::ExitCode::input) return "! wrong exit code";
    return std::string("!") + error.what();
  }
}

}  // namespace test
