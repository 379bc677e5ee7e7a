#include "archive/own_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "archive/stated_numbers.h"
#include "extract/line_cleaner.h"
#include "extract/scan_text.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

// " iteration        1/      12 | consumed samples: ..."
struct OwnStep {
  int64_t step = 0;
  logs::Figure total, samples, milliseconds, tokens_per_second, learning_rate, batch, loss, loss_scale, grad_norm;
  bool skipped = false;
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

OwnStep read_step(std::string_view text, int64_t step) {
  return {.step = step,
          .total = logs::number_after(text, "/"),
          .samples = logs::number_after(text, "consumed samples:"),
          .milliseconds = logs::number_after(text, "elapsed time per iteration (ms):"),
          .tokens_per_second = logs::number_after(text, "tokens per second:"),
          .learning_rate = logs::number_after(text, "learning rate:"),
          .batch = logs::number_after(text, "global batch size:"),
          .loss = logs::number_after(text, "lm loss:"),
          .loss_scale = logs::number_after(text, "loss scale:"),
          .grad_norm = logs::number_after(text, "grad norm:"),
          .skipped = logs::contains(text, "number of skipped iterations:")};
}

void read_line(std::string_view text, OwnLines& lines) {
  if (text.starts_with("model ") && logs::contains(text, "| threads "))
    return lines.headers.push_back(read_header(text));
  const auto step = read_step_number(text);
  if (!step) return;
  if (logs::contains(text, "| tokens per second:"))
    lines.steps.push_back(read_step(text, *step));
  else if (logs::contains(text, "validation loss at iteration"))
    lines.evaluations.push_back(
        {*step, logs::number_after(text, "lm loss value:"), logs::number_after(text, "lm loss PPL:")});
}

// A line that a killed trainer did not end says nothing.
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

// Half of the last of six decimals.
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

class OwnLogCheck {
 public:
  OwnLogCheck(const StatedResult& result, const std::string& log_name, Verification& found)
      : result_(result), stated_(result.read), log_name_(log_name), found_(found) {}

  void run(const OwnLines& lines) {
    check_words("framework", stated_.framework ? std::string(enum_name(*stated_.framework)) : "nothing", "native");
    for (const OwnHeader& header : lines.headers) check_header(header);
    check_steps(lines.steps);
    for (const OwnEvaluation& each : lines.evaluations) check_perplexity(each);
  }

 private:
  void check_header(const OwnHeader& header) {
    check_words("model_info.name", stated_.model_info.name, header.model);
    if (stated_.model_info.num_parameters && header.parameters.finite())
      check_words("model_info.num_parameters", std::to_string(*stated_.model_info.num_parameters),
                  fmt::format("{:.0f}", *header.parameters));
    if (stated_.precision)
      check_words("precision", audited("precision").value_or(std::string(enum_name(*stated_.precision))),
                  header.precision);
    if (const auto threads = threads_of_rank()) check_words("effective_config.threads", *threads, header.threads);
    check_allocated(header.allocated_gb);
  }

  std::optional<std::string> threads_of_rank() const {
    if (!stated_.effective_config) return std::nullopt;
    const auto found = stated_.effective_config->find("threads");
    return found == stated_.effective_config->end() ? std::nullopt : std::optional(found->second);
  }

  // The header is that of the first rank, the result has the memory of the rank that needs most.
  void check_allocated(const logs::Figure& printed) {
    constexpr double k_half_unit_gb = 0.5e-3;
    double most = 0;
    for (const double each : stated_.memory_values) most = std::isfinite(each) ? std::max(most, each) : most;
    if (!printed.finite() || most == 0) return;
    const bool is_above = *printed > most + k_half_unit_gb * (1 + 1e-6);
    const bool is_off = !is_rounded_to(most, printed, k_half_unit_gb);
    ++found_.facts;
    if (stated_.training_config.num_gpus.value_or(1) > 1 ? is_above : is_off)
      refute("memory in GB", show_figure(most), show_figure(*printed));
  }

  void check_steps(const std::vector<OwnStep>& lines) {
    std::set<int64_t> seen;
    for (size_t i = 0; i < lines.size(); ++i) {
      seen.insert(lines[i].step);
      if (!is_made_again(lines, i)) check_step(lines[i]);
    }
    if (has_warning("the log was ")) return;  // damaged while it was written
    for (size_t entry = 0; entry < stated_.step_times.size(); ++entry) {
      const auto step = static_cast<int64_t>(entry) + 1;
      if (is_valid_step_time(stated_.step_times[entry]) && !seen.contains(step))
        refute(fmt::format("step {}", step), "a step", "no line");
    }
  }

