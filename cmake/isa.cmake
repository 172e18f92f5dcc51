# One source, one object library per instruction set (docs/DECISIONS.md: ISA units).
# Kernel objects are always optimised: at -O0 xsimd's inline helpers become shared weak symbols,
# and the linker would then keep one copy, of any ISA, for all.
set(QUERN_ISAS "" CACHE INTERNAL "instruction sets built in")
function(quern_add_isa name)
  add_library(quern_isa_${name} OBJECT ${PROJECT_SOURCE_DIR}/src/kernels/isa.cpp)
  target_include_directories(quern_isa_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(quern_isa_${name} PRIVATE QUERN_ISA=${name} QUERN_ISA_${name}=1)
  target_compile_options(quern_isa_${name} PRIVATE -O3 -fno-exceptions -fno-rtti
    -fvisibility=hidden -fno-math-errno -fno-trapping-math ${ARGN})
  target_link_libraries(quern_isa_${name} PRIVATE quern_warnings)
  set(QUERN_ISAS "${QUERN_ISAS};${name}" CACHE INTERNAL "instruction sets built in")
endfunction()

quern_add_isa(scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  quern_add_isa(avx2 -mavx2 -mfma -mf16c)
  quern_add_isa(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
  quern_add_isa(avx512vnni -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512vbmi
    -mavx512vbmi2 -mfma -mf16c)
endif()
