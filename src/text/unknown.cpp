#include "text/unknown.hpp"

namespace quern::text {

bool append_byte_ids(const TokenizerTables& tables, std::string_view text,
                     std::vector<std::int32_t>& out) {
  const std::size_t before = out.size();
  for (const char c : text) {
    const std::int32_t id = tables.byte_id(static_cast<unsigned char>(c));
    if (id < 0 || !tables.is_id(id)) {
      out.resize(before);
      return false;
    }
    out.push_back(id);
  }
  return true;
}

void append_unknown(const TokenizerTables& tables, const Unknown& unknown, std::string_view text,
                    std::vector<std::int32_t>& out) {
  if (unknown.byte_fallback && append_byte_ids(tables, text, out)) return;
  if (unknown.id) out.push_back(*unknown.id);
}

}  // namespace quern::text
