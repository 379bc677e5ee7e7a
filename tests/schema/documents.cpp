#include "schema/documents.h"

#include "claim/claim.h"
#include "cli/documents.h"
#include "data/encode/encode_dataset.h"
#include "data/megatron_dataset.h"
#include "doctor/diagnosis.h"
#include "history/history_document.h"
#include "planner/own_results.h"
#include "planner/plan_comparison.h"
#include "planner/published_entry.h"
#include "probe/probes.h"
#include "published/validate.h"
#include "report/comparison_document.h"
#include "report/extract_document.h"
#include "report/why_document.h"
#include "result/collective_report.h"
#include "result/gpu_probe_report.h"
#include "result/probe_report.h"
#include "result/result_file.h"
#include "run/suite_document.h"
#include "spec/flop_breakdown.h"
#include "text/json_fields.h"
#include "text/json_schema.h"
#include "trace/profile_summary.h"

namespace tprimat {
namespace {

template <class T>
Document document(const std::string& name, const std::string& command, const std::string& description) {
  const SchemaHead head{name + ".schema.json", command, description};
  return {name, command, name_types(head, json_schema<T>(), Further::forbidden)};
}

std::vector<Document> planner_documents() {
  using namespace planner;
  return {
      document<PlanComparison>("plan", "tprimat plan MODEL --json",
                               "Layouts of a model on one or several GPU types and numbers of GPUs, with predicted "
                               "step time, memory, training time and price."),
      document<PlanValidation>("plan_validation", "tprimat plan --validate TABLE --json",
                               "Errors of the planner on published measurements and on results; also that of "
                               "--calibrate, with and without --folds."),
      document<FlopReport>("estimate_flops", "tprimat estimate --flops MODEL --json",
                           "Parameters and FLOPs per token of a model, part by part."),
      document<std::vector<TableCheck>>("estimate_validation", "tprimat estimate --validate TABLE --json",
                                        "Printed TFLOP/s, MFU and HFU of published tables, computed again."),
      document<ClaimReport>("claim", "tprimat claim --json", "A stated training rate, judged."),
      document<std::vector<ClaimReport>>("claim_table", "tprimat claim --table TABLE --json",
                                         "Each stated training rate of the tables, judged."),
      document<std::vector<PublishedEntry>>("published_list", "tprimat published list --json",
                                            "Published measurements that match."),
      document<PublishedDetails>("published_show", "tprimat published show ID --json",
                                 "A published measurement with the figures that follow from it and its prediction."),
  };
}

std::vector<Document> trainer_documents() {
  using namespace engine;
  return {
      document<ProbeReport>("probe", "tprimat probe --json",
                            "Measured rates of this machine's processor: matrix products and memory."),
      document<ModelProbeReport>("probe_model", "tprimat probe --model NAME --json",
                                 "Measured rates of a model's matrix products on this machine's processor."),
      document<GpuProbeReport>("probe_gpu", "tprimat probe --device nvd --json",
                               "Measured rates of a GPU: matrix products, memory, small operations; with --model, the "
                               "matrix products of that model."),
      document<CollectiveReport>("probe_collectives", "mpirun -n 2 tprimat probe --collectives --json",
                                 "Measured rates of collectives between ranks."),
      document<DatasetReport>("data_info", "tprimat data info PREFIX --json",
                              "A data set of tokens; also that which data make writes."),
      document<EncodeSummary>("data_encode", "tprimat data encode FILE --json", "A data set encoded from text."),
  };
}

std::vector<Document> suite_documents() {
  using namespace suite::document;
  return {
      document<RunReport>("run", "tprimat run --json", "Outcome of each run."),
      document<std::vector<PlannedTraining>>("run_dry_run", "tprimat run --dry-run --json",
                                             "Each training that would start: command, files and predicted memory."),
      document<std::vector<MemoryEstimate>>("estimate_memory", "tprimat estimate --memory MODEL --json",
                                            "Predicted memory of the configured layout, one entry per framework."),
      document<Diagnosis>("doctor", "tprimat doctor --json", "Whether this machine is fit to measure."),
      document<std::vector<InstalledFramework>>("doctor_install", "tprimat doctor --install NAME --json",
                                                "Frameworks that were installed."),
  };
}

// A result of `tprimat extract` is the document that it stores.
Document result_document(const std::string& name, const std::string& command, const std::string& description,
                         Json schema) {
  Json head = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"$id", name + ".schema.json"},
               {"title", command},
               {"description", description}};
  head.update(schema);
  return {name, command, std::move(head)};
}

std::vector<Document> result_documents() {
  using namespace results::document;
  const Json result{{"$ref", "result.schema.json"}};
  return {
      {"result", "a result file", parse_json(print_schema(), "schema")},
      result_document("extract", "tprimat extract LOG --json", "The result of one log.", result),
      result_document("extract_logs", "tprimat extract LOG LOG --json",
                      "The results of several logs, or with --attempt all of each attempt of one.",
                      Json{{"type", "array"}, {"items", result}}),
      document<std::vector<ExtractedLog>>("extract_folder", "tprimat extract FOLDER --json",
                                          "The logs of a folder and their results."),
      document<GatheredLogs>("extract_gathered", "tprimat extract --json",
                             "The logs that were found, and their results."),
      document<ComparisonReport>("compare", "tprimat compare --json", "Results compared pair by pair."),
      document<HistoryReport>("compare_history", "tprimat compare --history FOLDER --json",
                              "The results of a folder by time."),
      document<WhyReport>("why", "tprimat why A B --json", "Why B's step takes longer than A's, in terms that add up."),
      document<PipelineDocument>("why_pipeline", "tprimat why FOLDER --json",
                                 "A pipeline's bubble, and what its stragglers cost."),
      document<results::WhatIfReport>("why_what_if", "tprimat why A --what-if CHANGE --json",
                                      "One run's step with other durations, from a replay."),
      document<logs::ProfileSummary>("profile", "tprimat profile --summarise FILE --json",
                                     "Where the time of a profiler's trace goes."),
  };
}

std::vector<Document> command_documents() {
  using namespace cli::document;
  return {
      document<std::vector<LogFormat>>("extract_formats", "tprimat extract --list-formats --json",
                                       "Log formats that can be read, and the figures in each."),
      document<SealedArchive>("archive", "tprimat archive --json", "A sealed archive: its manifest."),
      document<VerifiedArchive>("archive_verify", "tprimat archive verify ARCHIVE --json",
                                "What an archive's files agree on and what not."),
      document<std::vector<WitnessedFact>>("archive_facts", "tprimat archive facts --json",
                                           "Facts that archives hold, and the files that each is compared with."),
      document<Exported>("export", "tprimat export --json", "Results in other formats: the files written."),
      document<DetectedMachine>("detect", "tprimat detect --json",
                                "Facts of this machine: processor, memory, GPUs, drivers, frameworks."),
      document<ShownConfig>("config_show", "tprimat config show --json",
                            "The configuration, and what follows from it."),
      document<ValidatedConfig>("config_validate", "tprimat config validate --json",
                                "Errors and warnings of the configuration."),
      document<Json>("config_get", "tprimat config get KEY --json", "A setting, or a section of the configuration."),
  };
}

}  // namespace

std::vector<Document> documents() {
  std::vector<Document> all;
  for (const auto& part :
       {planner_documents(), trainer_documents(), suite_documents(), result_documents(), command_documents()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace tprimat
