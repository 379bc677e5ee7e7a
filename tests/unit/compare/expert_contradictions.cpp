#include "unit/compare/expert_pairs.h"

// Files that deny their own speed, and honest ones that look as if they did.
namespace tprimat::results::expert {
namespace {

// Figures as the framework prints them: the same in each record.
Edit reports(std::optional<std::vector<double>> ReportedFigures::*figure, double value) {
  return series([=](RunResult& r) {
    if (!r.reported) r.reported.emplace();
    (*r.reported).*figure = std::vector<double>(r.step_times.size(), value);
  });
}

// `pause` s between each `interval`-th step and the next.
Edit with_pauses(double pause, size_t interval) {
  return series([=](RunResult& r) {
    double now = 1'772'400'000;
    r.reported.emplace().unix_time.emplace();
    for (size_t i = 0; i < r.step_times.size(); ++i)
      r.reported->unix_time->push_back(now += r.step_times[i] + (i % interval == 0 ? pause : 0));
  });
}

Edit nan_steps(int64_t count) {
  return series([=](RunResult& r) {
    r.event_counts = std::map<EventKind, int64_t>{{EventKind::nan, count}};
    r.events.emplace();
    for (int64_t i = 1; i <= count; ++i) r.events->push_back({EventKind::nan, {}, i, {}, {}, {}, "loss is NaN"});
  });
}

Edit layout_fact(std::optional<int64_t> ParallelismConfig::*size, int64_t value) {
  return facts([=](RunResult& r) {
    r.parallelism_config.*size = value;
    r.parallelism_config.data_parallel_size.reset();
    r.parallelism_config.gradient_accumulation_steps.reset();
  });
}

Edit micro_batch_fact(int64_t size) {
  return facts([=](RunResult& r) {
    r.training_config.micro_batch_size = size;
    r.parallelism_config.gradient_accumulation_steps.reset();
  });
}

Edit sensor(double clock_hz, double utilisation) {
  return series([=](RunResult& r) {
    TelemetrySummary& each = r.telemetry.emplace_back();
    each.source = "nvml", each.samples = 100;
    each.mean_clock_hz = clock_hz, each.mean_utilisation = utilisation;
  });
}

std::vector<ExpertPair> pairs_that_report_otherwise() {
  using enum Answer;
  using R = ReportedFigures;
  return {
      {"FrameworkReportsAQuarterOfTheFlops", h100(), h100({speed(1.2), reports(&R::tflops_per_gpu, 120)}), withheld,
       "it counts the work that it does: four times the devices, or a quarter of the batch", "reported_contradiction"},
      {"FrameworkReportsMoreThanThePeak", h100(), h100({speed(1.2), reports(&R::tflops_per_gpu, 1241)}), withheld,
       "no H100 does 1241 TFLOP/s in bf16", "reported_contradiction"},
      {"FrameworkReportsMoreThanItsOwnPeak", h100(),
       h100({reports(&R::tflops_per_gpu, 1241), reports(&R::mfu, 1.255),
             series([](RunResult& r) { r.precision.reset(); })}),
       withheld, "125 % of the peak that it divides by, which is an H100's", "reported_contradiction"},
      {"FrameworkReportsOtherTokens", h100(), h100({speed(1.2), reports(&R::tokens_per_second_per_gpu, 3000)}),
       withheld, "3000 tokens/s of a device, where batch and steps give three times as many", "reported_contradiction"},
      {"FrameworkReportsOtherSequences", h100(), h100({reports(&R::samples_per_second, 5)}), withheld,
       "5 sequences/s, where 128 take 8 s", "reported_contradiction"},
      {"FrameworkReportsAnotherMfu", h100(), h100({reports(&R::mfu, 0.06)}), withheld, "by no peak are 400 TFLOP/s 6 %",
       "reported_contradiction"},
  };
}

std::vector<ExpertPair> pairs_that_print_otherwise() {
  using enum Answer;
  return {
      {"PrintedBatchIsAnother", h100(), h100({printed({{"global_batch_size", "64"}})}), withheld,
       "the framework says that it did half of the work", "settings_contradiction"},
      {"PrintedShapeIsAnother", h100(), h100({printed({{"model.num_layers", "16"}})}), withheld, "half of the layers",
       "settings_contradiction"},
      {"PrintedFp8", h100(), h100({printed({{"fp8", "hybrid"}})}), withheld, "fp8 under the name of bf16",
       "settings_contradiction"},
      {"ExpertsOfADenseModel", h100(), h100({printed({{"expert_model_parallel_size", "8"}})}), withheld,
       "a dense model has no experts to divide", "settings_contradiction"},
  };
}

std::vector<ExpertPair> pairs_with_impossible_splits() {
  using enum Answer;
  return {
      {"MicroBatchesThatDoNotDivide", h100(), h100({micro_batch_fact(3)}), withheld,
       "3 x 4 sequences do not divide 128", "layout_contradiction"},
      {"MicroBatchAboveTheBatch", h100(), h100({micro_batch_fact(256)}), withheld, "no micro-batch exceeds the batch",
       "layout_contradiction"},
      {"MoreTensorRanksThanDevices", h100(), h100({layout_fact(&ParallelismConfig::tensor_model_parallel_size, 16)}),
       withheld, "16 ranks share a layer on 8 devices", "layout_contradiction"},
  };
}

std::vector<ExpertPair> pairs_that_hide_time() {
  using enum Answer;
  return {
      {"NansInASixth", h100(), h100({nan_steps(10)}), withheld, "steps that train nothing", "skipped_updates"},
      {"FasterThanTheDeviceThatIsNamed", h100(), h100({device("NVIDIA A100-SXM4-80GB")}), withheld,
       "400 TFLOP/s on a device with a peak of 312", Codes({"impossible", "status"})},
      {"SlowStepsUnderALabel", h100(), h100({speed(1.2), slow_every(3, 3, StepLabel::checkpoint)}), withheld,
       "no training saves every third step", "many_labelled"},
      {"ClockHidesThreeTenths", h100({with_clock(0)}), h100({speed(1.4), with_clock(0, 1 / 0.7)}), withheld,
       "the stamps show the speed of the other side", "clock_contradiction"},
  };
}

std::vector<ExpertPair> pairs_that_report_by_other_rules() {
  using enum Answer;
  using R = ReportedFigures;
  return {
      {"MfuByThePeakOfAnA100", h100({reports(&R::mfu, 1.28)}), h100({reports(&R::mfu, 1.28)}), same,
       "some programs divide by 312 TFLOP/s whatever the device"},
      {"FlopsByAnotherFormula", h100({reports(&R::tflops_per_gpu, 440)}), h100({reports(&R::tflops_per_gpu, 520)}),
       same, "attention in full, or layers computed again"},
      {"RateOfTheFramework", h100({reports(&R::tokens_per_second_per_gpu, 8000)}), h100(), same,
       "its running average lags behind"},
      {"PrintedSettingsThatAgree",
       h100({printed({{"global_batch_size", "128"}, {"fp8", "None"}, {"training.seq_length", "-1"}})}), h100(), same,
       "zero and below leave the choice to the framework"},
  };
}

std::vector<ExpertPair> pairs_with_pauses() {
  using enum Answer;
  return {
      {"EvaluationsBetweenEveryFifthSteps", h100({with_pauses(12, 5)}), h100({with_pauses(12, 5)}), same,
       "the pauses are no part of the steps, and the other gaps agree"},
      {"OneNanInThousandSteps", h100({steps(200)}), h100({steps(200), nan_steps(1)}), same, "one step of two hundred"},
      {"EvaluationsEveryFifthStep", h100({steps(120)}), h100({steps(120), slow_every(5, 2, StepLabel::evaluation)}),
       same, "often, and said", "labelled_steps"},
  };
}

std::vector<ExpertPair> pairs_in_other_units() {
  using enum Answer;
  return {
      {"ClockInMegahertz", h100({sensor(1980, 0.98)}), h100(), same, "1980 is no clock in Hz", "impossible_clock"},
      {"UtilisationInPercent", h100({sensor(1.755e9, 98)}), h100(), same, "98 is no share", "impossible_clock"},
      {"MemoryInAnotherUnit", h100(),
       h100({facts([](RunResult& r) { r.memory_metrics.peak_memory_allocated_gb = 0.06; })}), same,
       "the weights alone take more", "impossible_memory"},
  };
}

}  // namespace

std::vector<ExpertPair> contradicting_pairs() {
  return joined<ExpertPair>({pairs_that_report_otherwise(), pairs_that_print_otherwise(),
                             pairs_with_impossible_splits(), pairs_that_hide_time()});
}

std::vector<ExpertPair> apparent_contradictions() {
  return joined<ExpertPair>({pairs_that_report_by_other_rules(), pairs_with_pauses(), pairs_in_other_units()});
}

}  // namespace tprimat::results::expert
