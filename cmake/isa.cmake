# One source, one object library per instruction set (docs/DECISIONS.md: ISA units).
# Kernel objects are always optimised: at -O0 xsimd's inline helpers become shared weak symbols,
# and the linker would then keep one copy, of any ISA, for all.
set(QUERN_ISAS "" CACHE INTERNAL "instruction sets built in")

# An object library of `source` with the flags of instruction set `name`.
function(quern_isa_object target name source)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/${source})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE
    $<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE QUERN_ISA=${name} QUERN_ISA_${name}=1)
  # -Wno-*uninitialized: gcc 12 warns of the undefined operands in its own AVX-512 header.
  target_compile_options(${target} PRIVATE -O3 -fno-exceptions -fno-rtti
    -fvisibility=hidden -fno-math-errno -fno-trapping-math
    -Wno-uninitialized -Wno-maybe-uninitialized ${ARGN})
  target_link_libraries(${target} PRIVATE quern_warnings)
endfunction()

function(quern_add_isa name)
  quern_isa_object(quern_isa_${name} ${name} src/kernels/isa.cpp ${ARGN})
  target_sources(quern_isa_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/kernels/isa_peak.cpp)
  set(QUERN_ISAS "${QUERN_ISAS};${name}" CACHE INTERNAL "instruction sets built in")
  if(QUERN_TESTS)  # every primitive of this ISA, for tests/kernels/primitives_test.cpp
    quern_isa_object(quern_probe_${name} ${name} tests/kernels/primitives_probe.cpp ${ARGN})
    target_include_directories(quern_probe_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  endif()
endfunction()

# -O2: the scalar path is the reference; -O3 takes gcc 12 four times as long for it.
quern_add_isa(scalar -O2)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  quern_add_isa(avx2 -mavx2 -mfma -mf16c)
  quern_add_isa(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
  quern_add_isa(avx512vnni -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512vbmi
    -mavx512vbmi2 -mfma -mf16c)
endif()
