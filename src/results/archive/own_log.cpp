#include "archive/witnesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "extract/line_cleaner.h"
#include "extract/scan_text.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

// " iteration        1/      12 | consumed samples: ..."
struct OwnStep {
  int64_t step = 0;
  std::string line;
};

// "model tiny | parameters 22688 | precision bf16 | threads 2 | allocated 0.017 GB"
struct OwnHeader {
  std::string model, precision, threads;
  logs::Figure parameters, allocated_gb;
};

struct OwnEvaluation {
  int64_t step = 0;
  logs::Figure loss, perplexity;
};

struct OwnLines {
  std::vector<OwnHeader> headers;
  std::vector<OwnStep> steps;
  std::vector<OwnEvaluation> evaluations;
};

std::string field_of(std::string_view text, std::string_view key) {
  const auto value = logs::text_between(text, key, " |");
  return value ? std::string(logs::trim(*value)) : "";
}

OwnHeader read_header(std::string_view text) {
  OwnHeader header{field_of(text, "model "),
                   field_of(text, "precision "),
                   field_of(text, "threads "),
                   logs::number_after(text, "parameters "),
                   {}};
  if (const auto bytes = logs::text_after(text, "allocated ")) header.allocated_gb = logs::parse_bytes_gb(*bytes);
  return header;
}

std::optional<int64_t> read_step_number(std::string_view text) {
  const auto number = logs::text_after(text, "iteration ");
  return number ? logs::parse_whole(logs::trim(number->substr(0, number->find_first_of("/|")))) : std::nullopt;
}

void read_line(std::string_view text, OwnLines& lines) {
  if (text.starts_with("model ") && logs::contains(text, "| threads "))
    return lines.headers.push_back(read_header(text));
  const auto step = read_step_number(text);
  if (!step) return;
  if (logs::contains(text, "| tokens per second:"))
    lines.steps.push_back({*step, std::string(text)});
  else if (logs::contains(text, "validation loss at iteration"))
    lines.evaluations.push_back(
        {*step, logs::number_after(text, "lm loss value:"), logs::number_after(text, "lm loss PPL:")});
}

// An unfinished line of a killed trainer does not count.
OwnLines read_lines(std::string_view text, bool is_complete) {
  OwnLines lines;
  logs::LineCleaner cleaner;
  std::string storage;
  text = logs::LineCleaner::strip_escapes(text, storage);
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos && !is_complete) break;
    std::string_view raw = text.substr(0, end);
    if (raw.ends_with('\r')) raw.remove_suffix(1);
    read_line(logs::trim(cleaner.clean(raw, number).text), lines);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Half a unit of the sixth decimal.
double half_unit_of(const logs::Figure& printed) {
  if (!printed.finite() || *printed == 0) return 0;
  return 0.5e-6 * std::pow(10.0, std::floor(std::log10(std::fabs(*printed))));
}

bool is_rounded_to(double stated, const logs::Figure& printed, double half_unit) {
  constexpr double k_exact = 1e-9;
  if (!std::isfinite(stated) && !printed.finite()) return true;
  return std::fabs(stated - *printed) <= half_unit * (1 + k_exact) + k_exact * std::fabs(stated);
}

double value_at(const std::vector<double>& values, size_t entry) {
  return entry < values.size() ? values[entry] : std::nan("");
}

// A figure of a step's line: its label there, and the result's value, if any.
struct StepFigure {
  const char *title, *mark;
  std::optional<double> stated;
  double half_unit;     // of the last digit; k_by_digits: six decimals are printed
  double per_unit = 1;  // factor from the result's unit to the line's
};
constexpr double k_by_digits = -1;

void check_figure(const ResultCheck& check, const OwnStep& step, const StepFigure& figure) {
  const logs::Figure printed = logs::number_after(step.line, figure.mark);
  if (!figure.stated || !printed.known()) return;
  const double value = *printed / figure.per_unit;
  ++check.found.facts;
  if (!is_rounded_to(*figure.stated, value, figure.half_unit < 0 ? half_unit_of(printed) : figure.half_unit))
    check.refute(fmt::format("step {}, {}", step.step, figure.title), show_figure(*figure.stated), show_figure(value));
}

