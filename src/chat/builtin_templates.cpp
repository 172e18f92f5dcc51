#include "chat/builtin_templates.hpp"

#include "chat/template_table.hpp"

namespace quern::chat {

std::string builtin_template(std::string_view name) {
  for (std::size_t i = 0; i < kEmbeddedTemplateCount; ++i)
    if (kEmbeddedTemplates[i].name == name) return kEmbeddedTemplates[i].text;
  return {};
}

std::vector<std::string_view> builtin_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kEmbeddedTemplateCount; ++i)
    names.push_back(kEmbeddedTemplates[i].name);
  return names;
}

}  // namespace quern::chat
