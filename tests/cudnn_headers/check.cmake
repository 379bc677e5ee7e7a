# Finds cuDNN's headers in FOLDER, laid out as Python packages bring them, with all of them there and with each missing.
# With LACKS set, this is the search of one build, which fails.
foreach(kind IN ITEMS CMAKE_PATH SYSTEM_ENVIRONMENT_PATH CMAKE_SYSTEM_PATH CMAKE_ENVIRONMENT_PATH PACKAGE_ROOT_PATH)
  set(CMAKE_FIND_USE_${kind} FALSE)  # this machine may have cuDNN
endforeach()
include(${SOURCE}/cmake/Cudnn.cmake)
set(headers nvidia/cudnn/include/cudnn.h include/cudnn_frontend.h nvidia/cu13/include/nvrtc.h)

file(REMOVE_RECURSE ${FOLDER})
foreach(header IN LISTS headers)
  if(NOT LACKS OR NOT header MATCHES "/${LACKS}$")
    file(WRITE ${FOLDER}/${header} "")
  endif()
endforeach()
if(LACKS)
  tprimat_find_cudnn(folders PLACES ${FOLDER})
  message(STATUS "nothing is missing")
  return()
endif()

tprimat_find_cudnn(folders PLACES ${FOLDER})
if(NOT folders STREQUAL "${FOLDER}/nvidia/cudnn/include;${FOLDER}/include;${FOLDER}/nvidia/cu13/include")
  message(SEND_ERROR "the headers are there, and these folders were found: ${folders}")
endif()
foreach(header IN ITEMS cudnn.h cudnn_frontend.h nvrtc.h)
  execute_process(COMMAND ${CMAKE_COMMAND} -DFOLDER=${FOLDER} -DSOURCE=${SOURCE} -DLACKS=${header}
    -P ${CMAKE_CURRENT_LIST_FILE} RESULT_VARIABLE status OUTPUT_VARIABLE told ERROR_VARIABLE told)
  if(status EQUAL 0 OR NOT told MATCHES "not found:[ \n]*${header}")
    message(SEND_ERROR "without ${header} a build ends with ${status}: ${told}")
  endif()
endforeach()
