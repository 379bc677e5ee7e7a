#include "base/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr double k_writer_patience_seconds = 5.0;  // a shell starts both ends of a named pipe at once

// Of a device or a pipe that the program was given and that has no name of its own: "pipe:[4711]".
bool is_anonymous(int descriptor) {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown).string().starts_with("pipe:");
}

// tee() tells a pipe without data from a pipe without a writer, and takes nothing out of it.
bool has_writer_or_data(int pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return true;
  const InputFile read_end(ends[0]), write_end(ends[1]);
  return ::tee(pipe, write_end.descriptor(), 1, SPLICE_F_NONBLOCK) != 0;
}

bool waits_for_writer(int pipe) {
  const auto start = SteadyClock::now();
  while (!has_writer_or_data(pipe)) {
    if (seconds_since(start) > k_writer_patience_seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool is_null_device(const struct stat& facts) { return S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3); }

// Why it cannot be read, as the end of a sentence.
std::optional<Problem> find_problem(int descriptor, const fs::path& path) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return Problem{std::string("cannot read: ") + std::strerror(errno), path, ""};
  if (S_ISDIR(facts.st_mode)) return Problem{"is a folder, not a file", path, ""};
  if (S_ISFIFO(facts.st_mode) && !is_anonymous(descriptor) && !waits_for_writer(descriptor))
    return Problem{"is a named pipe that nobody writes to", path, "start the writer first, or give a file"};
  const bool is_endless = (S_ISCHR(facts.st_mode) && !is_null_device(facts) && ::isatty(descriptor) == 0) ||
                          S_ISBLK(facts.st_mode) || S_ISSOCK(facts.st_mode);
  if (is_endless) return Problem{"is a device, not a file", path, ""};
  return std::nullopt;
}

}  // namespace

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile open_input(const fs::path& path) {
  InputFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  const int descriptor = file.descriptor();
  if (descriptor < 0) throw Error(Problem{std::string("cannot read: ") + std::strerror(errno), path.string(), ""});
  if (const auto problem = find_problem(descriptor, path)) throw Error(*problem);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return file;
}

}  // namespace tprimat
