#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"

namespace tprimat {

// A log that stays complete under its name although an untrusted program runs beside it. If the file is removed or
// replaced, its whole content is restored; if it is cut short, the newest part that we remember is restored, behind a
// line that says so.
class LogFile {
 public:
  LogFile() = default;                        // writes nowhere
  explicit LogFile(const std::string& path);  // empty: nowhere. Throws Error when it cannot be written.

  void write(std::string_view bytes);  // Throws Error, for instance on a full disk.
  void mend();  // Checks that the file still exists and is complete, and restores it. Throws Error.

  // The damage to the file, as a sentence; empty: none.
  const std::string& damage() const { return damage_; }

 private:
  void write_all(std::string_view bytes);
  void remember(std::string_view bytes);
  void rewrite();
  bool copy_to(const Descriptor& target) const;
  [[noreturn]] void fail() const;

  std::string path_, damage_;
  Descriptor file_;
  int64_t written_ = 0;
  std::string older_, newest_;  // the end of the log: at most two pieces
};

}  // namespace tprimat
