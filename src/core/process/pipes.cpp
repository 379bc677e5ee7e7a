#include "process/pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tprimat {

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

namespace {

// Never 0, 1 or 2, which the child replaces, even when we were started with those closed.
Descriptor above_standard(int descriptor) {
  if (descriptor > STDERR_FILENO) return Descriptor(descriptor);
  Descriptor low(descriptor);
  return Descriptor(::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Problem{std::string("cannot make a pipe: ") + std::strerror(errno), "",
                        "raise the limit on open files: ulimit -n"},
                ExitStatus::work_failed);
  return {above_standard(ends[0]), above_standard(ends[1])};
}

void set_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace tprimat
