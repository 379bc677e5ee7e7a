#include <algorithm>
#include <cmath>
#include <vector>

#include "extract/dialect.h"
#include "extract/dialects/deepspeed_lines.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// Two vocabularies of one record. 2023: "epoch: 0|step: 15|ppo_ep: 1|act_loss: 0.21|cri_loss: 0.12|unsuper_loss: 0.0",
// then "|E2E latency=7.99s |...|CurSamplesPerSec=8.01 |AvgSamplesPerSec=8.01". Since then "Epoch: 0 | Step: 15 |
// PPO Epoch: 1 | Actor Loss: ...", then "End-to-End => Latency: 9.42s, TFLOPs: 44.3, Samples/sec: 3.40, ...".
struct PpoLine {
  int64_t epoch = 0, step = 0;
  Figure actor_loss, critic_loss;
};

Figure number_after_any(std::string_view text, std::string_view older, std::string_view newer) {
  const Figure number = number_after(text, older);
  return number ? number : number_after(text, newer);
}

std::optional<PpoLine> parse_ppo_line(std::string_view text) {
  constexpr double k_max = 1e9;
  if (!contains(text, "ppo_ep: ") && !contains(text, "PPO Epoch: ")) return std::nullopt;
  const Figure epoch = number_after_any(text, "epoch: ", "Epoch: ");
  const Figure step = number_after_any(text, "step: ", "Step: ");
  if (!step.finite() || *step < 0 || *step > k_max) return std::nullopt;
  PpoLine line;
  line.step = static_cast<int64_t>(*step);
  if (epoch.finite() && *epoch >= 0 && *epoch < k_max) line.epoch = static_cast<int64_t>(*epoch);
  line.actor_loss = number_after_any(text, "act_loss: ", "Actor Loss: ");
  line.critic_loss = number_after_any(text, "cri_loss: ", "Critic Loss: ");
  return line;
}

// The steps of the log start at 0 in each epoch; here they continue.
class EpochCounter {
 public:
  int64_t count(const PpoLine& line) {
    const auto epoch = static_cast<size_t>(std::min<int64_t>(line.epoch, k_max_epochs - 1));
    if (starts_.size() <= epoch) starts_.resize(epoch + 1, last_ + 1);
    last_ = starts_[epoch] + line.step;
    return last_;
  }
  bool many_epochs() const { return starts_.size() > 1; }

 private:
  static constexpr int64_t k_max_epochs = 4096;
  std::vector<int64_t> starts_;  // the step that each epoch begins with
  int64_t last_ = -1;
};

class RlhfReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (const auto record = parse_ppo_line(line.text)) {
      add_step(line, *record, log);
    } else if (contains(line.text, "E2E latency=") || contains(line.text, "End-to-End => Latency: ")) {
      add_speed(line.text, log);
    } else if (contains(line.text, "MemAllocated=")) {
      add_deepspeed_memory(line, log);
    } else {
      read_deepspeed_line(line, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().steps.empty()) return;
    log.note("a step is one round of PPO: its time includes generation as well as training");
    log.note("the actor and critic losses of PPO are not language-model losses and were not taken as loss");
    if (epochs_.many_epochs()) log.note("the log restarts the step count in each epoch; here the count continues");
  }

  double confidence(const ExtractedLog& log) const override { return log.steps.empty() ? 0.0 : 0.97; }

 private:
  void add_step(const LogLine& line, const PpoLine& record, LogBuilder& log) {
    log.add(LogBuilder::start_step(line, epochs_.count(record)));
    awaits_speed_ = true;
    const auto is_nan = [](Figure loss) { return loss && std::isnan(*loss); };
    if (is_nan(record.actor_loss) || is_nan(record.critic_loss))
      log.add_event(EventKind::nan, line,
                    is_nan(record.actor_loss) ? "the actor's loss is nan" : "the critic's loss is nan");
  }

  void add_speed(std::string_view text, LogBuilder& log) {
    ExtractedStep* step = log.last();
    const Figure seconds = number_after_any(text, "E2E latency=", "End-to-End => Latency: ");
    if (!awaits_speed_ || step == nullptr || !seconds.finite() || *seconds <= 0) return;
    awaits_speed_ = false;
    set_printed_time(*step, seconds, 0.005);  // two decimals are printed
    step->samples_per_second = number_after_any(text, "CurSamplesPerSec=", "Samples/sec: ");
    step->tflops_per_gpu = number_after(text, "TFLOPs: ");
    if (const auto sequences = count_after(text, "Batch Size: "))
      step->global_batch_size = static_cast<double>(*sequences);
    if (const auto tokens = count_after(text, "Total Seq. Length: ")) log.facts().sequence_length = tokens;
  }

  EpochCounter epochs_;
  bool awaits_speed_ = false;
};

}  // namespace

Dialect deepspeed_rlhf_dialect() {
  return {.id = "deepspeed_rlhf",
          .title = "DeepSpeed-Chat RLHF",
          .versions = "2023 and later",
          .framework = Framework::deep,
          .fields = {{"step", "step, counted on over epochs"},
                     {"time_seconds", "E2E latency, End-to-End => Latency"},
                     {"samples_per_second", "CurSamplesPerSec, Samples/sec"},
                     {"tflops_per_gpu", "TFLOPs of the End-to-End line"},
                     {"global_batch_size", "Batch Size of the End-to-End line"}},
          .counts_from = 0,
          .one_optimizer = false,  // actor and critic have one each
          .anchors = both(deepspeed_line_anchors(),
                          {"ppo_ep: ", "PPO Epoch: ", "E2E latency=", "End-to-End => Latency: ", "MaxMemAllocated="}),
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<RlhfReader>(); }};
}

}  // namespace tprimat::logs
