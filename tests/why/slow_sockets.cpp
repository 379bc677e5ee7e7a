// A slow network for a program that knows nothing of it: loaded before the C library (LD_PRELOAD), it lets every write
// to a socket of 1 KB or more take TPRIMAT_SLOW_SOCKETS seconds longer for each byte.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

constexpr size_t k_min_delayed_bytes = 1024;

double seconds_per_byte() {
  static const double rate = [] {
    const char* const text = std::getenv("TPRIMAT_SLOW_SOCKETS");
    return text == nullptr ? 0.0 : std::atof(text);
  }();
  return rate;
}

void delay(size_t bytes) {
  if (bytes >= k_min_delayed_bytes && seconds_per_byte() > 0)
    std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) * seconds_per_byte()));
}

size_t bytes_of(const iovec* parts, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
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
  if (is_socket(file)) delay(bytes_of(parts, static_cast<size_t>(count)));
  return real(file, parts, count);
}

ssize_t sendmsg(int file, const msghdr* message, int flags) {
  static const auto real = next<decltype(sendmsg)>("sendmsg");
  delay(bytes_of(message->msg_iov, message->msg_iovlen));
  return real(file, message, flags);
}

ssize_t send(int file, const void* bytes, size_t count, int flags) {
  static const auto real = next<decltype(send)>("send");
  delay(count);
  return real(file, bytes, count, flags);
}

}  // extern "C"
