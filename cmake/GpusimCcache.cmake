# Compilations are cached, and shared between clones: paths in the source tree count relative to it.
# A debugger may then name the clone that compiled a file first.
find_program(GPUSIM_CCACHE ccache)
if(GPUSIM_CCACHE)
  foreach(language C CXX CUDA)
    set(CMAKE_${language}_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_NOHASHDIR=1;${GPUSIM_CCACHE}")
  endforeach()
endif()
