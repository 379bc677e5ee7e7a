#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& verb, int error, ExitStatus status) {
  const std::string hint = error == ENOSPC ? "free some space, or choose another folder with --output" : "";
  throw Error(Problem{"cannot " + verb + ": " + std::strerror(error), path.string(), hint}, status);
}

void write_all(int descriptor, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "write", errno, ExitStatus::work_failed);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, "create the folder", error.value(), ExitStatus::work_failed);
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

std::string read_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw Error(Problem{"is a folder, not a file", path.string(), ""});
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail(path, "read", errno != 0 ? errno : ENOENT, ExitStatus::usage);
  std::ostringstream content;
  content << stream.rdbuf();
  if (stream.bad()) fail(path, "read", errno != 0 ? errno : EIO, ExitStatus::usage);
  return std::move(content).str();
}

void write_file_atomically(const fs::path& path, std::string_view content, Survives survives) {
  NewFile file(path);
  file.write(content);
  file.finish(survives);
}

NewFile::NewFile(const fs::path& path) : target_(path), path_(path.string() + ".XXXXXX.tmp") {
  create_folder(folder_of(path));
  descriptor_ = ::mkostemps(path_.data(), 4, O_CLOEXEC);
  if (descriptor_ < 0) fail(target_, "write", errno, ExitStatus::work_failed);
}

NewFile::~NewFile() {
  ::close(descriptor_);
  if (!finished_) ::unlink(path_.c_str());
}

void NewFile::write(std::string_view bytes) { write_all(descriptor_, bytes, target_); }

void NewFile::finish(Survives survives) {
  ::fchmod(descriptor_, 0644);
  if (survives == Survives::power_loss && ::fsync(descriptor_) != 0)
    fail(target_, "write", errno, ExitStatus::work_failed);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "replace", errno, ExitStatus::work_failed);
  finished_ = true;
  if (survives == Survives::power_loss) sync_folder(folder_of(target_));
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // the rename has happened; durability of the entry is the best we can try for
  ::fsync(descriptor);
  ::close(descriptor);
}

LineWriter::LineWriter(const fs::path& path) : path_(path.string()) {
  if (path.has_parent_path()) create_folder(path.parent_path());
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path, "write", errno, ExitStatus::work_failed);
}

LineWriter::~LineWriter() { ::close(descriptor_); }

void LineWriter::write_line(std::string_view line) {
  std::string with_newline(line);
  with_newline += '\n';
  write_all(descriptor_, with_newline, path_);
}

}  // namespace tprimat
