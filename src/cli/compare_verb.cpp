#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/draw_plot.h"
#include "cli/verbs.h"
#include "compare/compare_runs.h"
#include "process/local_runner.h"
#include "report/report.h"
#include "text/format.h"

namespace tprimat {
namespace {

constexpr const char* k_compare_examples =
    "  tprimat compare                                  everything in ./output\n"
    "  tprimat compare old.json new.json --baseline old.json\n"
    "  tprimat compare results/ --model llama --markdown\n"
    "  tprimat compare a.json b.json --json | jq '.groups[].pairs[].verdict'\n"
    "\nWrites compare.md, compare.png and compare.svg to the output directory. Exit status 3: a pair did not do the "
    "same\n"
    "work, so nobody is declared faster; --force tells the ratio all the same, with the reason beside it.\n";

// The command line as it was given; names of platforms and frameworks are still words.
struct CompareRequest {
  std::vector<std::string> paths, platforms, frameworks, models, strategies;
  std::string baseline, sort, output = "./output";
  double smallest_effect_percent = 1.0, run_spread_percent = k_assumed_run_spread * 100;
  bool markdown = false, csv = false, plot = false, force = false;
};

template <NamedEnum E>
std::vector<E> parse_names(const std::vector<std::string>& words, const char* option) {
  std::vector<E> values;
  for (const std::string& word : words) {
    const auto value = parse_enum<E>(word);
    if (!value) throw Error(Problem{fmt::format("\"{}\" is none of {}", word, enum_choices<E>()), option, ""});
    values.push_back(*value);
  }
  return values;
}

CompareOptions make_options(const CompareRequest& request) {
  return {.platforms = parse_names<Platform>(request.platforms, "--platform"),
          .frameworks = parse_names<Framework>(request.frameworks, "--framework"),
          .models = request.models,
          .strategies = request.strategies,
          .baseline = request.baseline,
          .sort = request.sort,
          .smallest_effect = request.smallest_effect_percent / 100,
          .force = request.force,
          .assumed_run_spread = request.run_spread_percent / 100};
}

LoadedRuns load_requested(const CompareRequest& request) {
  std::vector<std::string> paths = request.paths;
  if (paths.empty()) paths.push_back(request.output);
  if (std::filesystem::is_regular_file(request.baseline)) paths.push_back(request.baseline);
  LoadedRuns loaded = load_runs(paths);
  for (const SkippedFile& file : loaded.skipped) log_detail(fmt::format("{} is skipped: {}", file.path, file.reason));
  return loaded;
}

void print_comparison(const Comparison& comparison, const CompareRequest& request, const Session& session) {
  const bool colour = ::isatty(STDOUT_FILENO) != 0 && !session.no_color && std::getenv("NO_COLOR") == nullptr;
  if (session.json)
    print_result(print_json(comparison_to_json(comparison)));
  else if (request.markdown)
    print_result(render_markdown(comparison));
  else if (request.csv)
    print_result(render_csv(comparison));
  else
    print_result(render_terminal(comparison, colour));
}

// An image of an earlier comparison beside today's figures would mislead.
void remove_stale_plots(const std::filesystem::path& folder) {
  for (const char* name : {"compare.png", "compare.svg"}) {
    std::error_code ignored;
    std::filesystem::remove(folder / name, ignored);
  }
}

// Without --plot a missing gnuplot is worth a warning, no more: the figures have been printed.
void write_files(const Comparison& comparison, const CompareRequest& request) {
  const std::filesystem::path folder = request.output;
  write_file_atomically(folder / "compare.md", render_markdown(comparison));
  LocalRunner runner;
  std::string complaint;
  for (const char* name : {"compare.png", "compare.svg"}) {
    const Drawn drawn = draw_plot(runner, comparison, folder / name, complaint);
    if (drawn == Drawn::yes) continue;
    remove_stale_plots(folder);
    if (request.plot)
      throw Error(Problem{complaint, "", ""},
                  drawn == Drawn::failed ? ExitStatus::work_failed : ExitStatus::missing_component);
    log_warning(complaint);
    log_note(fmt::format("wrote {}", (folder / "compare.md").string()));
    return;
  }
  log_note(fmt::format("wrote {0}/compare.md, {0}/compare.png and {0}/compare.svg", folder.string()));
}

ExitStatus compare(const Session& session, const CompareRequest& request) {
  const Comparison comparison = compare_runs(load_requested(request), make_options(request));
  print_comparison(comparison, request, session);
  write_files(comparison, request);
  return comparison_status(comparison);
}

void add_filters(CLI::App& verb, CompareRequest& request) {
  const auto add_list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    verb.add_option(name, into, help)->delimiter(',')->type_name("NAME,...")->allow_extra_args(false);
  };
  add_list("--platform", request.platforms, "Only these platforms: nvd, amd, cpu");
  add_list("--framework", request.frameworks, "Only these frameworks");
  add_list("--model", request.models, "Only these models");
  add_list("--strategy", request.strategies, "Only these parallel strategies");
  verb.add_option("--baseline", request.baseline, "Compare all against this one: a file, platform, framework or label")
      ->type_name("RUN");
  verb.add_option("--sort", request.sort, "Order the runs by a metric, best first, e.g. tokens_per_second_per_gpu")
      ->type_name("METRIC");
}

}  // namespace

void add_compare_verb(CLI::App& program, Session& session) {
  auto request = std::make_shared<CompareRequest>();
  CLI::App* verb =
      add_verb(program, session, "compare", "Compare results: who is faster, by how much, and is the comparison fair?",
               k_compare_examples);
  add_json_option(*verb, session);
  verb->add_option("paths", request->paths, "Result files, or directories of them (default: the output directory)")
      ->type_name("DIR|FILE");
  add_filters(*verb, *request);
  CLI::Option* json = verb->get_option("--json");
  CLI::Option* markdown = verb->add_flag("--markdown", request->markdown, "Print Markdown on stdout")->excludes(json);
  verb->add_flag("--csv", request->csv, "Print one CSV line per run on stdout")->excludes(json)->excludes(markdown);
  verb->add_flag("--plot", request->plot, "Fail when the plot cannot be drawn, instead of warning");
  verb->add_flag("--force", request->force,
                 "Tell verdicts and ratios of runs that are not comparable, with the reasons");
  verb->add_option("--smallest-effect", request->smallest_effect_percent, "Smallest difference of interest, in percent")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 50.0));
  verb->add_option("--run-spread", request->run_spread_percent,
                   "Spread between runs to assume where one run does not show it, in percent")
      ->type_name("PERCENT")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 50.0));
  verb->add_option("--output", request->output,
                   "Directory for compare.md, compare.png and compare.svg (default: ./output)")
      ->type_name("DIR");
  verb->callback([&session, request] { session.action = [&session, request] { return compare(session, *request); }; });
}

}  // namespace tprimat
