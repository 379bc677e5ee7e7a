#include "telemetry/telemetry_file.h"

#include "base/error.h"
#include "base/files.h"
#include "telemetry/telemetry_rows.h"

namespace tprimat {
namespace {

constexpr size_t k_head_bytes = 65536;

// Tried in this order. Tables without a header come last: they have no mark of their own.
struct Tool {
  std::string_view name;
  std::span<const TelemetryFormat> (*formats)();
};
constexpr Tool k_tools[] = {
    {"nvidia-smi", nvidia_smi_formats},
    {"rocm-smi", rocm_smi_formats},
    {"amd-smi", amd_smi_formats},
    {"nvidia-smi", bare_formats},
};

}  // namespace

TelemetryFile read_telemetry_text(std::string_view text, std::string_view where) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  const std::string_view head = text.substr(0, k_head_bytes);
  for (const Tool& tool : k_tools)
    for (const TelemetryFormat& format : tool.formats()) {
      if (!format.fits(head)) continue;
      TelemetryRows rows(tool.name);
      format.read(text, where, rows);
      return rows.finish(format.name, where);
    }
  throw Error(Problem{"is not a known output of nvidia-smi, rocm-smi or amd-smi", std::string(where),
                      "supported: nvidia-smi --query-gpu --format=csv and dmon; rocm-smi (table, --json, --csv); "
                      "amd-smi monitor and metric (table, --json, --csv)"});
}

TelemetryFile load_telemetry_file(const std::filesystem::path& path) {
  return read_telemetry_text(read_file(path), path.string());
}

}  // namespace tprimat
