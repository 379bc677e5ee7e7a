#include "archive/seal.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/gzip.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

bool is_text(const fs::path& path) {
  constexpr std::array k_extensions = {".json", ".jsonl", ".log", ".yaml", ".yml",  ".md",  ".txt",  ".csv",
                                       ".tsv",  ".sh",    ".py",  ".svg",  ".html", ".xml", ".prom", ".out"};
  return std::ranges::find(k_extensions, path.extension()) != k_extensions.end();
}

bool is_picture(const fs::path& path) { return path.extension() == ".png"; }

// "train_x_profile/rank_0.json.gz", beside a result
bool is_trace(const fs::path& path) {
  return path.filename().string().ends_with(".json.gz") && path.parent_path().filename().string().ends_with("_profile");
}

// Redaction may make two names equal, and a file may have the manifest's name. The extension stays, because it shows
// the file's type.
std::string unused_name(const std::string& wanted, std::set<std::string>& names) {
  const fs::path path(wanted);
  const std::string ending = path.extension().string();
  std::string name = wanted;
  for (int i = 2; !names.insert(name).second; ++i)
    name = fmt::format("{}-{}{}", wanted.substr(0, wanted.size() - ending.size()), i, ending);
  return name;
}

std::string describe_largest(const ArchiveLimits& limits) {
  return "over " + format_gb(static_cast<double>(limits.file_bytes));
}

struct Item {
  fs::path path;
  std::string name;
};

// Files to seal with their names in the archive: that of the folder given, then the way below it.
class Gatherer {
 public:
  explicit Gatherer(const ArchiveLimits& limits) : limits_(limits) {}

  void add(const fs::path& path) {
    if (!fs::exists(path)) throw Error(Problem{"does not exist", path.string(), "name results, logs or their folder"});
    const fs::path whole = fs::canonical(path);
    if (!fs::is_directory(whole)) return add_file(whole, whole.filename().string());
    const std::string root = unused_name(whole.has_filename() ? whole.filename().string() : "root", roots_);
    for (const auto& entry : fs::recursive_directory_iterator(whole, fs::directory_options::skip_permission_denied)) {
      std::error_code ignored;
      if (entry.is_symlink(ignored))
        left_out.push_back({entry.path().string(), "a link: pass the file itself"});
      else if (!entry.is_regular_file(ignored) && !entry.is_directory(ignored))
        left_out.push_back({entry.path().string(), "not a regular file"});
      else if (entry.is_regular_file(ignored))
        add_file(entry.path(), root + "/" + fs::relative(entry.path(), whole).generic_string());
    }
  }

  std::vector<Item> items() {
    std::ranges::sort(items_, [](const Item& a, const Item& b) { return a.name < b.name; });
    return std::move(items_);
  }
  std::vector<LeftOut> left_out;

 private:
  void add_file(const fs::path& path, std::string name) {
    if (!seen_.insert(path.string()).second) return;
    std::error_code failed;
    const uintmax_t size = fs::file_size(path, failed);
    if (!is_text(path) && !is_picture(path) && !is_trace(path))
      left_out.push_back({path.string(), "not a result, log, configuration or report"});
    else if (failed || size > static_cast<uintmax_t>(limits_.file_bytes))
      left_out.push_back({path.string(), failed ? failed.message() : describe_largest(limits_)});
    else
      items_.push_back({path, std::move(name)});
  }

  ArchiveLimits limits_;
  std::vector<Item> items_;
  std::set<std::string> seen_, roots_;
};

class SealWriter {
 public:
  explicit SealWriter(const fs::path& path)
      : file_(path), path_(path.string()), handle_(::archive_write_new(), ::archive_write_free) {
    ::archive_write_set_format_pax_restricted(handle_.get());
    check(::archive_write_set_options(handle_.get(), "hdrcharset=BINARY"));  // names are bytes, whatever the locale
    const bool zstd = path.extension() == ".zst";
    check(zstd ? ::archive_write_add_filter_zstd(handle_.get()) : ::archive_write_add_filter_gzip(handle_.get()));
    ::archive_write_set_bytes_in_last_block(handle_.get(), 1);  // zeros behind a compressed stream would be invalid
    check(::archive_write_open(handle_.get(), this, nullptr, write_block, nullptr));
  }

