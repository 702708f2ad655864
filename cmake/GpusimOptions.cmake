# gpusim_options: what every target of ours is compiled with. Link it PRIVATE (or INTERFACE).
# gpusim_strict: gpusim_options and -Wconversion, for code outside the hot templates.
option(GPUSIM_WERROR "Treat warnings of the host compiler as errors" ON)
set(GPUSIM_SANITIZE "" CACHE STRING "Sanitizers for the whole build, e.g. address,undefined")

add_library(gpusim_options INTERFACE)
target_include_directories(gpusim_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_features(gpusim_options INTERFACE cxx_std_20)

set(host_flags -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
if(GPUSIM_WERROR)
  list(APPEND host_flags -Werror)
endif()
if(GPUSIM_SANITIZE)
  # GCC reports false positives of this warning in instrumented code.
  list(APPEND host_flags -Wno-maybe-uninitialized)
endif()
target_compile_options(gpusim_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:${host_flags}>
  # A guest's a*b+c rounds twice; a host that contracts it would round once.
  $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>)
if(GPUSIM_HAVE_CUDA)
  # No -Wpedantic: nvcc's own intermediate code uses line markers that it rejects.
  set(cuda_host_flags -Wall,-Wextra,-Wno-unused-parameter,-ffp-contract=off)
  if(GPUSIM_WERROR)
    string(APPEND cuda_host_flags ",-Werror")
  endif()
  target_compile_options(gpusim_options INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false>
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${cuda_host_flags}>)
endif()

add_library(gpusim_strict INTERFACE)
target_link_libraries(gpusim_strict INTERFACE gpusim_options)
target_compile_options(gpusim_strict INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wconversion>)

# Everywhere, not through gpusim_options: a half-instrumented program misreports.
if(GPUSIM_SANITIZE)
  add_compile_options(
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GPUSIM_SANITIZE}>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${GPUSIM_SANITIZE})
endif()
