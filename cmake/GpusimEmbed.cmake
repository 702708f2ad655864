# gpusim_embed(SOURCE FUNCTION FILE...): writes SOURCE, a C++ file with the texts of the files.
# FUNCTION, with its namespaces, gives them: std::span<const gpusim::EmbeddedFile> FUNCTION(), which
# a header declares (device_sim/base/embedded_file.h).
function(gpusim_embed source function)
  list(JOIN ARGN "|" files)
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed.cmake")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DOUT=${source}" "-DFUNCTION=${function}" "-DFILES=${files}"
            -P "${script}"
    DEPENDS ${ARGN} "${script}"
    COMMENT "Embedding files for ${function}()"
    VERBATIM)
endfunction()
