#include "train/log_line.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/checksum.h"
#include "text/format.h"

namespace tprimat::engine {
namespace {

bool is_same_everywhere(const std::string& text, Communicator& world) {
  const auto digest = static_cast<double>(crc32c(text));
  double bounds[2] = {digest, -digest};
  world.all_reduce(bounds, 2, Reduction::max);
  return bounds[0] == -bounds[1];
}

}  // namespace

std::string render_log_line(const StepRecord& record, const TrainSpec& spec) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto plain = [&](std::optional<double> value) { return !value || std::isnan(*value) ? nan : *value; };
  return fmt::format(
      " iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} | "
      "tokens per second: {:.1f} | learning rate: {:.6E} | global batch size: {:5d} | lm loss: {:.6E} |{} grad norm: "
      "{:.3f} |{}",
      record.step, spec.steps, record.step * spec.global_batch_size, record.time_seconds * 1e3,
      static_cast<double>(spec.tokens_per_step()) / record.time_seconds, record.learning_rate.value_or(nan),
      spec.global_batch_size, plain(record.loss),
      record.loss_scale ? fmt::format(" loss scale: {:.1f} |", *record.loss_scale) : "", plain(record.grad_norm),
      record.skipped.value_or(false) ? " number of skipped iterations:   1 |" : "");
}

std::string render_validation_line(const StepRecord& record) {
  return fmt::format(" validation loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} |", record.step,
                     record.validation_loss.value(), std::exp(*record.validation_loss));
}

std::string render_kernel_line(const KernelReport& report) {
  const std::string attention = report.attention();
  return attention.empty() ? "" : fmt::format("kernels | attention {} |", attention);
}

std::vector<std::string> take_shared_warnings(KernelReport& report, Communicator& world) {
  if (!is_same_everywhere(join(report.warnings, "\n"), world)) return take_own_warnings(report, world);
  const std::vector<std::string> warnings = std::exchange(report.warnings, {});
  return world.rank() == 0 ? warnings : std::vector<std::string>();
}

std::vector<std::string> take_own_warnings(KernelReport& report, const Communicator& world) {
  std::vector<std::string> warnings = std::exchange(report.warnings, {});
  if (world.size() > 1)
    for (std::string& warning : warnings) warning = fmt::format("rank {}: {}", world.rank(), warning);
  return warnings;
}

}  // namespace tprimat::engine
