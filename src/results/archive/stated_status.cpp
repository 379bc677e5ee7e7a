#include "archive/witnesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "archive/redactor.h"
#include "extract/common/failure_cause.h"
#include "extract/common/failure_signs.h"
#include "extract/common/log_words.h"
#include "extract/scan_text.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

// The end of a run, as stated in the file.
struct StatedEnd {
  std::optional<RunStatus> status;
  std::string reason;  // empty: none
  std::optional<FailureKind> kind;
};

StatedEnd end_of(const Json& stored) {
  return {parse_enum<RunStatus>(stored.text_at("status")), stored.text_at("status_reason"),
          parse_enum<FailureKind>(stored.text_at("failure_kind"))};
}

std::string show_kind(const std::optional<FailureKind>& kind) {
  return kind ? std::string(enum_name(*kind)) : "nothing";
}

std::string show_end(const RunResult& run) {
  return fmt::format("{}{}{}", enum_name(run.status), run.status_reason ? ": " : "", run.status_reason.value_or(""));
}

// As judged from the series alone.
RunResult judge_series(RunResult run) {
  run.status = RunStatus::complete;
  run.status_reason.reset();
  run.failure_kind.reset();
  check_validity(run);
  return run;
}

// Damage of a run's files is a warning, and also ends the reason.
std::string without_damage(std::string reason, const RunResult& run) {
  for (auto warning = run.warnings.rbegin(); warning != run.warnings.rend(); ++warning)
    if (reason.ends_with("; " + *warning)) reason.resize(reason.size() - warning->size() - 2);
  return reason;
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The first words of the suite's reasons and the status that they imply, and vice versa.
struct ReasonOfSuite {
  std::string_view beginning;
  RunStatus status;
  std::optional<FailureKind> kind;
};
constexpr ReasonOfSuite k_reasons[] = {
    {"stopped by the user", RunStatus::interrupted, std::nullopt},
    {"stopped after its time limit of ", RunStatus::failed, FailureKind::time_limit},
    {"hung: ", RunStatus::failed, FailureKind::hung},
    {"no step was recorded", RunStatus::failed, FailureKind::steps_missing},
    {"stopped after step ", RunStatus::invalid, FailureKind::steps_missing},
    {"step ", RunStatus::invalid, FailureKind::wrong_work}};  // "step 3 trained on 64 tokens where ..."

bool has_ending_of(const ReasonOfSuite& known, const StatedEnd& end) {
  return end.status == known.status && end.kind == known.kind;
}

const ReasonOfSuite* find_reason(const std::string& reason) {
  const auto* found =
      std::ranges::find_if(k_reasons, [&](const ReasonOfSuite& each) { return reason.starts_with(each.beginning); });
  return found == std::end(k_reasons) ? nullptr : found;
}

// Words in every reason of the kind; empty: any reason.
std::string_view phrase_of_kind(FailureKind kind) {
  switch (kind) {
    case FailureKind::out_of_memory: return "out of memory";
    case FailureKind::host_out_of_memory: return "memory";
    case FailureKind::nan_loss: return "nan";
    case FailureKind::disk_full: return "disk full";
    case FailureKind::missing_module: return "missing module";
    case FailureKind::port_in_use: return "port in use";
    case FailureKind::device_error: return "device error";
    case FailureKind::collective_failed: return "collective";
    case FailureKind::killed: return "kill";
    case FailureKind::ended_by_scheduler: return "job";
    default: return "";
  }
}

// An error is plain if its text names no other kind.
bool fits_kind(const std::string& reason, FailureKind kind) {
  const auto named = logs::find_failure_kind(reason);
  if (kind == FailureKind::error) return !named;
  if (kind == FailureKind::missing_program || named == kind) return true;
  return logs::contains(in_lower_case(reason), phrase_of_kind(kind));
}

class StatusCheck {
 public:
  explicit StatusCheck(const ResultCheck& check)
      : check_(check), result_(check.result), end_(end_of(check.result.stored)) {}

  void run() {
    if (!end_.status) {
      if (result_.of_suite) refute("status", "nothing", show_end(judge_series(result_.read)));
      return;
    }
    ++check_.found.facts;
    if (*end_.status == RunStatus::complete) return check_complete();
    if (end_.reason.empty()) return refute("status_reason", "nothing", "a reason");
    if (!result_.of_suite) return;
    if (*end_.status == RunStatus::invalid) check_invalid();
    check_reason();
  }

  void compare_with(std::string_view log, const logs::ReadLog& read) {
    const auto cause = logs::explain_end(read.log);
    const bool is_told = cause && !cause->is_consequence;
    if (end_.status == RunStatus::complete && is_told) return deny_complete(cause->sentence);
    if (end_.status != RunStatus::failed || is_of_suite_alone()) return;
    if (is_told) return compare_cause(*cause);
    if (!cause && !quotes(log)) refute("status_reason", end_.reason, "no such line at its end");
  }

 private:
  void check_complete() {
    if (!end_.reason.empty()) refute("status_reason", end_.reason, "none, because the run is complete");
    if (end_.kind) refute("failure_kind", show_kind(end_.kind), "none, because the run is complete");
    const RunResult series = judge_series(result_.read);
    if (series.status != RunStatus::complete) refute("status", "complete", show_end(series));
  }

  bool trained_other_tokens() const {
    const auto& audit = result_.read.config_audit;
    return end_.kind == FailureKind::wrong_work && std::ranges::any_of(audit, [](const AuditEntry& each) {
             return each.key == "tokens_per_step" && each.asked;
           });
  }

  void check_invalid() {
    if (trained_other_tokens()) return;
    const RunResult series = judge_series(result_.read);
    if (series.status != RunStatus::invalid) return refute("status", "invalid", show_end(series));
    if (series.failure_kind != end_.kind) refute("failure_kind", show_kind(end_.kind), show_kind(series.failure_kind));
    if (without_damage(end_.reason, result_.read) != series.status_reason)
      refute("status_reason", end_.reason, series.status_reason.value_or("nothing"));
  }

  void check_reason() {
    const std::string reason = without_damage(end_.reason, result_.read);
    const ReasonOfSuite* known = find_reason(reason);
    const auto* of_ending =
        std::ranges::find_if(k_reasons, [&](const ReasonOfSuite& each) { return has_ending_of(each, end_); });
    if (known != nullptr ? has_ending_of(*known, end_) : fits_unknown(reason, of_ending != std::end(k_reasons))) return;
    refute("failure_kind", fmt::format("{}, {}", enum_name(*end_.status), show_kind(end_.kind)),
           fmt::format("the reason \"{}\"", end_.reason));
  }

  // `has_sentence`: the suite has a sentence for this ending, which this reason is not.
  bool fits_unknown(const std::string& reason, bool has_sentence) const {
    if (*end_.status == RunStatus::invalid) return true;  // compared with the series
    return *end_.status == RunStatus::failed && !has_sentence && end_.kind && fits_kind(reason, *end_.kind);
  }

  // Other trainers may log apparent failures although they succeed.
  void deny_complete(const std::string& sentence) {
    if (result_.read.framework == Framework::native)
      return refute("status", "complete", "the log ends with: " + sentence);
    check_.found.notes.push_back(
        fmt::format("{}: the run is complete, but {} ends with: {}", result_.file, check_.witness, sentence));
  }

  // Endings that the log may not show: the suite ended the run, could not start it or could not write the log.
  bool is_of_suite_alone() const {
    const bool is_kept_back = end_.kind == FailureKind::disk_full || end_.kind == FailureKind::missing_program ||
                              end_.kind == FailureKind::no_access;
    return is_kept_back || find_reason(end_.reason) != nullptr || holds_stand_in(end_.reason);
  }

  void compare_cause(const logs::EndCause& cause) {
    const auto is_killed = [](FailureKind kind) {
      return kind == FailureKind::killed || kind == FailureKind::host_out_of_memory;
    };
    const bool by_signal = cause.kind == FailureKind::error || is_killed(cause.kind);
    if (end_.kind && *end_.kind != cause.kind && !(by_signal && is_killed(*end_.kind)))
      refute("failure_kind", show_kind(end_.kind), show_kind(cause.kind));
    constexpr std::string_view k_plain = "a process ended with an error: ";
    constexpr size_t k_compared = 60;
    std::string_view core = cause.sentence;
    if (core.starts_with(k_plain)) core.remove_prefix(k_plain.size());
    if (!logs::contains(end_.reason, core.substr(0, k_compared))) refute("status_reason", end_.reason, cause.sentence);
  }

  // Whether the reason quotes one of the last lines of the log, or states that there is no output.
  bool quotes(std::string_view text) const {
    constexpr size_t k_last_lines = 200, k_longest_quote = 100;
    const bool is_silent = end_.reason.ends_with("with no output") || end_.reason.ends_with("without a word");  // older
    if (text.empty() || is_silent || end_.reason.starts_with("killed by ")) return true;
    for (size_t i = 0; i < k_last_lines && !text.empty(); ++i) {
      const size_t begin = text.size() < 2 ? 0 : text.rfind('\n', text.size() - 2) + 1;
      const std::string line = logs::quote_text(text.substr(begin), k_longest_quote);
      if (!line.empty() && logs::contains(end_.reason, line)) return true;
      text = text.substr(0, begin);
    }
    return false;
  }

  void refute(const char* fact, const std::string& stated, const std::string& follows) const {
    check_.refute(fact, stated, follows);
  }

  const ResultCheck& check_;
  const StatedResult& result_;
  const StatedEnd end_;
};

}  // namespace

void check_status(const StatedResult& result, Verification& found) {
  if (result.of_suite || result.stored.contains("schema_version")) StatusCheck({result, "", found}).run();
}

void check_end_of_log(const ResultCheck& check, std::string_view log, const logs::ReadLog& read) {
  StatusCheck(check).compare_with(log, read);
}

}  // namespace tprimat::results
