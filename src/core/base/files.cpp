#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

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

// The part of the path that blocks it: a file, or a dangling symbolic link. Empty if there is none.
fs::path find_obstacle(const fs::path& folder) {
  std::error_code unreadable;
  for (fs::path part = folder; !part.empty() && part != part.root_path(); part = part.parent_path())
    if (fs::exists(fs::symlink_status(part, unreadable))) return fs::is_directory(part, unreadable) ? fs::path() : part;
  return {};
}

constexpr const char* k_other_name = "remove it, or choose another name";

[[noreturn]] void refuse_output(const fs::path& path, const std::string& what, const std::string& hint = k_other_name) {
  throw Error(Problem{"is " + what + ", so no file can be written here", path.string(), hint}, ExitStatus::work_failed);
}

bool is_system_link(const fs::path& path, const struct stat& named) {
  return S_ISLNK(named.st_mode) && path.lexically_normal().string().starts_with("/dev/");
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

constexpr double k_writer_patience_seconds = 5.0;  // a shell starts both ends of a named pipe at once

// Whether the descriptor is a pipe without a name: "pipe:[4711]".
bool is_anonymous(int descriptor) {
  std::error_code unknown;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown).string().starts_with("pipe:");
}

// tee() tells a pipe without data from a pipe without a writer, and takes nothing out of it.
bool has_writer_or_data(int pipe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return true;
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  return ::tee(pipe, write_end.get(), 1, SPLICE_F_NONBLOCK) != 0;
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

// Why it cannot be read.
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

Error cannot_map(const std::filesystem::path& path, std::string_view reason) {
  return Error(Problem{fmt::format("cannot read the file: {}", reason), path.string(), ""});
}

}  // namespace

void Descriptor::close() {
  if (number_ >= 0) ::close(release());
}

ScratchFolder::ScratchFolder() {
  const fs::path parent = fs::temp_directory_path();
  std::string pattern = (parent / "tprimat-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Error(Problem{"cannot create a temporary folder", parent.string(), "set TMPDIR to a writable folder"},
                ExitStatus::work_failed);
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

// A new file may replace a regular file or a symbolic link. Anything else stays: /dev/null must not become a file, and
// /dev/stdout must keep its target.
void require_replaceable(const fs::path& path) {
  struct stat named {};
  if (::lstat(path.c_str(), &named) != 0 || S_ISREG(named.st_mode)) return;
  if (S_ISDIR(named.st_mode)) refuse_output(path, "a folder");
  if (!S_ISLNK(named.st_mode) || is_system_link(path, named))
    refuse_output(path, "a device or a pipe", "choose another name, or - where the option knows standard output");
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
  const Descriptor file = open_input(path);
  std::string content;
  struct stat facts {};
  if (::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)) content.reserve(static_cast<size_t>(facts.st_size));
  std::vector<char> bytes(k_read_size);
  ssize_t count = 0;
  while ((count = ::read(file.get(), bytes.data(), bytes.size())) != 0) {
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
  file_ = Descriptor(::mkostemps(path_.data(), 4, O_CLOEXEC));
  if (!file_.is_open()) fail(target_, "write", errno, ExitStatus::work_failed);
}

NewFile::~NewFile() {
  if (!finished_) ::unlink(path_.c_str());
}

void NewFile::write(std::string_view bytes) { write_all(file_.get(), bytes, target_); }

void NewFile::finish(Survives survives) {
  ::fchmod(file_.get(), 0644);
  if (survives == Survives::power_loss && ::fsync(file_.get()) != 0)
    fail(target_, "write", errno, ExitStatus::work_failed);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "replace", errno, ExitStatus::work_failed);
  finished_ = true;
  if (survives == Survives::power_loss) sync_folder(folder_of(target_));
}

void sync_folder(const fs::path& folder) {
  // The rename has happened; a failure to sync the folder is not an error.
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.is_open()) ::fsync(file.get());
}

LineWriter::LineWriter(const fs::path& path) : path_(path.string()) {
  if (path.has_parent_path()) ensure_folder(path.parent_path());
  struct stat named {};
  const bool is_named = ::lstat(path.c_str(), &named) == 0;
  if (is_named && S_ISLNK(named.st_mode) && !is_system_link(path, named)) refuse_output(path, "a symbolic link");
  // Without O_NONBLOCK, opening a named pipe would wait for a reader forever.
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644));
  if (!file_.is_open() && errno == ENXIO) refuse_output(path, "a pipe that nobody reads");
  if (!file_.is_open()) fail(path, "write", errno, ExitStatus::work_failed);
  ::fcntl(file_.get(), F_SETFL, ::fcntl(file_.get(), F_GETFL) & ~O_NONBLOCK);
}

void LineWriter::write_line(std::string_view line) {
  std::string with_newline(line);
  with_newline += '\n';
  write_all(file_.get(), with_newline, path_);
}

Descriptor open_input(const fs::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) fail(path, "read", errno, ExitStatus::usage);
  if (const auto problem = find_problem(file.get(), path)) throw Error(*problem);
  ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return file;
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer forever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) throw cannot_map(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw cannot_map(path, "it is not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) throw cannot_map(path, std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(start), size};
}

bool is_in_folder(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace tprimat
