#pragma once

#include <filesystem>
#include <utility>

namespace tprimat {

// Owns the descriptor of a file that is read.
class InputFile {
 public:
  explicit InputFile(int descriptor) : descriptor_(descriptor) {}
  InputFile(InputFile&& other) noexcept : descriptor_(other.release()) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }  // whose closing is then the caller's

 private:
  int descriptor_;
};

// Opens an input with an end: a regular file, a pipe with a writer, a terminal or /dev/null. Throws Error for a folder,
// a device, a socket, and for a named pipe that nobody opens to write within a few seconds, where a plain open() would
// wait for ever.
InputFile open_input(const std::filesystem::path& path);

}  // namespace tprimat
