# tprimat_group(name [PRECOMPILED target] USES groups... MODULES modules...)
#
# One folder under src/ is one group: a namespace, an include root and a list of modules, lowest first. USES names the
# groups whose headers its modules may include: their include roots are the only ones that its compiler sees.
# PRECOMPILED is whose precompiled headers its modules take; without it, those of the standard alone.
function(tprimat_group name)
  cmake_parse_arguments(G "" "PRECOMPILED" "USES;MODULES" ${ARGN})
  set(TPRIMAT_GROUP ${name})
  set(TPRIMAT_PRECOMPILED tprimat_precompiled)
  if(G_PRECOMPILED)
    set(TPRIMAT_PRECOMPILED ${G_PRECOMPILED})
  endif()
  set(TPRIMAT_VISIBLE_GROUPS ${name} ${G_USES})
  foreach(module IN LISTS G_MODULES)
    if(NOT TPRIMAT_FUZZ OR module IN_LIST TPRIMAT_FUZZED_MODULES)
      add_subdirectory(${module})
    endif()
  endforeach()
endfunction()

# Standard headers, precompiled once for all modules: they are most of what a compiler reads; next come our own of a
# result and of a training, which most sources of the upper groups include. Preset dev goes without, which shows a source
# that includes too little.
set(TPRIMAT_STANDARD_HEADERS <algorithm> <cmath> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string>
  <string_view> <utility> <vector> <fmt/format.h>)
function(tprimat_precompile name)  # name headers...: these beside the standard ones
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/precompiled.cpp)
  target_link_libraries(${name} PRIVATE tprimat_options)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src/core)
  target_precompile_headers(${name} PRIVATE ${TPRIMAT_STANDARD_HEADERS} ${ARGN})
endfunction()
tprimat_precompile(tprimat_precompiled)
tprimat_precompile(tprimat_precompiled_upper [["result/run_result.h"]] [["spec/train_spec.h"]] [["text/json.h"]])
set(TPRIMAT_HOT_OPTIONS $<$<CONFIG:Release>:-O3> $<$<CONFIG:Debug>:-O1>)
set(TPRIMAT_VECTOR_HEADERS "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TPRIMAT_VECTOR_HEADERS <immintrin.h>)  # which Highway includes
endif()
tprimat_precompile(tprimat_precompiled_hot ${TPRIMAT_VECTOR_HEADERS})
target_compile_options(tprimat_precompiled_hot PRIVATE ${TPRIMAT_HOT_OPTIONS})

# tprimat_module(name [HOT] [ALONE sources...] SOURCES ... HEADERS ... DEPS modules... LIBS libraries...)
#
# DEPS names the modules whose headers this one may include: each is declared already, so there is no cycle, and belongs
# to a visible group, so no group looks up. The test layer.<name> holds the sources to that list. HOT modules are where
# the time of a training or of reading a log goes: a release compiles them with -O3, and the sanitizers' build, which
# optimises nothing else, with -O1. ALONE are sources that no batch takes, since the compiler inlines less there: reading a
# log took 5 % longer, planning 2 %.
function(tprimat_module name)
  cmake_parse_arguments(M "HOT" "" "ALONE;SOURCES;HEADERS;DEPS;LIBS" ${ARGN})
  foreach(dep IN LISTS M_DEPS)
    if(NOT TARGET tprimat_${dep})
      message(FATAL_ERROR "module ${name} depends on ${dep}, which is not declared before it")
    endif()
    get_target_property(dep_group tprimat_${dep} TPRIMAT_GROUP)
    if(NOT dep_group IN_LIST TPRIMAT_VISIBLE_GROUPS)
      message(FATAL_ERROR "module ${name} may not depend on ${dep}: group ${TPRIMAT_GROUP} does not use ${dep_group}")
    endif()
  endforeach()

  set(root ${CMAKE_SOURCE_DIR}/src/${TPRIMAT_GROUP})
  if(TPRIMAT_GROUP STREQUAL name)  # a group without modules
    set(root ${CMAKE_SOURCE_DIR}/src)
  endif()
  add_library(tprimat_${name} STATIC ${M_ALONE} ${M_SOURCES})
  target_sources(tprimat_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${M_HEADERS})
  set_target_properties(tprimat_${name} PROPERTIES TPRIMAT_GROUP ${TPRIMAT_GROUP})
  if(M_HOT)
    target_compile_options(tprimat_${name} PRIVATE ${TPRIMAT_HOT_OPTIONS})
    target_precompile_headers(tprimat_${name} REUSE_FROM tprimat_precompiled_hot)
  else()
    target_precompile_headers(tprimat_${name} REUSE_FROM ${TPRIMAT_PRECOMPILED})
  endif()
  tprimat_compile_together(tprimat_${name} ${M_SOURCES})
  list(TRANSFORM M_DEPS PREPEND tprimat_ OUTPUT_VARIABLE dep_targets)
  target_link_libraries(tprimat_${name} PUBLIC tprimat_options ${dep_targets} ${M_LIBS})
  add_test(NAME layer.${name}
    COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_CURRENT_SOURCE_DIR} -DNAME=${name} -DGROUP=${TPRIMAT_GROUP} "-DALLOWED=${name};${M_DEPS}"
            -P ${CMAKE_SOURCE_DIR}/cmake/CheckLayer.cmake)
  set_tests_properties(layer.${name} PROPERTIES LABELS layer)
endfunction()

# tprimat_gpu_sources([KERNELS files...] [SOURCES files...] [LIBRARIES files...]): what a module gives to the libraries of
# GPU operations: KERNELS go through a GPU's compiler, SOURCES through the C++ compiler, LIBRARIES too, which open a
# vendor's library when it is needed and for which the tests' emulator has its own. They are global properties, TPRIMAT_GPU_<kind>.
function(tprimat_gpu_sources)
  cmake_parse_arguments(G "" "" "KERNELS;SOURCES;LIBRARIES" ${ARGN})
  foreach(kind IN ITEMS KERNELS SOURCES LIBRARIES)
    list(TRANSFORM G_${kind} PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY TPRIMAT_GPU_${kind} ${G_${kind}})
  endforeach()
endfunction()

# tprimat_gpu_library(name SOURCES... LIBS...): all operations, for the tests and for the module that the program loads.
function(tprimat_gpu_library name)
  cmake_parse_arguments(G "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${G_SOURCES})
  target_link_libraries(${name} PUBLIC tprimat_options tprimat_text ${G_LIBS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/src/core ${CMAKE_SOURCE_DIR}/src/engine)
  set_target_properties(${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINKER_LANGUAGE CXX)
endfunction()

# tprimat_gpu_module(name library folder): the module itself, below the build's folder.
function(tprimat_gpu_module name library folder)
  set(engine ${CMAKE_SOURCE_DIR}/src/engine)
  add_library(${name} MODULE ${engine}/gpu_module/module.cpp ${engine}/comm/element_type.cpp)
  target_link_libraries(${name} PRIVATE ${library})
  if(TPRIMAT_STATIC)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src/core/base/older_glibc.cpp)
  endif()
  set_target_properties(${name} PROPERTIES BUILD_RPATH "${TPRIMAT_GPU_RPATH}"
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
endfunction()
