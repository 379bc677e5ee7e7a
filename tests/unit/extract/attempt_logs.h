#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "extract/read_log.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"

// Logs of Megatron-LM with one start or several.
namespace tprimat::logs {

inline std::string attempt_dump(int devices, int length, const char* more = "") {
  return fmt::format(
      "using world size: {}, data-parallel-size: {}, tensor-model-parallel size: 1\n"
      "------------------------ arguments ------------------------\n"
      "  bf16 ............................................ True\n"
      "  global_batch_size ............................... 8\n"
      "  seq_length ...................................... {}\n"
      "  world_size ...................................... {}\n{}"
      "-------------------- end of arguments ---------------------\n",
      devices, devices, length, devices, more);
}

inline std::string attempt_steps(int first, int last, double milliseconds, int batch = 8) {
  std::string text;
  for (int step = first; step <= last; ++step)
    text += fmt::format(
        " iteration {:8}/     100 | consumed samples: {} | elapsed time per iteration (ms): {:.1f} | "
        "learning rate: 1.0E-04 | global batch size: {} | lm loss: {:.4f}E+00 | loss scale: 1.0 | "
        "grad norm: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        step, step * batch, milliseconds + step % 3, batch, 9 - 0.01 * step);
  return text;
}

inline RunResult result_of_attempts(const std::string& text) {
  return make_result(read_log_text(text, {}), "a.log", {});
}

inline bool warns_of(const RunResult& result, std::string_view words) {
  return std::any_of(result.warnings.begin(), result.warnings.end(),
                     [&](const std::string& warning) { return contains(warning, words); });
}

}  // namespace tprimat::logs
