#include "extract/common/failure_cause.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "extract/common/failure_signs.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

using Events = std::vector<const LogEvent*>;

// The role of an event, in order of likelihood of being the root cause.
enum class Role { memory, device, error, ended_by_scheduler, killed, collective, consequence, none };

// Errors about a lost peer or a failed child process.
constexpr std::string_view k_consequences[] = {
    "Connection reset",  "Connection closed",  "Connection refused",   "Broken pipe",
    "DistNetworkError",  "CalledProcessError", "SignalException",      "SystemExit",
    "KeyboardInterrupt", "recvBytes",          "remote process",       "Gloo ",
    "process group",     "Killing subprocess", "xited with exit code", "with return code",
    "Process name: [[",
};

std::string_view without_root_mark(std::string_view text) {
  if (text.starts_with(k_root_cause)) text.remove_prefix(k_root_cause.size());
  return text;
}

bool is_consequence(const LogEvent& event) {
  const std::string_view text = without_root_mark(event.text);
  if (text.starts_with("exit code ")) return !contains(text, ": ");
  return std::any_of(std::begin(k_consequences), std::end(k_consequences),
                     [&](std::string_view mark) { return contains(text, mark); });
}

// Signals that launchers send to the other ranks, and those of an aborted collective.
bool is_sent_by_launcher(std::string_view text) {
  return contains(text, "SIGTERM") || contains(text, "SIGABRT") || contains(text, "SIGINT");
}

Role role_of(const LogEvent& event) {
  switch (event.kind) {
    case EventKind::out_of_memory: return Role::memory;
    case EventKind::device_error: return Role::device;
    case EventKind::nan: return contains(event.text, "Error: ") ? Role::error : Role::none;
    case EventKind::failed: return is_consequence(event) ? Role::consequence : Role::error;
    case EventKind::timeout: return Role::ended_by_scheduler;
    case EventKind::killed:
      if (contains(event.text, "CANCELLED AT")) return Role::ended_by_scheduler;
      return is_sent_by_launcher(event.text) || contains(event.text, "got signal") ? Role::consequence : Role::killed;
    case EventKind::collective_timeout: return Role::collective;
    default: return Role::none;
  }
}

std::string name_ranks(const LogEvent& event) {
  if (event.ranks.size() > 1) return fmt::format("ranks {}", fmt::join(event.ranks, ","));
  if (event.rank >= 0) return fmt::format("rank {}", event.rank);
  return "";
}

std::string on_ranks(const LogEvent& event) {
  const std::string ranks = name_ranks(event);
  return ranks.empty() ? "" : " on " + ranks;
}

// "178.35 GiB": number and unit after `mark`.
std::string amount_after(std::string_view text, std::string_view mark) {
  const auto rest = text_after(text, mark);
  if (!rest) return "";
  const size_t end = rest->find("iB");
  return end < 20 ? std::string(rest->substr(0, end + 2)) : "";
}

// Both wordings of PyTorch: "GPU 0 has a total capacity of 178.35 GiB" and, to 2.0, "(GPU 0; 31.75 GiB total capacity".
std::string describe_gpu(std::string_view text) {
  const Figure index = number_after(text, "GPU ");
  std::string capacity = amount_after(text, "total capacity of ");
  if (capacity.empty()) capacity = amount_after(text, "; ");
  if (!index.finite() || capacity.empty()) return "";
  return fmt::format(" (GPU {:.0f} of {})", *index, capacity);
}

// Of the machine or its control group, not of a device: the kernel or the launcher reports the kill.
bool is_host_memory(const LogEvent& event) {
  const std::string_view text = without_root_mark(event.text);
  if (!amount_after(text, "Tried to allocate ").empty() || contains(text, "error: out of memory")) return false;
  return contains(text, "oom") || contains(text, "Kill");
}

