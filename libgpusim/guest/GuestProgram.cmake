# gpusim_add_guest_program(NAME SOURCES file... [DEFINITIONS NAME=VALUE...] [OPTIONS flag...]
#                          [DEPENDS file...] [WITH_RUNTIME])
#   Cross-compiles a freestanding SPMD program to <current build folder>/NAME.elf, linked with
#   libgpusim_guest.a. Target: NAME_guest. With WITH_RUNTIME the runtime is compiled with the
#   program, with its options. Without a cross compiler it does nothing but say so once.
# gpusim_add_native_program(NAME SOURCES ... DEFINITIONS ... OPTIONS ... DEPENDS ...)
#   The same sources for the host, as <current build folder>/NAME.native. Target: NAME_native.
# Definitions and options are the same for both, so that their outputs can be compared.
include_guard(GLOBAL)

set(GPUSIM_GUEST_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "")
set(GPUSIM_GUEST_LIBRARY "${CMAKE_CURRENT_BINARY_DIR}/libgpusim_guest.a" CACHE INTERNAL "")
# Armv8.1 has atomic additions as single instructions. With Armv8.0's exclusive pairs, cores in lockstep
# that meet at one address succeed one by one: the bitonic sort took 13 times as long on 65,536 cores,
# 3 times on 1,024. One program can still ask for OPTIONS -march=armv8-a.
set(GPUSIM_GUEST_MARCH "armv8.1-a" CACHE STRING "AArch64 architecture of the guest programs")
find_program(GPUSIM_GUEST_CC aarch64-linux-gnu-gcc DOC "Cross compiler for AArch64 guest programs")
find_program(GPUSIM_QEMU_AARCH64 qemu-aarch64 DOC "Emulator that results are compared with")
if(NOT GPUSIM_GUEST_CC)
  message(WARNING "aarch64-linux-gnu-gcc not found: no guest programs are built "
                  "(Debian package gcc-aarch64-linux-gnu)")
endif()

# Floating point must round alike everywhere: no contraction to fused multiply-add, and no errno, which
# would turn square roots into calls.
# No vectorisation by GCC: across cores the data is contiguous already, along one core's loop it is not
# (a strided loop becomes lane inserts).
set(GPUSIM_SPMD_FLAGS -O2 -g -std=gnu11 -ffp-contract=off -fno-math-errno -fno-tree-vectorize
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror CACHE INTERNAL "")
# Outlined atomics call into libgcc, which asks the C library for the machine's features.
set(GPUSIM_GUEST_FLAGS -ffreestanding -nostdlib -static -fno-pic -no-pie -fno-stack-protector
    -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -mno-outline-atomics
    -Wl,--build-id=none CACHE INTERNAL "")

file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.h" "${CMAKE_CURRENT_LIST_DIR}/*/*.h")
set(GPUSIM_GUEST_HEADERS ${headers} CACHE INTERNAL "")
# The library: what is the same everywhere, and what is not.
file(GLOB sync_sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/sync/*.c")
set(GPUSIM_GUEST_COMMON "${CMAKE_CURRENT_LIST_DIR}/runtime.c"
    "${CMAKE_CURRENT_LIST_DIR}/print.c" ${sync_sources} CACHE INTERNAL "")
set(GPUSIM_GUEST_RUNTIME
    ${GPUSIM_GUEST_COMMON} "${CMAKE_CURRENT_LIST_DIR}/services.c"
    "${CMAKE_CURRENT_LIST_DIR}/freestanding.c"
    "${CMAKE_CURRENT_LIST_DIR}/aarch64/start.S" CACHE INTERNAL "")
set(GPUSIM_NATIVE_RUNTIME
    ${GPUSIM_GUEST_COMMON} "${CMAKE_CURRENT_LIST_DIR}/native/native_runtime.c" CACHE INTERNAL "")

# gpusim_add_guest_library(NAME [OPTIONS flag...])
#   Cross-compiles the runtime to <current build folder>/libNAME.a. Target: NAME.
function(gpusim_add_guest_library name)
  cmake_parse_arguments(arg "" "" "OPTIONS" ${ARGN})
  if(NOT GPUSIM_GUEST_CC)
    return()
  endif()
  get_filename_component(folder "${GPUSIM_GUEST_CC}" DIRECTORY)
  get_filename_component(compiler "${GPUSIM_GUEST_CC}" NAME)
  string(REGEX REPLACE "gcc$" "ar" archiver "${compiler}")
  set(objects "")
  foreach(source ${GPUSIM_GUEST_RUNTIME})
    get_filename_component(base "${source}" NAME_WE)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}/${base}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/${name}"
      COMMAND "${GPUSIM_GUEST_CC}" ${GPUSIM_SPMD_FLAGS} ${GPUSIM_GUEST_FLAGS}
              -march=${GPUSIM_GUEST_MARCH} ${arg_OPTIONS} -I "${GPUSIM_GUEST_DIR}"
              -c "${source}" -o "${object}"
      DEPENDS "${source}" ${GPUSIM_GUEST_HEADERS}
      COMMENT "Cross-compiling ${name}/${base}.o"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(library "${CMAKE_CURRENT_BINARY_DIR}/lib${name}.a")
  add_custom_command(
    OUTPUT "${library}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${library}"
    COMMAND "${folder}/${archiver}" rcsD "${library}" ${objects}
    DEPENDS ${objects}
    COMMENT "Archiving lib${name}.a"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${library}")
endfunction()

function(gpusim_add_guest_program name)
  cmake_parse_arguments(arg "WITH_RUNTIME" "" "SOURCES;DEFINITIONS;OPTIONS;DEPENDS" ${ARGN})
  if(NOT GPUSIM_GUEST_CC)
    return()
  endif()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}.elf")
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  file(GLOB local_headers CONFIGURE_DEPENDS "*.h" "*/*.h")
  if(arg_WITH_RUNTIME)
    set(runtime ${GPUSIM_GUEST_RUNTIME})
    set(runtime_files ${runtime})
  else()
    set(runtime "${GPUSIM_GUEST_LIBRARY}")
    set(runtime_files gpusim_guest "${GPUSIM_GUEST_LIBRARY}")
  endif()
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${GPUSIM_GUEST_CC}" ${GPUSIM_SPMD_FLAGS} ${GPUSIM_GUEST_FLAGS}
            -march=${GPUSIM_GUEST_MARCH} ${arg_OPTIONS} ${arg_DEFINITIONS}
            -I "${GPUSIM_GUEST_DIR}" -I "${CMAKE_CURRENT_SOURCE_DIR}"
            -o "${output}" ${arg_SOURCES} ${runtime}
    DEPENDS ${arg_SOURCES} ${arg_DEPENDS} ${runtime_files} ${GPUSIM_GUEST_HEADERS}
            ${local_headers}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Cross-compiling ${name}.elf"
    VERBATIM)
  add_custom_target(${name}_guest ALL DEPENDS "${output}")
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
