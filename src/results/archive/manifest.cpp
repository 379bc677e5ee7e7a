#include "archive/manifest.h"

#include <fmt/format.h>

#include <set>

#include "base/error.h"
#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat::results {
namespace {

constexpr const char* k_distrust = "give a file that `tprimat archive` wrote; do not trust this one";

}  // namespace

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

}  // namespace tprimat::results
