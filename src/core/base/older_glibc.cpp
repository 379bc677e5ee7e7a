#include <sys/random.h>

#include <cstdlib>

// In place of glibc 2.36's, which C++'s library asks for where it is linked statically (std::random_device): packages
// run with older ones too.
extern "C" unsigned arc4random() noexcept {
  unsigned value = 0;
  if (::getentropy(&value, sizeof value) != 0) std::abort();
  return value;
}
