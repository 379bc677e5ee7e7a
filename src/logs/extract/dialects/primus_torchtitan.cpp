#include "extract/dialects/torchtitan_reader.h"

namespace tprimat::logs {

Dialect primus_torchtitan_dialect() {
  Dialect dialect{.id = "primus_torchtitan",
                  .title = "AMD Primus, TorchTitan back end",
                  .versions = "October 2025 to May 2026",
                  .framework = Framework::prim,
                  .fields = titan_fields(),
                  .evaluation_in_times = false,
                  .anchors = titan_anchors(),
                  .make_reader = [] { return make_titan_reader(TitanFlavour::primus); }};
  for (const std::string_view mark :
       {"[Primus", "TorchTitan Config", "backends/torchtitan", "TorchtitanPretrainTrainer", "arguments "})
    dialect.anchors.push_back(mark);
  dialect.fields.push_back({"samples_seen", "consumed samples (rewritten record)"});
  dialect.fields.push_back(
      {"time_seconds", "elapsed time per iteration (ms) (rewritten record), / steps of the interval"});
  return dialect;
}

}  // namespace tprimat::logs