// Compares a line with the output of render_log_line().
void check_step(const ResultCheck& check, const OwnStep& step) {
  const RunResult& run = check.result.read;
  const int64_t first = step_number(run, 0);  // of a training that continued a checkpoint: above 1
  const auto entry = static_cast<size_t>(step.step - first);
  if (step.step < first || entry >= run.step_times.size()) {
    const bool was_cut = run.status != RunStatus::complete && entry == run.step_times.size();
    if (!was_cut) check.refute(fmt::format("step {}", step.step), "nothing", "a line");
    return;
  }
  const double seconds = run.step_times[entry], tokens = static_cast<double>(tokens_per_step(run).value_or(0));
  const double batch = static_cast<double>(run.training_config.global_batch_size.value_or(0));
  std::optional<double> steps(run.training_config.max_steps), norm = value_at(run.grad_norms, entry), scale;
  if (find_audited(run, "steps")) steps.reset();
  if (logs::contains(step.line, "number of skipped iterations:") &&
      !logs::number_after(step.line, "grad norm:").finite())
    norm.reset();
  if (run.reported && run.reported->loss_scale) scale = value_at(*run.reported->loss_scale, entry);
  const StepFigure figures[] = {{"number of steps", "/", steps, 0},
                                {"time in s", "elapsed time per iteration (ms):", seconds, 0.05e-3, 1e3},
                                {"tokens/s", "tokens per second:", tokens / seconds, 0.05},
                                {"global batch size", "global batch size:", batch, 0},
                                {"samples", "consumed samples:", batch * static_cast<double>(step.step), 0},
                                {"loss", "lm loss:", value_at(run.loss_values, entry), k_by_digits},
                                {"learning rate", "learning rate:", value_at(run.learning_rates, entry), k_by_digits},
                                {"gradient norm", "grad norm:", norm, 0.5e-3},
                                {"loss scale", "loss scale:", scale, 0.05}};
  for (const StepFigure& each : figures) check_figure(check, step, each);
}

bool has_warning(const RunResult& run, std::string_view part) {
  return std::ranges::any_of(run.warnings, [&](const std::string& each) { return logs::contains(each, part); });
}

// A trainer that resumed from a checkpoint repeats steps; the last ones count, as in the records.
bool is_made_again(const RunResult& run, const std::vector<OwnStep>& lines, size_t line) {
  if (!has_warning(run, "recorded more than once")) return false;
  return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(line) + 1, lines.end(),
                     [&](const OwnStep& each) { return each.step == lines[line].step; });
}

void check_steps(const ResultCheck& check, const std::vector<OwnStep>& lines) {
  const RunResult& stated = check.result.read;
  std::set<int64_t> seen;
  for (size_t i = 0; i < lines.size(); ++i) {
    seen.insert(lines[i].step);
    if (!is_made_again(stated, lines, i)) check_step(check, lines[i]);
  }
  if (has_warning(stated, "the log was ")) return;  // damaged while it was written
  for (size_t entry = 0; entry < stated.step_times.size(); ++entry) {
    const int64_t step = step_number(stated, entry);
    if (is_valid_step_time(stated.step_times[entry]) && !seen.contains(step))
      check.refute(fmt::format("step {}", step), "a step", "no line");
  }
}

void check_word(const ResultCheck& check, const char* fact, const std::string& stated, const std::string& printed) {
  if (is_hidden(stated) && is_hidden(printed))
    ++check.found.facts;
  else
    check.compare(fact, stated, printed);
}

