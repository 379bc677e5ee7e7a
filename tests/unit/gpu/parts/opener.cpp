// A library that opens another by its bare name, as NVRTC does.
#include <dlfcn.h>

extern "C" int tprimat_opener_finds_its_part() {
  return ::dlopen("libtprimat_opened_part.so.7", RTLD_NOW) != nullptr ? 1 : 0;
}
