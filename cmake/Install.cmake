# cmake --install: bin/tprimat, what it loads in lib/tprimat, and what it prints of itself: completions and manual pages.
install(TARGETS tprimat RUNTIME DESTINATION bin)
install(TARGETS tprimat-train RUNTIME DESTINATION lib/tprimat)
foreach(module IN ITEMS tprimat_mpi tprimat_nvd tprimat_amd)
  if(TARGET ${module})
    set_target_properties(${module} PROPERTIES INSTALL_RPATH "${TPRIMAT_GPU_RPATH}")
    install(TARGETS ${module} LIBRARY DESTINATION lib/tprimat)
  endif()
endforeach()

set(TPRIMAT_PRINTED ${CMAKE_BINARY_DIR}/printed)
install(CODE "
  set(program \"$<TARGET_FILE:tprimat>\")
  set(printed \"${TPRIMAT_PRINTED}\")
  file(REMOVE_RECURSE \"\${printed}\")
  foreach(place IN ITEMS bash=bash-completion/completions/tprimat zsh=zsh/site-functions/_tprimat
      fish=fish/vendor_completions.d/tprimat.fish)
    string(REPLACE \"=\" \";\" place \"\${place}\")
    list(GET place 0 shell)
    list(GET place 1 file)
    cmake_path(GET file PARENT_PATH folder)
    file(MAKE_DIRECTORY \"\${printed}/\${folder}\")
    execute_process(COMMAND \"\${program}\" completion \${shell} OUTPUT_FILE \"\${printed}/\${file}\"
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND \"\${program}\" man --quiet --output \"\${printed}/man/man1\" COMMAND_ERROR_IS_FATAL ANY)
")
install(DIRECTORY ${TPRIMAT_PRINTED}/ DESTINATION share)
