# cmake -D OBJECTS=a.o|b.o -D BEGIN=begin.o -D OUTPUT=out.o -D CC= -D LD= -D OBJCOPY= -D NM=
#       -D READELF= -P localise.cmake
#
# One object of the emulated device code in which only strong symbols are global. Its inline
# functions are compiled for the device; the host has others of the same names, and a linker would
# keep one of each. So their groups are dissolved and their names made local.
#
# `extern __shared__` arrays have no definition: they all begin behind the other shared variables.
string(REPLACE "|" ";" objects "${OBJECTS}")

function(run result)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE out COMMAND_ERROR_IS_FATAL ANY)
  set(${result} "${out}" PARENT_SCOPE)
endfunction()

run(symbols "${READELF}" -sW ${objects})
string(REGEX MATCHALL "TLS +GLOBAL +DEFAULT +UND [^\n]+" shared "${symbols}")
set(labels "")
foreach(line ${shared})
  string(REGEX REPLACE ".* " "" name "${line}")
  list(APPEND labels "${name}")
endforeach()
list(REMOVE_DUPLICATES labels)
set(assembly "  .section .tbss, \"awT\", @nobits\n  .balign 64\n")
foreach(name cuda_emulated_dynamic_shared ${labels})
  string(APPEND assembly "  .globl ${name}\n  .type ${name}, @object\n"
         "  .size ${name}, 262144\n${name}:\n")
endforeach()
string(APPEND assembly "  .zero 262144\n  .section .note.GNU-stack, \"\", @progbits\n")
file(WRITE "${OUTPUT}.end.S" "${assembly}")
run(none "${CC}" -c "${OUTPUT}.end.S" -o "${OUTPUT}.end.o")

run(none "${LD}" -r --force-group-allocation "${BEGIN}" ${objects} "${OUTPUT}.end.o" -o "${OUTPUT}.all.o")
run(names "${NM}" --defined-only --extern-only "${OUTPUT}.all.o")
string(REGEX MATCHALL "[0-9a-f]+ [TDBR] [^\n]+" strong "${names}")
set(kept "")
foreach(line ${strong})
  string(REGEX REPLACE ".* " "" name "${line}")
  string(APPEND kept "${name}\n")
endforeach()
file(WRITE "${OUTPUT}.kept" "${kept}")
run(none "${OBJCOPY}" "--keep-global-symbols=${OUTPUT}.kept" "${OUTPUT}.all.o" "${OUTPUT}")
