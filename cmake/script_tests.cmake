# The rules of the repository as tests (CONTRIBUTING.md), and the scripts that drive the programs.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  foreach(rule layers sizes names)
    add_test(NAME rule_${rule}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_${rule}.py ${PROJECT_SOURCE_DIR})
    set_tests_properties(rule_${rule} PROPERTIES LABELS rules)
  endforeach()
  add_test(NAME rule_families
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/families_table.py --check)
  set_tests_properties(rule_families PROPERTIES LABELS rules)
  if(NOT QUERN_SANITIZE)
    add_test(NAME rule_isa_symbols
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/check_isa_symbols.py ${CMAKE_BINARY_DIR})
    set_tests_properties(rule_isa_symbols PROPERTIES LABELS rules)
  endif()
endif()

# tests/tools/*.py drive the programs; QUERN_PYTHON (scripts/test sets it) names a Python with numpy.
file(GLOB tool_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*.py)
foreach(script ${tool_tests})
  get_filename_component(name ${script} NAME_WE)
  if(name MATCHES "^(harness|pty_terminal|batch_model|batch_disk|batch_case)$" OR QUERN_SANITIZE)
    continue()
  endif()
  add_test(NAME tools_${name}
    COMMAND sh -c "exec \"\${QUERN_PYTHON:-python3}\" \"$0\" \"$1\"" ${script} ${CMAKE_BINARY_DIR})
  set_tests_properties(tools_${name} PROPERTIES LABELS "tools" SKIP_RETURN_CODE 77 TIMEOUT 900)
endforeach()
