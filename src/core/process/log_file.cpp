#include "process/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

constexpr size_t k_piece_remembered = size_t{2} << 20;
constexpr int k_log_flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

void make_folder_of(const std::string& path) {
  std::error_code ignored;  // open() reports the error
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, ignored);
}

// Creates a new file in place of a file or a link, so that the target of a symbolic or hard link does not change. A
// device is written directly, and anything else is refused: a pipe without a reader would block us.
Descriptor create_log(const std::string& path) {
  struct stat named {};
  const bool is_named = ::lstat(path.c_str(), &named) == 0;
  if (is_named && S_ISCHR(named.st_mode)) return Descriptor(::open(path.c_str(), k_log_flags));
  if (is_named && !S_ISREG(named.st_mode) && !S_ISLNK(named.st_mode))
    throw Error(
        Problem{"is not a regular file, so no log can be written here", path, "remove it, or choose another --output"},
        ExitStatus::work_failed);
  if (is_named) ::unlink(path.c_str());
  return Descriptor(::open(path.c_str(), k_log_flags | O_CREAT | O_EXCL, 0644));
}

}  // namespace

LogFile::LogFile(const std::string& path) : path_(path) {
  if (path.empty()) return;
  make_folder_of(path);
  file_ = create_log(path);
  if (!file_.is_open()) fail();
}

void LogFile::fail() const {
  const int reason = errno;
  throw Error(Problem{std::string("cannot write the log: ") + std::strerror(reason), path_,
                      reason == ENOSPC ? "free some space, or choose another folder with --output" : ""},
              ExitStatus::work_failed);
}

void LogFile::write(std::string_view bytes) {
  if (!file_.is_open()) return;
  write_all(bytes);
  remember(bytes);
}

void LogFile::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    written_ += count;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void LogFile::remember(std::string_view bytes) {
  newest_ += bytes;
  if (newest_.size() < k_piece_remembered) return;
  older_.swap(newest_);
  newest_.clear();
}

void LogFile::mend() {
  if (!file_.is_open()) return;
  struct stat ours {
  }, named{};
  if (::fstat(file_.get(), &ours) != 0 || !S_ISREG(ours.st_mode)) return;  // a pipe or a device that the user chose
  const bool is_there =
      ::lstat(path_.c_str(), &named) == 0 && named.st_ino == ours.st_ino && named.st_dev == ours.st_dev;
  const bool is_whole = ours.st_size >= written_;
  if (is_there && is_whole) return;
  if (is_whole) {
    damage_ = "the log was removed or replaced while it was written, and has been put back";
  } else {
    const auto kept = static_cast<int64_t>(older_.size() + newest_.size());
    damage_ =
        fmt::format("the log was cut short while it was written{}",
                    kept < written_ ? fmt::format("; the last {} of its {} bytes have been put back", kept, written_)
                                    : ", and has been put back");
  }
  rewrite();
}

// Under another name first, so that a complete log exists at every moment.
void LogFile::rewrite() {
  const std::string temporary = path_ + ".tmp";
  make_folder_of(path_);
  Descriptor target = create_log(temporary);
  if (!target.is_open()) fail();
  const bool is_copied = copy_to(target);
  file_ = std::move(target);
  if (!is_copied) {
    if (::ftruncate(file_.get(), 0) != 0) fail();
    const std::string kept = older_ + newest_;
    const bool is_all = static_cast<int64_t>(kept.size()) == written_;
    written_ = 0;
    if (!is_all) write_all("[tprimat: " + damage_ + "]\n");
    write_all(kept);
  }
  if (::rename(temporary.c_str(), path_.c_str()) != 0) fail();
}

// False if the old file no longer holds the whole log.
bool LogFile::copy_to(const Descriptor& target) const {
  std::string bytes(size_t{1} << 20, '\0');
  int64_t done = 0;
  while (done < written_) {
    const ssize_t count = ::pread(file_.get(), bytes.data(), bytes.size(), done);
    if (count <= 0) break;
    for (ssize_t at = 0; at < count;) {
      const ssize_t stored = ::write(target.get(), bytes.data() + at, static_cast<size_t>(count - at));
      if (stored < 0) fail();
      at += stored;
    }
    done += count;
  }
  return done >= written_;
}

}  // namespace tprimat
