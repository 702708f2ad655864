# The OpenMP run-time for guest programs, and programs that use it.
#
# gpusim_add_openmp_program(NAME SOURCES file... [DEFINITIONS NAME=VALUE...] [OPTIONS flag...])
#   Cross-compiles an ordinary OpenMP program, C or C++, to <current build folder>/NAME.elf.
#   Target: NAME_openmp. Without a cross compiler it does nothing.
# GPUSIM_OPENMP_LIBRARY_DIR is the folder to give to GCC with -B: docs/howto/openmp.md.
include_guard(GLOBAL)

find_program(GPUSIM_GUEST_CC aarch64-linux-gnu-gcc DOC "Cross compiler for AArch64 guest programs")
find_program(GPUSIM_GUEST_CXX aarch64-linux-gnu-g++ DOC "Cross compiler for C++ guest programs")
find_program(GPUSIM_GUEST_AR aarch64-linux-gnu-ar DOC "Archiver for AArch64")
set(GPUSIM_OPENMP_LIBRARY_DIR "${CMAKE_CURRENT_BINARY_DIR}/lib" CACHE INTERNAL "")

# Single-instruction atomics also where a program is built for Armv8.0: cores in lockstep that meet at
# one address would succeed one by one with exclusive pairs.
set(GPUSIM_OPENMP_FLAGS -std=gnu11 -O2 -g -march=armv8.1-a -mno-outline-atomics -fno-strict-aliasing
    -Wall -Wextra -Wshadow -Werror CACHE INTERNAL "")

function(gpusim_build_openmp_library)
  set(objects "")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  foreach(source ${ARGN})
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${source}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${GPUSIM_GUEST_CC}" ${GPUSIM_OPENMP_FLAGS} -c -o "${object}"
              "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
      DEPENDS "${source}" ${headers} ../guest/aarch64/gpusim_guest_isa.h
      COMMENT "Cross-compiling libgpusim_omp: ${source}"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(library "${GPUSIM_OPENMP_LIBRARY_DIR}/libgpusim_omp.a")
  set(spec "${GPUSIM_OPENMP_LIBRARY_DIR}/libgomp.spec")
  add_custom_command(
    OUTPUT "${library}" "${spec}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${GPUSIM_OPENMP_LIBRARY_DIR}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${library}"
    COMMAND "${GPUSIM_GUEST_AR}" rcsD "${library}" ${objects}
    COMMAND "${CMAKE_COMMAND}" -E copy "${CMAKE_CURRENT_SOURCE_DIR}/libgomp.spec" "${spec}"
    DEPENDS ${objects} libgomp.spec
    COMMENT "Archiving libgpusim_omp.a"
    VERBATIM)
  add_custom_target(gpusim_omp ALL DEPENDS "${library}" "${spec}")
endfunction()

function(gpusim_add_openmp_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEFINITIONS;OPTIONS" ${ARGN})
  if(NOT TARGET gpusim_omp)
    return()
  endif()
  set(compiler "${GPUSIM_GUEST_CC}")
  if("${arg_SOURCES}" MATCHES "\\.(cc|cpp|cxx|C)(;|$)")
    set(compiler "${GPUSIM_GUEST_CXX}")
  endif()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}.elf")
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${compiler}" -O2 -g -march=armv8.1-a -fopenmp -static
            -B "${GPUSIM_OPENMP_LIBRARY_DIR}/" ${arg_OPTIONS} ${arg_DEFINITIONS}
            -o "${output}" ${arg_SOURCES} -lm
    DEPENDS ${arg_SOURCES} gpusim_omp "${GPUSIM_OPENMP_LIBRARY_DIR}/libgpusim_omp.a"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Cross-compiling ${name}.elf with OpenMP"
    VERBATIM)
  add_custom_target(${name}_openmp ALL DEPENDS "${output}")
endfunction()
