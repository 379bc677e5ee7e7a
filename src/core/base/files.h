#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tprimat {

// Owns one file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }  // the caller must close it
  void close();

 private:
  int number_ = -1;
};

// Whether the path is the folder or lies in it; both absolute. Looks at no file.
bool is_in_folder(std::string_view path, std::string_view folder);

// The whole file, or all that comes through a pipe: see open_input. Throws Error that names the path and the system's
// reason.
std::string read_file(const std::filesystem::path& path);

// What a written file survives. `power_loss` waits for the disk, which takes milliseconds; `kill` suffices for files
// that can be regenerated.
enum class Survives { power_loss, kill };

// Writes the file whole or not at all: temporary file beside it, fsync, rename, fsync of the folder. Creates missing
// folders. Throws Error (ExitStatus::work_failed) when the disk is full or the path cannot be written; the old file is
// then untouched.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Survives survives = Survives::power_loss);

// The same for content that comes in parts: the file stands under a temporary name ("<path>.XXXXXX.tmp") until
// finish(). Throws Error as write_file_atomically does.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path);  // creates missing folders
  ~NewFile();                                           // without finish(), removes what was written

  void write(std::string_view bytes);
  void finish(Survives survives = Survives::power_loss);

 private:
  std::filesystem::path target_;
  std::string path_;
  Descriptor file_;
  bool finished_ = false;
};

// Creates a folder with its parents; an existing one stays. Throws Error (ExitStatus::work_failed) that names the file
// or link in the way.
void ensure_folder(const std::filesystem::path& folder);

// A folder below the system's temporary folder that only this user can read; the destructor removes it with its
// content. Throws Error (ExitStatus::work_failed).
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Throws the Error of write_file_atomically where the path is a folder, a device or a pipe. For long work that writes
// its file at the end.
void require_replaceable(const std::filesystem::path& path);

// Makes the folder's entries (files created, renamed, removed) survive a power loss, as far as the system can.
void sync_folder(const std::filesystem::path& folder);

// Appends whole lines to a file as they come: each write() holds complete lines, so a kill leaves no half line
// but possibly a short last one after a crash of the machine.
class LineWriter {
 public:
  explicit LineWriter(const std::filesystem::path& path);  // truncates, follows no link; throws Error
  void write_line(std::string_view line);                  // adds the newline; throws Error when the disk is full

 private:
  std::string path_;
  Descriptor file_;
};

// Opens an input with an end: a regular file, a pipe with a writer, a terminal or /dev/null. Throws Error for a folder,
// a device, a socket, and for a named pipe that nobody opens to write within a few seconds, where a plain open() would
// wait forever.
Descriptor open_input(const std::filesystem::path& path);

// A whole file, mapped read-only. The file must not shrink while it is mapped.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws Error that names the path and the system's reason
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace tprimat
