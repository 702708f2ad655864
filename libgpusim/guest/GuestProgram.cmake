# gpusim_add_guest_program(NAME [ISA isa] SOURCES file... [DEFINITIONS NAME=VALUE...]
#                          [OPTIONS flag...] [DEPENDS file...] [WITH_RUNTIME])
#   Cross-compiles a freestanding SPMD program, linked with libgpusim_guest.a, for one of
#   GPUSIM_GUEST_ISAS: aarch64 to <current build folder>/NAME.elf, target NAME_guest; others to
#   <current build folder>/<isa>/NAME.elf, target NAME_<isa>_guest. With WITH_RUNTIME the runtime is
#   compiled with the program, with its options. Without a cross compiler it does nothing but say so
#   once.
# gpusim_add_native_program(NAME SOURCES ... DEFINITIONS ... OPTIONS ... DEPENDS ...)
#   The same sources for the host, as <current build folder>/NAME.native. Target: NAME_native.
# Definitions and options are the same for all, so that their outputs can be compared.
include_guard(GLOBAL)

set(GPUSIM_GUEST_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "")
set(GPUSIM_GUEST_BUILD_DIR "${CMAKE_CURRENT_BINARY_DIR}" CACHE INTERNAL "")
set(GPUSIM_GUEST_ISAS aarch64 riscv64 riscv32 CACHE INTERNAL "")
# Armv8.1 has atomic additions as single instructions. With Armv8.0's exclusive pairs, cores in lockstep
# that meet at one address succeed one by one: the bitonic sort took 13 times as long on 65,536 cores,
# 3 times on 1,024. One program can still ask for OPTIONS -march=armv8-a.
set(GPUSIM_GUEST_MARCH "armv8.1-a" CACHE STRING "AArch64 architecture of the guest programs")
# Without Zba each access of an array by a 32-bit index costs two shifts more: a matrix product of
# integers executes 1.5 times as many instructions.
set(GPUSIM_RISCV64_MARCH "rv64gc_zba_zbb_zbs" CACHE STRING
    "RISC-V architecture of the guest programs")
find_program(GPUSIM_GUEST_CC aarch64-linux-gnu-gcc DOC "Cross compiler for AArch64 guest programs")
find_program(GPUSIM_RISCV64_GCC riscv64-linux-gnu-gcc
             DOC "Cross compiler for RISC-V guest programs")
# Debian has no compiler for Linux on it; its libgcc is for this architecture, without Zba.
find_program(GPUSIM_RISCV_ELF_GCC riscv64-unknown-elf-gcc
             DOC "Cross compiler for 32-bit RISC-V guest programs")
find_program(GPUSIM_QEMU_AARCH64 qemu-aarch64 DOC "Emulator that results are compared with")
find_program(GPUSIM_QEMU_RISCV64 qemu-riscv64 DOC "Emulator that results are compared with")
find_program(GPUSIM_QEMU_RISCV32 qemu-riscv32 DOC "Emulator that results are compared with")

