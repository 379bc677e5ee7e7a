# How every translation unit of the project is compiled.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

add_library(tprimat_options INTERFACE)
target_compile_options(tprimat_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
target_link_libraries(tprimat_options INTERFACE fmt::fmt)  # formats every figure
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms inside std::string and std::optional at -O3 (GCC bugs 105329 and 105562, and others like them).
  target_compile_options(tprimat_options INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-dangling-pointer)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collecting its garbage is 5 to 11 % of the time of g++ on our batches, and saves it 160 MB of 700.
  target_compile_options(tprimat_options INTERFACE --param=ggc-min-expand=1000 --param=ggc-min-heapsize=2000000)
endif()
if(TPRIMAT_WERROR)
  target_compile_options(tprimat_options INTERFACE -Werror)
endif()
if(TPRIMAT_NATIVE)
  target_compile_options(tprimat_options INTERFACE -march=native)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # One binary runs on any x86-64-v2 machine; faster kernels are chosen at run time.
  target_compile_options(tprimat_options INTERFACE -march=x86-64-v2)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # As on x86-64-v2, so that the same sources give the same bits: no products fused with sums, and characters with a sign.
  target_compile_options(tprimat_options INTERFACE -ffp-contract=off -fsigned-char)
endif()
if(TPRIMAT_SANITIZE)
  target_compile_options(tprimat_options INTERFACE
    -fsanitize=${TPRIMAT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(TPRIMAT_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # Libraries that are opened at run time have the same structs under other names. Null pointers are the address
    # sanitizer's to find; without a check before each use, tests are built and pass a tenth sooner.
    target_compile_options(tprimat_options INTERFACE -fno-sanitize=function,null,vptr)
  endif()
  target_link_options(tprimat_options INTERFACE -fsanitize=${TPRIMAT_SANITIZE})
endif()