std::string describe_memory(const LogEvent& event) {
  const std::string_view text = without_root_mark(event.text);
  const std::string amount = amount_after(text, "Tried to allocate ");
  std::string others;
  if (event.ranks.size() > 1) {
    std::vector<int32_t> rest;
    std::copy_if(event.ranks.begin(), event.ranks.end(), std::back_inserter(rest),
                 [&](int32_t rank) { return rank != event.rank; });
    others = fmt::format(", and on rank{} {}", rest.size() > 1 ? "s" : "", fmt::join(rest, ","));
  }
  const std::string where = event.rank >= 0 ? fmt::format(" on rank {}", event.rank) : "";
  if (!amount.empty())
    return fmt::format("out of memory{}: tried to allocate {}{}{}", where, amount, describe_gpu(text), others);
  if (contains(text, "error: out of memory"))
    return fmt::format("out of memory{}: {} (not PyTorch's allocator: the GPU is occupied or sick){}", where, text,
                       others);
  return fmt::format("out of {}memory{}: {}{}", is_host_memory(event) ? "host " : "", where, text, others);
}

const LogEvent* find_root(const Events& events) {
  for (const LogEvent* event : events)
    if (event->text.starts_with(k_root_cause)) return event;
  return nullptr;
}

bool concerns(const LogEvent& event, int32_t rank) {
  return (event.rank < 0 && event.ranks.empty()) || event.rank == rank ||
         std::binary_search(event.ranks.begin(), event.ranks.end(), rank);
}

// "rank 3 ended with exit code 1", "ranks 0,1 ended with an error"; empty where the log names no process.
std::string name_ended_process(const LogEvent& event, const Events& events) {
  const LogEvent* root = find_root(events);
  const Figure code = root != nullptr ? number_after(root->text, "exit code ") : Figure();
  if (code && root->rank >= 0 && concerns(event, root->rank))
    return fmt::format("rank {} ended with exit code {:.0f}", root->rank, *code);
  const std::string ranks = name_ranks(event);
  return ranks.empty() ? "" : ranks + " ended with an error";
}

// The error of the process, and its count if the log does not name the process.
std::string quote_error(const LogEvent& event, const std::string& process) {
  std::string text(without_root_mark(event.text));
  if (text.starts_with("exit code ") && contains(text, ": ")) text = text.substr(text.find(": ") + 2);
  if (contains(text, "403 Client Error") || contains(text, "gated repo"))
    text = "HTTP 403, no access to a gated repository: " + text;
  return process.empty() && event.reports > 1 ? fmt::format("{} ({} times)", text, event.reports) : text;
}

std::string describe_error(const LogEvent& event, const Events& events) {
  const std::string process = name_ended_process(event, events);
  return (process.empty() ? "a process ended with an error" : process) + ": " + quote_error(event, process);
}

std::string describe_killed(const LogEvent& event) {
  const std::string_view text = without_root_mark(event.text);
  std::string sentence = text.starts_with("killed by") && event.rank >= 0
                             ? fmt::format("{} {} {}", name_ranks(event), event.ranks.size() > 1 ? "were" : "was", text)
                             : (text.starts_with("exit") ? "a process " : "") + std::string(text);
  const bool sigkill = contains(text, "SIGKILL") || contains(text, "Killed") || contains(text, "exit code -9") ||
                       contains(text, "code = -9");
  return sigkill ? sentence + ": usually by the kernel, when memory ran out" : sentence;
}

// "BROADCAST SeqNum=78", or "" where the text has no such thing.
std::string name_collective(std::string_view text) {
  const auto operation = text_between(text, "OpType=", ",");
  const auto sequence = text_between(text, "SeqNum=", ",");
  if (!operation || !sequence || operation->size() > 40 || sequence->size() > 20) return "";
  return fmt::format("{} SeqNum={}", *operation, *sequence);
}