  // A trainer that went back to a checkpoint makes steps again; the last ones count, as in the records.
  bool is_made_again(const std::vector<OwnStep>& lines, size_t line) const {
    if (!has_warning("recorded more than once")) return false;
    return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(line) + 1, lines.end(),
                       [&](const OwnStep& each) { return each.step == lines[line].step; });
  }

  bool has_warning(std::string_view part) const {
    return std::any_of(stated_.warnings.begin(), stated_.warnings.end(),
                       [&](const std::string& each) { return logs::contains(each, part); });
  }

  // Compares a line with the output of render_log_line().
  void check_step(const OwnStep& line) {
    const auto entry = static_cast<size_t>(line.step - 1);
    if (line.step < 1 || entry >= stated_.step_times.size()) {
      const bool was_cut = stated_.status != RunStatus::complete && entry == stated_.step_times.size();
      if (!was_cut) refute(fmt::format("step {}", line.step), "nothing", "a line");
      return;
    }
    const double tokens = static_cast<double>(tokens_per_step(stated_).value_or(0));
    const auto batch = static_cast<double>(stated_.training_config.global_batch_size.value_or(0));
    const double seconds = stated_.step_times[entry];
    if (stated_.training_config.max_steps && !audited("steps"))
      compare(line, "number of steps", static_cast<double>(*stated_.training_config.max_steps), line.total, 0);
    if (line.milliseconds.known()) compare(line, "time in s", seconds, logs::Figure(*line.milliseconds / 1e3), 0.05e-3);
    compare(line, "tokens/s", tokens / seconds, line.tokens_per_second, 0.05);
    compare(line, "global batch size", batch, line.batch, 0);
    compare(line, "samples", batch * static_cast<double>(line.step), line.samples, 0);
    compare(line, "loss", value_at(stated_.loss_values, entry), line.loss, half_unit_of(line.loss));
    compare(line, "learning rate", value_at(stated_.learning_rates, entry), line.learning_rate,
            half_unit_of(line.learning_rate));
    if (!line.skipped || line.grad_norm.finite())
      compare(line, "gradient norm", value_at(stated_.grad_norms, entry), line.grad_norm, 0.5e-3);
    if (stated_.reported && stated_.reported->loss_scale)
      compare(line, "loss scale", value_at(*stated_.reported->loss_scale, entry), line.loss_scale, 0.05);
  }

  void compare(const OwnStep& line, const char* title, double stated, const logs::Figure& printed, double half_unit) {
    if (!printed.known()) return;
    ++found_.facts;
    if (!is_rounded_to(stated, printed, half_unit))
      refute(fmt::format("step {}, {}", line.step, title), show_figure(stated), show_figure(*printed));
  }

  void check_perplexity(const OwnEvaluation& each) {
    if (!each.loss.finite() || !each.perplexity.finite()) return;
    const double follows = std::exp(*each.loss);
    ++found_.facts;
    if (is_rounded_to(follows, each.perplexity, follows * half_unit_of(each.loss) + half_unit_of(each.perplexity)))
      return;
    found_.broken.push_back({log_name_, fmt::format("step {}, validation perplexity", each.step),
                             show_figure(*each.perplexity), show_figure(follows)});
  }

  std::optional<std::string> audited(const std::string& key) const {
    const auto& audit = stated_.config_audit;
    const auto found =
        std::find_if(audit.begin(), audit.end(), [&](const AuditEntry& each) { return each.key == key; });
    return found == audit.end() ? std::nullopt : std::optional(found->effective);
  }

  void check_words(const char* fact, const std::string& stated, const std::string& printed) {
    ++found_.facts;
    if (stated != printed && !(is_hidden(stated) && is_hidden(printed))) refute(fact, stated, printed);
  }

  void refute(const std::string& what, const std::string& stated, const std::string& printed) {
    found_.broken.push_back({result_.file, what, stated, printed, log_name_});
  }

  const StatedResult& result_;
  const RunResult& stated_;
  const std::string& log_name_;
  Verification& found_;
};

}  // namespace

void check_own_log(const StatedResult& result, const LogText& log, Verification& found) {
  const OwnLines lines = read_lines(log.text, result.read.status == RunStatus::complete);
  const bool is_ours = result.read.framework == Framework::native && result.of_suite;
  if (lines.headers.empty() && !is_ours) return;
  OwnLogCheck(result, log.name, found).run(lines);
  result.evaluations->log = log.name;
  result.evaluations->printed.emplace();
  for (const OwnEvaluation& each : lines.evaluations)
    if (each.loss.finite()) (*result.evaluations->printed)[each.step] = *each.loss;
  check_evaluations(result, found);
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
    if (!has_both && result.read.status != RunStatus::complete) continue;  // the end of the one may be missing
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
