#include "extract/megatron_record.h"

namespace tprimat::logs {

Dialect gpt_neox_dialect() {
  Dialect dialect{.id = "gpt_neox",
                  .title = "GPT-NeoX",
                  .versions = "2.0 (2023)",
                  .fields = megatron_fields(),
                  .anchors = {"iteration "},
                  .make_reader = [] { return make_megatron_reader(MegatronFlavour::gpt_neox); }};
  for (const FieldNote note : {FieldNote{"loss", "lm_loss"},
                               {"samples_per_second", "samples/sec, before the record"},
                               {"tflops_per_gpu", "approx flops per GPU (TFLOPS)"}})
    dialect.fields.push_back(note);
  return dialect;
}

}  // namespace tprimat::logs
