include(GNUInstallDirs)

# What both programs share: option parsing, signals, terminal, --version.
file(GLOB common_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/common/*.cpp)
add_library(quern_tool_common STATIC ${common_sources})
target_include_directories(quern_tool_common PUBLIC ${PROJECT_SOURCE_DIR}/tools/common)
target_include_directories(quern_tool_common SYSTEM PRIVATE
  $<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(quern_tool_common PUBLIC CLI11::CLI11 quern_batch quern_bench quern_chat quern_terminal quern_grammar
  quern_engine quern_convert quern_plan quern_eval PRIVATE quern_warnings)
target_compile_definitions(quern_tool_common PRIVATE QUERN_VERSION="${PROJECT_VERSION}"
  QUERN_BUILD_TYPE="${CMAKE_BUILD_TYPE}")
# Command lines are CLI11's templates by the thousand and nothing hot: -O1 halves their build time.
target_compile_options(quern_tool_common PRIVATE -O1)
quern_precompile(quern_tool_common <CLI/CLI.hpp>)

# The commit for --version and bench, looked up at every build, written when it changed.
add_custom_target(quern_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUT=${CMAKE_BINARY_DIR}/generated/commit.hpp
    -P ${PROJECT_SOURCE_DIR}/cmake/commit_header.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/commit.hpp)
add_dependencies(quern_tool_common quern_commit)
target_include_directories(quern_tool_common PRIVATE ${CMAKE_BINARY_DIR})

function(quern_tool name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tools/${name}/*.cpp)
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE quern_tool_common quern_warnings)
  target_compile_options(${name} PRIVATE -O1)
  quern_precompile(${name} <CLI/CLI.hpp>)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
quern_tool(quern)
quern_tool(quern-convert)

# Manuals and completions, made by the programs from their own option tables. Not when the programs cannot run here.
if(NOT CMAKE_CROSSCOMPILING)
  set(manuals ${CMAKE_BINARY_DIR}/manuals)
  add_custom_command(OUTPUT ${manuals}/done
    COMMAND ${CMAKE_COMMAND} -E env QUERN_CONFIG= $<TARGET_FILE:quern> help --write-to ${manuals}
    COMMAND ${CMAKE_COMMAND} -E env QUERN_CONFIG= $<TARGET_FILE:quern-convert> --write-manuals-to ${manuals}
    COMMAND ${CMAKE_COMMAND} -E touch ${manuals}/done
    DEPENDS quern quern-convert COMMENT "manuals and completions")
  add_custom_target(manuals ALL DEPENDS ${manuals}/done)
  install(DIRECTORY ${manuals}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(DIRECTORY ${manuals}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(DIRECTORY ${manuals}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(DIRECTORY ${manuals}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
