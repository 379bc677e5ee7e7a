#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "cli/why_against.h"
#include "cli/why_sides.h"
#include "command_line/output_target.h"
#include "command_line/terminal.h"
#include "command_line/value_checks.h"
#include "process/process.h"
#include "report/draw_plot.h"
#include "report/report.h"
#include "report/why_report.h"
#include "result/peak.h"
#include "text/json_fields.h"
#include "why/checks.h"
#include "why/pipeline_report.h"
#include "why/product_rates.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_why_examples =
    "  tprimat run --profile-steps 3 --output new       records what why needs: a result with traces\n"
    "  tprimat why old new                              two folders, each with one result and its traces\n"
    "  tprimat why old.json new.json                    two results with traces\n"
    "  tprimat why h100.json.gz mi300x.json.gz          two traces of a profiler\n"
    "  tprimat why 'a/rank*.json.gz' 'b/rank*.json.gz'  several ranks of each run; a folder works as well\n"
    "  tprimat why new.json --against planner           one result and what the planner expects of it\n"
    "  tprimat why pp_records/                          the bubble and the stragglers of a pipeline (pp_rank_N.json)\n"
    "  tprimat why new.json --what-if overlap=full      the step if all communication were hidden\n"
    "  tprimat why old.json new.json --all              every part of every term\n"
    "  tprimat why old.json new.json --html why.html    a page with a waterfall and a timeline of one step\n"
    "  tprimat why old.json new.json --json | jq '.terms[] | {cause, seconds}'\n"
    "\nThe terms add up to B's step minus A's step: a positive term makes B slower. docs/why.md explains each term.\n"
    "Exit status 2: the two sides, or a trace and its result, do not belong together; the message says why.\n";

// The command line as it was given.
struct WhyRequest {
  std::vector<std::string> sides;
  std::vector<std::string> what_if;
  std::string steps, html, plot, against, probe;
  bool all = false;
};

struct Explained {
  results::Ledger ledger;
  std::vector<results::SideTimeline> timelines = {};
  std::optional<results::WhatIfReport> what_if = {};
};

void check_count(const WhyRequest& request) {
  const size_t sides = request.sides.size();
  if (!request.against.empty() && sides != 1)
    throw Error(Problem{"explains one result", "--against", "name one result, or omit the option"});
  const bool explains_one =
      !request.against.empty() || (sides == 1 && (!request.what_if.empty() || is_pipeline(request.sides[0])));
  if (explains_one || sides == 2) return;
  const char* given = sides == 0 ? "none is given" : sides == 1 ? "one is given" : "more are given";
  throw Error(Problem{fmt::format("needs two sides, and {}", given), "why",
                      "name A and B: results, traces, or folders with a trace per rank; to explain one run, add "
                      "--against or --what-if"});
}

void check_probe(const WhyRequest& request) {
  if (!request.probe.empty() && request.what_if.empty() && request.sides.size() != 2)
    throw Error(Problem{"has no effect without --what-if", "--probe", "add --what-if products=probe, or omit it"});
}

void check_request(const Session& session, const WhyRequest& request) {
  require_one_on_stdout(
      {{"--json", session.json}, {"--html", names_stdout(request.html)}, {"--plot", names_stdout(request.plot)}});
  if (!request.plot.empty() && !names_stdout(request.plot)) results::require_plot_format(request.plot, "--plot");
  check_probe(request);
  check_count(request);
}

// The timelines of a page; nothing is drawn without one.
void draw_steps(Explained& explained, const WhyRequest& request, const char* letter, const results::SideInput& side) {
  if (request.html.empty() || side.ranks.empty()) return;
  if (auto timeline = results::draw_step(side.ranks.front()))
    explained.timelines.push_back({letter + side.label, std::move(*timeline)});
}

std::vector<results::WhatIf> parse_changes(const WhyRequest& request) {
  std::vector<results::WhatIf> changes;
  for (const std::string& text : request.what_if) changes.push_back(results::parse_what_if(text));
  return changes;
}

std::vector<results::ProductRate> load_rates(const std::string& probe) {
  return results::product_rates(parse_json(read_file(probe), probe), probe);
}

