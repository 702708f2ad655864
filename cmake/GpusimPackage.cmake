# What `cmake --install` and `cpack` (a .deb) put where. Included last, when all targets are known.
# Components: `runtime` (program, manual, completions), `guest` (header and libraries for guest
# programs), `plugin` (header) and `python` (the module) make the package; `offload` (libGPUSim) is
# installed by name only.
include(GNUInstallDirs)

# Installing never builds: tests install while others build.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

if(NOT TARGET gpusim)
  return()
endif()
install(TARGETS gpusim RUNTIME DESTINATION bin COMPONENT runtime)
# `gpusim power attach` looks for it in ../lib/gpusim, seen from its own folder.
if(TARGET gpusim_power_attach_preload)
  install(TARGETS gpusim_power_attach_preload LIBRARY DESTINATION lib/gpusim COMPONENT runtime)
endif()

# So does `gpusim cuda`.
if(TARGET gpusim_cuda)
  install(TARGETS gpusim_cuda gpusim_cuda_driver LIBRARY DESTINATION lib/gpusim COMPONENT runtime)
endif()
if(TARGET gpusim_cuda_device)
  install(TARGETS gpusim_cuda_device LIBRARY DESTINATION lib/gpusim COMPONENT runtime)
endif()

find_program(GPUSIM_PYTHON3 python3 DOC "Python 3, for scripts that run during the build")
if(GPUSIM_PYTHON3)
  set(help "${CMAKE_BINARY_DIR}/help")
  set(maker "${PROJECT_SOURCE_DIR}/host/cli/make_help_files.py")
  add_custom_command(
    OUTPUT "${help}/gpusim.1" "${help}/gpusim.1.gz" "${help}/gpusim.bash" "${help}/_gpusim"
    COMMAND "${GPUSIM_PYTHON3}" "${maker}" $<TARGET_FILE:gpusim> "${help}"
    COMMAND gzip -9nkf "${help}/gpusim.1"
    DEPENDS gpusim "${maker}"
    COMMENT "Writing manual page and completions"
    VERBATIM)
  add_custom_target(gpusim_help ALL DEPENDS "${help}/gpusim.1.gz")
  install(FILES "${help}/gpusim.1.gz" DESTINATION share/man/man1 COMPONENT runtime)
  install(FILES "${help}/gpusim.bash" DESTINATION share/bash-completion/completions
          RENAME gpusim COMPONENT runtime)
  install(FILES "${help}/_gpusim" DESTINATION share/zsh/vendor-completions COMPONENT runtime)
else()
  message(STATUS "Without manual page and completions: they need python3")
endif()

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/gpusim RENAME copyright
        COMPONENT runtime)
# The manual's pages, and the examples that they speak of, with links that hold there.
if(GPUSIM_PYTHON3)
  install(CODE "execute_process(COMMAND \"${GPUSIM_PYTHON3}\"
      \"${PROJECT_SOURCE_DIR}/cmake/install_docs.py\" \"${PROJECT_SOURCE_DIR}\"
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/gpusim\" \"\${CMAKE_INSTALL_PREFIX}\"
      COMMAND_ERROR_IS_FATAL ANY)" COMPONENT runtime)
else()
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION share/doc/gpusim COMPONENT runtime)
endif()

if(TARGET gpusim_guest OR TARGET gpusim_guest_riscv64 OR TARGET gpusim_guest_riscv32)
  install(PROGRAMS "${PROJECT_SOURCE_DIR}/libgpusim/guest/gpusim-cc" DESTINATION bin COMPONENT guest)
endif()
foreach(folder "" /riscv64)
  string(REPLACE / _ suffix "${folder}")
  if(TARGET gpusim_omp${suffix})
    install(FILES "${GPUSIM_OPENMP_LIBRARY_DIR}${folder}/libgpusim_omp.a"
                  "${GPUSIM_OPENMP_LIBRARY_DIR}${folder}/libgomp.spec"
            DESTINATION lib/gpusim/openmp${folder} COMPONENT guest)
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gpusim)
set(CPACK_PACKAGE_CONTACT "gpusim contributors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "functional simulator of thousands of CPU cores")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime guest plugin)
if(TARGET gpusim_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CPACK_PACKAGE_CONTACT}")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
string(REGEX MATCH "^[0-9]+" capstone_major "${capstone_VERSION}")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcapstone${capstone_major}")  # loaded when a listing needs it
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gcc-aarch64-linux-gnu")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "gcc-riscv64-linux-gnu, gcc-riscv64-unknown-elf, python3-numpy, python3-pandas")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Runs AArch64 and RISC-V Linux programs on thousands of simulated CPU
cores and counts what they execute, by class of instruction; energy models turn the counts
into joules and watts. With a library and a compiler driver (gpusim-cc) for
programs that run on all cores.")
include(CPack)
