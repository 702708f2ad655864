# gpusim_add_offload_program(NAME SOURCES file... [DEFINITIONS NAME=VALUE...] [LIBRARIES flag...])
#   A program that offloads to gpusim, for the guest: <current build folder>/NAME.elf, static, linked
#   with libgpusim_offload.a. Target: NAME_guest. Without a cross compiler it does nothing.
# gpusim_add_native_offload_program(NAME SOURCES ... DEFINITIONS ... LIBRARIES ...)
#   The same sources for this machine with libgpusim_native.a, as <current build folder>/NAME.native.
#   Target: NAME_native. Its kernels come from an ELF file, for instance the guest's program.
include_guard(GLOBAL)

set(GPUSIM_OFFLOAD_DIR "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "")
set(GPUSIM_OFFLOAD_LIBRARY "${CMAKE_CURRENT_BINARY_DIR}/libgpusim_offload.a" CACHE INTERNAL "")

file(GLOB front CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/front/*.c")
file(GLOB driver CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/driver/*.c")
set(GPUSIM_OFFLOAD_FRONT ${front} CACHE INTERNAL "")
set(GPUSIM_OFFLOAD_DRIVER ${driver} CACHE INTERNAL "")
file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.h")
list(APPEND headers "${PROJECT_SOURCE_DIR}/qemu_bridge/wire/gpusim_wire.h"
     "${PROJECT_SOURCE_DIR}/guest_driver/include/uapi/linux/gpusim.h")
set(GPUSIM_OFFLOAD_HEADERS ${headers} CACHE INTERNAL "")

# Programs of the guest run on its own processor, too: Armv8.0. Floating point rounds alike
# everywhere.
set(GPUSIM_OFFLOAD_FLAGS -O2 -g -std=gnu17 -ffp-contract=off -fno-math-errno -fno-tree-vectorize
    -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror CACHE INTERNAL "")

# The library for the guest: the front, the driver's port, and what kernels use of the guest
# runtime (barriers, locks, reductions; for cores of the device, so with Armv8.1's atomics).
function(gpusim_add_offload_library)
  if(NOT GPUSIM_GUEST_CC)
    return()
  endif()
  string(REGEX REPLACE "gcc$" "ar" archiver "${GPUSIM_GUEST_CC}")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/guest_objects")
  set(objects "")
  foreach(source ${GPUSIM_OFFLOAD_FRONT} ${GPUSIM_OFFLOAD_DRIVER})
    get_filename_component(base "${source}" NAME_WE)
    set(object "${folder}/offload_${base}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND "${GPUSIM_GUEST_CC}" ${GPUSIM_OFFLOAD_FLAGS} -I "${PROJECT_SOURCE_DIR}"
              -c "${source}" -o "${object}"
      DEPENDS "${source}" ${GPUSIM_OFFLOAD_HEADERS}
      COMMENT "Cross-compiling offload/${base}.o"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  # The energy targets, generated.
  set(table "${PROJECT_BINARY_DIR}/energy/gpusim_energy_table.c")
  set(object "${folder}/energy_table.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
    COMMAND "${GPUSIM_GUEST_CC}" -O2 -I "${PROJECT_SOURCE_DIR}" -c "${table}" -o "${object}"
    DEPENDS gpusim_energy_table_source "${table}"
    COMMENT "Cross-compiling offload/energy_table.o"
    VERBATIM)
  list(APPEND objects "${object}")
  foreach(source ${GPUSIM_GUEST_COMMON} "${GPUSIM_GUEST_DIR}/services.c")
    get_filename_component(base "${source}" NAME_WE)
    set(object "${folder}/kernel_${base}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND "${GPUSIM_GUEST_CC}" ${GPUSIM_SPMD_FLAGS} -march=${GPUSIM_GUEST_MARCH}
              -mno-outline-atomics -I "${GPUSIM_GUEST_DIR}" -c "${source}" -o "${object}"
      DEPENDS "${source}" ${GPUSIM_GUEST_HEADERS}
      COMMENT "Cross-compiling offload/kernel_${base}.o"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_custom_command(
    OUTPUT "${GPUSIM_OFFLOAD_LIBRARY}"
    COMMAND "${CMAKE_COMMAND}" -E rm -f "${GPUSIM_OFFLOAD_LIBRARY}"
    COMMAND "${archiver}" rcsD "${GPUSIM_OFFLOAD_LIBRARY}" ${objects}
    DEPENDS ${objects}
    COMMENT "Archiving libgpusim_offload.a"
    VERBATIM)
  add_custom_target(gpusim_offload_library ALL DEPENDS "${GPUSIM_OFFLOAD_LIBRARY}")
  # All that a guest needs of this project: system tests and the demo build this.
  add_custom_target(gpusim_offload_guest DEPENDS gpusim_offload_library)
endfunction()

function(gpusim_add_offload_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEFINITIONS;LIBRARIES" ${ARGN})
  if(NOT GPUSIM_GUEST_CC)
    return()
  endif()
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}.elf")
  list(TRANSFORM arg_DEFINITIONS PREPEND -D)
  file(GLOB local_headers CONFIGURE_DEPENDS "*.h")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${GPUSIM_GUEST_CC}" ${GPUSIM_OFFLOAD_FLAGS} ${arg_DEFINITIONS} -static
            -Wl,--build-id=none -I "${PROJECT_SOURCE_DIR}" -I "${GPUSIM_GUEST_DIR}"
            -I "${CMAKE_CURRENT_SOURCE_DIR}" -o "${output}" ${arg_SOURCES}
            "${GPUSIM_OFFLOAD_LIBRARY}" ${arg_LIBRARIES}
    DEPENDS ${arg_SOURCES} gpusim_offload_library "${GPUSIM_OFFLOAD_LIBRARY}" ${local_headers}
            ${GPUSIM_GUEST_HEADERS} ${GPUSIM_OFFLOAD_HEADERS}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Cross-compiling ${name}.elf"
    VERBATIM)
  add_custom_target(${name}_guest ALL DEPENDS "${output}")
  add_dependencies(gpusim_offload_guest ${name}_guest)
endfunction()

function(gpusim_add_native_offload_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEFINITIONS;LIBRARIES" ${ARGN})
  add_executable(${name}_native ${arg_SOURCES})
  set_target_properties(${name}_native PROPERTIES OUTPUT_NAME ${name}.native)
  target_include_directories(${name}_native PRIVATE "${PROJECT_SOURCE_DIR}" "${GPUSIM_GUEST_DIR}"
                             "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_definitions(${name}_native PRIVATE GPUSIM_NATIVE ${arg_DEFINITIONS})
  target_compile_options(${name}_native PRIVATE $<$<COMPILE_LANGUAGE:C>:${GPUSIM_OFFLOAD_FLAGS}>)
  target_link_libraries(${name}_native PRIVATE gpusim_native ${arg_LIBRARIES})
  set_target_properties(${name}_native PROPERTIES LINKER_LANGUAGE CXX)
endfunction()