// Rates of products: those of the probe's report, else what was measured before the run.
results::WhatIfFacts facts_of(const WhyRequest& request, const results::SideInput& side) {
  if (!request.probe.empty()) return {load_rates(request.probe)};
  if (!side.result || !side.result->precision || !side.result->derived.peak) return {};
  const PeakInfo& peak = *side.result->derived.peak;
  if (!is_measured(peak)) return {};
  return {{{.format = std::string(enum_name(*side.result->precision)), .flops_per_second = peak.flops_per_second}}};
}

std::optional<results::WhatIfReport> answer(const WhyRequest& request, const results::SideInput& side) {
  if (request.what_if.empty()) return std::nullopt;
  results::check_traces(side);
  return results::answer_what_if(side.ranks, parse_changes(request), facts_of(request, side));
}

Explained explain_traces(const WhyRequest& request, const std::optional<suite::StepRange>& steps) {
  results::SideInput a = load_side(request.sides[0], steps), b = load_side(request.sides[1], steps);
  tell_apart(a, b);
  std::vector<results::ProductRate> rates;
  if (!request.probe.empty()) rates = load_rates(request.probe);
  Explained explained{results::make_ledger(a, b, rates)};
  draw_steps(explained, request, "A: ", a);
  draw_steps(explained, request, "B: ", b);
  explained.what_if = answer(request, b);
  return explained;
}

Explained explain_one(const Session& session, const WhyRequest& request, const std::optional<suite::StepRange>& steps) {
  const suite::Experiment experiment = load_session_experiment(session);
  const planner::PlannerSettings settings = planner::load_planner_settings(experiment.planner_parameters);
  const results::SideInput side = load_side(request.sides[0], steps);
  const auto expectation = parse_choice<Expectation>(request.against, "--against");
  Explained explained{explain_against(side, expectation, settings.parameters)};
  draw_steps(explained, request, "B: ", side);
  explained.what_if = answer(request, side);
  return explained;
}

// A page or a picture would overwrite what was read.
void check_outputs(const WhyRequest& request, const results::Ledger& ledger) {
  std::vector<std::string> inputs = ledger.a.files;
  inputs.insert(inputs.end(), ledger.b.files.begin(), ledger.b.files.end());
  if (!request.probe.empty()) inputs.push_back(request.probe);
  std::error_code ignored;
  for (const auto& [option, output] : {std::pair("--html", &request.html), std::pair("--plot", &request.plot)})
    for (const std::string& input : inputs)
      if (!output->empty() && !names_stdout(*output) && std::filesystem::equivalent(*output, input, ignored))
        throw Error(Problem{"is read as an input, and would be overwritten", fmt::format("{} {}", option, *output),
                            "choose another name"});
}

void write_page(const WhyRequest& request, const Explained& explained) {
  if (request.html.empty()) return;
  write_output(request.html, results::render_why_page(explained.ledger, explained.timelines));
  if (!names_stdout(request.html)) log_note(fmt::format("wrote {}", request.html));
}

void write_picture(const WhyRequest& request, const results::Ledger& ledger) {
  if (request.plot.empty()) return;
  if (names_stdout(request.plot)) return write_output(request.plot, results::render_svg(results::plot_why(ledger)));
  LocalRunner runner;
  results::require_drawn(runner, results::plot_why(ledger), request.plot);
  log_note(fmt::format("wrote {}", request.plot));
}

void print_ledger(const Session& session, const WhyRequest& request, const Explained& explained) {
  if (names_stdout(request.html) || names_stdout(request.plot)) return;
  if (session.json) return print_result(print_json(results::why_to_json(explained.ledger, explained.what_if)));
  const bool colour = shows_colour(STDOUT_FILENO, session.no_color);
  const size_t width = terminal_width(STDOUT_FILENO, results::k_why_width);
  print_coloured(
      results::render_why(explained.ledger, {colour, std::min(width, results::k_report_width), request.all}));
  if (explained.what_if) print_result("\nWhat if B changed\n" + results::render_what_if(*explained.what_if));
}

// Of one side there is no gap.
void refuse_pictures(const WhyRequest& request) {
  if (!request.html.empty() || !request.plot.empty())
    throw Error(Problem{"one side alone has neither a page nor a picture", "why",
                        "name a second side, or omit --html and --plot"});
}

// Sums and records of operations count as a whole.
void refuse_steps(const WhyRequest& request, const char* kind) {
  if (!request.steps.empty())
    throw Error(Problem{fmt::format("all steps of {} count", kind), "--steps", "omit the option"});
}

