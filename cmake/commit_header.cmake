# Run at every build: the commit as a header, touched only when it changed.
find_package(Git QUIET)
set(commit "unknown")
if(Git_FOUND)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --dirty=+ --abbrev=9 --exclude=*
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND NOT found STREQUAL "")
    set(commit ${found})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#pragma once\n#define QUERN_COMMIT \"${commit}\"\n")
