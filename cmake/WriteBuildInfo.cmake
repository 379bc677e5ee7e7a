# Writes OUT from IN with VERSION, BUILD_TYPE, COMPILER as given and REVISION asked of git; leaves OUT alone when nothing changed.
cmake_minimum_required(VERSION 3.24)
execute_process(COMMAND git describe --always --dirty --abbrev=12 --match=v[0-9]*
  WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
configure_file(${IN} ${OUT} @ONLY)
