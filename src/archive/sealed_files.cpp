#include "archive/sealed_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <set>

#include "base/error.h"
#include "text/format.h"

namespace tprimat {
namespace {

class SealedReader {
 public:
  SealedReader(const std::filesystem::path& path, const ArchiveLimits& limits)
      : path_(path.string()), limits_(limits), handle_(::archive_read_new(), ::archive_read_free) {
    ::archive_read_support_filter_gzip(handle_.get());
    ::archive_read_support_filter_zstd(handle_.get());
    ::archive_read_support_format_tar(handle_.get());
    constexpr size_t k_block = 1 << 16;
    if (::archive_read_open_filename(handle_.get(), path_.c_str(), k_block) != ARCHIVE_OK) refuse("cannot be read");
  }

  // False at the end. Folders are passed over.
  bool next(std::string& name, std::string& content) {
    for (;;) {
      archive_entry* entry = nullptr;
      const int status = ::archive_read_next_header(handle_.get(), &entry);
      if (status == ARCHIVE_EOF) return false;
      if (status != ARCHIVE_OK) refuse("is no whole archive");
      if (::archive_entry_filetype(entry) == AE_IFDIR) continue;
      name = checked_name(entry);
      if (::archive_entry_size(entry) > limits_.file_bytes) refuse_size();
      content = read_content();
      return true;
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    const char* reason = ::archive_error_string(handle_.get());
    throw Error(Problem{reason == nullptr ? what : fmt::format("{}: {}", what, reason), path_,
                        "give a file that `tprimat archive` wrote"});
  }

  [[noreturn]] void refuse_file(const std::string& name, const std::string& what) const {
    constexpr size_t k_shown = 200;
    throw Error(
        Problem{fmt::format("holds \"{}\", which {}", printable(std::string_view(name).substr(0, k_shown)), what),
                path_, "nothing was unpacked; do not trust this archive"});
  }

  std::string checked_name(archive_entry* entry) {
    const char* raw = ::archive_entry_pathname(entry);
    if (raw == nullptr) raw = ::archive_entry_pathname_utf8(entry);
    const std::string name = raw == nullptr ? "" : raw;
    if (const std::string fault = find_fault_in_name(name, limits_); !fault.empty()) refuse_file(name, fault);
    if (::archive_entry_filetype(entry) != AE_IFREG || ::archive_entry_hardlink(entry) != nullptr)
      refuse_file(name, "is no plain file");
    if (!seen_.insert(std::filesystem::path(name).lexically_normal().string()).second) refuse_file(name, "comes twice");
    if (std::ssize(seen_) > limits_.files)
      throw Error(Problem{fmt::format("holds more than {} files", limits_.files), path_,
                          "nothing was unpacked; do not trust this archive"});
    return name;
  }

  std::string read_content() {
    std::string content;
    std::array<char, 1 << 16> block;
    for (;;) {
      const la_ssize_t count = ::archive_read_data(handle_.get(), block.data(), block.size());
      if (count == 0) return content;
      if (count < 0) refuse("is damaged");
      content.append(block.data(), static_cast<size_t>(count));
      all_bytes_ += count;
      if (std::ssize(content) > limits_.file_bytes || all_bytes_ > limits_.all_bytes) refuse_size();
    }
  }

  [[noreturn]] void refuse_size() const {
    throw Error(Problem{
        fmt::format("holds more than {} in one file or {} in all", format_gb(static_cast<double>(limits_.file_bytes)),
                    format_gb(static_cast<double>(limits_.all_bytes))),
        path_, "nothing was unpacked; do not trust this archive"});
  }

  std::string path_;
  ArchiveLimits limits_;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
  std::set<std::string> seen_;
  int64_t all_bytes_ = 0;
};

}  // namespace

void read_sealed_files(const std::filesystem::path& archive,
                       const std::function<void(const std::string& name, std::string content)>& visit,
                       const ArchiveLimits& limits) {
  SealedReader reader(archive, limits);
  std::string name, content;
  while (reader.next(name, content)) visit(name, std::move(content));
}

}  // namespace tprimat
