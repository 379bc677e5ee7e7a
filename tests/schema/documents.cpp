#include "schema/documents.h"

#include "claim/claim.h"
#include "data/encode/encode_dataset.h"
#include "planner/own_results.h"
#include "planner/plan_comparison.h"
#include "planner/published_entry.h"
#include "probe/probes.h"
#include "published/validate.h"
#include "result/collective_report.h"
#include "result/gpu_probe_report.h"
#include "result/probe_report.h"
#include "run/layout_ranking.h"
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
      document<EncodeSummary>("data_encode", "tprimat data encode --json", "An encoded data set."),
  };
}

}  // namespace

std::vector<Document> documents() {
  std::vector<Document> all;
  for (const auto& part : {planner_documents(), trainer_documents()}) all.insert(all.end(), part.begin(), part.end());
  all.push_back(document<logs::ProfileSummary>("profile", "tprimat profile --summarise FILE --json",
                                               "Where the time of a profiler's trace goes."));
  return all;
}

}  // namespace tprimat
