#include "extract/common/failure_signs.h"

#include <algorithm>
#include <vector>

#include "extract/common/log_words.h"
#include "extract/scan_text.h"
#include "result/printed_settings.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

template <class Kind>
struct Phrases {
  Kind kind;
  std::vector<std::string_view> texts;
};

// The kind of the first phrase that the text holds.
template <class Kind, size_t N>
std::optional<Kind> find_kind(const Phrases<Kind> (&phrases)[N], std::string_view text) {
  for (const auto& [kind, phrases_of_kind] : phrases)
    for (const std::string_view phrase : phrases_of_kind)
      if (contains(text, phrase)) return kind;
  return std::nullopt;
}

// In messages that are known to be errors. The first that occurs decides.
const Phrases<EventKind> k_error_phrases[] = {
    {EventKind::out_of_memory,
     {"ut of memory", "OutOfMemory", "OUT_OF_MEMORY", "ALLOC_FAILED", "RESOURCE_EXHAUSTED", "Cannot allocate memory"}},
    {EventKind::nan,
     {"found NaN", "found Inf", "NaN or Inf", "is nan or inf", "oss is nan", "oss is NaN", "nexpected result nan",
      "nexpected result inf"}},
    {EventKind::collective_timeout,
     {"collective operation timeout", "NCCL error", "NCCL Error", "RCCL error", "DistBackendError",
      "DistStoreError: Timed out", "wait timeout after"}},
    {EventKind::device_error,
     {"CUDA error", "CUDA driver error", "HIP error", "hipError", "AcceleratorError", "device-side assert", "ECC error",
      "cuDNN error", "CUBLAS_STATUS_"}},
    {EventKind::killed, {"got signal:", "killed by signal"}},
};

// In any line: phrases long enough to be unambiguous. The event's text starts with them.
const Phrases<EventKind> k_line_phrases[] = {
    {EventKind::out_of_memory,
     {"CUDA out of memory. Tried to allocate", "HIP out of memory. Tried to allocate", "CUDA error: out of memory",
      "HIP error: out of memory", "Cuda failure 'out of memory'", "Cuda failure 2 'out of memory'",
      "HIP failure 'out of memory'", "ut of memory: Kill", "invoked oom-killer", "oom-kill:constraint",
      "oom_kill event", "oom-kill event", "RESOURCE_EXHAUSTED: Out of memory"}},
    {EventKind::collective_timeout,
     {"atchdog caught collective operation timeout", "eartbeat monitor timed out",
      "NCCL error in:", "didn't join collective"}},
    {EventKind::device_error,
     {"CUDA error: ", "HIP error: ", "[CUDA ERROR]", "NVRM: Xid", "Memory access fault by GPU"}},
    {EventKind::nan,
     {"found NaN in ", "nexpected result nan", "nexpected result inf", "NaN or Inf found in", "oss is nan",
      "oss is NaN"}},
    {EventKind::failed, {"Detected stragglers. Terminating training", "MPI_ABORT was invoked", "Killing subprocess"}},
    {EventKind::killed, {"exited on signal ", "Caught signal ", "(core dumped)"}},
};

// Of messages in lower case. The first that the text holds decides, so the more specific ones come first.
const Phrases<FailureKind> k_kind_phrases[] = {
    {FailureKind::host_out_of_memory, {"killed process", "oom-kill", "oom_kill"}},
    {FailureKind::out_of_memory, {"outofmemoryerror"}},
    {FailureKind::host_out_of_memory,
     {"std::bad_alloc", "cannot allocate memory", "defaultcpuallocator", "memoryerror"}},
    {FailureKind::out_of_memory, {"out of memory"}},
    {FailureKind::missing_module,
     {"no module named", "modulenotfounderror", "cannot import name", "cannot open shared object file"}},
    {FailureKind::disk_full, {"no space left on device", "disk quota exceeded"}},
    {FailureKind::port_in_use, {"address already in use", "eaddrinuse"}},
    {FailureKind::no_device,
     {"no cuda gpus are available", "no hip gpus are available", "no cuda-capable device", "no rocm-capable device",
      "no nvidia driver", "invalid device ordinal", "not compiled with cuda enabled"}},
    {FailureKind::no_access, {"403 client error", "401 client error", "gated repo", "permission denied"}},
    {FailureKind::missing_program, {"command not found"}},
    {FailureKind::wrong_usage,
     {"error: unrecognized arguments", "error: the following arguments are required", "error: argument "}},
    {FailureKind::nan_loss,
     {"loss is nan", "nan loss", "nan in loss", "found nan in", "nan or inf found", "is not finite"}},
    {FailureKind::collective_failed, {"collective operation timeout", "nccl error", "rccl error", "distbackenderror"}},
};

std::optional<int32_t> rank_after(std::string_view text, std::string_view key) {
  const auto rank = whole_after(text, key);
  return rank && *rank >= 0 && *rank < 10'000'000 ? std::optional(static_cast<int32_t>(*rank)) : std::nullopt;
}

// The start of the word at `at`, including the preceding words that name the process.
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

// PyTorch states how much it tried to allocate; text about such messages does not.
bool has_amount(std::string_view text) {
  const auto rest = text_after(text.substr(0, 60), "Tried to allocate ");
  return !rest || parse_number(*rest);
}

std::optional<FailureSign> find_phrase(std::string_view line) {
  for (const auto& [kind, phrases] : k_line_phrases)
    for (const std::string_view phrase : phrases) {
      const size_t at = find_text(line, phrase);
      if (at == std::string_view::npos || !has_amount(line.substr(at))) continue;
      FailureSign sign{kind, line.substr(start_of_phrase(line, at)), {}, -1};
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

// Final messages of Slurm and other schedulers.
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
  return find_kind(k_kind_phrases, lower_case(std::string(text)));
}

}  // namespace tprimat::logs
