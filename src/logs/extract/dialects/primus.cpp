#include "extract/megatron_record.h"

namespace tprimat::logs {

Dialect primus_dialect() {
  Dialect dialect{.id = "primus",
                  .title = "AMD Primus, Megatron back end",
                  .versions = "August 2025 to May 2026",
                  .framework = Framework::prim,
                  .fields = megatron_fields(),
                  .anchors = {"iteration "},
                  .make_reader = [] { return make_megatron_reader(MegatronFlavour::primus); }};
  for (const FieldNote note :
       {FieldNote{"time_seconds", "of \"instant/average\" pairs the instant"},
        {"tokens_per_second_per_gpu", "tokens per GPU (tokens/s/GPU), tokens/s/GPU inst/harmonic mean"},
        {"tflops_per_gpu", "compute per GPU (TFLOP/s/GPU) (2026)"},
        {"memory_used_gb", "hip mem usage, rocm mem usage, rank-k rocm max mem usage: of the device; GB is 1024^3"}})
    dialect.fields.push_back(note);
  return dialect;
}

}  // namespace tprimat::logs