# Sets in the caller's scope what is an ISA's own: guest_cc (empty without a compiler), guest_march,
# guest_cxx, guest_ar, guest_qemu, guest_flags, guest_library, guest_folder (for programs), guest_suffix
# (of targets), guest_package (Debian's, with the compiler), guest_runtime (sources of its own).
macro(gpusim_use_guest_isa isa)
  set(guest_package "gcc-${isa}-linux-gnu")
  set(guest_runtime "${GPUSIM_GUEST_DIR}/${isa}/start.S")
  if("${isa}" STREQUAL "aarch64")
    set(guest_cc "${GPUSIM_GUEST_CC}")
    set(guest_march "${GPUSIM_GUEST_MARCH}")
    set(guest_qemu "${GPUSIM_QEMU_AARCH64}")
    # Outlined atomics call into libgcc, which asks the C library for the machine's features.
    set(guest_flags -mno-outline-atomics)
    set(guest_library gpusim_guest)
    set(guest_folder "${CMAKE_CURRENT_BINARY_DIR}")
    set(guest_suffix "")
  elseif("${isa}" STREQUAL "riscv64")
    set(guest_cc "${GPUSIM_RISCV64_GCC}")
    set(guest_march "${GPUSIM_RISCV64_MARCH}")
    set(guest_qemu "${GPUSIM_QEMU_RISCV64}")
    # Otherwise ld makes one segment of code and writable data, without a page between them.
    set(guest_flags -Wl,-z,separate-code)
    set(guest_library gpusim_guest_riscv64)
    set(guest_folder "${CMAKE_CURRENT_BINARY_DIR}/riscv64")
    set(guest_suffix "_riscv64")
  elseif("${isa}" STREQUAL "riscv32")
    set(guest_cc "${GPUSIM_RISCV_ELF_GCC}")
    set(guest_package gcc-riscv64-unknown-elf)
    set(guest_march rv32imafdc)
    set(guest_qemu "${GPUSIM_QEMU_RISCV32}")
    set(guest_flags -mabi=ilp32d)
    set(guest_library gpusim_guest_riscv32)
    set(guest_folder "${CMAKE_CURRENT_BINARY_DIR}/riscv32")
    set(guest_suffix "_riscv32")
    list(APPEND guest_runtime "${GPUSIM_GUEST_DIR}/riscv32/atomic64.c")
  else()
    message(FATAL_ERROR "${isa} is not one of ${GPUSIM_GUEST_ISAS}")
  endif()
  string(REGEX REPLACE "gcc$" "g++" guest_cxx "${guest_cc}")
  string(REGEX REPLACE "gcc$" "ar" guest_ar "${guest_cc}")
endmacro()
foreach(isa ${GPUSIM_GUEST_ISAS})
  gpusim_use_guest_isa(${isa})
  if(NOT guest_cc)
    message(WARNING "no cross compiler: no guest programs for ${isa} are built "
                    "(Debian package ${guest_package})")
  endif()
endforeach()

# Floating point must round alike everywhere: no contraction to fused multiply-add, and no errno, which
# would turn square roots into calls.
# No vectorisation by GCC: across cores the data is contiguous already, along one core's loop it is not
# (a strided loop becomes lane inserts).
set(GPUSIM_SPMD_FLAGS -O2 -g -std=gnu11 -ffp-contract=off -fno-math-errno -fno-tree-vectorize
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror CACHE INTERNAL "")
set(GPUSIM_GUEST_FLAGS -ffreestanding -nostdlib -static -fno-pic -no-pie -fno-stack-protector
    -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns
    -Wl,--build-id=none CACHE INTERNAL "")

file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.h" "${CMAKE_CURRENT_LIST_DIR}/*/*.h"
     "${CMAKE_CURRENT_LIST_DIR}/*/*.S")
