# gpusim_embed(SOURCE FUNCTION [FOLDER DIR] FILE...): writes SOURCE, a C++ file with the texts of
# the files. Their names are paths from the folder, if one is given.
# FUNCTION, with its namespaces, gives them: std::span<const gpusim::EmbeddedFile> FUNCTION(), which
# a header declares (device_sim/base/embedded_file.h).
function(gpusim_embed source function)
  cmake_parse_arguments(arg "" "FOLDER" "" ${ARGN})
  list(JOIN arg_UNPARSED_ARGUMENTS "|" files)
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${source}" "-DFUNCTION=${function}" "-DFILES=${files}"
            "-DFOLDER=${arg_FOLDER}" -P "${script}"
    DEPENDS ${arg_UNPARSED_ARGUMENTS} "${script}"
    COMMENT "Embedding files for ${function}()"
    VERBATIM)
endfunction()
