# tprimat_find_cudnn(variable PLACES folders...): the folders of the headers with which attention through cuDNN is compiled.
# Each place is a folder of Python packages, or of a CUDA toolkit's headers. A missing header is an error: a build without
# cuDNN would say so only once a GPU is there, and train slower.
function(tprimat_find_cudnn variable)
  cmake_parse_arguments(C "" "" "PLACES" ${ARGN})
  find_path(TPRIMAT_CUDNN_HEADERS cudnn.h HINTS ${C_PLACES} PATH_SUFFIXES nvidia/cudnn/include)
  find_path(TPRIMAT_CUDNN_FRONTEND cudnn_frontend.h HINTS ${C_PLACES} PATH_SUFFIXES include)
  find_path(TPRIMAT_NVRTC_HEADERS nvrtc.h HINTS ${C_PLACES} PATH_SUFFIXES nvidia/cu13/include)  # the frontend includes it
  set(missing "")
  foreach(pair IN ITEMS "TPRIMAT_CUDNN_HEADERS cudnn.h" "TPRIMAT_CUDNN_FRONTEND cudnn_frontend.h"
      "TPRIMAT_NVRTC_HEADERS nvrtc.h")
    separate_arguments(pair)
    list(GET pair 0 folder)
    list(GET pair 1 header)
    if(NOT ${folder})
      list(APPEND missing ${header})
    endif()
  endforeach()
  if(missing)
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "Attention through cuDNN needs headers that were not found: ${missing}. scripts/build_gpu.sh nvd "
      "brings them; so does: pip install nvidia-cudnn-cu13 nvidia-cudnn-frontend nvidia-cuda-nvrtc nvidia-nvtx. -DTPRIMAT_GPU_CUDNN=OFF "
      "builds without cuDNN: attention then runs on the program's own kernels, which are slower.")
  endif()
  set(${variable} ${TPRIMAT_CUDNN_HEADERS} ${TPRIMAT_CUDNN_FRONTEND} ${TPRIMAT_NVRTC_HEADERS} PARENT_SCOPE)
endfunction()
