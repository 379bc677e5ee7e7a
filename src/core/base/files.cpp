#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr size_t k_read_size = size_t{1} << 16;

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

// The part of the path that is in the way: a file, or a symbolic link to nothing. Empty where none is.
fs::path find_obstacle(const fs::path& folder) {
  std::error_code unreadable;
  for (fs::path part = folder; !part.empty() && part != part.root_path(); part = part.parent_path())
    if (fs::exists(fs::symlink_status(part, unreadable))) return fs::is_directory(part, unreadable) ? fs::path() : part;
  return {};
}

[[noreturn]] void refuse_output(const fs::path& path, const std::string& what) {
  throw Error(
      Problem{"is " + what + ", so no file can be written here", path.string(), "remove it, or choose another name"},
      ExitStatus::work_failed);
}

bool is_system_link(const fs::path& path, const struct stat& named) {
  return S_ISLNK(named.st_mode) && path.lexically_normal().string().starts_with("/dev/");
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

// A new file may replace a regular file or a symbolic link. Anything else stays: /dev/null must not become a file, and
// /dev/stdout must keep its target.
void require_replaceable(const fs::path& path) {
  struct stat named {};
  if (::lstat(path.c_str(), &named) != 0 || S_ISREG(named.st_mode)) return;
  if (S_ISDIR(named.st_mode)) refuse_output(path, "a folder");
  if (!S_ISLNK(named.st_mode) || is_system_link(path, named)) refuse_output(path, "a device or a pipe");
}

void ensure_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return;
  const fs::path obstacle = find_obstacle(folder);
  if (obstacle.empty()) fail(folder, "create the folder", error.value(), ExitStatus::work_failed);
  std::error_code unreadable;
  const fs::path target = fs::read_symlink(obstacle, unreadable);
  const std::string reason = unreadable
                                 ? obstacle.string() + " is a file"
                                 : fmt::format("{} is a link to {}, which {}", obstacle.string(), target.string(),
                                               fs::exists(obstacle, unreadable) ? "is a file" : "does not exist");
  throw Error(Problem{"cannot create the folder: " + reason, folder.string(), "remove it, or name another folder"},
              ExitStatus::work_failed);
}

std::string read_file(const fs::path& path) {
  const InputFile file = open_input(path);
  const int descriptor = file.descriptor();
  std::string content;
  struct stat facts {};
  if (::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode)) content.reserve(static_cast<size_t>(facts.st_size));
  std::vector<char> bytes(k_read_size);
  ssize_t count = 0;
  while ((count = ::read(descriptor, bytes.data(), bytes.size())) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    content.append(bytes.data(), static_cast<size_t>(count));
  }
  if (count < 0) fail(path, "read", errno, ExitStatus::usage);
  return content;
}

void write_file_atomically(const fs::path& path, std::string_view content, Survives survives) {
  NewFile file(path);
  file.write(content);
  file.finish(survives);
}

NewFile::NewFile(const fs::path& path) : target_(path), path_(path.string() + ".XXXXXX.tmp") {
  ensure_folder(folder_of(path));
  require_replaceable(path);
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
  if (path.has_parent_path()) ensure_folder(path.parent_path());
  struct stat named {};
  const bool is_named = ::lstat(path.c_str(), &named) == 0;
  if (is_named && S_ISLNK(named.st_mode) && !is_system_link(path, named)) refuse_output(path, "a symbolic link");
  // Without O_NONBLOCK, opening a named pipe would wait for a reader for ever.
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  if (descriptor_ < 0 && errno == ENXIO) refuse_output(path, "a pipe that nobody reads");
  if (descriptor_ < 0) fail(path, "write", errno, ExitStatus::work_failed);
  ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) & ~O_NONBLOCK);
}

LineWriter::~LineWriter() { ::close(descriptor_); }

void LineWriter::write_line(std::string_view line) {
  std::string with_newline(line);
  with_newline += '\n';
  write_all(descriptor_, with_newline, path_);
}

}  // namespace tprimat
