// The letters behind sizes as people type them: k, M, G and T are powers of 1,024.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quern::base {

// Takes such a letter (of either case) off the front of `rest`: its power; 1 where there is none.
inline std::uint64_t take_binary_power(std::string_view& rest) {
  constexpr std::string_view kLetters = "kKmMgGtT";
  const std::size_t at = rest.empty() ? std::string_view::npos : kLetters.find(rest.front());
  if (at == std::string_view::npos) return 1;
  rest.remove_prefix(1);
  return std::uint64_t{1024} << (10 * (at / 2));
}

}  // namespace quern::base
