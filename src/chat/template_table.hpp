// models/chat/*.jinja as the build embeds them (cmake/embed_templates.cmake).
#pragma once

#include <cstddef>
#include <string_view>

namespace quern::chat {

struct EmbeddedTemplate {
  std::string_view name;  // file name without .jinja
  const char* text;
};
extern const EmbeddedTemplate kEmbeddedTemplates[];
extern const std::size_t kEmbeddedTemplateCount;

}  // namespace quern::chat
