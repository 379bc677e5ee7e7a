#include "extract/megatron_record.h"

namespace tprimat::logs {

Dialect megatron_deepspeed_dialect() {
  Dialect dialect{.id = "megatron_deepspeed",
                  .title = "Megatron-DeepSpeed",
                  .versions = "2021 (lm-loss) to 2023; BLOOM (seconds, TFLOPs)",
                  .framework = Framework::mgds,
                  .fields = megatron_fields(),
                  .anchors = {"iteration "},
                  .make_reader = [] { return make_megatron_reader(MegatronFlavour::megatron_deepspeed); }};
  for (const FieldNote note : {FieldNote{"loss", "lm-loss (2021)"},
                               {"tokens_seen", "consumed tokens"},
                               {"samples_per_second", "samples per second"},
                               {"tflops_per_gpu", "TFLOPs"},
                               {"tokens_per_second_per_gpu", "tokens per gpu per second (tgs)"},
                               {"tokens", "derived: actual seqlen x global batch size"}})
    dialect.fields.push_back(note);
  return dialect;
}

}  // namespace tprimat::logs
