# cmake --install: bin/tprimat, what it loads in lib/tprimat, the Python package, and in share what the program prints of
# itself (completions and manual pages), licences, documentation and examples. `--component gpu`: the module for GPUs alone.
install(TARGETS tprimat RUNTIME DESTINATION bin)
install(TARGETS tprimat-train RUNTIME DESTINATION lib/tprimat)
foreach(module IN ITEMS tprimat_mpi tprimat_nvd tprimat_amd)
  if(TARGET ${module})
    set_target_properties(${module} PROPERTIES INSTALL_RPATH "${TPRIMAT_GPU_RPATH}")
    set(component "")
    if(NOT module STREQUAL tprimat_mpi)
      set(component COMPONENT gpu)
    endif()
    install(TARGETS ${module} LIBRARY DESTINATION lib/tprimat ${component}
      PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/tprimat DESTINATION lib/python3/dist-packages
  FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)

set(TPRIMAT_PRINTED ${CMAKE_BINARY_DIR}/printed)
install(CODE "
  set(program \"$<TARGET_FILE:tprimat>\")
  set(printed \"${TPRIMAT_PRINTED}\")
  file(REMOVE_RECURSE \"\${printed}\")
  set(zsh zsh/site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")  # where Debian's zsh looks for what packages bring
    set(zsh zsh/vendor-completions)
  endif()
  foreach(place IN ITEMS bash=bash-completion/completions/tprimat zsh=\${zsh}/_tprimat
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

set(documentation share/doc/tprimat)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${documentation})
install(DIRECTORY docs DESTINATION ${documentation})
install(DIRECTORY configs/ DESTINATION ${documentation}/examples)
if(TPRIMAT_STATIC)  # which contains other projects' libraries
  set(TPRIMAT_LICENCES ${CMAKE_BINARY_DIR}/licences)
  install(CODE "
    file(REMOVE_RECURSE \"${TPRIMAT_LICENCES}\")
    execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/scripts/licences.py\" \"${CMAKE_BINARY_DIR}\" \"${TPRIMAT_LICENCES}\"
      COMMAND_ERROR_IS_FATAL ANY)
  ")
  install(DIRECTORY ${TPRIMAT_LICENCES}/ DESTINATION ${documentation})
else()
  install(FILES LICENSE DESTINATION ${documentation} RENAME copyright)
endif()
