#include "extract/common/failure_signs.h"

#include <algorithm>

#include "extract/common/log_words.h"
#include "extract/scan_text.h"
#include "result/setting_words.h"
#include "text/characters.h"

namespace tprimat::logs {
namespace {

template <class Kind>
struct Phrase {
  std::string_view text;
  Kind kind;
};

// Of the first phrase that the text holds.
template <class Kind, size_t N>
std::optional<Kind> find_kind(const Phrase<Kind> (&phrases)[N], std::string_view text) {
  for (const auto& phrase : phrases)
    if (contains(text, phrase.text)) return phrase.kind;
  return std::nullopt;
}

// In messages that are known to be errors. The first that occurs decides.
constexpr Phrase<EventKind> k_error_phrases[] = {
    {"ut of memory", EventKind::out_of_memory},
    {"OutOfMemory", EventKind::out_of_memory},
    {"OUT_OF_MEMORY", EventKind::out_of_memory},
    {"ALLOC_FAILED", EventKind::out_of_memory},
    {"RESOURCE_EXHAUSTED", EventKind::out_of_memory},
    {"Cannot allocate memory", EventKind::out_of_memory},
    {"found NaN", EventKind::nan},
    {"found Inf", EventKind::nan},
    {"NaN or Inf", EventKind::nan},
    {"is nan or inf", EventKind::nan},
    {"oss is nan", EventKind::nan},
    {"oss is NaN", EventKind::nan},
    {"nexpected result nan", EventKind::nan},
    {"nexpected result inf", EventKind::nan},
    {"collective operation timeout", EventKind::collective_timeout},
    {"NCCL error", EventKind::collective_timeout},
    {"NCCL Error", EventKind::collective_timeout},
    {"RCCL error", EventKind::collective_timeout},
    {"DistBackendError", EventKind::collective_timeout},
    {"DistStoreError: Timed out", EventKind::collective_timeout},
    {"wait timeout after", EventKind::collective_timeout},
    {"CUDA error", EventKind::device_error},
    {"CUDA driver error", EventKind::device_error},
    {"HIP error", EventKind::device_error},
    {"hipError", EventKind::device_error},
    {"AcceleratorError", EventKind::device_error},
    {"device-side assert", EventKind::device_error},
    {"ECC error", EventKind::device_error},
    {"cuDNN error", EventKind::device_error},
    {"CUBLAS_STATUS_", EventKind::device_error},
    {"got signal:", EventKind::killed},
    {"killed by signal", EventKind::killed},
};

// In any line: phrases so long that nothing else holds them. The event's text starts with them.
constexpr Phrase<EventKind> k_line_phrases[] = {
    {"CUDA out of memory. Tried to allocate", EventKind::out_of_memory},
    {"HIP out of memory. Tried to allocate", EventKind::out_of_memory},
    {"CUDA error: out of memory", EventKind::out_of_memory},
    {"HIP error: out of memory", EventKind::out_of_memory},
    {"Cuda failure 'out of memory'", EventKind::out_of_memory},
    {"Cuda failure 2 'out of memory'", EventKind::out_of_memory},
    {"HIP failure 'out of memory'", EventKind::out_of_memory},
    {"ut of memory: Kill", EventKind::out_of_memory},
    {"invoked oom-killer", EventKind::out_of_memory},
    {"oom-kill:constraint", EventKind::out_of_memory},
    {"oom_kill event", EventKind::out_of_memory},
    {"oom-kill event", EventKind::out_of_memory},
    {"RESOURCE_EXHAUSTED: Out of memory", EventKind::out_of_memory},
    {"atchdog caught collective operation timeout", EventKind::collective_timeout},
    {"eartbeat monitor timed out", EventKind::collective_timeout},
    {"NCCL error in:", EventKind::collective_timeout},
    {"didn't join collective", EventKind::collective_timeout},
    {"CUDA error: ", EventKind::device_error},
    {"HIP error: ", EventKind::device_error},
    {"[CUDA ERROR]", EventKind::device_error},
    {"NVRM: Xid", EventKind::device_error},
    {"Memory access fault by GPU", EventKind::device_error},
    {"found NaN in ", EventKind::nan},
    {"nexpected result nan", EventKind::nan},
    {"nexpected result inf", EventKind::nan},
    {"NaN or Inf found in", EventKind::nan},
    {"oss is nan", EventKind::nan},
    {"oss is NaN", EventKind::nan},
    {"Detected stragglers. Terminating training", EventKind::failed},
    {"MPI_ABORT was invoked", EventKind::failed},
    {"Killing subprocess", EventKind::failed},
    {"exited on signal ", EventKind::killed},
    {"Caught signal ", EventKind::killed},
    {"(core dumped)", EventKind::killed},
};

// Of messages in lower case. The first that the text holds decides, so what is more special comes first.
constexpr Phrase<FailureKind> k_kind_phrases[] = {
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

std::optional<int32_t> rank_after(std::string_view text, std::string_view key) {
  const auto rest = text_after(text, key);
  const auto rank = rest ? parse_whole(*rest) : std::nullopt;
  return rank && *rank >= 0 && *rank < 10'000'000 ? std::optional(static_cast<int32_t>(*rank)) : std::nullopt;
}

// Back to the start of the word that `at` is within, and over the words that say whom it befell.
size_t start_of_phrase(std::string_view line, size_t at) {
  while (at > 0 && line[at - 1] != ' ') --at;
  for (const std::string_view before :
       {"mpirun noticed that process ", "prterun noticed that process ", "slurmstepd: error: ", "Memory cgroup "})
    if (const size_t found = line.substr(0, at).find(before); found != std::string_view::npos) return found;
  return at;
}

void read_details(std::string_view line, FailureSign& sign) {
  if (sign.kind == EventKind::collective_timeout) {
    const Figure ms = number_after(line, ") ran for ");
    if (ms.finite() && *ms >= 0) sign.seconds = *ms / 1e3;
    if (const auto rank = rank_after(line, "[Rank ")) sign.rank = *rank;
    if (contains(line, "didn't join")) {
      sign.text = trim(line);
      if (const auto rank = rank_after(line, "[")) sign.rank = *rank;
    }
  }
  for (const std::string_view key : {"invoked on rank ", "process rank ", "nexpected result nan on rank "})
    if (const auto rank = rank_after(line, key)) sign.rank = *rank;
}

// PyTorch says how much it tried to allocate; a text about such messages does not.
bool has_amount(std::string_view text) {
  const auto rest = text_after(text.substr(0, 60), "Tried to allocate ");
  return !rest || parse_number(*rest);
}

std::optional<FailureSign> find_phrase(std::string_view line) {
  for (const auto& phrase : k_line_phrases) {
    const size_t at = line.find(phrase.text);
    if (at == std::string_view::npos || !has_amount(line.substr(at))) continue;
    FailureSign sign{phrase.kind, line.substr(start_of_phrase(line, at)), {}, -1};
    read_details(line, sign);
    return sign;
  }
  return std::nullopt;
}

// The shell's "Killed" and "train.sh: line 3: 1234 Killed   python ...", Slurm's "task 3: Killed", the kernel's
// "Killed process 1234 (python)".
std::optional<FailureSign> find_killed(std::string_view line) {
  line = trim(line);
  const size_t at = line.find("Killed");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = line.substr(0, at), after = line.substr(at + 6);
  const bool alone = line == "Killed";
  const bool by_slurm = line.starts_with("srun: error:") && (before.ends_with(": ") || contains(before, " task"));
  const bool by_shell = contains(before, ": line ") && after.starts_with(" ");
  const bool by_kernel = after.starts_with(" process ") && contains(after, "(");
  if (!alone && !by_slurm && !by_shell && !by_kernel) return std::nullopt;
  return FailureSign{by_kernel ? EventKind::out_of_memory : EventKind::killed, line, {}, -1};
}

std::optional<FailureSign> find_exit_code(std::string_view line) {
  for (const std::string_view key : {"xited with exit code ", "exits with return code = "}) {
    const size_t at = line.find(key);
    if (at == std::string_view::npos) continue;
    const auto code = parse_whole(line.substr(at + key.size()));
    if (!code || *code == 0) return std::nullopt;
    const bool short_line = at < 120;  // a launcher may print the whole command first
    return FailureSign{*code < 0 || *code == 137 ? EventKind::killed : EventKind::failed,
                       short_line ? trim(line) : line.substr(start_of_phrase(line, at)),
                       {},
                       -1};
  }
  return std::nullopt;
}

// Open MPI names the first process to fail on a line of its own: "  Process name: [[41210,1],3]" is rank 3.
std::optional<FailureSign> find_first_of_mpi(std::string_view line) {
  auto rest = text_after(line, "Process name: [[");
  if (rest) rest = text_after(*rest, "],");
  const auto rank = rest ? parse_whole(rest->substr(0, rest->find(']'))) : std::nullopt;
  if (!rank || *rank < 0 || *rank >= 10'000'000) return std::nullopt;
  return FailureSign{EventKind::failed, trim(line), {}, static_cast<int32_t>(*rank)};
}

// Slurm's and other schedulers' last words.
std::optional<FailureSign> find_cancelled(std::string_view line) {
  const bool cancelled = contains(line, "CANCELLED AT"), ended = contains(line, "job killed");
  if (!cancelled && !ended) return std::nullopt;
  const bool out_of_time =
      contains(line, "TIME LIMIT") || contains(line, "walltime") || contains(line, "run time limit");
  return FailureSign{out_of_time ? EventKind::timeout : EventKind::killed, trim(line), {}, -1};
}

// "torch._dynamo.exc.Unsupported": names joined by dots, no other character. Gives its length, 0 where none stands.
size_t dotted_name_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && length < 200 && (is_name_char(text[length]) || text[length] == '.')) ++length;
  return length;
}

bool is_exception_name(std::string_view name, bool ends_traceback) {
  const size_t dot = name.rfind('.');
  const std::string_view last = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
  if (last.empty() || !is_upper(last.front()) || last.ends_with("Warning")) return false;
  if (std::none_of(last.begin(), last.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return false;
  if (last.size() > 5 && (last.ends_with("Error") || last.ends_with("Exception"))) return true;
  if (last == "Exception") return true;
  if (!ends_traceback) return false;
  return dot != std::string_view::npos || last == "KeyboardInterrupt" || last == "SystemExit" ||
         last == "StopIteration" || last == "Error";
}

}  // namespace

EventKind classify_error(std::string_view message) {
  return find_kind(k_error_phrases, message).value_or(EventKind::failed);
}

std::optional<FailureSign> find_failure_sign(std::string_view line) {
  if (looks_like_source(line)) return std::nullopt;
  if (const auto sign = find_cancelled(line)) return sign;
  if (const auto sign = find_phrase(line)) return sign;
  if (const auto sign = find_exit_code(line)) return sign;
  if (const auto sign = find_first_of_mpi(line)) return sign;
  return find_killed(line);
}

std::string_view find_exception(std::string_view line, bool ends_traceback) {
  if (!line.empty() && line.front() == ' ') line.remove_prefix(1);  // after "[rank0]:"
  const size_t length = dotted_name_length(line);
  if (length == 0 || !is_exception_name(line.substr(0, length), ends_traceback)) return {};
  const std::string_view rest = line.substr(length);
  const bool has_message = rest.starts_with(": ") || rest == ":";
  return has_message || (rest.empty() && ends_traceback) ? line : std::string_view();
}

std::optional<FailureKind> find_failure_kind(std::string_view text) {
  return find_kind(k_kind_phrases, without_capitals(std::string(text)));
}

}  // namespace tprimat::logs
