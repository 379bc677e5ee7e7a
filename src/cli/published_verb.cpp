#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "base/log.h"
#include "cli/print_published.h"
#include "cli/session_config.h"
#include "cli/verbs.h"
#include "command_line/terminal.h"
#include "command_line/value_checks.h"
#include "planner/published_list.h"
#include "report/report.h"
#include "text/choice.h"
#include "text/json_fields.h"

namespace tprimat::cli {
namespace {

constexpr const char* k_published_examples =
    "  tprimat published list --model llama3.1_8b --gpu H100     what others reached, with sources\n"
    "  tprimat published list --kind sparse --precision fp8 --sort mfu\n"
    "  tprimat published list --model qwen3_30b_a3b --gpu H100 --sort tokens --csv   with sources and notes\n"
    "  tprimat published list --csv > published.csv\n"
    "  tprimat published show meta-2407-llama3.1-405b-h100-8192-bf16-1\n"
    "  tprimat plan --validate published                         planner errors on all of them\n";

struct PublishedRequest {
  planner::PublishedFilter filter;
  std::string id, order = "table", parameters;
  bool csv = false;
};

constexpr size_t k_any_width = 1000;  // of a file or pipe

ExitStatus list_results(const Session& session, const PublishedRequest& request) {
  if (session.json && request.csv) throw Error(Problem{"cannot be combined with --json", "--csv", "omit one of them"});
  planner::PublishedFilter filter = request.filter;
  filter.order = parse_choice<planner::PublishedOrder>(request.order, "--sort");
  const std::vector<planner::PublishedEntry> entries = planner::list_published(filter);
  if (entries.empty()) log_note("no published result matches all filters; omit one");
  if (session.json)
    print_result(print_json(to_json(entries)));
  else if (request.csv)
    print_result(render_published_csv(entries));
  else if (!entries.empty())
    print_result(render_published_list(entries, terminal_width(STDOUT_FILENO, k_any_width)));
  return ExitStatus::done;
}

ExitStatus show_result(const Session& session, const PublishedRequest& request) {
  const planner::PublishedDetails details =
      planner::describe_published_row(request.id, planner::load_planner_settings(request.parameters).parameters);
  const size_t width = std::min(results::k_report_width, terminal_width(STDOUT_FILENO, results::k_report_width));
  print_result(session.json ? print_json(to_json(details)) : render_published_row(details, width));
  return ExitStatus::done;
}

void add_list_options(CommandLine& list, PublishedRequest& request) {
  planner::PublishedFilter& filter = request.filter;
  list.add_option("--model", filter.model, "Model of the catalogue, or a part of the printed name")->type_name("NAME");
  list.add_option("--gpu", filter.gpu, "GPU: H100, MI300X, A100-SXM-40GB")->type_name("NAME");
  list.add_option("--precision", filter.precision, "bf16, fp16, fp8 (with MXFP8), mxfp8, nvfp4")->type_name("NAME");
  list.add_option("--framework", filter.framework,
                  "Program that trains, as for tprimat plan, or a part of the printed name")
      ->type_name("NAME");
  list.add_option("--kind", filter.kind, "dense, sparse (mixture of experts) or hybrid (with state-space layers)")
      ->choices(choices_of<planner::PublishedKind>())
      ->type_name("NAME");
  list.add_option("--sort", request.order, "table, tokens, mfu, tflops, gpus (from the largest), model or id (from A)")
      ->choices(choices_of<planner::PublishedOrder>())
      ->type_name("NAME")
      ->capture_default_str();
  list.add_flag("--csv", request.csv, "Print CSV");
}

}  // namespace

void add_published_verb(CommandLine& program, Session& session) {
  CommandLine* verb = add_verb(program, session, "published", "List published training results, with their sources",
                               k_published_examples);
  verb->require_subcommand(1);
  auto request = std::make_shared<PublishedRequest>();
  CommandLine* list = verb->add_subcommand("list", "List results, one line each");
  add_list_options(*list, *request);
  add_json_option(*list, session);
  CommandLine* show =
      verb->add_subcommand("show", "Show one result: every cell, its source, MFU by each count, MLPerf minutes");
  show->add_option("id", request->id, "Id of the result, as list prints it")->required()->type_name("ID");
  show->add_option("--parameters", request->parameters,
                   "Fitted parameters of the planner, as written by tprimat plan --calibrate")
      ->type_name("FILE");
  add_json_option(*show, session);
  for (CommandLine* part : {list, show}) part->fallthrough();
  verb->callback([&session, request, list] {
    session.action = [&session, request, lists = list->parsed()] {
      return lists ? list_results(session, *request) : show_result(session, *request);
    };
  });
}

}  // namespace tprimat::cli
