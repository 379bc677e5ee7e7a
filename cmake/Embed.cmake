# tprimat_embed(target NAME file): compiles a text file into `target` as
#   extern const std::string_view embedded::NAME;
# in the namespace of the target's group, so that the program is one file and needs no data directory at run time.
function(tprimat_embed target name file)
  set(space tprimat::${TPRIMAT_GROUP}::embedded)
  if(NOT TPRIMAT_GROUP OR TPRIMAT_GROUP STREQUAL core)
    set(space tprimat::embedded)
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DNAMESPACE=${space} -DNAME=${name} -DFILE=${file} -DOUT=${source} -P ${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake
    COMMENT "Embedding ${name}")
  set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_embedded)
  target_sources(${target} PRIVATE ${source})
endfunction()
