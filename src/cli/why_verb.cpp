#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/verbs.h"
#include "cli/why_sides.h"
#include "command_line/output_target.h"
#include "command_line/terminal.h"
#include "process/process.h"
#include "report/draw_plot.h"
#include "report/report.h"
#include "report/why_report.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_why_examples =
    "  tprimat why old.json new.json                    two results whose runs recorded a profile\n"
    "  tprimat why h100.json.gz mi300x.json.gz          two traces\n"
    "  tprimat why 'a/rank*.json.gz' 'b/rank*.json.gz'  several ranks of each run; a folder works as well\n"
    "  tprimat why old.json new.json --all              every part of every term\n"
    "  tprimat why old.json new.json --html why.html    a page with a waterfall and a timeline of one step\n"
    "  tprimat why old.json new.json --json | jq '.terms[] | {cause, seconds}'\n"
    "\nThe terms add up to B's step less A's step. Exit status: 2 where the sides, or a trace and its result, do not\n"
    "belong together; the message says why. docs/why.md explains each term.\n";

// The command line as it was given.
struct WhyRequest {
  std::vector<std::string> sides;
  std::string steps, html, plot;
  bool all = false;
};

void check_request(const Session& session, const WhyRequest& request) {
  if (request.sides.size() != 2)
    throw Error(Problem{fmt::format("needs two sides, and {} given", request.sides.size() == 1 ? "one is"
                                                                     : request.sides.empty()   ? "none is"
                                                                                               : "more are"),
                        "why", "name A and B: results, traces, or folders with a trace per rank"});
  require_one_on_stdout(
      {{"--json", session.json}, {"--html", names_stdout(request.html)}, {"--plot", names_stdout(request.plot)}});
  if (!request.plot.empty() && !names_stdout(request.plot)) results::require_plot_format(request.plot, "--plot");
}

void write_page(const WhyRequest& request, const results::Ledger& ledger, const results::SideInput& a,
                const results::SideInput& b) {
  if (request.html.empty()) return;
  std::vector<results::SideTimeline> timelines;
  for (const auto& [letter, side] : {std::pair("A: ", &a), std::pair("B: ", &b)})
    if (!side->ranks.empty())
      if (auto timeline = results::draw_step(side->ranks.front()))
        timelines.push_back({letter + side->label, std::move(*timeline)});
  write_output(request.html, results::render_why_page(ledger, timelines));
  if (!names_stdout(request.html)) log_note(fmt::format("wrote {}", request.html));
}

void write_picture(const WhyRequest& request, const results::Ledger& ledger) {
  if (request.plot.empty()) return;
  if (names_stdout(request.plot)) return write_output(request.plot, results::render_svg(results::plot_why(ledger)));
  LocalRunner runner;
  results::require_drawn(runner, results::plot_why(ledger), request.plot);
  log_note(fmt::format("wrote {}", request.plot));
}

void print_ledger(const Session& session, const WhyRequest& request, const results::Ledger& ledger) {
  if (names_stdout(request.html) || names_stdout(request.plot)) return;
  if (session.json) return print_result(print_json(results::why_to_json(ledger)));
  const bool colour = shows_colour(STDOUT_FILENO, session.no_color);
  const size_t width = terminal_width(STDOUT_FILENO, results::k_why_width);
  print_coloured(results::render_why(ledger, {colour, std::min(width, results::k_report_width), request.all}));
}

ExitStatus explain(const Session& session, const WhyRequest& request) {
  check_request(session, request);
  std::optional<suite::StepRange> steps;
  if (!request.steps.empty()) steps = suite::parse_step_range(request.steps, "--steps");
  results::SideInput a = load_side(request.sides[0], steps), b = load_side(request.sides[1], steps);
  tell_apart(a, b);
  const results::Ledger ledger = results::make_ledger(a, b);
  print_ledger(session, request, ledger);
  write_page(request, ledger, a, b);
  write_picture(request, ledger);
  return ExitStatus::done;
}

}  // namespace

void add_why_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "why",
                               "Explain why one run is slower than another: milliseconds that add up", k_why_examples);
  add_json_option(*verb, session);
  auto request = std::make_shared<WhyRequest>();
  verb->add_option("sides", request->sides, "A and B: results, traces, or folders with a trace per rank")
      ->type_name("A B");
  verb->add_option("--steps", request->steps, "Only these recorded steps, e.g. 11:13")->type_name("FIRST:LAST");
  verb->add_flag("--all", request->all, "Print every term and its parts, and the sums by class");
  verb->add_option("--html", request->html,
                   "Write a page with the waterfall, the parts of each term and a timeline; "
                   "-: stdout")
      ->type_name("FILE");
  verb->add_option("--plot", request->plot, "Draw the waterfall: .svg or .png; -: SVG on stdout")->type_name("FILE");
  verb->callback([&session, request] { session.action = [&session, request] { return explain(session, *request); }; });
}

}  // namespace tprimat::cli
