// Bounds of grammars and of their use. Every one is an input error of one line when it is exceeded,
// never a crash: grammars, schemas and patterns come from strangers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::grammar {

inline constexpr std::size_t kMaxSourceBytes = 4u << 20;    // of one grammar, schema or pattern
inline constexpr std::size_t kMaxNesting = 200;             // groups within groups, in any syntax
inline constexpr std::size_t kMaxNodes = 300'000;           // expressions of one grammar
inline constexpr std::size_t kMaxRules = 30'000;
inline constexpr std::uint32_t kMaxRepeat = 10'000;         // n of {m,n}, maxLength, maxItems
inline constexpr std::size_t kMaxStates = 600'000;          // of all automata of one grammar
inline constexpr std::size_t kMaxDfaStates = 100'000;       // of one pattern, format or their product
inline constexpr std::size_t kMaxAlternatives = 2'000;      // of anyOf, oneOf and their products
inline constexpr std::uint32_t kMaxStackDepth = 256;        // rules open at once while an answer grows
inline constexpr std::size_t kMaxStacks = 2'000;            // ways to read one answer
inline constexpr std::size_t kMaxMachineBytes = 64u << 20;  // what a matcher remembers of states
inline constexpr std::size_t kMaxMaskBytes = 128u << 20;    // what a matcher remembers of masks

}  // namespace quern::grammar
