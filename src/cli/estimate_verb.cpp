#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/estimate_flops.h"
#include "cli/estimate_memory.h"
#include "cli/number_range.h"
#include "cli/parse_choice.h"
#include "cli/verbs.h"
#include "published/validation_report.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

constexpr const char* k_estimate_examples =
    "  tprimat estimate --flops llama                            parameters and FLOPs of a model, part by part\n"
    "  tprimat estimate --flops deepseek_v3 --seq 4096 --recompute selective --json\n"
    "  tprimat estimate --flops gpt3_175b --tp 8                 with the vocabulary that Megatron pads for TP 8\n"
    "  tprimat estimate --memory llama                           what the configuration's layout needs, part by part\n"
    "  tprimat estimate --validate results.tsv                   do published TFLOP/s, MFU and HFU follow from their "
    "inputs?\n";

struct EstimateOptions {
  FlopRequest flops;
  MemoryRequest memory;
  std::string precision = "bf16", recompute = "none";
  std::vector<std::string> tables;
};

ExitStatus validate_tables(const Session& session, const std::vector<std::string>& paths) {
  std::vector<TableCheck> checks;
  for (const std::string& path : paths) checks.push_back(validate_table(load_published_table(path)));
  print_result(session.json ? print_json(to_json(checks)) : render_validation(checks));
  return ExitStatus::done;
}

ExitStatus estimate(const Session& session, EstimateOptions& options) {
  if (!options.tables.empty()) return validate_tables(session, options.tables);
  if (!options.memory.model.empty()) return estimate_layout_memory(session, options.memory);
  if (options.flops.model.empty())
    throw Error(
        Problem{"needs --flops MODEL, --memory MODEL or --validate TABLE", "estimate", "see tprimat estimate --help"});
  options.flops.precision = parse_choice<Precision>(options.precision, "--precision");
  options.flops.recompute = parse_choice<Recompute>(options.recompute, "--recompute");
  const FlopReport report = make_flop_report(session, options.flops);
  print_result(session.json ? print_json(to_json(report)) : render_flop_report(report));
  return ExitStatus::done;
}

void add_memory_options(CLI::App& verb, MemoryRequest& request, CLI::Option* flops) {
  CLI::Option* memory =
      verb.add_option("--memory", request.model, "Model of the configuration: bytes of its layout on the heaviest rank")
          ->type_name("MODEL")
          ->excludes(flops);
  verb.add_option("--platform", request.platform, "With --memory: auto (what this machine is), nvd, amd or cpu")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(memory);
  verb.add_option("--framework", request.framework, "With --memory: this one (default: as configured)")
      ->type_name("NAME")
      ->needs(memory);
  verb.add_option("--strategy", request.strategy,
                  "With --memory: layout of the configuration (default: its methodology)")
      ->type_name("NAME")
      ->needs(memory);
}

}  // namespace

void add_estimate_verb(CLI::App& program, Session& session) {
  CLI::App* verb =
      add_verb(program, session, "estimate", "Count a model's parameters, FLOPs and memory; check published figures",
               k_estimate_examples);
  add_json_option(*verb, session);
  add_config_options(*verb, session);
  auto options = std::make_shared<EstimateOptions>();
  CLI::Option* flops =
      verb->add_option("--flops", options->flops.model, "Model of the configuration or of the catalogue")
          ->type_name("MODEL");
  verb->add_option("--seq", options->flops.sequence_length, "Tokens per sequence (default: the configuration's)")
      ->check(number_from(int64_t{1}, int64_t{1} << 24))
      ->needs(flops);
  verb->add_option("--precision", options->precision, "bf16, fp16, fp8, tf32 or fp32")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(flops);
  verb->add_option("--recompute", options->recompute, "Activations computed twice: none, selective or full")
      ->type_name("NAME")
      ->capture_default_str()
      ->needs(flops);
  verb->add_option("--tp", options->flops.tensor_parallel,
                   "Pad the vocabulary to a multiple of 128 x this, as Megatron-LM does for its tensor-parallel ranks")
      ->check(number_from(1, 1 << 16))
      ->needs(flops);
  add_memory_options(*verb, options->memory, flops);
  verb->add_option("--validate", options->tables,
                   "Recompute the TFLOP/s, MFU and HFU that these tables print (tab-separated)")
      ->type_name("TABLE")
      ->excludes(flops);
  verb->callback([&session, options] { session.action = [&session, options] { return estimate(session, *options); }; });
}

}  // namespace tprimat
