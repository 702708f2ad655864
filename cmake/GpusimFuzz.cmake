# A fuzz test, twice: NAME for SHORT seconds (15), and NAME.long for LONG seconds (3600) under
# `ctest -C long`. The command hears of its time by @SECONDS@ among its words, or by the environment
# variable GPUSIM_FUZZ_SECONDS.
#
#   gpusim_add_fuzz_test(NAME [SHORT seconds] [LONG seconds] COMMAND word...)
function(gpusim_add_fuzz_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SHORT;LONG" "COMMAND")
  if(NOT arg_SHORT)
    set(arg_SHORT 15)
  endif()
  if(NOT arg_LONG)
    set(arg_LONG 3600)
  endif()
  foreach(kind SHORT LONG)
    set(seconds ${arg_${kind}})
    set(test ${name})
    set(configurations "")
    if(kind STREQUAL LONG)
      set(test ${name}.long)
      set(configurations CONFIGURATIONS long)
    endif()
    string(REPLACE "@SECONDS@" "${seconds}" command "${arg_COMMAND}")
    add_test(NAME ${test} ${configurations} COMMAND ${command})
    # Generous: on a busy machine even a short input may take long on the clock.
    math(EXPR limit "${seconds} + 600")
    set_tests_properties(${test} PROPERTIES TIMEOUT ${limit} LABELS fuzz
      ENVIRONMENT "GPUSIM_FUZZ_SECONDS=${seconds}")
  endforeach()
endfunction()