// The header is from the first rank, the result has the memory of the heaviest rank.
void check_allocated(const ResultCheck& check, const logs::Figure& printed) {
  constexpr double k_half_unit_gb = 0.5e-3;
  const RunResult& stated = check.result.read;
  double most = 0;
  for (const double each : stated.memory_values) most = std::isfinite(each) ? std::max(most, each) : most;
  if (!printed.finite() || most == 0) return;
  const bool is_above = *printed > most + k_half_unit_gb * (1 + 1e-6);
  const bool is_off = !is_rounded_to(most, printed, k_half_unit_gb);
  ++check.found.facts;
  if (stated.training_config.num_gpus.value_or(1) > 1 ? is_above : is_off)
    check.refute("memory in GB", show_figure(most), show_figure(*printed));
}

void check_header(const ResultCheck& check, const OwnHeader& header) {
  const RunResult& stated = check.result.read;
  check_word(check, "model_info.name", stated.model_info.name, header.model);
  if (stated.model_info.num_parameters && header.parameters.finite())
    check_word(check, "model_info.num_parameters", std::to_string(*stated.model_info.num_parameters),
               fmt::format("{:.0f}", *header.parameters));
  const AuditEntry* audited = find_audited(stated, "precision");
  if (stated.precision)
    check_word(check, "precision", audited ? audited->effective : std::string(enum_name(*stated.precision)),
               header.precision);
  if (stated.effective_config && stated.effective_config->contains("threads"))
    check_word(check, "effective_config.threads", stated.effective_config->at("threads"), header.threads);
  check_allocated(check, header.allocated_gb);
}

void check_perplexity(const ResultCheck& check, const OwnEvaluation& each) {
  if (!each.loss.finite() || !each.perplexity.finite()) return;
  const double follows = std::exp(*each.loss);
  ++check.found.facts;
  if (!is_rounded_to(follows, each.perplexity, follows * half_unit_of(each.loss) + half_unit_of(each.perplexity)))
    check.found.broken.push_back({check.witness, fmt::format("step {}, validation perplexity", each.step),
                                  show_figure(*each.perplexity), show_figure(follows)});
}

}  // namespace

void check_own_log(const ResultCheck& check, std::string_view log) {
  const RunResult& stated = check.result.read;
  const OwnLines lines = read_lines(log, stated.status == RunStatus::complete);
  const bool is_ours = stated.framework == Framework::native && check.result.of_suite;
  if (lines.headers.empty() && !is_ours) return;
  check_word(check, "framework", stated.framework ? std::string(enum_name(*stated.framework)) : "nothing", "native");
  for (const OwnHeader& header : lines.headers) check_header(check, header);
  check_steps(check, lines.steps);
  for (const OwnEvaluation& each : lines.evaluations) check_perplexity(check, each);
  Evaluations& both = *check.result.evaluations;
  both.log = check.witness;
  both.printed.emplace();
  for (const OwnEvaluation& each : lines.evaluations)
    if (each.loss.finite()) (*both.printed)[each.step] = *each.loss;
  check_evaluations(check.result, check.found);
}

void check_evaluations(const StatedResult& result, Verification& found) {
  const Evaluations& both = *result.evaluations;
  if (!both.recorded || !both.printed) return;
  std::set<int64_t> steps;
  for (const auto* witness : {&*both.recorded, &*both.printed})
    for (const auto& [step, loss] : *witness) steps.insert(step);
  for (const int64_t step : steps) {
    const auto recorded = both.recorded->find(step), printed = both.printed->find(step);
    const bool has_both = recorded != both.recorded->end() && printed != both.printed->end();
    if (!has_both && result.read.status != RunStatus::complete) continue;  // the end of one of them may be missing
    ++found.facts;
    if (has_both &&
        is_rounded_to(recorded->second, logs::Figure(printed->second), half_unit_of(logs::Figure(printed->second))))
      continue;
    const auto show = [](const auto& each, const auto& all) {
      return each == all->end() ? std::string("nothing") : show_figure(each->second);
    };
    found.broken.push_back({both.records, fmt::format("step {}, validation loss", step), show(recorded, both.recorded),
                            show(printed, both.printed), both.log});
  }
}

}  // namespace tprimat::results
