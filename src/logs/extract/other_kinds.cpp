#include "extract/other_kinds.h"

#include <algorithm>

#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

struct Kind {
  bool (*fits)(std::string_view head);
  std::string_view description;
};

constexpr Kind k_kinds[] = {
    {[](std::string_view head) { return head.starts_with("PK\x03\x04"); },
     "a zip container (.xlsx, .pt, .npz): `tprimat profile --summarise` reads performance reports in .xlsx"},
    {[](std::string_view head) { return contains(head, "\"traceEvents\"") || contains(head, "\"deviceProperties\""); },
     "a Chrome trace: `tprimat profile --summarise` reads it"},
    {[](std::string_view head) { return head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff"); },
     "text in UTF-16: `iconv -f utf-16 -t utf-8` makes it readable"},
    {[](std::string_view head) { return head.starts_with("MMIDIDX"); },
     "the index of a Megatron dataset: `tprimat data info` reads it"},
    {[](std::string_view head) { return contains(head, "ROCm System Management Interface"); },
     "telemetry of rocm-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return head.starts_with("# gpu") || head.starts_with("#Date"); },
     "telemetry of nvidia-smi dmon: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return contains(head.substr(0, 400), "power.draw"); },
     "telemetry of nvidia-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return head.starts_with("GPU  ") && contains(head.substr(0, 400), "VIOL"); },
     "telemetry of amd-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return head.starts_with("GPU  ") && contains(head.substr(0, 400), "POWER"); },
     "telemetry of amd-smi: give it with --telemetry, next to the log"},
    {[](std::string_view head) { return contains(head, "\"card0\"") || contains(head, "\"socket_power\""); },
     "telemetry of an AMD tool: give it with --telemetry, next to the log"},
    {[](std::string_view head) {
       return head.starts_with(
           "\x7f"
           "ELF");
     },
     "a program"},
    {[](std::string_view head) { return head.starts_with("\x89PNG"); }, "an image"},
};

// Text has no zero bytes.
bool is_binary(std::string_view head) { return head.substr(0, 4096).find('\0') != std::string_view::npos; }

}  // namespace

std::string describe_other_kind(std::string_view head) {
  for (const Kind& kind : k_kinds)
    if (kind.fits(head)) return std::string(kind.description);
  return is_binary(head) ? "binary data of no known kind" : "";
}

}  // namespace tprimat::logs
