#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace tprimat {
namespace {

Error cannot_map(const std::filesystem::path& path, std::string_view reason) {
  return Error(Problem{fmt::format("cannot read the file: {}", reason), path.string(), ""});
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) throw cannot_map(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw cannot_map(path, "it is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number, 0);
  if (start == MAP_FAILED) throw cannot_map(path, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tprimat
