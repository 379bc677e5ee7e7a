# tprimat_module(name LEVEL n [HOT] SOURCES ... HEADERS ... DEPS modules... LIBS libraries... [PRECOMPILE headers...]
#                [SEPARATE sources...])
#
# One folder under src/ is one module. DEPS names the modules whose headers it may include: each must
# be declared already (so there is no cycle) and sit at the same level or below (so nothing looks up).
# The test layer.<name> holds the sources to that list. HOT modules are where the time of a training or of reading a log
# goes: a release compiles them with -O3, and the sanitizers' build, which optimises nothing else, with -O1. PRECOMPILE
# names heavy headers that most of the sources include; presets dev, fuzz and tsan go without, which shows a missing one.
# Presets release, asan and fuzz compile some sources of a module together, which halves the time of a build, so names in unnamed
# namespaces are unique within a module; SEPARATE names the sources that are compiled alone all the same.
function(tprimat_module name)
  cmake_parse_arguments(M "HOT" "LEVEL" "SOURCES;HEADERS;DEPS;LIBS;PRECOMPILE;SEPARATE" ${ARGN})
  foreach(dep IN LISTS M_DEPS)
    if(NOT TARGET tprimat_${dep})
      message(FATAL_ERROR "module ${name} depends on ${dep}, which is not declared before it")
    endif()
    get_target_property(dep_level tprimat_${dep} TPRIMAT_LEVEL)
    if(dep_level GREATER M_LEVEL)
      message(FATAL_ERROR "module ${name} (level ${M_LEVEL}) may not depend on ${dep} (level ${dep_level})")
    endif()
  endforeach()

  add_library(tprimat_${name} STATIC ${M_SOURCES})
  target_sources(tprimat_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${M_HEADERS})
  set_target_properties(tprimat_${name} PROPERTIES TPRIMAT_LEVEL ${M_LEVEL})
  if(M_HOT)
    target_compile_options(tprimat_${name} PRIVATE $<$<CONFIG:Release>:-O3> $<$<CONFIG:Debug>:-O1>)
  endif()
  set_source_files_properties(${M_SEPARATE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(M_PRECOMPILE)
    target_precompile_headers(tprimat_${name} PRIVATE ${M_PRECOMPILE})
  endif()
  list(TRANSFORM M_DEPS PREPEND tprimat_ OUTPUT_VARIABLE dep_targets)
  target_link_libraries(tprimat_${name} PUBLIC tprimat_options ${dep_targets} ${M_LIBS})
  add_test(NAME layer.${name}
    COMMAND ${CMAKE_COMMAND} -DDIR=${CMAKE_CURRENT_SOURCE_DIR} "-DALLOWED=${name};${M_DEPS}"
            -P ${CMAKE_SOURCE_DIR}/cmake/CheckLayer.cmake)
  set_tests_properties(layer.${name} PROPERTIES LABELS layer)
endfunction()
