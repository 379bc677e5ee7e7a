# Writes OUT from IN with VERSION, BUILD_TYPE, COMPILER as given and REVISION asked of git, or read where a source distribution
# has it; leaves OUT alone when nothing changed.
cmake_minimum_required(VERSION 3.24)
if(EXISTS ${SOURCE_DIR}/REVISION)
  file(STRINGS ${SOURCE_DIR}/REVISION REVISION LIMIT_COUNT 1)
else()
  execute_process(COMMAND git describe --always --dirty --abbrev=12 --match=v[0-9]*
    WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${IN} ${OUT} @ONLY)