std::string describe_collective(const LogEvent& event, const Events& events) {
  const std::string name = name_collective(event.text);
  if (name.empty()) return fmt::format("collective failure{}: {}", on_ranks(event), event.text);
  std::string sentence = fmt::format("collective timeout: {}{}", name, on_ranks(event));
  const Figure limit = number_after(event.text, "Timeout(ms)=");
  if (event.seconds) sentence += fmt::format(" after {:.0f} s", *event.seconds);
  if (limit.finite()) sentence += fmt::format(" (limit {:.0f} s)", *limit / 1e3);
  for (const LogEvent* other : events)
    if (contains(other->text, "didn't join") && other->rank >= 0) {
      sentence += fmt::format("; rank {} did not join", other->rank);
      break;
    }
  return sentence;
}

std::string describe_end(const LogEvent& event, const Events& events) {
  switch (role_of(event)) {
    case Role::memory: return describe_memory(event);
    case Role::device: return fmt::format("device error{}: {}", on_ranks(event), without_root_mark(event.text));
    case Role::error: return describe_error(event, events);
    case Role::ended_by_scheduler:
      return fmt::format(
          "{}: {}", event.kind == EventKind::timeout ? "the job's time was over" : "the job was cancelled", event.text);
    case Role::killed: return describe_killed(event);
    case Role::collective: return describe_collective(event, events);
    default: break;
  }
  const std::string_view text = without_root_mark(event.text);
  const std::string ranks = name_ranks(event);
  if (text.starts_with("exit code")) return fmt::format("{} ended with {}", ranks.empty() ? "a process" : ranks, text);
  return ranks.empty() ? std::string(text) : ranks + ": " + std::string(text);
}

// The event that comes first by role, then by line. Events after the scheduler ended the job do not count, nor does an
// error after another rank was killed.
const LogEvent* choose(const Events& events) {
  const LogEvent* best = nullptr;
  for (const LogEvent* event : events)
    if (role_of(*event) == Role::ended_by_scheduler && (best == nullptr || event->line < best->line)) best = event;
  const int64_t end = best != nullptr ? best->line : std::numeric_limits<int64_t>::max();
  for (const LogEvent* event : events) {
    if (role_of(*event) == Role::none || event->line > end) continue;
    if (best == nullptr || role_of(*event) < role_of(*best) ||
        (role_of(*event) == role_of(*best) && event->line < best->line))
      best = event;
  }
  if (best == nullptr || role_of(*best) != Role::error) return best;
  const LogEvent* root = find_root(events);
  if (root != nullptr && role_of(*root) == Role::error) best = root;
  for (const LogEvent* event : events)
    if (role_of(*event) == Role::killed && event->line < best->line) best = event;
  return best;
}

int64_t find_last_step_line(const ExtractedLog& log) {
  int64_t line = 0;
  for (const ExtractedStep& step : log.steps) line = std::max(line, step.line);
  return line;
}

// A rank may print through a buffer, so that its last steps follow the message of another rank's failure: where the
// end shows no more than an exit code, the last error since the last restart tells more.
const LogEvent* find_earlier_error(const ExtractedLog& log, int64_t before_line) {
  const LogEvent* found = nullptr;
  for (const LogEvent& event : log.events) {
    if (event.line >= before_line) break;
    if (event.kind == EventKind::restart) found = nullptr;
    if (role_of(event) <= Role::error || role_of(event) == Role::collective) found = &event;
  }
  return found;
}

// A training that continues with a NaN loss has failed, too.
std::optional<EndCause> explain_nan(const std::vector<ExtractedStep>& steps) {
  constexpr size_t k_fewest = 3;
  const auto is_nan = [](const ExtractedStep& step) {
    if (step.skipped || !step.loss) return false;
    // The Hugging Face Trainer prints a NaN loss as 0.
    return std::isnan(*step.loss) || (*step.loss == 0 && step.grad_norm && std::isnan(*step.grad_norm));
  };
  const auto last_good = std::find_if_not(steps.rbegin(), steps.rend(), is_nan);
  const auto first = last_good.base();
  const auto count = static_cast<size_t>(steps.end() - first);
  if (count == 0 || (count < k_fewest && first != steps.begin())) return std::nullopt;
  return EndCause{
      FailureKind::nan_loss,
      fmt::format("NaN: the loss is not a number from step {} to the last one, {}", first->step, steps.back().step),
      {},
      false};
}