  // Same content, same bytes: no times, no owners.
  void add(const std::string& name, const std::string& content) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(::archive_entry_new(), ::archive_entry_free);
    ::archive_entry_set_pathname(entry.get(), name.c_str());
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    ::archive_entry_set_filetype(entry.get(), AE_IFREG);
    ::archive_entry_set_perm(entry.get(), 0644);
    ::archive_entry_set_mtime(entry.get(), 0, 0);
    check(::archive_write_header(handle_.get(), entry.get()));
    if (::archive_write_data(handle_.get(), content.data(), content.size()) < 0) check(ARCHIVE_FATAL);
  }

  void finish() {
    check(::archive_write_close(handle_.get()));
    file_.finish();
  }

 private:
  // An exception must not pass through C.
  static la_ssize_t write_block(archive*, void* self, const void* bytes, size_t size) {
    auto& writer = *static_cast<SealWriter*>(self);
    try {
      writer.file_.write({static_cast<const char*>(bytes), size});
      return static_cast<la_ssize_t>(size);
    } catch (...) {
      writer.failure_ = std::current_exception();
      return -1;
    }
  }

  void check(int status) const {
    if (status == ARCHIVE_OK) return;
    if (failure_) std::rethrow_exception(failure_);
    const char* reason = ::archive_error_string(handle_.get());
    throw Error(
        Problem{fmt::format("cannot be written: {}", reason == nullptr ? "no reason given" : reason), path_, ""},
        ExitStatus::work_failed);
  }

  NewFile file_;
  std::string path_;
  std::exception_ptr failure_;
  std::unique_ptr<archive, int (*)(archive*)> handle_;
};

void check_output_name(const fs::path& output) {
  const std::string name = output.filename().string();
  for (const char* ending : {".tar.zst", ".tar.gz", ".tgz"})
    if (name.ends_with(ending)) return;
  throw Error(Problem{"lacks an archive extension", output.string(), "use *.tar.zst, *.tar.gz or *.tgz"});
}

// Writes one archive, within the limits of its reader.
class Sealing {
 public:
  explicit Sealing(const SealRequest& request)
      : limits_(request.limits), sign_(request.sign), redactor_(request.redaction), writer_(request.output) {
    seal_.manifest.program = request.program;
    seal_.manifest.created = request.created;
  }

  // Redaction can make names and texts longer.
  void add(const Item& item) {
    const std::string name = unused_name(escape_name(redactor_.redact(item.name)), names_);
    const std::optional<std::string> readable = read_content(item.path);
    if (!readable) return seal_.left_out.push_back({item.path.string(), "not a gzip file, or too large unpacked"});
    const std::string& content = *readable;
    if (const std::string fault = find_fault_in_name(name, limits_); !fault.empty())
      return seal_.left_out.push_back({item.path.string(), fault});
    if (std::ssize(content) > limits_.file_bytes)
      return seal_.left_out.push_back({item.path.string(), describe_largest(limits_)});
    if (may_be_result(name, content)) result_bytes_ += std::ssize(content);
    write(name, content);
    seal_.manifest.files.push_back({name, std::ssize(content), sha256_hex(content)});
  }

  Seal finish(std::vector<LeftOut> left_out) {
    seal_.left_out.insert(seal_.left_out.begin(), left_out.begin(), left_out.end());
    seal_.manifest.redactions = redactor_.counts();
    const std::string manifest = print_json(to_json(seal_.manifest));
    seal_.manifest_sha256 = sha256_hex(manifest);
    write(k_manifest_name, manifest);
    if (sign_) write(k_signature_name, sign_(manifest));
    writer_.finish();
    return std::move(seal_);
  }

 private:
  // Without private data; a trace keeps its bytes where it has none.
  std::optional<std::string> read_content(const fs::path& path) {
    std::string content = read_file(path);
    if (is_text(path)) return redactor_.redact(content);
    if (!is_trace(path)) return content;
    const std::optional<std::string> trace = gunzip(content, limits_.file_bytes);
    if (!trace) return std::nullopt;
    const std::string redacted = redactor_.redact(*trace);
    return redacted == *trace ? std::move(content) : gzip(redacted);
  }

  void write(const std::string& name, const std::string& content) {
    bytes_ += std::ssize(content);
    if (++files_ > limits_.files || bytes_ > limits_.all_bytes || result_bytes_ > limits_.result_bytes)
      throw Error(Problem{fmt::format("cannot seal more than {} files, {} or {} of results: such an archive "
                                      "cannot be verified",
                                      limits_.files, format_gb(static_cast<double>(limits_.all_bytes)),
                                      format_gb(static_cast<double>(limits_.result_bytes))),
                          "", "seal them in several archives"});
    writer_.add(name, content);
  }

  ArchiveLimits limits_;
  std::function<std::string(const std::string&)> sign_;
  Redactor redactor_;
  SealWriter writer_;
  Seal seal_;
  std::set<std::string> names_{k_manifest_name, k_signature_name};
  int64_t files_ = 0, bytes_ = 0, result_bytes_ = 0;
};

}  // namespace

Seal seal_files(const SealRequest& request) {
  check_output_name(request.output);
  Gatherer gatherer(request.limits);
  for (const fs::path& path : request.paths) gatherer.add(path);
  const std::vector<Item> items = gatherer.items();
  if (items.empty())
    throw Error(
        Problem{"no result, log or configuration was found", "", "run `tprimat run` first, or name its output"});
  Sealing sealing(request);
  for (const Item& item : items) sealing.add(item);
  return sealing.finish(std::move(gatherer.left_out));
}

}  // namespace tprimat::results
