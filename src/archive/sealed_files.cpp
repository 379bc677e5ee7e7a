#include "archive/sealed_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
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
    throw Error(Problem{fmt::format("holds \"{}\", which {}", printable(name), what), path_,
                        "nothing was unpacked; do not trust this archive"});
  }

  std::string checked_name(archive_entry* entry) {
    const char* raw = ::archive_entry_pathname(entry);
    if (raw == nullptr) raw = ::archive_entry_pathname_utf8(entry);
    const std::string name = raw == nullptr ? "" : raw;
    const std::filesystem::path path(name);
    const bool leads_out = path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end();
    const bool odd = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (name.empty() || leads_out || odd) refuse_file(name, "leads out of it");
    if (::archive_entry_filetype(entry) != AE_IFREG || ::archive_entry_hardlink(entry) != nullptr)
      refuse_file(name, "is no plain file");
    if (!seen_.insert(path.lexically_normal().string()).second) refuse_file(name, "comes twice");
    if (std::ssize(seen_) > limits_.files) refuse(fmt::format("holds more than {} files", limits_.files));
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
      if (std::ssize(content) > limits_.file_bytes || all_bytes_ > limits_.all_bytes)
        refuse(fmt::format("holds more than {} in one file or {} in all",
                           format_gb(static_cast<double>(limits_.file_bytes)),
                           format_gb(static_cast<double>(limits_.all_bytes))));
    }
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