// The kind of an error by its text, else `otherwise`.
FailureKind kind_of(const LogEvent& event, FailureKind otherwise) {
  return find_failure_kind(event.text).value_or(otherwise);
}

FailureKind kind_of(const LogEvent& event) {
  switch (role_of(event)) {
    case Role::memory:
      return is_host_memory(event) ? FailureKind::host_out_of_memory : kind_of(event, FailureKind::out_of_memory);
    case Role::device: return kind_of(event, FailureKind::device_error);
    case Role::error: return event.kind == EventKind::nan ? FailureKind::nan_loss : kind_of(event, FailureKind::error);
    case Role::ended_by_scheduler: return FailureKind::ended_by_scheduler;
    case Role::killed: return FailureKind::killed;
    case Role::collective: return FailureKind::collective_failed;
    default: return event.kind == EventKind::killed ? FailureKind::killed : kind_of(event, FailureKind::error);
  }
}

// "srun: error: node: task 3: Killed"
std::optional<int64_t> task_of(std::string_view text) {
  const auto rest = text_after(text, ": task ");
  const auto task = rest ? parse_whole(rest->substr(0, rest->find(':'))) : std::nullopt;
  return task && *task >= 0 ? task : std::nullopt;
}

EndCause describe_cause(const LogEvent& event, const Events& events) {
  EndCause cause;
  cause.sentence = describe_end(event, events);
  cause.kind = kind_of(event);
  if (role_of(event) == Role::error && name_ended_process(event, events).empty())
    cause.bare_error = quote_error(event, "");
  const bool is_plain = cause.kind == FailureKind::error || cause.kind == FailureKind::killed;
  cause.is_consequence = role_of(event) == Role::consequence && is_plain;
  const LogEvent* root = find_root(events);
  const bool is_named = event.rank < 0 && root != nullptr && role_of(event) != Role::ended_by_scheduler;
  const int32_t rank = is_named ? root->rank : event.rank;
  cause.rank = rank >= 0 ? std::optional<int64_t>(rank) : task_of(event.text);
  return cause;
}

}  // namespace

std::optional<EndCause> explain_end(const ExtractedLog& log) {
  const int64_t last_step_line = find_last_step_line(log);
  Events events;
  for (const LogEvent& event : log.events)
    if (std::max(event.line, event.last_line) > last_step_line) events.push_back(&event);
  const LogEvent* event = choose(events);
  if (event == nullptr) return explain_nan(log.steps);
  EndCause cause = describe_cause(*event, events);
  const LogEvent* earlier = cause.is_consequence ? find_earlier_error(log, last_step_line + 1) : nullptr;
  if (earlier == nullptr) return cause;
  const EndCause before = describe_cause(*earlier, {});
  cause.sentence += "; before its last step the log shows: " + before.sentence;
  cause.kind = before.kind;
  if (!cause.rank) cause.rank = before.rank;
  return cause;
}

bool speaks_of_training(const ExtractedLog& log) {
  const LoggedFacts& facts = log.facts;
  if (!log.steps.empty() || facts.gpu_name || facts.pytorch_version || facts.gpu_count) return true;
  return std::any_of(log.events.begin(), log.events.end(), [](const LogEvent& event) {
    if (role_of(event) == Role::none) return false;
    if (event.rank >= 0 || event.text.starts_with(k_root_cause) || contains(event.text, "local rank")) return true;
    for (const std::string_view mark : {"CUDA", "HIP", "NCCL", "torch", "deepspeed", "slurm", "srun"})
      if (contains(event.text, mark)) return true;
    return false;
  });
}

}  // namespace tprimat::logs
