# The OpenMP run-time for guest programs, and programs that use it.
#
# gpusim_add_openmp_program(NAME [ISA isa] SOURCES file... [DEFINITIONS NAME=VALUE...]
#                           [OPTIONS flag...])
#   Cross-compiles an ordinary OpenMP program, C or C++, for aarch64 or riscv64: aarch64 to
#   <current build folder>/NAME.elf, target NAME_openmp; others to
#   <current build folder>/<isa>/NAME.elf, target NAME_<isa>_openmp. Without a cross compiler it does
#   nothing.
# GPUSIM_OPENMP_LIBRARY_DIR is the folder to give to GCC with -B for aarch64, <isa> in it for
# others: docs/howto/openmp.md.
include_guard(GLOBAL)

set(GPUSIM_OPENMP_LIBRARY_DIR "${CMAKE_CURRENT_BINARY_DIR}/lib" CACHE INTERNAL "")
set(GPUSIM_OPENMP_FLAGS -std=gnu11 -O2 -g -fno-strict-aliasing -Wall -Wextra -Wshadow -Werror
    CACHE INTERNAL "")

# Sets besides what gpusim_use_guest_isa sets: openmp_march, openmp_flags, openmp_folder.
macro(gpusim_use_openmp_isa isa)
  gpusim_use_guest_isa(${isa})
  if("${isa}" STREQUAL "aarch64")
    # Single-instruction atomics also where a program is built for Armv8.0: cores in lockstep that
    # meet at one address would succeed one by one with exclusive pairs.
    set(openmp_march armv8.1-a)
    set(openmp_flags -mno-outline-atomics)
    set(openmp_folder "${GPUSIM_OPENMP_LIBRARY_DIR}")
  else()
    set(openmp_march "${guest_march}")
    set(openmp_flags "")
    set(openmp_folder "${GPUSIM_OPENMP_LIBRARY_DIR}/${isa}")
  endif()
endmacro()

# gpusim_build_openmp_library(ISA SOURCE...): target gpusim_omp, for others gpusim_omp_<isa>.
function(gpusim_build_openmp_library isa)
  gpusim_use_openmp_isa(${isa})
  set(name gpusim_omp${guest_suffix})
  if(NOT guest_cc)
    return()
  endif()
  set(objects "")
  file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  foreach(source ${ARGN})
    set(object "${guest_folder}/${source}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${guest_folder}"
      COMMAND "${guest_cc}" ${GPUSIM_OPENMP_FLAGS} -march=${openmp_march} ${openmp_flags} -c
              -o "${object}" "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
      DEPENDS "${source}" ${headers} ${GPUSIM_GUEST_HEADERS}
      COMMENT "Cross-compiling lib${name}: ${source}"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(library "${openmp_folder}/libgpusim_omp.a")
  set(spec "${openmp_folder}/libgomp.spec")
  add_custom_command(
    OUTPUT "${library}" "${spec}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${openmp_folder}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${library}"
    COMMAND "${guest_ar}" rcsD "${library}" ${objects}
    COMMAND "${CMAKE_COMMAND}" -E copy "${CMAKE_CURRENT_SOURCE_DIR}/libgomp.spec" "${spec}"
    DEPENDS ${objects} libgomp.spec
    COMMENT "Archiving lib${name}.a"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${library}" "${spec}")
endfunction()

function(gpusim_add_openmp_program name)
  cmake_parse_arguments(arg "" "ISA" "SOURCES;DEFINITIONS;OPTIONS" ${ARGN})
  if(NOT arg_ISA)
    set(arg_ISA aarch64)
  endif()
  gpusim_use_openmp_isa(${arg_ISA})
  set(library gpusim_omp${guest_suffix})
  if(NOT TARGET ${library})
    return()
  endif()
  set(compiler "${guest_cc}")
  if("${arg_SOURCES}" MATCHES "\\.(cc|cpp|cxx|C)(;|$)")
    set(compiler "${guest_cxx}")
  endif()
  file(MAKE_DIRECTORY "${guest_folder}")
  set(output "${guest_folder}/${name}.elf")
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${compiler}" -O2 -g -march=${openmp_march} -fopenmp -static -B "${openmp_folder}/"
            ${arg_OPTIONS} ${arg_DEFINITIONS} -o "${output}" ${arg_SOURCES} -lm
    DEPENDS ${arg_SOURCES} ${library} "${openmp_folder}/libgpusim_omp.a"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Cross-compiling ${name}.elf for ${arg_ISA} with OpenMP"
    VERBATIM)
  add_custom_target(${name}${guest_suffix}_openmp ALL DEPENDS "${output}")
endfunction()
