#include "cli/compare_history.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "command_line/output_target.h"
#include "command_line/session.h"
#include "command_line/terminal.h"
#include "command_line/value_checks.h"
#include "history/history.h"
#include "report/ci_report.h"
#include "report/report.h"
#include "result/metrics.h"

namespace tprimat::cli {
namespace {

results::JUnitStamp make_stamp() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  std::string now = utc_timestamp();
  if (now.ends_with('Z')) now.pop_back();  // the schema allows no time zone
  return {now, known ? name.data() : "localhost"};
}

std::string render_history(const results::History& history, CompareFormat format) {
  switch (format) {
    case CompareFormat::json: return print_json(results::history_to_json(history));
    case CompareFormat::markdown: return render_markdown(results::build_document(history), "History");
    case CompareFormat::csv: return results::render_csv(history);
    case CompareFormat::terminal:
    case CompareFormat::coloured_terminal: break;
  }
  return results::render_terminal(
      results::build_document(history), format == CompareFormat::coloured_terminal,
      std::min(results::k_report_width, terminal_width(STDOUT_FILENO, results::k_report_width)));
}

void write_history(const results::History& history, const std::filesystem::path& folder) {
  if (folder.empty()) return;
  const std::filesystem::path path = folder / "history.md";
  write_file_atomically(path, render_markdown(results::build_document(history), "History"));
  log_note(fmt::format("wrote {}", path.string()));
}

}  // namespace

// Workflow commands are read from both streams; stderr leaves the report on stdout whole.
void write_ci_outputs(const results::Comparison& comparison, const CiOutputs& outputs) {
  if (!outputs.junit_path.empty()) write_output(outputs.junit_path, results::render_junit(comparison, make_stamp()));
  if (!outputs.annotations) return;
  if (!write_stderr(results::render_annotations(comparison)))
    throw Error(Problem{"cannot write the annotations to stderr", "--annotations", ""}, ExitStatus::work_failed);
}

void print_comparison(const std::string& text, CompareFormat format) {
  format == CompareFormat::coloured_terminal ? print_coloured(text) : print_result(text);
}

std::vector<std::string> metric_keys() {
  std::vector<std::string> keys;
  for (const Metric& metric : metrics()) keys.emplace_back(metric.key);
  return keys;
}

void add_history_options(CommandLine& verb, HistoryRequest& request, const char* default_folder) {
  verb.add_option("--history", request.folder,
                  "Track one metric over all results in this directory and below, by configuration and time")
      ->expected(0, 1)
      ->default_str(default_folder)
      ->type_name("[DIR]");
  verb.add_option("--metric", request.metric, "With --history: the metric (default: tokens_per_second_per_gpu)")
      ->choices(metric_keys())
      ->type_name("METRIC");
  verb.add_option("--last", request.last, "With --history: points to show per series")
      ->type_name("N")
      ->capture_default_str()
      ->check(number_from(1, 1000000));
}

ExitStatus compare_history(const HistoryRequest& request, const results::CompareOptions& options, CompareFormat format,
                           const CiOutputs& ci) {
  const results::History history =
      results::read_history(request.folder, {.metric = request.metric, .last = request.last, .compare = options});
  for (const results::SkippedFile& file : history.index.skipped)
    log_detail(fmt::format("skipped {}: {}", file.path, file.reason));
  if (!history.index.note.empty()) log_note(history.index.note);
  log_detail(fmt::format("{} files read, {} gone, index {}", history.index.files_read, history.index.files_gone,
                         history.index.index_path.empty() ? "in memory" : history.index.index_path));
  if (!names_stdout(ci.junit_path)) print_comparison(render_history(history, format), format);
  write_history(history, request.output);
  write_ci_outputs(history.comparison, ci);
  return results::history_status(history);
}

}  // namespace tprimat::cli
