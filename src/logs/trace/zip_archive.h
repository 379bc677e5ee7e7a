#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

// A zip file in memory, which must outlive this. Members are stored or deflated; no encryption, no zip64 (the files we
// read are far below 4 GB).
class ZipArchive {
 public:
  struct Member {
    std::string name;
    uint64_t offset = 0;  // of its local header
    uint64_t packed_bytes = 0, bytes = 0;
    uint16_t method = 0;
  };

  // Throws Error for what is no zip file and for a directory that does not fit the file.
  ZipArchive(std::string_view bytes, std::string_view where);

  const std::vector<Member>& members() const { return members_; }
  const Member* find(std::string_view name) const;

  // Throws Error for data that are broken, and for members that are or turn out larger than `most_bytes`.
  std::string read(const Member& member, uint64_t most_bytes) const;

 private:
  [[noreturn]] void fail(std::string_view what) const;
  uint64_t number(uint64_t at, int bytes) const;  // little-endian; throws beyond the end
  std::string_view slice(uint64_t at, uint64_t length) const;
  uint64_t find_directory_end() const;
  void read_directory();

  std::string_view bytes_;
  std::string where_;
  std::vector<Member> members_;
};

}  // namespace tprimat::logs
