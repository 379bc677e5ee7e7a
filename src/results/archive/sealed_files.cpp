#include "archive/sealed_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <set>

#include "archive/tar_stream.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

class SealedReader {
 public:
  SealedReader(const std::filesystem::path& path, const ArchiveLimits& limits)
      : limits_(limits), stream_(path), handle_(::archive_read_new(), ::archive_read_free) {
    ::archive_read_support_format_tar(handle_.get());
    const int status = ::archive_read_open(handle_.get(), this, nullptr, read_block, nullptr);
    if (failure_) std::rethrow_exception(failure_);
    if (status != ARCHIVE_OK) refuse("cannot be read");
  }

  // Skips folders.
  void visit_files(const std::function<void(const std::string& name, std::string content)>& visit) {
    for (;;) {
      archive_entry* entry = nullptr;
      const int status = ::archive_read_next_header(handle_.get(), &entry);
      if (failure_) std::rethrow_exception(failure_);
      if (status == ARCHIVE_EOF) return check_rest();
      if (status != ARCHIVE_OK) refuse("is not a complete archive");
      if (::archive_entry_filetype(entry) == AE_IFDIR) {
        check_folder(entry);
        continue;
      }
      const std::string name = checked_name(entry);
      if (::archive_entry_size(entry) > limits_.file_bytes) refuse_size();
      visit(name, read_content());
    }
  }

 private:
  // An exception must not pass through C.
  static la_ssize_t read_block(archive*, void* self, const void** bytes) {
    auto& reader = *static_cast<SealedReader*>(self);
    try {
      reader.block_ = reader.stream_.next();
      *bytes = reader.block_.data();
      return std::ssize(reader.block_);
    } catch (...) {
      reader.failure_ = std::current_exception();
      return -1;
    }
  }

  // Zeros pad the last record of a tar archive (POSIX, ustar). Longer padding and any other bytes are refused.
  void check_rest() {
    constexpr int64_t k_max_padding = 1 << 20;
    const int64_t end = ::archive_filter_bytes(handle_.get(), 0);
    auto behind = static_cast<size_t>(std::clamp<int64_t>(stream_.handed_out() - end, 0, std::ssize(block_)));
    std::string_view rest = block_.substr(block_.size() - behind);
    int64_t zeros = 0;
    for (; !rest.empty(); rest = block_ = stream_.next()) {
      zeros += std::ssize(rest);
      if (rest.find_first_not_of('\0') != std::string_view::npos || zeros > k_max_padding)
        stream_.distrust("has data after the end of its tar archive");
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    const char* reason = ::archive_error_string(handle_.get());
    stream_.refuse(reason == nullptr ? what : fmt::format("{}: {}", what, reason));
  }

  [[noreturn]] void refuse_file(const std::string& name, const std::string& what) const {
    constexpr size_t k_shown = 200;
    stream_.distrust(fmt::format("holds \"{}\", which {}", printable(std::string_view(name).substr(0, k_shown)), what));
  }

  std::string allowed_name(archive_entry* entry) const {
    const char* raw = ::archive_entry_pathname(entry);
    if (raw == nullptr) raw = ::archive_entry_pathname_utf8(entry);
    const std::string name = raw == nullptr ? "" : raw;
    if (const std::string fault = find_fault_in_name(name, limits_); !fault.empty()) refuse_file(name, fault);
    return name;
  }

  // Other programs unpack folders, too, so a name must not be both a folder and a file.
  void check_folder(archive_entry* entry) {
    std::string name = allowed_name(entry);
    while (name.ends_with('/')) name.pop_back();
    const std::string plain = std::filesystem::path(name).lexically_normal().string();
    if (seen_.contains(plain) || plain == k_manifest_name || plain == k_signature_name)
      refuse_file(name, "is both a folder and a file");
    folders_.insert(plain);
    check_count();
  }

  std::string checked_name(archive_entry* entry) {
    const std::string name = allowed_name(entry);
    if (::archive_entry_filetype(entry) != AE_IFREG || ::archive_entry_hardlink(entry) != nullptr)
      refuse_file(name, "is not a regular file");
    const std::string plain = std::filesystem::path(name).lexically_normal().string();
    if (!seen_.insert(plain).second) refuse_file(name, "appears twice");
    if (folders_.contains(plain)) refuse_file(name, "is both a folder and a file");
    check_count();
    return name;
  }

  void check_count() const {
    if (std::ssize(seen_) + std::ssize(folders_) > limits_.files)
      stream_.distrust(fmt::format("holds more than {} files", limits_.files));
  }

  std::string read_content() {
    std::string content;
    std::array<char, 1 << 16> block;
    for (;;) {
      const la_ssize_t count = ::archive_read_data(handle_.get(), block.data(), block.size());
      if (failure_) std::rethrow_exception(failure_);
      if (count == 0) return content;
      if (count < 0) refuse("is damaged");
      content.append(block.data(), static_cast<size_t>(count));
      all_bytes_ += count;
      if (std::ssize(content) > limits_.file_bytes || all_bytes_ > limits_.all_bytes) refuse_size();
    }
  }

  [[noreturn]] void refuse_size() const {
    stream_.distrust(fmt::format("holds more than {} in one file or {} in total",
                                 format_gb(static_cast<double>(limits_.file_bytes)),
                                 format_gb(static_cast<double>(limits_.all_bytes))));
  }

  ArchiveLimits limits_;
  TarStream stream_;
  std::string_view block_;  // the latest block of the stream
  std::exception_ptr failure_;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
  std::set<std::string> seen_, folders_;
  int64_t all_bytes_ = 0;
};

}  // namespace

void read_sealed_files(const std::filesystem::path& archive,
                       const std::function<void(const std::string& name, std::string content)>& visit,
                       const ArchiveLimits& limits) {
  SealedReader(archive, limits).visit_files(visit);
}

}  // namespace tprimat::results
