# One source, one object library per instruction set (docs/DECISIONS.md: ISA units).
# Kernel objects are always optimised: at -O0 xsimd's inline helpers become shared weak symbols,
# and the linker would then keep one copy, of any ISA, for all.
set(QUERN_ISAS "" CACHE INTERNAL "instruction sets built in")
set(QUERN_ONLY_ISAS "" CACHE STRING "build these instruction sets alone (for quick cycles; scalar must be one); empty: all")

# An object library of `source` for instruction set `name`: primitives of type `tag` in src/`header`, and flags.
function(quern_isa_object target name tag header source)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/${source})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE
    $<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${target} PRIVATE QUERN_PRIMITIVES="kernels/${header}.hpp" QUERN_TAG=${tag}
    QUERN_TABLE=kernels_${name} QUERN_PEAK=peak_${name} QUERN_PROBE=probe_${name})
  # -Wno-*uninitialized: gcc 12 warns of the undefined operands in its own AVX-512 header.
  target_compile_options(${target} PRIVATE -O3 -fno-exceptions -fno-rtti
    -fvisibility=hidden -fno-math-errno -fno-trapping-math
    -Wno-uninitialized -Wno-maybe-uninitialized ${ARGN})
  target_link_libraries(${target} PRIVATE quern_warnings)
endfunction()

# Every primitive of an instruction set, for tests/kernels/primitives_test.cpp.
function(quern_isa_probe name tag header)
  quern_isa_object(quern_probe_${name} ${name} ${tag} ${header} tests/kernels/primitives_probe.cpp ${ARGN})
  target_include_directories(quern_probe_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endfunction()

# In `result`: whether instruction set `name` is wanted.
function(quern_isa_wanted result name)
  set(${result} ON PARENT_SCOPE)
  if(QUERN_ONLY_ISAS AND NOT name IN_LIST QUERN_ONLY_ISAS)
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

function(quern_add_isa name tag flags)
  quern_isa_wanted(wanted ${name})
  if(NOT wanted)
    return()
  endif()
  quern_isa_object(quern_isa_${name} ${name} ${tag} primitives/${name} src/kernels/isa.cpp ${flags})
  target_sources(quern_isa_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/kernels/isa_peak.cpp)
  set(QUERN_ISAS "${QUERN_ISAS};${name}" CACHE INTERNAL "instruction sets built in")
  if(QUERN_TESTS)
    quern_isa_probe(${name} ${tag} primitives/${name} ${flags})
  endif()
endfunction()

# For the tests alone: an instruction set that few CPUs have, with its instructions in software (tests/kernels/
# emulated), under the flags of one that most have. Every primitive of it is tested; with TABLE the kernels over them
# too.
option(QUERN_EMULATED_TABLES "tests: kernels of every emulated instruction set (they compile slowly)" OFF)
set(QUERN_EMULATED_PROBES "" CACHE INTERNAL "instruction sets whose primitives the tests emulate")
set(QUERN_EMULATED_ISAS "" CACHE INTERNAL "instruction sets whose kernels the tests emulate")
function(quern_add_emulated_isa name tag flags)
  quern_isa_wanted(wanted ${name}_emulated)
  if(NOT QUERN_TESTS OR NOT wanted)
    return()
  endif()
  quern_isa_probe(${name}_emulated ${tag} emulated/${name} ${flags})
  set(QUERN_EMULATED_PROBES "${QUERN_EMULATED_PROBES};${name}_emulated" CACHE INTERNAL "")
  if(QUERN_EMULATED_TABLES OR ARGV3 STREQUAL "TABLE")
    quern_isa_object(quern_isa_${name}_emulated ${name}_emulated ${tag} emulated/${name} src/kernels/isa.cpp ${flags})
    target_include_directories(quern_isa_${name}_emulated PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    set(QUERN_EMULATED_ISAS "${QUERN_EMULATED_ISAS};${name}_emulated" CACHE INTERNAL "")
  endif()
endfunction()

# -O2: the scalar path is the reference; -O3 takes gcc 12 four times as long for it.
quern_add_isa(scalar Scalar -O2)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c)
  set(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
  set(avx512vnni ${avx512} -mavx512vnni -mavx512vbmi -mavx512vbmi2)
  quern_add_isa(avx2 Avx2 "${avx2}")
  quern_add_isa(avxvnni AvxVnni "${avx2};-mavxvnni")
  quern_add_isa(avx512 Avx512 "${avx512}")
  quern_add_isa(avx512vnni Avx512Vnni "${avx512vnni}")
  set(avx512bf16 ${avx512vnni} -mavx512bf16)
  quern_add_isa(zen4 Zen4 "${avx512bf16}")
  quern_add_isa(zen5 Zen5 "${avx512bf16}")
  quern_add_isa(amx Amx "${avx512bf16}")
  quern_add_emulated_isa(avxvnni AvxVnniEmulated "${avx2}" TABLE)
  # -Wno-psabi: vectors of 64 bytes without the registers for them.
  set(software "${avx2};-O1;-Wno-psabi")
  quern_add_emulated_isa(avx512 Avx512Emulated "${software}")
  quern_add_emulated_isa(avx512vnni Avx512VnniEmulated "${software}")
  quern_add_emulated_isa(zen4 Zen4Emulated "${software}")
  quern_add_emulated_isa(amx AmxEmulated "${avx2}" TABLE)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  quern_add_isa(neon Neon -march=armv8.2-a+dotprod)
  quern_add_isa(neon_i8mm NeonI8mm -march=armv8.2-a+dotprod+i8mm)
endif()
