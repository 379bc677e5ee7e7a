#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/compare_causes.h"
#include "cli/compare_history.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/output_target.h"
#include "command_line/terminal.h"
#include "command_line/value_checks.h"
#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "process/process.h"
#include "report/draw_plot.h"
#include "report/report.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_compare_examples =
    "  tprimat compare                                  everything in ./output, or where the configuration says\n"
    "  tprimat compare old.json new.json --baseline old.json\n"
    "  tprimat compare results/ --model llama --markdown\n"
    "  tprimat compare results/ --html                  writes output/compare.html, a page with charts and filters\n"
    "  tprimat compare --history results/ --last 20\n"
    "  tprimat compare new.json --baseline main.json --fail-if 'tokens_per_second < -3%'\n"
    "  tprimat compare a.json b.json --json | jq '.groups[].pairs[].verdict'\n"
    "\nWrites compare.md, compare.svg and compare.png to the output directory. Exit status: 1 if a run is incomplete "
    "or\n"
    "invalid; 3 if runs did different work and get no verdict (--force prints the ratio anyway, with the reason);\n"
    "with --fail-if, 5 if a gate fails and 6 if the answer is within the noise.\n";

constexpr const char* k_default_page = "DIR/compare.html";  // DIR is what --output says
constexpr const char* k_default_history = "the results folder";

// The command line as it was given; names of platforms and frameworks are still words.
struct CompareRequest {
  std::vector<std::string> paths, platforms, frameworks, models, strategies;
  std::vector<std::string> gates;
  CiOutputs ci;
  HistoryRequest history;
  std::string baseline, sort, output, html;
  double smallest_effect_percent = 1.0, run_spread_percent = results::k_assumed_run_spread * 100;
  std::optional<double> loss_tolerance_percent;
  bool markdown = false, csv = false, plot = false, force = false;
  std::string results;  // the folder to read where none is named
  const CommandLine* verb = nullptr;
  bool is_given(const char* option) const { return verb->count(option) > 0; }
};

template <NamedEnum E>
std::vector<E> parse_names(const std::vector<std::string>& words, const char* option) {
  std::vector<E> values;
  for (const std::string& word : words) values.push_back(parse_choice<E>(word, option));
  return values;
}

results::CompareOptions make_options(const CompareRequest& request) {
  if (!request.gates.empty() && request.baseline.empty() && request.history.folder.empty())
    throw Error(Problem{"a gate needs a baseline", "--fail-if", "add --baseline RUN"});
  std::optional<double> loss_tolerance;
  if (request.loss_tolerance_percent) loss_tolerance = *request.loss_tolerance_percent / 100;
  return {.platforms = parse_names<Platform>(request.platforms, "--platform"),
          .frameworks = parse_names<Framework>(request.frameworks, "--framework"),
          .models = request.models,
          .strategies = request.strategies,
          .baseline = request.baseline,
          .sort = request.sort,
          .smallest_effect = request.smallest_effect_percent / 100,
          .audit = {loss_tolerance},
          .force = request.force,
          .gates = results::parse_gates(request.gates),
          .assumed_run_spread = request.run_spread_percent / 100};
}

results::LoadedRuns load_requested(const CompareRequest& request) {
  std::vector<std::string> paths = request.paths;
  if (paths.empty()) paths.push_back(request.results);
  if (std::filesystem::is_regular_file(request.baseline) || results::is_baseline_folder(request.baseline))
    paths.push_back(request.baseline);
  results::LoadedRuns loaded = results::load_runs(paths);
  for (const results::SkippedFile& file : loaded.skipped)
    log_detail(fmt::format("skipped {}: {}", file.path, file.reason));
  return loaded;
}

CompareFormat choose_format(const CompareRequest& request, const Session& session) {
  if (session.json) return CompareFormat::json;
  if (request.markdown) return CompareFormat::markdown;
  if (request.csv) return CompareFormat::csv;
  return shows_colour(STDOUT_FILENO, session.no_color) ? CompareFormat::coloured_terminal : CompareFormat::terminal;
}

std::string render_comparison(const results::Comparison& comparison, CompareFormat format) {
  switch (format) {
    case CompareFormat::json: return print_json(results::comparison_to_json(comparison));
    case CompareFormat::markdown: return render_markdown(comparison);
    case CompareFormat::csv: return results::render_csv(comparison);
    case CompareFormat::terminal:
    case CompareFormat::coloured_terminal: break;
  }
  return results::render_terminal(
      comparison, format == CompareFormat::coloured_terminal,
      std::min(results::k_report_width, terminal_width(STDOUT_FILENO, results::k_report_width)));
}

