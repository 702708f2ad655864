# GPUSIM_CUDA: AUTO takes CUDA when nvcc is found, ON requires it, OFF leaves it out.
# Afterwards GPUSIM_HAVE_CUDA says whether the CUDA language is enabled.
set(GPUSIM_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set_property(CACHE GPUSIM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GPUSIM_HAVE_CUDA OFF)

if(GPUSIM_CUDA)
  find_program(GPUSIM_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
  if(GPUSIM_NVCC)
    set(CMAKE_CUDA_COMPILER "${GPUSIM_NVCC}")
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # Machine code for the H100 and H200. No PTX: a driver would take a minute to compile it
      # before the first run. Other chips: docs/gpu.md.
      set(CMAKE_CUDA_ARCHITECTURES "90-real" CACHE STRING "")
    endif()
    set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O2 -DNDEBUG -lineinfo")
    enable_language(CUDA)
    # CMake 3.25 does not know nvcc's C++20 option.
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    # After enable_language, whose own compiler check would fail with it.
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    set(GPUSIM_HAVE_CUDA ON)
  elseif(NOT GPUSIM_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "GPUSIM_CUDA=${GPUSIM_CUDA}, but nvcc is neither in PATH nor in "
                        "/usr/local/cuda/bin. Install the CUDA toolkit, set CUDACXX, or use "
                        "GPUSIM_CUDA=AUTO.")
  endif()
endif()
message(STATUS "CUDA backend: ${GPUSIM_HAVE_CUDA}")
