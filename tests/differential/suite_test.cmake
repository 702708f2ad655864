# add_differential_test(NAME RUNNER SCRIPT LOCK FOLDER [LONG] ARGUMENTS...)
# A test by a runner. LONG ones run only with `ctest -C long` (scripts/test --long). Runners use all
# processors by themselves; those with one LOCK share a folder of guest programs.
include(ProcessorCount)
ProcessorCount(GPUSIM_TEST_PROCESSORS)

function(add_differential_test name)
  cmake_parse_arguments(arg "LONG" "RUNNER;LOCK" "ARGUMENTS" ${ARGN})
  if(NOT TARGET gpusim)
    return()
  endif()
  set(configurations "")
  set(timeout 1500)
  if(arg_LONG)
    set(configurations CONFIGURATIONS long)
    set(timeout 14400)
  endif()
  add_test(NAME ${name} ${configurations}
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${arg_RUNNER}" --gpusim $<TARGET_FILE:gpusim>
            --build "${CMAKE_CURRENT_BINARY_DIR}" --jobs ${GPUSIM_TEST_PROCESSORS} ${arg_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES
    LABELS differential PROCESSORS ${GPUSIM_TEST_PROCESSORS} TIMEOUT ${timeout}
    RESOURCE_LOCK "${arg_LOCK};qemu_plugin")
endfunction()

# The same on the emulated device, with all code as compiled regions: NAME.cuda_compiled_emulated.
function(add_compiled_differential_test name)
  cmake_parse_arguments(arg "LONG" "RUNNER;LOCK" "ARGUMENTS" ${ARGN})
  set(long "")
  if(arg_LONG)
    set(long LONG)
  endif()
  gpusim_add_compiled_test(${name}.cuda_compiled_emulated ${long} EXTENT all
    RESOURCE_LOCK "${arg_LOCK};qemu_plugin"
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/${arg_RUNNER}" --gpusim
            $<TARGET_FILE:gpusim-compiled-emulated> --build "${CMAKE_CURRENT_BINARY_DIR}" --jobs 1
            --engines cuda ${arg_ARGUMENTS})
endfunction()
