#pragma once

#include <utility>

namespace tprimat {

// Owns one file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_ = -1;
};

// Both ends close on exec. Throws Error when no descriptor is left.
struct Pipe {
  Descriptor read_end, write_end;
};
Pipe make_pipe();

void set_nonblocking(const Descriptor& descriptor);

}  // namespace tprimat
