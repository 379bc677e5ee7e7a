# Builds for 64-bit Arm on another machine: Debian's cross compiler, the libraries that scripts/aarch64_root.sh
# unpacks, and QEMU, which runs what is built. Preset aarch64 uses it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH sources)
set(CMAKE_SYSROOT ${sources}/build/aarch64-root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${CMAKE_SYSROOT})
# Found nowhere by asking: mpicxx is a program, and this machine's answers for this machine.
set(open_mpi ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/openmpi)
set(MPI_CXX_LIB_NAMES mpi)
set(MPI_CXX_COMPILER_INCLUDE_DIRS ${open_mpi}/include)
set(MPI_CXX_HEADER_DIR ${open_mpi}/include)
set(MPI_mpi_LIBRARY ${open_mpi}/lib/libmpi.so)
