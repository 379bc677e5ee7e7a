#include "extract/dialects/torchtitan_reader.h"

namespace tprimat::logs {

Dialect torchtitan_dialect() {
  return {.id = "torchtitan",
          .title = "torchtitan",
          .versions = "2024 (wps) to May 2026",
          .fields = titan_fields(),
          .evaluation_in_times = false,
          .anchors = titan_anchors(),
          .make_reader = [] { return make_titan_reader(TitanFlavour::plain); }};
}

}  // namespace tprimat::logs
