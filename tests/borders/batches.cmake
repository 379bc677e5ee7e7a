# Which sources may be compiled together (cmake/Together.cmake). -DSCRATCH is an empty folder of ours.
cmake_minimum_required(VERSION 3.24)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Together.cmake)

function(expect what got wanted)
  if(NOT "${got}" STREQUAL "${wanted}")
    message(SEND_ERROR "${what}: ${got}, not ${wanted}")
  endif()
endfunction()

file(WRITE ${SCRATCH}/one.cpp [==[
#include "one.h"

namespace tprimat {
using text::parse_bytes;
namespace {

constexpr std::array<int, 2> k_rows = {{1, 2}};  // not k_comment
constexpr char k_letters[] = "abc";
const std::map<std::string, std::vector<double>> k_units{{"s", {1}}};

struct Reader : Base {
  int member() { return inner(3); }
};

template <class T>
std::function<void(const T&)>
maker_of(const T& value) {
  return [value](const T&) { print("https://host", helper(value)); };
}

}  // namespace

double shown(int value) { return maker_of(value); }

}  // namespace tprimat
]==])
tprimat_names_of(${SCRATCH}/one.cpp words own alone)
expect("names of their own" "${own}" "k_rows;k_letters;k_units;Reader;maker_of;parse_bytes")
expect("alone" "${alone}" NO)
foreach(word IN ITEMS shown helper k_letters member)
  tprimat_mentions(found "${words}" other ${word})
  expect("${word} mentioned" ${found} YES)
endforeach()
tprimat_mentions(found "${words}" k_comment show)
expect("words of comments, parts of words" ${found} NO)

foreach(line IN ITEMS "#define MACRO 1" "using namespace std;" "namespace {\nint unclosed();")
  file(WRITE ${SCRATCH}/two.cpp "#include <cmath>\n${line}\n")
  tprimat_names_of(${SCRATCH}/two.cpp words own alone)
  expect("alone for ${line}" "${alone}" YES)
endforeach()
