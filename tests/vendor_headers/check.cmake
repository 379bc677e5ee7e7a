# Compiles LIBRARY.cpp with the vendor's header, which is looked for in PLACES and where it is usually installed. Says
# so, and that nothing was checked, where there is none.
cmake_minimum_required(VERSION 3.24)
set(header_cublas cublasLt.h)
set(header_hipblas hipblaslt/hipblaslt.h)
set(header_nccl nccl.h rccl/rccl.h)  # RCCL has NCCL's numbers
set(headers ${header_${LIBRARY}})
list(JOIN headers " or " name)
set(python_packages ${SOURCE}/build/cuda)
find_path(header_folder NAMES ${headers}
  HINTS ${PLACES} ${python_packages} /usr/local/cuda /opt/rocm
  PATH_SUFFIXES include nvidia/cu13/include nvidia/nccl/include nvidia/cublas/include)
if(NOT header_folder)
  message(STATUS "${name} is not installed, so its numbers were not checked: scripts/build_gpu.sh brings the headers, or name their folder in -DTPRIMAT_VENDOR_HEADERS")
  return()
endif()

set(folders -I${SOURCE}/src/engine -isystem ${header_folder})
foreach(place IN LISTS PLACES ITEMS ${python_packages} /usr/local/cuda)
  foreach(suffix IN ITEMS include nvidia/cu13/include)
    if(EXISTS ${place}/${suffix})
      list(APPEND folders -isystem ${place}/${suffix})
    endif()
  endforeach()
endforeach()
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only ${folders} ${CMAKE_CURRENT_LIST_DIR}/${LIBRARY}.cpp
  RESULT_VARIABLE status OUTPUT_VARIABLE told ERROR_VARIABLE told)
if(status)
  message(FATAL_ERROR "our numbers are not those of ${name} in ${header_folder}:\n${told}")
endif()
message(STATUS "our numbers are those of ${name} in ${header_folder}")
