# tprimat_embed(target NAME file): compiles a text file into `target` as
#   extern const std::string_view tprimat::embedded::NAME;
# so that the program is one file and needs no data directory at run time.
function(tprimat_embed target name file)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DFILE=${file} -DOUT=${source} -P ${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/WriteEmbedded.cmake
    COMMENT "Embedding ${name}")
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
