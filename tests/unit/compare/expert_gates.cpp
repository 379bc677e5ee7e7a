
#include "unit/compare/expert_pairs.h"

// What a job that fails on a slowdown every night must hear. A gate that passes says: nothing got worse.
namespace tprimat::results::expert {
namespace {

std::vector<ExpertGate> gates_on_speed() {
  using enum GateAnswer;
  return {
      {"RateHolds", h100(), h100(), "tokens_per_second < -3%", passes, "three runs a side that agree within 0.1 %"},
      {"RateRises", h100(), h100({speed(1.1)}), "tokens_per_second_per_gpu < -3%", passes, "faster is no failure"},
      {"RateFalls", h100(), h100({speed(0.9)}), "tokens_per_second < -3%", fails, "10 % slower"},
      {"MfuFalls", h100(), h100({speed(0.9)}), "mfu < -2%", fails, "one device, one peak: 10 % less of it"},
      {"RateOfMoreDevices", h100(), h100({devices(16), speed(0.6)}), "tokens_per_second < -3%", refuses,
       "twice the devices hide that each is 40 % slower"},
      {"RateOfEachOfMoreDevices", h100(), h100({devices(16), speed(0.6)}), "tokens_per_second_per_gpu < -3%", fails,
       "each is 40 % slower"},
      {"RateAtTheThreshold", h100({runs(1)}), h100({runs(1), speed(0.98)}), "tokens_per_second < -3%", has_no_answer,
       "one run a side does not tell 2 % from 3 %"},
  };
}

std::vector<ExpertGate> gates_on_doubtful_work() {
  using enum GateAnswer;
  const Edit other_batch = facts([](RunResult& r) { r.parallelism_config.gradient_accumulation_steps = 8; });
  const Edit failed = last_run([](RunResult& r) { r.status = RunStatus::failed, r.status_reason = "out of memory"; });
  return {
      {"SlowerWithABatchThatContradictsItself", h100(), h100({other_batch, speed(0.64)}), "tokens_per_second < -3%",
       refuses, "the work of its steps is in doubt; passing hides 36 %"},
      {"FasterWithABatchThatContradictsItself", h100(), h100({other_batch}), "tokens_per_second < -3%", refuses,
       "at 64 sequences a step this is half of the speed"},
      {"HalfTheLayers", h100(), h100({shape([](ModelSpec& m) { m.num_layers = 16; })}), "tokens_per_second < -3%",
       refuses, "other work"},
      {"FailedRun", h100(), h100({failed}), "tokens_per_second < -3%", refuses, "half of a run has no rate"},
      {"Copy", h100(), h100({copy_of_reference()}), "tokens_per_second < -3%", refuses, "the baseline against itself"},
  };
}

std::vector<ExpertGate> gates_on_progress() {
  using enum GateAnswer;
  const Edit constant = schedule("constant");
  return {
      {"TotalTimeOfAsManySteps", h100(), h100({speed(0.9)}), "total_time > 5%", fails, "60 steps a side"},
      {"TotalTimeOfHalfTheSteps", h100({constant, steps(120)}), h100({constant, steps(60)}), "total_time > 5%", refuses,
       "60 steps are shorter than 120 at any speed"},
      {"FinalLossAtTheSameStep", h100(), h100(), "final_loss > 2%", passes, "one curve"},
      {"FinalLossAtAnotherStep", h100({constant, steps(60)}), h100({constant, steps(120)}), "final_loss > 2%", refuses,
       "a loss after 120 steps is no loss after 60"},
      {"FinalLossOfAnotherBatch", h100(), h100({batch(256)}), "final_loss > 2%", refuses,
       "60 steps of twice the tokens have seen more"},
      {"StepTimeOfAnotherBatch", h100(), h100({batch(64)}), "mean_step_time > 5%", refuses, "half a step takes half"},
  };
}

std::vector<ExpertGate> gates_on_spread() {
  using enum GateAnswer;
  return {
      {"PercentileHolds", h100({steps(300)}), h100({steps(300)}), "p95_step_time > 5%", passes, "300 steps a side"},
      {"PercentileOfMeans", h100({steps(300)}), h100({steps(300), logged_every(10)}), "p95_step_time > 5%", refuses,
       "means of ten steps have no slow twentieth"},
      {"VariationOfMeans", h100({steps(300)}), h100({steps(300), logged_every(10)}), "step_time_cv > 5%", refuses,
       "means of ten steps vary a third as much"},
  };
}

std::vector<ExpertGate> gates_on_memory() {
  using enum GateAnswer;
  const Edit other_memory = facts([](RunResult& r) { r.memory_metrics.measurement_method = "nvidia-smi"; });
  const Edit more_memory = facts([](RunResult& r) { r.memory_metrics.peak_memory_allocated_gb = 70; });
  const Edit other_peak = facts([](RunResult& r) { r.derived.peak = PeakInfo{"config:mine", 1200e12, "by hand"}; });
  return {
      {"MemoryHolds", h100(), h100(), "peak_memory_allocated_gb > 1%", passes, "the same allocator on both sides"},
      {"MemoryGrows", h100(), h100({more_memory}), "peak_memory_allocated_gb > 5", fails, "70 GB after 61"},
      {"MemoryByAnotherTool", h100(), h100({other_memory}), "peak_memory_allocated_gb > 5%", refuses,
       "allocated and used differ by gigabytes in one run"},
      {"MfuOfAnotherPeak", h100(), h100({other_peak}), "mfu < -2%", refuses, "another denominator"},
  };
}

std::vector<ExpertGate> gates_on_energy() {
  using enum GateAnswer;
  return {
      {"EnergyHolds", h100({power(5200, "nvml")}), h100({power(5210, "nvml")}), "joules_per_token > 5%", passes,
       "one kind of counter"},
      {"EnergyRises", h100({power(4800, "nvml")}), h100({power(5500, "nvml")}), "joules_per_token > 5%", fails,
       "14 % more at the same rate"},
      {"EnergyByOtherCounters", h100({power(9800, "ipmi")}), h100({power(5200, "nvml")}), "joules_per_token > 5%",
       refuses, "a machine's plug counts what its devices' sensors do not"},
      {"EnergyOfBothVendors", h100({power(5200, "nvml")}), mi300x({power(5600, "amd_smi")}), "joules_per_token > 5%",
       passes, "each vendor's sensors of its devices: what is compared is devices"},
      {"EnergyByPlugsOnBothSides", h100({power(11'000, "ipmi")}), h100({power(11'050, "ipmi")}),
       "joules_per_token > 5%", passes, "a machine draws more than its devices"},
      {"EnergyOfOneSide", h100({power(5200, "nvml")}), h100(), "joules_per_token > 5%", has_no_answer,
       "what was not measured did not hold"},
  };
}

std::vector<ExpertGate> gates_on_power() {
  using enum GateAnswer;
  return {
      {"PowerByOtherCounters", h100({power(9800, "ipmi")}), h100({power(5200, "nvml")}), "mean_power > 5%", refuses,
       "a machine's plug counts what its devices' sensors do not"},
      {"PowerBelowIdle", h100({power(5200, "nvml")}), h100({power(70, "nvml")}), "joules_per_token > 5%", refuses,
       "8 devices that compute draw more than 70 W"},
      {"PowerBeyondTheDevices", h100({power(50'000, "nvml")}), h100({power(5200, "nvml")}), "joules_per_token > 5%",
       refuses, "8 devices of 700 W do not draw 50 kW, so the baseline hides any rise"},
  };
}

std::vector<ExpertGate> gates_on_price() {
  using enum GateAnswer;
  return {
      {"CostRises", h100({price(24)}), h100({price(24), speed(0.9)}), "usd_per_1e12_tokens > 5%", fails,
       "one price, 10 % slower"},
      {"PriceOfOneSide", h100({price(24)}), h100(), "usd_per_1e12_tokens > 5%", has_no_answer,
       "a price that is not known is not the same"},
      {"PriceOfEachDevice", h100({price(24)}), mi300x({price(16)}), "usd_per_1e12_tokens > 5%", passes,
       "other devices have other prices"},
      {"TwoPricesOfOneDevice", h100({price(24)}), h100({price(16), speed(0.8)}), "usd_per_1e12_tokens > 5%", refuses,
       "a discount would pay for a slowdown"},
      {"NegativePrice", h100({price(24)}), h100({price(-24)}), "usd_per_1e12_tokens > 5%", refuses,
       "nobody is paid for training"},
  };
}

}  // namespace

std::vector<ExpertGate> gate_rows() {
  return joined<ExpertGate>({gates_on_speed(), gates_on_doubtful_work(), gates_on_progress(), gates_on_spread(),
                             gates_on_memory(), gates_on_energy(), gates_on_power(), gates_on_price()});
}

}  // namespace tprimat::results::expert
