# How sources of GPU kernels (.cu) are compiled for TPRIMAT_GPU: by nvcc for NVIDIA, by a HIP compiler for AMD. Everything
# else of the GPU modules goes through the C++ compiler, with the vendor's headers. See docs/gpu.md.
set(TPRIMAT_GPU_ARCHITECTURES_nvd 80 90a 100 CACHE STRING "A100; H100, H200; B200")
set(TPRIMAT_GPU_ARCHITECTURES_amd gfx90a gfx942)  # MI210, MI250; MI300A, MI300X, MI325X

add_library(tprimat_gpu_vendor INTERFACE)  # the vendor's headers and runtime
set(gpu_flags -std=c++20 -O3 -DFMT_CONSTEVAL= -I ${CMAKE_SOURCE_DIR}/src/core -I ${CMAKE_SOURCE_DIR}/src/engine)  # device compilers fail on fmt's checks
set(gpu_host_flags -fPIC -fvisibility=hidden -Wall -Wextra -Wshadow)
if(TPRIMAT_WERROR)
  list(APPEND gpu_host_flags -Werror)
endif()

if(TPRIMAT_GPU STREQUAL nvd)
  # Python packages: those that scripts/build.sh brought, and where PyTorch brings them.
  file(GLOB cuda_packages ${CMAKE_SOURCE_DIR}/build/cuda/lib/python3*/site-packages)
  set(cuda_wheels ${CMAKE_SOURCE_DIR}/build/cuda)
  if(cuda_packages)
    set(cuda_wheels ${cuda_packages}/nvidia/cu13)
  endif()
  execute_process(COMMAND python3 -c "import site; print(*site.getsitepackages(), site.getusersitepackages(), sep=';')"
    OUTPUT_VARIABLE python_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_program(TPRIMAT_GPU_COMPILER nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${cuda_wheels}/bin
    DOC "nvcc of CUDA 13" REQUIRED)
  get_filename_component(cuda ${TPRIMAT_GPU_COMPILER} REALPATH)
  get_filename_component(cuda ${cuda}/../.. ABSOLUTE)
  find_library(TPRIMAT_CUDA_RUNTIME cudart_static HINTS ${cuda}/lib64 ${cuda}/lib REQUIRED)
  target_include_directories(tprimat_gpu_vendor SYSTEM INTERFACE ${cuda}/include)
  target_link_libraries(tprimat_gpu_vendor INTERFACE ${TPRIMAT_CUDA_RUNTIME} Threads::Threads ${CMAKE_DL_LIBS} rt)
  # Where cuBLASLt, cuDNN and NCCL may be, which are loaded at run time.
  set(TPRIMAT_GPU_RPATH ${cuda}/lib64 ${cuda}/lib)
  foreach(packages IN LISTS cuda_packages)
    list(APPEND TPRIMAT_GPU_RPATH ${packages}/nvidia/cu13/lib ${packages}/nvidia/cudnn/lib ${packages}/nvidia/nccl/lib)
  endforeach()
  option(TPRIMAT_GPU_CUDNN "Attention through cuDNN on NVIDIA GPUs" ON)
  if(TPRIMAT_GPU_CUDNN)
    include(Cudnn)
    tprimat_find_cudnn(cudnn_folders PLACES ${cuda_packages} ${cuda}/include ${python_packages})
    target_include_directories(tprimat_gpu_vendor SYSTEM INTERFACE ${cudnn_folders})
    target_compile_definitions(tprimat_gpu_vendor INTERFACE TPRIMAT_HAS_CUDNN=1)
  endif()
  # Names of ranges for profilers; a header alone, which loads nothing unless a profiler asks for it.
  find_path(TPRIMAT_NVTX_HEADERS nvtx3/nvToolsExt.h HINTS ${cuda}/include ${cuda_packages} PATHS ${python_packages}
    PATH_SUFFIXES nvidia/cu13/include REQUIRED)
  target_include_directories(tprimat_gpu_vendor SYSTEM INTERFACE ${TPRIMAT_NVTX_HEADERS})
  foreach(architecture IN LISTS TPRIMAT_GPU_ARCHITECTURES_nvd)
    list(APPEND gpu_flags -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  # Any other GPU since Ampere gets what the driver makes of the first one's intermediate code.
  list(GET TPRIMAT_GPU_ARCHITECTURES_nvd 0 oldest)
  list(APPEND gpu_flags -gencode arch=compute_${oldest},code=compute_${oldest} -lineinfo)
  list(JOIN gpu_host_flags "," gpu_host_flags)
  list(APPEND gpu_flags -x cu --expt-relaxed-constexpr -Xcompiler=${gpu_host_flags})
  if(TPRIMAT_WERROR)
    list(APPEND gpu_flags -Werror=all-warnings)
  endif()
else()
  find_program(TPRIMAT_GPU_COMPILER NAMES amdclang++ clang++-16 HINTS $ENV{ROCM_PATH}/bin /opt/rocm/bin
    DOC "HIP compiler: ROCm's, or clang" REQUIRED)
  # Where /bin is a link, clang names headers as /bin/../..., which ninja takes for another file than /usr/bin/../...:
  # every build would compile all kernels once more.
  get_filename_component(folder ${TPRIMAT_GPU_COMPILER} DIRECTORY)
  get_filename_component(folder ${folder} REALPATH)
  get_filename_component(name ${TPRIMAT_GPU_COMPILER} NAME)
  set(TPRIMAT_GPU_COMPILER ${folder}/${name})
  find_library(TPRIMAT_HIP_RUNTIME amdhip64 HINTS $ENV{ROCM_PATH}/lib /opt/rocm/lib REQUIRED)
  find_path(TPRIMAT_HIP_HEADERS hip/hip_runtime.h HINTS $ENV{ROCM_PATH}/include /opt/rocm/include REQUIRED)
  find_path(TPRIMAT_HIP_DEVICE_LIBRARIES ockl.bc HINTS $ENV{ROCM_PATH}/amdgcn/bitcode /opt/rocm/amdgcn/bitcode
    PATHS /usr/lib/x86_64-linux-gnu/amdgcn/bitcode REQUIRED)
  target_include_directories(tprimat_gpu_vendor SYSTEM INTERFACE ${TPRIMAT_HIP_HEADERS})
  target_compile_definitions(tprimat_gpu_vendor INTERFACE TPRIMAT_GPU_HIP=1 __HIP_PLATFORM_AMD__=1)
  target_link_libraries(tprimat_gpu_vendor INTERFACE ${TPRIMAT_HIP_RUNTIME} ${CMAKE_DL_LIBS})
  get_filename_component(TPRIMAT_GPU_RPATH ${TPRIMAT_HIP_RUNTIME} DIRECTORY)
  list(APPEND gpu_flags -x hip -D__HIP_PLATFORM_AMD__=1 --rocm-device-lib-path=${TPRIMAT_HIP_DEVICE_LIBRARIES}
    ${gpu_host_flags})
  if(NOT TPRIMAT_HIP_HEADERS STREQUAL /usr/include)  # where every compiler looks, in its own order
    list(APPEND gpu_flags -isystem ${TPRIMAT_HIP_HEADERS})
  endif()
  function(tprimat_knows_gpu architecture variable)
    file(WRITE ${CMAKE_BINARY_DIR}/empty.hip "")
    execute_process(COMMAND ${TPRIMAT_GPU_COMPILER} -x hip -nogpuinc -nogpulib --cuda-device-only -S -o /dev/null
      --offload-arch=${architecture} ${CMAKE_BINARY_DIR}/empty.hip RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(${variable} NO PARENT_SCOPE)
    else()
      set(${variable} YES PARENT_SCOPE)
    endif()
  endfunction()
  foreach(architecture IN LISTS TPRIMAT_GPU_ARCHITECTURES_amd)
    tprimat_knows_gpu(${architecture} known)
    if(NOT known AND architecture STREQUAL gfx942)
      message(WARNING "${TPRIMAT_GPU_COMPILER} knows no gfx942, only gfx940 with the same instructions: what is compiled "
        "shows that sources are right, and runs on no MI300X. Use ROCm 6 or later.")
      set(architecture gfx940)
    endif()
    list(APPEND gpu_flags --offload-arch=${architecture})
  endforeach()
endif()

# tprimat_gpu_objects(variable [INCLUDES folders...] SOURCES sources...): object files of these sources.
function(tprimat_gpu_objects variable)
  cmake_parse_arguments(G "" "" "INCLUDES;SOURCES" ${ARGN})
  list(TRANSFORM G_INCLUDES PREPEND -I)
  set(objects "")
  foreach(source IN LISTS G_SOURCES)
    get_filename_component(path ${source} ABSOLUTE)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.${TPRIMAT_GPU}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${path} DEPFILE ${object}.d VERBATIM
      COMMAND ${CMAKE_COMMAND} -E env TMPDIR=${CMAKE_CURRENT_BINARY_DIR}  # clang leaves empty folders there
        ${TPRIMAT_GPU_COMPILER} ${gpu_flags} ${G_INCLUDES} -MD -MF ${object}.d -MT ${object} -c ${path} -o ${object}
      COMMENT "Compiling ${name} for GPUs")
    list(APPEND objects ${object})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
