#include "extract/common/failure_kinds.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

struct KindPhrase {
  std::string_view text;  // lower case
  FailureKind kind;
};

// The first that the text holds decides, so what is more special comes first.
constexpr KindPhrase k_kind_phrases[] = {
    {"killed process", FailureKind::host_out_of_memory},
    {"oom-kill", FailureKind::host_out_of_memory},
    {"oom_kill", FailureKind::host_out_of_memory},
    {"outofmemoryerror", FailureKind::out_of_memory},
    {"std::bad_alloc", FailureKind::host_out_of_memory},
    {"cannot allocate memory", FailureKind::host_out_of_memory},
    {"defaultcpuallocator", FailureKind::host_out_of_memory},
    {"memoryerror", FailureKind::host_out_of_memory},
    {"out of memory", FailureKind::out_of_memory},
    {"no module named", FailureKind::missing_module},
    {"modulenotfounderror", FailureKind::missing_module},
    {"cannot import name", FailureKind::missing_module},
    {"cannot open shared object file", FailureKind::missing_module},
    {"no space left on device", FailureKind::disk_full},
    {"disk quota exceeded", FailureKind::disk_full},
    {"address already in use", FailureKind::port_in_use},
    {"eaddrinuse", FailureKind::port_in_use},
    {"no cuda gpus are available", FailureKind::no_device},
    {"no hip gpus are available", FailureKind::no_device},
    {"no cuda-capable device", FailureKind::no_device},
    {"no rocm-capable device", FailureKind::no_device},
    {"no nvidia driver", FailureKind::no_device},
    {"invalid device ordinal", FailureKind::no_device},
    {"not compiled with cuda enabled", FailureKind::no_device},
    {"403 client error", FailureKind::no_access},
    {"401 client error", FailureKind::no_access},
    {"gated repo", FailureKind::no_access},
    {"permission denied", FailureKind::no_access},
    {"command not found", FailureKind::missing_program},
    {"error: unrecognized arguments", FailureKind::wrong_usage},
    {"error: the following arguments are required", FailureKind::wrong_usage},
    {"error: argument ", FailureKind::wrong_usage},
    {"loss is nan", FailureKind::nan_loss},
    {"nan loss", FailureKind::nan_loss},
    {"nan in loss", FailureKind::nan_loss},
    {"found nan in", FailureKind::nan_loss},
    {"nan or inf found", FailureKind::nan_loss},
    {"is not finite", FailureKind::nan_loss},
    {"collective operation timeout", FailureKind::collective_failed},
    {"nccl error", FailureKind::collective_failed},
    {"rccl error", FailureKind::collective_failed},
    {"distbackenderror", FailureKind::collective_failed},
};

}  // namespace

std::optional<FailureKind> find_failure_kind(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto* phrase = std::find_if(std::begin(k_kind_phrases), std::end(k_kind_phrases),
                                    [&](const KindPhrase& each) { return contains(lower, each.text); });
  return phrase == std::end(k_kind_phrases) ? std::nullopt : std::optional(phrase->kind);
}

}  // namespace tprimat::logs