set(GPUSIM_GUEST_HEADERS ${headers} CACHE INTERNAL "")
# The library: what is the same everywhere, and what is not.
file(GLOB sync_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/sync/*.c")
set(GPUSIM_GUEST_COMMON "${CMAKE_CURRENT_LIST_DIR}/runtime.c"
    "${CMAKE_CURRENT_LIST_DIR}/print.c" "${CMAKE_CURRENT_LIST_DIR}/region.c" ${sync_sources}
    CACHE INTERNAL "")
set(GPUSIM_GUEST_RUNTIME
    ${GPUSIM_GUEST_COMMON} "${CMAKE_CURRENT_LIST_DIR}/services.c"
    "${CMAKE_CURRENT_LIST_DIR}/freestanding.c" CACHE INTERNAL "")
set(GPUSIM_NATIVE_RUNTIME
    ${GPUSIM_GUEST_COMMON} "${CMAKE_CURRENT_LIST_DIR}/native/native_runtime.c" CACHE INTERNAL "")

# gpusim_add_guest_library(ISA)
#   Cross-compiles the runtime to <guest build folder>/libgpusim_guest.a (aarch64) or
#   libgpusim_guest_<isa>.a. Target: gpusim_guest, gpusim_guest_<isa>.
function(gpusim_add_guest_library isa)
  gpusim_use_guest_isa(${isa})
  if(NOT guest_cc)
    return()
  endif()
  set(objects "")
  foreach(source ${GPUSIM_GUEST_RUNTIME} ${guest_runtime})
    get_filename_component(base "${source}" NAME_WE)
    set(object "${GPUSIM_GUEST_BUILD_DIR}/${guest_library}/${base}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${GPUSIM_GUEST_BUILD_DIR}/${guest_library}"
      COMMAND "${guest_cc}" ${GPUSIM_SPMD_FLAGS} ${GPUSIM_GUEST_FLAGS} ${guest_flags}
              -march=${guest_march} -I "${GPUSIM_GUEST_DIR}"
              -c "${source}" -o "${object}"
      DEPENDS "${source}" ${GPUSIM_GUEST_HEADERS}
      COMMENT "Cross-compiling ${guest_library}/${base}.o"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(library "${GPUSIM_GUEST_BUILD_DIR}/lib${guest_library}.a")
  add_custom_command(
    OUTPUT "${library}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${library}"
    COMMAND "${guest_ar}" rcsD "${library}" ${objects}
    DEPENDS ${objects}
    COMMENT "Archiving lib${guest_library}.a"
    VERBATIM)
  add_custom_target(${guest_library} ALL DEPENDS "${library}")
endfunction()

# libgcc has what an ISA lacks instructions for: RV64GC alone cannot count leading zeroes.
function(gpusim_add_guest_program name)
  cmake_parse_arguments(arg "WITH_RUNTIME" "ISA" "SOURCES;DEFINITIONS;OPTIONS;DEPENDS" ${ARGN})
  if(NOT arg_ISA)
    set(arg_ISA aarch64)
  endif()
  gpusim_use_guest_isa(${arg_ISA})
  if(NOT guest_cc)
    return()
  endif()
  file(MAKE_DIRECTORY "${guest_folder}")
  set(output "${guest_folder}/${name}.elf")
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  file(GLOB local_headers CONFIGURE_DEPENDS "*.h" "*/*.h")
  if(arg_WITH_RUNTIME)
    set(runtime ${GPUSIM_GUEST_RUNTIME} ${guest_runtime})
    set(runtime_files ${runtime})
  else()
    set(runtime "${GPUSIM_GUEST_BUILD_DIR}/lib${guest_library}.a")
    set(runtime_files ${guest_library} "${runtime}")
  endif()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${guest_cc}" ${GPUSIM_SPMD_FLAGS} ${GPUSIM_GUEST_FLAGS} ${guest_flags}
            -march=${guest_march} ${arg_OPTIONS} ${arg_DEFINITIONS}
            -I "${GPUSIM_GUEST_DIR}" -I "${CMAKE_CURRENT_SOURCE_DIR}"
            -o "${output}" ${arg_SOURCES} ${runtime} -lgcc
    DEPENDS ${arg_SOURCES} ${arg_DEPENDS} ${runtime_files} ${GPUSIM_GUEST_HEADERS}
            ${local_headers}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Cross-compiling ${name}.elf for ${arg_ISA}"
    VERBATIM)
  add_custom_target(${name}${guest_suffix}_guest ALL DEPENDS "${output}")
endfunction()

function(gpusim_add_native_program name)
  cmake_parse_arguments(arg "WITH_RUNTIME" "" "SOURCES;DEFINITIONS;OPTIONS;DEPENDS" ${ARGN})
  set(runtime gpusim_guest_native)
  if(arg_WITH_RUNTIME)
    set(runtime "")
    list(APPEND arg_SOURCES ${GPUSIM_NATIVE_RUNTIME})
  endif()
  add_executable(${name}_native ${arg_SOURCES})
  set_target_properties(${name}_native PROPERTIES OUTPUT_NAME ${name}.native)
  target_include_directories(${name}_native PRIVATE "${GPUSIM_GUEST_DIR}"
                             "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_definitions(${name}_native PRIVATE GPUSIM_NATIVE ${arg_DEFINITIONS})
  target_compile_options(${name}_native PRIVATE
    $<$<COMPILE_LANGUAGE:C>:${GPUSIM_SPMD_FLAGS}> $<$<COMPILE_LANGUAGE:C>:${arg_OPTIONS}>)
  target_link_libraries(${name}_native PRIVATE ${runtime} Threads::Threads)
  if(arg_DEPENDS)
    set_source_files_properties(${arg_SOURCES} PROPERTIES OBJECT_DEPENDS "${arg_DEPENDS}")
  endif()
endfunction()
