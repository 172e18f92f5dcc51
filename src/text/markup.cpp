#include "text/markup.hpp"

#include <algorithm>
#include <iterator>

namespace quern::text {

namespace {

constexpr std::string_view kElements[] = {
    "a",      "article", "b",     "bbox",  "blockquote", "body",   "br",     "button", "caption", "code",
    "col",    "del",     "div",   "dl",    "dt",         "dd",     "em",     "footer", "form",    "h1",
    "h2",     "h3",      "h4",    "h5",    "h6",         "head",   "header", "hr",     "html",    "i",
    "iframe", "img",     "input", "label", "li",         "link",   "meta",   "nav",    "ol",      "option",
    "p",      "pre",     "script", "section", "select",  "small",  "span",   "strike", "strong",  "style",
    "sub",    "sup",     "table", "tbody", "td",         "textarea", "tfoot", "th",    "thead",   "title",
    "tr",     "u",       "ul"};

bool is_element(std::string_view content) {
  if (content.front() != '<') return false;
  std::string_view name = content.substr(1, content.size() - 2);
  if (name.starts_with('/')) name.remove_prefix(1);
  return std::find(std::begin(kElements), std::end(kElements), name) != std::end(kElements);
}

}  // namespace

bool looks_like_markup(std::string_view content) {
  if (content.size() < 3) return false;
  const bool angles = content.front() == '<' && content.back() == '>';
  return (angles && !is_element(content)) || (content.front() == '[' && content.back() == ']');
}

}  // namespace quern::text
