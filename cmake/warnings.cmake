# Warnings of every target of ours; errors with -DQUERN_WERROR=ON (CI).
add_library(quern_warnings INTERFACE)
target_compile_options(quern_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
  -Wno-restrict   # gcc 12 warns about libstdc++'s own std::string (gcc bug 105651)
  $<$<BOOL:${QUERN_WERROR}>:-Werror>
  # From a precompiled header the same warnings of gcc 12 come, and more of that kind: its code counts as ours there.
  $<$<BOOL:${QUERN_PCH}>:-Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds>)
