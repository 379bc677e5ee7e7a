#include "archive/archive_format.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/error.h"
#include "base/printable.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7f; }

bool is_c1_control(char32_t code) { return code >= 0x80 && code < 0xa0; }  // terminals interpret these, too

constexpr const char* k_distrust = "give a file that `tprimat archive` wrote; do not trust this one";

}  // namespace

std::string find_fault_in_name(std::string_view name, const ArchiveLimits& limits) {
  const std::filesystem::path path(name);
  if (name.empty()) return "has no name";
  if (static_cast<int64_t>(name.size()) > limits.name_bytes)
    return fmt::format("has a name of {} bytes, but the limit is {}", name.size(), limits.name_bytes);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) return "points outside the archive";
  if (std::ranges::any_of(name, is_control)) return "has control characters in its name";
  return "";
}

bool is_document(std::string_view name) { return std::filesystem::path(name).extension() == ".json"; }

bool may_be_result(std::string_view name, std::string_view text) {
  constexpr std::string_view k_blank = " \t\r\n\xef\xbb\xbf";  // a byte order mark too
  const size_t begin = text.find_first_not_of(k_blank);
  const bool is_structured = begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
  if (!is_document(name) && !is_structured) return false;
  const auto holds = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  const bool has_machine = holds("platform") || holds("gpu_info");
  return (has_machine && (holds("step_times") || holds("performance_metrics"))) || holds("\\u");  // escaped keys
}

bool is_result(const Json& json) {
  if (!json.is_object()) return false;
  const auto has = [&](const char* key) { return json.contains(key); };
  const bool has_figures = has("step_times") || has("raw_step_times") || has("performance_metrics");
  return (has("platform") || has("gpu_info")) && has_figures;
}

bool holds_results(const Json& json) {
  return json.is_structured() && std::ranges::any_of(json, [](const Json& each) {
           return is_result(each) || (each.is_array() && std::ranges::any_of(each, is_result));
         });
}

std::string escape_name(std::string_view name) {
  std::string escaped;
  while (!name.empty()) {
    const Utf8Character decoded = decode_utf8(name);
    const std::string_view character = name.substr(0, std::max<size_t>(1, decoded.bytes));
    if (decoded.bytes == 0 || is_control(static_cast<unsigned char>(name[0])) || is_c1_control(decoded.code))
      for (const char c : character) escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      escaped += character;
    name.remove_prefix(character.size());
  }
  return escaped;
}

Manifest read_manifest(const std::string& text) {
  const Json json = parse_json(text, k_manifest_name);
  if (!json.is_object() || !json.contains("archive_version") || !json.contains("files"))
    throw Error(Problem{"lacks archive_version or files", k_manifest_name, k_distrust});
  auto manifest = from_json<Manifest>(json, k_manifest_name);
  if (manifest.archive_version != k_archive_version)
    throw Error(Problem{
        fmt::format("has version {}, but this program reads version {}", manifest.archive_version, k_archive_version),
        k_manifest_name, "verify it with the version of tprimat that sealed it"});
  std::set<std::string> seen;
  for (const SealedFile& file : manifest.files) {
    if (!seen.insert(file.path).second)
      throw Error(Problem{fmt::format("lists \"{}\" twice", printable(file.path)), k_manifest_name, k_distrust});
    if (file.bytes < 0)
      throw Error(Problem{fmt::format("gives \"{}\" a length of {} bytes", printable(file.path), file.bytes),
                          k_manifest_name, k_distrust});
  }
  return manifest;
}

std::string sha256_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace tprimat::results
