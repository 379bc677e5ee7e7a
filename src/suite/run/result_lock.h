#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/files.h"

namespace tprimat::suite {

// Reserves the name of a result for one run at a time in a folder that several suites share. The lock is a file that
// names its holder; the kernel releases it when the holder and everything that inherited descriptor() have ended, even
// if killed. Where the file system has no locks, or keeps them local to one machine, the file itself is the lock: as
// long as its process lives or, seen from another machine, as long as it is touched.
class ResultLock {
 public:
  // Throws Error (ExitStatus::work_failed) that names the holder, or why there is no lock.
  explicit ResultLock(std::filesystem::path path);
  ~ResultLock();
  ResultLock(const ResultLock&) = delete;
  ResultLock& operator=(const ResultLock&) = delete;

  int descriptor() const { return file_.get(); }

 private:
  std::optional<std::string> find_holder();
  void open_file();
  bool has_its_name() const;
  void write_holder() const;
  void touch_until(const std::stop_token& stop) const;

  std::filesystem::path path_;
  Descriptor file_;
  std::jthread toucher_;
};

}  // namespace tprimat::suite
