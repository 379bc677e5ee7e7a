#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/files.h"

namespace tprimat {

// A log that stays whole under its name while a program that we do not trust runs beside it. When the file is removed
// or replaced, all that was written is put back under the name; when it is cut short, the newest of it that we remember
// is, behind a line that says so.
class LogFile {
 public:
  LogFile() = default;                        // writes nowhere
  explicit LogFile(const std::string& path);  // empty: nowhere. Throws Error when it cannot be written.

  void write(std::string_view bytes);  // Throws Error, for instance on a full disk.
  void mend();                         // Looks whether the file is still there and whole. Throws Error.

  // What befell the file, in words; empty: nothing.
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
  std::string older_, newest_;  // the end of the text written: at most two pieces
};

}  // namespace tprimat