// Without --plot, a PNG that cannot be drawn is worth a word, no more: the SVG shows the same.
void write_files(const results::Comparison& comparison, const CompareRequest& request) {
  if (names_stdout(request.output)) return;
  const std::filesystem::path folder = request.output, png = folder / "compare.png";
  write_file_atomically(folder / "compare.md", render_markdown(comparison));
  const results::Picture picture = results::plot_comparison(comparison);
  write_file_atomically(folder / "compare.svg", results::render_svg(picture));
  LocalRunner runner;
  const auto failure = results::draw_png(runner, picture, png);
  if (!failure)
    return log_note(fmt::format("wrote {0}/compare.md, {0}/compare.svg and {0}/compare.png", folder.string()));
  std::error_code ignored;
  std::filesystem::remove(png, ignored);  // of an earlier comparison, beside today's figures
  if (request.plot) throw *failure;
  if (failure->status() != ExitStatus::missing_component) log_warning(failure->what());
  log_note(fmt::format("wrote {0}/compare.md and {0}/compare.svg{1}", folder.string(),
                       failure->status() == ExitStatus::missing_component
                           ? "; for compare.png as well, install gnuplot-nox or matplotlib"
                           : ""));
}

// Where the page goes; empty without --html.
std::filesystem::path page_path(const CompareRequest& request) {
  if (request.html.empty()) return {};
  if (request.html == k_default_page && names_stdout(request.output))
    throw Error(Problem{"has no folder for the page when --output is -", "--html", "name the page: --html=page.html"});
  if (request.html == k_default_page) return std::filesystem::path(request.output) / "compare.html";
  const std::filesystem::path path = request.html;
  if (path.extension() == ".json" || std::filesystem::is_directory(path))
    throw Error(Problem{fmt::format("{} cannot be written as the page", request.html), "--html",
                        "put results before --html, or name the page: --html=page.html"});
  return path;
}

void write_page(const results::Comparison& comparison, const std::filesystem::path& path) {
  if (path.empty()) return;
  write_output(path, results::render_html(comparison));
  if (!names_stdout(path)) log_note(fmt::format("wrote {}", path.string()));
}

void refuse_pair(const char* one, const char* other) {
  throw Error(Problem{fmt::format("cannot be combined with {}", other), one, "omit one of them"});
}

// One text at a time on standard output.
void check_stdout(const CompareRequest& request, const Session& session) {
  require_one_on_stdout({{"--html", names_stdout(request.html)},
                         {"--junit", names_stdout(request.ci.junit_path)},
                         {"--json", session.json},
                         {"--markdown", request.markdown},
                         {"--csv", request.csv}});
  if (request.plot && names_stdout(request.output)) refuse_pair("--plot", "--output -");
}

// Where the configuration keeps the results, unless the command line names a folder.
void settle_folders(const Session& session, CompareRequest& request) {
  const bool default_history = request.history.folder == k_default_history;
  if (request.is_given("--output")) request.history.output = names_stdout(request.output) ? "" : request.output;
  const bool reads_results = default_history || (request.paths.empty() && request.history.folder.empty());
  const bool writes_results = request.history.folder.empty() && request.output.empty();
  const bool names_folder = !request.output.empty() && !names_stdout(request.output) && !default_history;
  if (!writes_results && (!reads_results || names_folder)) {
    request.results = request.output;
    return;
  }
  request.results = results_folder(session);
  if (default_history) request.history.folder = request.results;
  if (request.output.empty()) request.output = request.results;
}

void check_history_request(const CompareRequest& request) {
  if (!request.paths.empty()) refuse_pair("result files", "--history");
  for (const char* option : {"--html", "--plot", "--sort", "--force"})
    if (request.is_given(option)) refuse_pair(option, "--history");
  for (const char* option : {"--json", "--csv"})  // they hold every point
    if (request.is_given("--last") && request.is_given(option)) refuse_pair("--last", option);
  if (!request.gates.empty()) return;
  for (const char* option : {"--baseline", "--junit", "--annotations"})
    if (request.is_given(option))
      throw Error(Problem{"needs a gate when used with --history", option,
                          "add --fail-if, e.g. --fail-if 'tokens_per_second < -3%'"});
}

// What would be passed over in silence is refused.
void check_request(const CompareRequest& request) {
  for (const char* option : {"--history", "--metric", "--baseline", "--junit", "--html", "--output"})
    if (request.is_given(option) && request.verb->text(option).empty())
      throw Error(Problem{"is empty", option, "give it a value, or omit it"});
  require_no_input(request.ci.junit_path, request.paths, "--junit");
  if (request.is_given("--history")) return check_history_request(request);
  if (request.is_given("--metric")) throw Error(Problem{"applies only to a history", "--metric", "add --history DIR"});
  if (request.is_given("--last")) throw Error(Problem{"applies only to a history", "--last", "add --history DIR"});
}