ExitStatus report_one_pipeline(const Session& session, const WhyRequest& request) {
  refuse_pictures(request);
  refuse_steps(request, "a pipeline's records");
  if (!request.against.empty())
    throw Error(Problem{"explains a result, not a pipeline's records", "--against", "omit it, or name a result"});
  const results::PipelineReplay pipeline = results::load_pipeline(request.sides[0]);
  const results::PipelineReport report = results::report_pipeline(pipeline);
  std::optional<results::WhatIfReport> what_if;
  if (!request.what_if.empty()) what_if = results::answer_what_if(pipeline, parse_changes(request));
  if (session.json) {
    print_result(print_json(results::pipeline_to_json(report, what_if)));
    return ExitStatus::done;
  }
  print_result(results::render_pipeline(report));
  if (what_if) print_result("\n" + results::render_what_if(*what_if));
  return ExitStatus::done;
}

ExitStatus answer_one_side(const Session& session, const WhyRequest& request,
                           const std::optional<suite::StepRange>& steps) {
  refuse_pictures(request);
  const results::WhatIfReport report = *answer(request, load_side(request.sides[0], steps));
  print_result(session.json ? print_json(to_json(report)) : results::render_what_if(report));
  return ExitStatus::done;
}

Explained explain_sides(const Session& session, const WhyRequest& request,
                        const std::optional<suite::StepRange>& steps) {
  if (!request.against.empty()) return explain_one(session, request, steps);
  if (auto ledger = explain_sums(request.sides[0], request.sides[1])) {
    if (!request.what_if.empty())
      throw Error(Problem{"needs traces", "--what-if", "name one pipeline alone, or two traces or results"});
    if (!request.probe.empty())
      throw Error(Problem{"needs traces with shapes", "--probe", "omit it, or name two traces or results"});
    refuse_steps(request, "such records");
    return {std::move(*ledger)};
  }
  return explain_traces(request, steps);
}

ExitStatus explain(const Session& session, const WhyRequest& request) {
  check_request(session, request);
  std::optional<suite::StepRange> steps;
  if (request.sides.size() == 1 && is_pipeline(request.sides[0])) return report_one_pipeline(session, request);
  if (!request.steps.empty()) steps = suite::parse_step_range(request.steps, "--steps");
  if (request.sides.size() == 1 && request.against.empty()) return answer_one_side(session, request, steps);
  const Explained explained = explain_sides(session, request, steps);
  check_outputs(request, explained.ledger);
  print_ledger(session, request, explained);
  write_page(request, explained);
  write_picture(request, explained.ledger);
  return ExitStatus::done;
}

}  // namespace

void add_why_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(
      program, session, "why",
      "Explain why one run is slower than another: milliseconds per step that add up to the gap", k_why_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto request = std::make_shared<WhyRequest>();
  verb->add_option(
          "sides", request->sides,
          "A, the reference, and B, the run to explain: results with traces, traces, or folders with a trace per rank")
      ->type_name("A B");
  verb->add_option("--against", request->against,
                   "Take as A what the planner expects of B, or the roofline of its hardware")
      ->choices(choices_of<Expectation>())
      ->type_name("planner|roofline");
  verb->add_option("--what-if", request->what_if,
                   "How long B's step would take with changed durations, e.g. overlap=full, slowest-rank=median, "
                   "products=probe, products=1.2x, communication=0")
      ->delimiter(',')
      ->type_name("CHANGE,...")
      ->allow_extra_args(false);
  verb->add_option(
          "--probe", request->probe,
          "Report of tprimat probe --json on B's machine, for --what-if products=probe and the products' sentence")
      ->type_name("FILE");
  verb->add_option("--steps", request->steps, "Use only these recorded steps, e.g. 11:13")->type_name("FIRST:LAST");
  verb->add_flag("--all", request->all, "Print every term with its parts, and the sums by class of kernel");
  verb->add_option("--html", request->html,
                   "Write an HTML page with the waterfall, the parts of each term and a timeline; -: stdout")
      ->type_name("FILE");
  verb->add_option("--plot", request->plot, "Draw the waterfall as .svg or .png; -: SVG on stdout")->type_name("FILE");
  verb->callback([&session, request] { session.action = [&session, request] { return explain(session, *request); }; });
}

}  // namespace tprimat::cli
