// A slow network for a program that knows nothing of it: loaded before the C library (LD_PRELOAD), it lets every write
// to a socket of 1 KB or more take TPRIMAT_SLOW_SOCKETS seconds longer for each byte.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

constexpr ssize_t k_min_delayed_bytes = 1024;

double seconds_per_byte() {
  static const double rate = [] {
    const char* const text = std::getenv("TPRIMAT_SLOW_SOCKETS");
    return text == nullptr ? 0.0 : std::atof(text);
  }();
  return rate;
}

ssize_t delayed(ssize_t written) {
  if (written >= k_min_delayed_bytes && seconds_per_byte() > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(written) * seconds_per_byte()));
  return written;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool is_socket(int file) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
}

}  // namespace

extern "C" {

ssize_t writev(int file, const iovec* parts, int count) {
  static const auto real = next<decltype(writev)>("writev");
  const ssize_t written = real(file, parts, count);
  return is_socket(file) ? delayed(written) : written;
}

ssize_t sendmsg(int file, const msghdr* message, int flags) {
  static const auto real = next<decltype(sendmsg)>("sendmsg");
  return delayed(real(file, message, flags));
}

ssize_t send(int file, const void* bytes, size_t count, int flags) {
  static const auto real = next<decltype(send)>("send");
  return delayed(real(file, bytes, count, flags));
}

}  // extern "C"