ExitStatus compare(const Session& session, CompareRequest request) {
  check_request(request);
  check_stdout(request, session);
  settle_folders(session, request);
  const std::filesystem::path page = page_path(request);
  const results::CompareOptions options = make_options(request);
  const CompareFormat format = choose_format(request, session);
  if (!request.history.folder.empty()) return compare_history(request.history, options, format, request.ci);
  results::Comparison comparison = results::compare_runs(load_requested(request), options);
  name_causes(comparison);
  if (!names_stdout(page) && !names_stdout(request.ci.junit_path))
    print_comparison(render_comparison(comparison, format), format);
  write_page(comparison, page);
  write_ci_outputs(comparison, request.ci);
  write_files(comparison, request);
  return results::comparison_status(comparison);
}

void add_filters(CommandLine& verb, CompareRequest& request) {
  const auto add_list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    return verb.add_option(name, into, help)->delimiter(',')->type_name("NAME,...")->allow_extra_args(false);
  };
  add_list("--platform", request.platforms, "Only these platforms: nvd, amd, cpu")->choices(choices_of<Platform>());
  add_list("--framework", request.frameworks, "Only these frameworks")->choices(choices_of<Framework>());
  add_list("--model", request.models, "Only these models");
  add_list("--strategy", request.strategies, "Only these parallel strategies");
  verb.add_option("--baseline", request.baseline,
                  "Compare all runs against this one: a file, a folder of results, platform, framework or label")
      ->type_name("RUN");
  verb.add_option("--sort", request.sort, "Sort the runs by this metric, best first, e.g. tokens_per_second_per_gpu")
      ->choices(metric_keys())
      ->type_name("METRIC");
}

void add_gates(CommandLine& verb, CompareRequest& request) {
  verb.add_option("--fail-if", request.gates,
                  "Exit with 5 if a metric's change from the baseline matches, e.g. 'tokens_per_second < -3%', or with "
                  "6 if the noise is too large to tell; may be repeated")
      ->type_name("GATE")
      ->allow_extra_args(false);
  verb.add_option("--junit", request.ci.junit_path,
                  "Write results, pairs and gates as JUnit XML to this file; -: stdout")
      ->type_name("FILE");
  verb.add_flag("--annotations", request.ci.annotations,
                "Print failures and doubtful findings as GitHub Actions annotations on stderr");
}

}  // namespace

void add_compare_verb(CommandLine& program, Session& session) {
  auto request = std::make_shared<CompareRequest>();
  CommandLine* verb =
      add_verb(program, session, "compare", "Compare results: who is faster, by how much, and is the comparison fair?",
               k_compare_examples);
  request->verb = verb;
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  verb->add_option("paths", request->paths, "Result files, or directories of them (default: the results folder)")
      ->type_name("DIR|FILE");
  add_filters(*verb, *request);
  Option* json = verb->get_option("--json");
  Option* markdown = verb->add_flag("--markdown", request->markdown, "Print Markdown on stdout")->excludes(json);
  verb->add_flag("--csv", request->csv, "Print one CSV line per run on stdout")->excludes(json)->excludes(markdown);
  verb->add_option("--html", request->html, "Write one page with charts, filters and the audit; -: stdout")
      ->expected(0, 1)
      ->default_str(k_default_page)
      ->type_name("[FILE]");
  verb->add_flag("--plot", request->plot, "Fail if compare.png cannot be drawn; without it, compare.svg is enough");
  verb->add_flag("--force", request->force,
                 "Print verdicts and ratios even for runs that are not comparable, with the reasons");
  add_gates(*verb, *request);
  add_history_options(*verb, request->history, k_default_history);
  verb->add_option("--smallest-effect", request->smallest_effect_percent, "Smallest difference of interest, in percent")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(number_from(0.01, 50.0));
  verb->add_option("--loss-tolerance", request->loss_tolerance_percent,
                   "Largest allowed distance between two loss curves, in percent (default: 5, or 1 if repeated runs "
                   "show their spread)")
      ->type_name("PERCENT")
      ->check(number_from(0.01, 100.0));
  verb->add_option("--run-spread", request->run_spread_percent,
                   "Assumed spread between runs, in percent, for a side with a single run")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(number_from(0.0, 50.0));
  verb->add_option(
          "--output", request->output,
          "Directory for compare.md, compare.svg and compare.png (default: the results folder); with --history "
          "for history.md (default: not written); -: write no files, only the report on stdout")
      ->type_name("DIR");
  verb->callback([&session, request] { session.action = [&session, request] { return compare(session, *request); }; });
}

}  // namespace tprimat::cli
