#include "extract/megatron_record.h"

namespace tprimat::logs {

Dialect megatron_dialect() {
  return {.id = "megatron",
          .title = "Megatron-LM",
          .versions = "2021 to core 0.16 (2026)",
          .framework = Framework::mega,
          .fields = megatron_fields(),
          .anchors = {"iteration "},
          .make_reader = [] { return make_megatron_reader(MegatronFlavour::megatron); }};
}

}  // namespace tprimat::logs
