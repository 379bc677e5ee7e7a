#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tprimat {

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
