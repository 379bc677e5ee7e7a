#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tprimat::results {

// Looks at the headers of a tar archive on their way to libarchive, which applies some without handing them out. Kinds
// that no sealed archive holds make programs differ in what they unpack: global headers (POSIX.1, pax), labels of
// volumes and parts of files (GNU), records that overrule the length in a header, and lengths and checksums in other
// forms than POSIX's, behind which nobody knows where the next header lies.
class TarHeaders {
 public:
  // Reads on. Returns why the archive must be refused, as the end of a sentence ("holds a global header"); empty: it
  // need not. Less than a whole header is left to libarchive.
  std::string read(std::string_view bytes);

 private:
  std::string take_header();
  std::string take_records() const;

  std::string block_;     // of the header that is not whole yet, or the records of an extended header
  uint64_t skipped_ = 0;  // bytes of content that are to come
  uint64_t records_ = 0;  // bytes of records that are to come, padding included
  bool has_ended_ = false;
};

}  // namespace tprimat::results
