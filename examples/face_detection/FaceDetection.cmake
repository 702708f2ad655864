# Face detection: its cascade comes from Debian's opencv-data when the project is built. Without it
# the example is left out.
set(GPUSIM_HAAR_CASCADES "/usr/share/opencv4/haarcascades" CACHE PATH
    "Folder of OpenCV's cascades (Debian package opencv-data)")
find_program(GPUSIM_PYTHON3 python3 DOC "Python 3, for scripts that run during the build")
if(NOT EXISTS "${GPUSIM_HAAR_CASCADES}/haarcascade_frontalface_alt.xml" OR NOT GPUSIM_PYTHON3)
  message(STATUS "Without the example face_detection: it needs python3 and the cascades of OpenCV "
                 "(Debian package opencv-data; GPUSIM_HAAR_CASCADES=${GPUSIM_HAAR_CASCADES})")
  return()
endif()

set(faces_source "${CMAKE_CURRENT_SOURCE_DIR}/face_detection")
set(faces_build "${CMAKE_CURRENT_BINARY_DIR}/face_detection")
file(MAKE_DIRECTORY "${faces_build}")

# add_face_detection(NAME CASCADE [GUEST_ONLY|NATIVE_ONLY])
function(add_face_detection name cascade)
  set(tables "${faces_build}/${name}.h")
  set(raw "${faces_build}/${name}.raw")
  set(xml "${GPUSIM_HAAR_CASCADES}/haarcascade_frontalface_${cascade}.xml")
  add_custom_command(
    OUTPUT "${tables}" "${raw}"
    COMMAND "${GPUSIM_PYTHON3}" "${faces_source}/make_tables.py" "${xml}"
            "${faces_source}/faces.png" "${tables}" "${raw}"
    DEPENDS "${faces_source}/make_tables.py" "${faces_source}/faces.png" "${xml}"
    COMMENT "Making tables of a cascade of Haar features for ${name}"
    VERBATIM)
  add_custom_target(${name}_tables DEPENDS "${tables}" "${raw}")
  add_example(${name} face_detection/face_detection.c face_detection/picture.S ${ARGN}
              MADE_BY ${name}_tables DEPENDS "${tables}" "${raw}"
              DEFINITIONS "TABLES_FILE=\"${tables}\"" "PICTURE_FILE=\"${raw}\"")
endfunction()

add_face_detection(face_detection alt)
# The cascade that OpenCV's own samples start with, for the comparison with OpenCV only.
add_face_detection(face_detection_default default NATIVE_ONLY)

if(BUILD_TESTING)
  foreach(cascade alt default)
    set(name face_detection)
    if(cascade STREQUAL default)
      set(name face_detection_default)
    endif()
    add_test(NAME example.${name}.opencv_golden
             COMMAND "${faces_source}/compare_with_opencv" golden $<TARGET_FILE:${name}_native>
                     ${cascade})
    add_test(NAME example.${name}.opencv_live
             COMMAND "${faces_source}/compare_with_opencv" live $<TARGET_FILE:${name}_native>
                     ${cascade} "${GPUSIM_HAAR_CASCADES}")
    set_tests_properties(example.${name}.opencv_golden example.${name}.opencv_live PROPERTIES
                         SKIP_RETURN_CODE 77 TIMEOUT 120)
  endforeach()
endif()

# As a CUDA program, run on simulated threads (docs/cuda.md).
find_program(GPUSIM_NVCC_FOR_FACES nvcc HINTS /usr/local/cuda/bin)
if(BUILD_TESTING AND GPUSIM_NVCC_FOR_FACES AND TARGET gpusim_cuda)
  set(cuda_faces "${faces_build}/face_detection_cuda")
  add_custom_command(
    OUTPUT "${cuda_faces}"
    COMMAND "${CMAKE_C_COMPILER}" -c "-DPICTURE_FILE=\"${faces_build}/face_detection.raw\""
            -o "${cuda_faces}.picture.o" "${faces_source}/picture.S"
    COMMAND "${GPUSIM_NVCC_FOR_FACES}" -std=c++17 -arch=sm_80 -lineinfo
            "-DTABLES_FILE=\"${faces_build}/face_detection.h\"" -o "${cuda_faces}"
            "${faces_source}/face_detection.cu" "${cuda_faces}.picture.o"
    DEPENDS face_detection_tables "${faces_source}/face_detection.cu" "${faces_source}/picture.S"
            "${faces_source}/group.h" "${faces_source}/pyramid.h" "${faces_source}/cascade.h"
    COMMENT "Compiling face detection with nvcc"
    VERBATIM)
  add_custom_target(face_detection_cuda ALL DEPENDS "${cuda_faces}")
  # For scripts that take a program's path.
  set(faces_on_gpusim "${cuda_faces}-on-gpusim")
  file(GENERATE OUTPUT "${faces_on_gpusim}" CONTENT
"#!/bin/sh
exec '$<TARGET_FILE:gpusim>' cuda --quiet -- '${cuda_faces}' \"$@\"
" FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  add_test(NAME example.face_detection_cuda.opencv_golden
           COMMAND "${faces_source}/compare_with_opencv" golden "${faces_on_gpusim}" alt)
  set_tests_properties(example.face_detection_cuda.opencv_golden PROPERTIES TIMEOUT 120)
endif()
