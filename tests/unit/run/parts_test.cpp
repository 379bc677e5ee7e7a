#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "run/environment.h"
#include "run/failure.h"
#include "run/gpu_neighbours.h"
#include "run/gpus_of_run.h"
#include "run/hang_watch.h"
#include "run/progress.h"
#include "run/reporters.h"
#include "run/step_follower.h"
#include "run/step_telemetry.h"
#include "run/telemetry_report.h"
#include "suite_fixture.h"
#include "telemetry/sensors.h"
#include "telemetry/throttle.h"

namespace tprimat {
namespace {

constexpr ExitReason k_exit_one{ExitReason::Kind::exited, 1};

std::string sentence_of(const ExitReason& exit, const std::string& log) { return explain_failure(exit, log).sentence; }

TEST(Failure, NamesTheCauseBehindAnExitStatus) {
  EXPECT_EQ(sentence_of(k_exit_one, ""), "exit status 1, without a word");
  EXPECT_EQ(sentence_of(k_exit_one, "error: loss of step 3 is not finite\nbye\n"),
            "NaN loss: error: loss of step 3 is not finite");
  const std::string norm = "error: the gradient norm is not finite at step 7: it is NaN\n";
  EXPECT_EQ(explain_failure(k_exit_one, norm).kind, FailureKind::nan_loss);
  EXPECT_EQ(explain_failure(k_exit_one, "error: the loss is NaN at step 7\n").kind, FailureKind::nan_loss);
  EXPECT_EQ(sentence_of(k_exit_one, "ValueError: bad\n  cleaning up  \n\n"), "exit status 1: ValueError: bad");
  EXPECT_EQ(sentence_of(k_exit_one, "something\nerror 7 of the cleaner\n"), "exit status 1: error 7 of the cleaner");
  EXPECT_EQ(sentence_of(k_exit_one, "terminate called after\n  what():  std::bad_alloc\n"),
            "out of host memory: what():  std::bad_alloc");
  EXPECT_EQ(sentence_of({ExitReason::Kind::signalled, 11}, "a last word\n"), "killed by signal 11 (SIGSEGV)");
}

TEST(Failure, OfATrainingThatWasStoppedIsTheStop) {
  const EndCause cause = explain_failure({ExitReason::Kind::timed_out, 0, 10.0}, "SignalException: got signal: 15\n");
  EXPECT_EQ(cause.kind, FailureKind::time_limit);
  EXPECT_EQ(cause.sentence, "stopped after its time limit of 10.00 s");
}

TEST(Failure, QuotesBinaryAndLongLinesSafely) {
  const std::string text = sentence_of(k_exit_one, "error \x1b[31m\xff" + std::string(5000, 'x') + "\n");
  EXPECT_LT(text.size(), 300u);
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
}

TEST(Failure, ReadsTheEndOfALogOnly) {
  const std::string path = (std::filesystem::temp_directory_path() / ("log_end" + std::to_string(::getpid()))).string();
  std::ofstream(path) << "first\n" << std::string(9'000'000, 'x') << "\nlast";
  EXPECT_EQ(read_log_end(path), "last\n");
  EXPECT_EQ(read_log_end(path, 6), "first\n");
  EXPECT_EQ(read_log_end(path, 0), "");
  EXPECT_EQ(read_log_end("/no/such/log"), "");
  std::filesystem::remove(path);
}

HangLimits strict_limits() { return {20.0, 60.0, 900.0}; }

TEST(HangWatch, KnowsAHangFromASlowTraining) {
  HangWatch watch(strict_limits(), 100);
  std::vector<StepRecord> steps;
  for (int i = 1; i <= 37; ++i) {
    steps.push_back({});
    steps.back().step = i;
    steps.back().time_seconds = 5.0;
    watch.look(steps, 5.0 * i);
  }
  EXPECT_FALSE(watch.find_hang(185.0 + 99.0).has_value());
  EXPECT_EQ(watch.find_hang(185.0 + 101.0),
            "hung: no step for 1 min 41 s after step 37, where the median step takes 5.000 s");
  EXPECT_FALSE(watch.late_seconds(185.0 + 14.0).has_value());
  EXPECT_DOUBLE_EQ(watch.late_seconds(185.0 + 35.0).value(), 35.0);
}

TEST(HangWatch, AllowsForTheStartAndTheEnd) {
  HangWatch watch(strict_limits(), 3);
  EXPECT_FALSE(watch.find_hang(899.0).has_value());
  EXPECT_TRUE(watch.find_hang(901.0).value_or("").starts_with("hung: no step in the"));
  std::vector<StepRecord> steps(3);
  for (int i = 0; i < 3; ++i) steps[static_cast<size_t>(i)].step = i + 1;
  watch.look(steps, 10.0);
  EXPECT_FALSE(watch.find_hang(10.0 + 899.0).has_value()) << "it may export its weights";
  EXPECT_TRUE(watch.find_hang(10.0 + 901.0).value_or("").starts_with("hung: did not end"));
}

TEST(HangWatch, StepsThatComeInBundlesAreNoHang) {
  HangWatch watch({20.0, 1.0, 900.0}, 1000);
  std::vector<StepRecord> steps;
  for (int bundle = 1; bundle <= 5; ++bundle) {
    for (int i = 0; i < 50; ++i) {
      steps.push_back({});
      steps.back().step = static_cast<int64_t>(steps.size());
      steps.back().time_seconds = 0.2;
    }
    watch.look(steps, 10.0 * bundle);
  }
  EXPECT_FALSE(watch.find_hang(50.0 + 150.0).has_value());
  EXPECT_EQ(watch.find_hang(50.0 + 210.0),
            "hung: no step for 3 min 30 s after step 250, where the median step takes 200.0 ms");
}

TEST(HangWatch, PausesOfTheConfigurationAreAllowed) {
  TrainSpec spec;
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::cpu).floor_seconds, 60.0);
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::cpu).startup_seconds.value(), 3600.0);
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::nvd).startup_seconds.value(), 900.0);
  spec.checkpoint.directory = "somewhere";
  EXPECT_DOUBLE_EQ(limits_of({}, spec, Platform::nvd).floor_seconds, 600.0);
}

class SharedGpu : public GpuLibrary {
 public:
  std::string name() const override { return "nvml"; }
  std::vector<GpuFacts> devices() const override { return {{Platform::nvd, 0, "H100", {}, {}, {}}}; }
  std::optional<std::string> driver_version() const override { return {}; }
  std::optional<std::string> stack_version() const override { return {}; }
  Reading read(int64_t, FaultLog&) const override { return {}; }
  std::vector<GpuHolder> holders(int64_t) const override { return holders_; }
  std::vector<GpuHolder> holders_;
};

TEST(GpuNeighbours, AreThoseBeforeAndThoseLeft) {
  const auto gpu = std::make_shared<SharedGpu>();
  const std::vector<std::shared_ptr<const GpuLibrary>> libraries = {gpu};
  const GpuNeighbours alone(libraries, Platform::nvd);
  EXPECT_TRUE(alone.report(0.0).empty());
  gpu->holders_ = {{999999901, 2e9}, {::getpid(), 1e9}};
  EXPECT_EQ(alone.report(0.0),
            std::vector<std::string>{"processes that were not there before the run hold memory of the "
                                     "GPUs after it: process 999999901 on GPU 0, 2.00 GB"});
  EXPECT_EQ(
      GpuNeighbours(libraries, Platform::nvd).report(0.0),
      std::vector<std::string>{"other processes held memory of the GPUs when the run began, which may have slowed it "
                               "down: process 999999901 on GPU 0, 2.00 GB"});
  EXPECT_TRUE(GpuNeighbours(libraries, Platform::cpu).report(0.0).empty());
}

class EightGpus : public SharedGpu {
 public:
  std::vector<GpuFacts> devices() const override {
    std::vector<GpuFacts> all;
    for (int64_t i = 0; i < 8; ++i) all.push_back({Platform::nvd, i, "H200", {}, {}, {}});
    return all;
  }
};

std::vector<std::string> watched_gpus(const PlannedRun& run) {
  std::vector<std::string> names;
  for (const auto& sensor : open_sensors({::getpid(), 1, {std::make_shared<EightGpus>()}, gpus_of(run)}))
    if (is_gpu_source(sensor->name())) names.push_back(sensor->name());
  return names;
}

TEST(GpusOfRun, AreThoseThatItsRanksTake) {
  PlannedRun run;
  run.platform = run.request.platform = Platform::nvd;
  run.spec.parallel.data = 2;
  EXPECT_EQ(watched_gpus(run), (std::vector<std::string>{"nvml:0", "nvml:1"}));
  run.request.settings.visible_devices = "5,3,1";
  EXPECT_EQ(watched_gpus(run), (std::vector<std::string>{"nvml:5", "nvml:3"}));
  run.request.launch.nodes = 2;
  EXPECT_EQ(watched_gpus(run), std::vector<std::string>{"nvml:5"});
  run.platform = run.request.platform = Platform::cpu;
  EXPECT_EQ(watched_gpus(run).size(), 8u);  // they are not the run's, and say who else works
}

TEST(GpusOfRun, ContainersDoNotInheritWhatIsVisible) {
  ::setenv("CUDA_VISIBLE_DEVICES", "6", 1);
  PlannedRun run;
  run.platform = run.request.platform = Platform::nvd;
  EXPECT_EQ(watched_gpus(run), std::vector<std::string>{"nvml:6"});
  run.plan.place = Whereabouts::this_machine;
  EXPECT_EQ(watched_gpus(run), std::vector<std::string>{"nvml:0"});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(StepFollower, ReadsAFileThatGrows) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("follower" + std::to_string(::getpid()))).string();
  std::filesystem::remove(path);
  StepFollower follower(path);
  EXPECT_FALSE(follower.read_new(1.0));
  const auto append = [&](const std::string& text) { std::ofstream(path, std::ios::app) << text; };
  append("{\"step\": 1, \"time_seconds\": 0.5, \"loss\": null}\n{\"step\": 2, \"time_");
  EXPECT_TRUE(follower.read_new(7.0));
  ASSERT_EQ(follower.steps().size(), 1u);
  EXPECT_TRUE(std::isnan(follower.steps()[0].loss.value()));
  EXPECT_EQ(follower.steps()[0].unix_time, 7.0);
  append("seconds\": 0.25, \"unix_time\": 3}\nnonsense\n{\"step\": 0, \"time_seconds\": 1}\n");
  EXPECT_TRUE(follower.read_new(8.0));
  ASSERT_EQ(follower.steps().size(), 2u);
  EXPECT_EQ(follower.steps()[1].unix_time, 3.0);
  EXPECT_EQ(follower.unreadable_lines(), 2);
  EXPECT_FALSE(follower.read_new(9.0));
  EXPECT_EQ(follower.damage(), "");
  std::ofstream(path, std::ios::trunc) << "{\"step\": 1, \"time_seconds\": 9}\n";  // the trainer began anew
  EXPECT_TRUE(follower.read_new(10.0));
  ASSERT_EQ(follower.steps().size(), 3u);
  EXPECT_EQ(follower.steps()[2].time_seconds, 9.0);
  EXPECT_EQ(follower.damage(), "the file of step records was cut short after step 2; what had been read is kept");
  std::filesystem::remove(path);
}

TEST(StepFollower, ReadsOnWhenTheFileLosesItsName) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("nameless" + std::to_string(::getpid()))).string();
  std::ofstream file(path);
  file << "{\"step\": 1, \"time_seconds\": 1}\n" << std::flush;
  StepFollower follower(path);
  EXPECT_TRUE(follower.read_new(1.0));
  std::filesystem::remove(path);
  file << "{\"step\": 2, \"time_seconds\": 1}\n" << std::flush;
  EXPECT_TRUE(follower.read_new(2.0));
  EXPECT_EQ(follower.steps().size(), 2u);
  follower.read_rest(3.0);
  EXPECT_EQ(file_text(path), "{\"step\": 1, \"time_seconds\": 1}\n{\"step\": 2, \"time_seconds\": 1}\n");
  std::ofstream(path + ".new") << "{\"step\": 3, \"time_seconds\": 1}\n";
  std::filesystem::rename(path + ".new", path);
  EXPECT_FALSE(follower.read_new(3.0));
  EXPECT_TRUE(follower.read_new(3.0));
  EXPECT_EQ(follower.steps().size(), 3u);
  std::filesystem::remove(path);
}

TEST(StepFollower, GarbageIsCountedAndDoesNoHarm) {
  const std::string path = (std::filesystem::temp_directory_path() / ("garbage" + std::to_string(::getpid()))).string();
  std::ofstream file(path, std::ios::binary);
  file << "{\"step\": 1, \"time_seconds\": " << std::string(500'000, '[') << std::string(500'000, ']') << "}\n"
       << std::string(3'000'000, 'x') << '\n'
       << "{\"step\": 2, \"time_seconds\": 1e999}\n"
       << std::string("\0\xff\n", 3) << "{\"step\": 3, \"time_seconds\": 1}\n";
  file.close();
  StepFollower follower(path);
  EXPECT_TRUE(follower.read_new(1.0));
  ASSERT_EQ(follower.steps().size(), 1u);
  EXPECT_EQ(follower.steps()[0].step, 3);
  EXPECT_EQ(follower.unreadable_lines(), 4);
  std::filesystem::remove(path);
}

std::vector<StepRecord> steps_of(const std::vector<double>& seconds) {
  std::vector<StepRecord> steps;
  for (const double each : seconds) {
    steps.emplace_back();
    steps.back().step = static_cast<int64_t>(steps.size());
    steps.back().time_seconds = each;
  }
  return steps;
}

TEST(Progress, LeavesTheFirstStepOutOfTheRate) {
  const Progress progress = measure_progress(steps_of({9.0, 0.5, 0.5}), 13, 100);
  EXPECT_EQ(progress.step, 3);
  EXPECT_DOUBLE_EQ(progress.tokens_per_second.value(), 200.0);
  EXPECT_DOUBLE_EQ(progress.remaining_seconds.value(), 5.0);
  EXPECT_DOUBLE_EQ(measure_progress(steps_of({2.0}), 2, 100).tokens_per_second.value(), 50.0);
  EXPECT_FALSE(measure_progress({}, 10, 100).tokens_per_second.has_value());
  EXPECT_FALSE(measure_progress(steps_of({0.0}), 10, 100).tokens_per_second.has_value());
}

TEST(Progress, SaysWhatIsKnown) {
  Progress progress;
  progress.step = 5;
  progress.steps = 10;
  EXPECT_EQ(render_progress_line(progress), "step 5/10");
  progress.loss = 4.5;
  progress.power_watts = 212.4;
  EXPECT_EQ(render_progress_line(progress), "step 5/10  loss 4.5000  212 W");
  EXPECT_EQ(render_progress_bar(progress, 80), "[##########..........] step 5/10  loss 4.5000  212 W");
  EXPECT_EQ(render_progress_bar(progress, 12), "step 5/10  l");
}

TEST(PlainReporter, SpeaksNowAndThen) {
  std::string text;
  PlainReporter reporter([&](std::string_view more) { text += more; }, 0.0);
  Progress progress;
  progress.step = 1;
  progress.steps = 2;
  reporter.progressed(progress);
  reporter.progressed(progress);  // nothing new
  EXPECT_EQ(text, "      step 1/2\n");
}

TEST(PlainReporter, SaysThatAStepIsLateNowAndThen) {
  std::string text;
  PlainReporter reporter([&](std::string_view more) { text += more; }, 0.0);
  Progress progress;
  progress.steps = 2;
  for (const double late : {6.0, 7.0, 35.0}) {
    progress.late_seconds = late;
    reporter.progressed(progress);
  }
  EXPECT_EQ(text, "      step 0/2  0.0 us  no step for 6 s\n      step 0/2  0.0 us  no step for 35 s\n");
}

TEST(Environment, HoldsFactsAndNoSecrets) {
  ::setenv("HF_TOKEN", "hf_secret_value", 1);
  ::setenv("OMP_NUM_THREADS", "3", 1);
  const auto environment = describe_environment(MachineFacts{}, {{"onednn", "2.7.2"}});
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(environment.at("env.OMP_NUM_THREADS"), "3");
  EXPECT_EQ(environment.at("onednn"), "2.7.2");
  EXPECT_TRUE(environment.contains("compiler"));
  for (const auto& [key, value] : environment) {
    EXPECT_EQ(value.find("hf_secret_value"), std::string::npos) << key;
    EXPECT_EQ(key.find("TOKEN"), std::string::npos);
  }
  ::unsetenv("HF_TOKEN");
}

SensorTrace trace_of(const std::string& source, double watts) {
  SensorTrace trace{source, {}};
  for (int i = 0; i <= 10; ++i) {
    trace.readings.emplace_back();
    trace.readings.back().unix_time = i;
    trace.readings.back().power_watts = watts;
    trace.readings.back().memory_used_bytes = 1e9 * watts;
  }
  return trace;
}

TEST(TelemetryReport, AddsUpTheDevicesOfAGpuRun) {
  const auto report = report_telemetry({trace_of("proc", 1.0), trace_of("nvml:0", 300.0), trace_of("nvml:1", 500.0)},
                                       {2.0, 8.0}, Platform::nvd);
  ASSERT_EQ(report.size(), 4u);
  EXPECT_EQ(report[0].source, "nvml");
  EXPECT_NEAR(report[0].energy_joules.value(), 4800.0, 1e-9);
  EXPECT_NEAR(report[0].mean_power_watts.value(), 800.0, 1e-9);
  EXPECT_TRUE(report[0].energy_valid.value());
  EXPECT_EQ(report[3].source, "proc");
  EXPECT_FALSE(report[3].peak_memory_used_gb.has_value());
}

TEST(TelemetryReport, OneDeviceWithoutEnergyLeavesTheSumWithoutIt) {
  const auto report = report_telemetry({trace_of("nvml:0", 300.0), {"nvml:1", {}}}, {2.0, 8.0}, Platform::nvd);
  EXPECT_FALSE(report[0].energy_joules.has_value());
  EXPECT_FALSE(report[0].energy_valid.value());
  EXPECT_EQ(report[0].energy_note, "nvml:1: no energy reading");
  EXPECT_FALSE(report[0].mean_power_watts.has_value());
}

TEST(TelemetryReport, TellsClocksTemperaturesAndWhatHeldTheClocksDown) {
  SensorTrace trace = trace_of("nvml:0", 300.0);
  trace.notes = {"energy counter: not supported by this device"};
  for (Reading& reading : trace.readings) {
    reading.clock_hz = 1.5e9;
    reading.temperature_celsius = 88.0;
    reading.throttle = k_throttle_thermal;
  }
  RunResult result;
  result.telemetry = report_telemetry({trace}, {2.0, 8.0}, Platform::nvd);
  ASSERT_EQ(result.telemetry.size(), 1u);
  EXPECT_EQ(result.telemetry[0].mean_clock_hz, 1.5e9);
  EXPECT_EQ(result.telemetry[0].mean_temperature_celsius, 88.0);
  EXPECT_EQ(result.telemetry[0].throttle_shares->at("thermal"), 1.0);
  EXPECT_EQ(result.telemetry[0].notes->at(0), "energy counter: not supported by this device");
  note_throttling(result);
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].find("nvml:0 was held below its clock in 100 % of the steady steps (thermal)"),
            std::string::npos);
}

TEST(TelemetryReport, ACpuRunLeavesOutIdleGpus) {
  const auto report = report_telemetry({trace_of("proc", 1.0), trace_of("nvml:0", 300.0)}, {2.0, 8.0}, Platform::cpu);
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].source, "proc");
}

TelemetrySummary utilisation(const std::string& source, double share) {
  TelemetrySummary summary;
  summary.source = source;
  summary.mean_utilisation = share;
  return summary;
}

TEST(Disturbance, IsWhatOthersTakeFromABusyMachine) {
  const auto found = [](double machine, double own) {
    return count_others_threads({utilisation("proc", own), utilisation("proc:machine", machine)}, {8, 4}).has_value();
  };
  EXPECT_TRUE(found(1.0, 0.8));    // 4.8 of 8 threads belong to others
  EXPECT_FALSE(found(0.55, 1.0));  // others have room of their own
  EXPECT_FALSE(found(0.5, 1.0));
  EXPECT_FALSE(count_others_threads({utilisation("proc", 1.0)}, {8, 8}).has_value());
}

TEST(Disturbance, IsStoredWithTheMachineAndSaid) {
  RunResult result;
  result.telemetry = {utilisation("proc", 0.5), utilisation("proc:machine", 1.0)};
  note_disturbance(result, {2, 2});
  EXPECT_FALSE(result.telemetry[0].others_busy_threads.has_value());
  EXPECT_DOUBLE_EQ(result.telemetry[1].others_busy_threads.value(), 1.0);
  ASSERT_EQ(result.warnings.size(), 1u);
}

// A reading every fifth of a second from 0 to 10 s.
SensorTrace busy_trace(const std::string& source, double utilisation) {
  SensorTrace trace{source, {}};
  for (int i = 0; i <= 50; ++i) {
    trace.readings.emplace_back();
    trace.readings.back().unix_time = 0.2 * i;
    trace.readings.back().utilisation = utilisation;
  }
  return trace;
}

StepWindows seconds_of(int count) {
  StepWindows windows;
  for (int i = 0; i < count; ++i) windows.emplace_back(TimeWindow{static_cast<double>(i), i + 1.0});
  return windows;
}

TEST(StepTelemetry, EachStepHasItsOwnReadings) {
  SensorTrace hot = busy_trace("nvml:0", 1.0), cool = busy_trace("nvml:1", 0.5);
  for (SensorTrace* trace : {&hot, &cool})
    for (Reading& reading : trace->readings) {
      const bool held = trace == &hot && reading.unix_time > 3.0 && reading.unix_time < 4.0;
      reading.power_watts = 300.0;
      reading.clock_hz = held ? 1e9 : 2e9;
      reading.temperature_celsius = held ? 90.0 : 70.0;
      reading.throttle = held ? uint32_t{k_throttle_thermal} : 0;
    }
  const auto steps = measure_steps({hot, cool}, seconds_of(12), Platform::nvd, std::nullopt);
  ASSERT_TRUE(steps.has_value());
  EXPECT_DOUBLE_EQ(steps->power_watts->at(3), 600.0);
  EXPECT_DOUBLE_EQ(steps->utilisation->at(3), 0.75);
  EXPECT_DOUBLE_EQ(steps->lowest_clock_hz->at(2), 2e9);
  EXPECT_LT(steps->lowest_clock_hz->at(3), 1.4e9);
  EXPECT_DOUBLE_EQ(steps->highest_temperature_celsius->at(3), 90.0);
  EXPECT_GT(steps->throttle_shares->at("thermal")[3], 0.5);
  EXPECT_DOUBLE_EQ(steps->throttle_shares->at("thermal")[2], 0.0);
  EXPECT_TRUE(std::isnan(steps->throttle_shares->at("thermal")[11]));  // after the last reading
  EXPECT_FALSE(steps->throttle_shares->contains("power"));
  EXPECT_FALSE(steps->others_busy_threads.has_value());
}

TEST(StepTelemetry, OthersCountWhileTheMachineIsFull) {
  SensorTrace machine = busy_trace("proc:machine", 0.5);
  for (Reading& reading : machine.readings)
    if (reading.unix_time > 3.1 && reading.unix_time < 4.1) reading.utilisation = 1.0;
  const auto steps =
      measure_steps({busy_trace("proc", 1.0), machine}, seconds_of(10), Platform::cpu, ThreadCounts{8, 4});
  ASSERT_TRUE(steps.has_value());
  EXPECT_DOUBLE_EQ(steps->others_busy_threads->at(2), 0.0);
  EXPECT_DOUBLE_EQ(steps->others_busy_threads->at(3), 4.0);
  EXPECT_DOUBLE_EQ(steps->utilisation->at(3), 1.0);
}

TEST(StepTelemetry, AStepBetweenTwoReadingsHasNone) {
  StepWindows windows{TimeWindow{1.01, 1.05}, std::nullopt};
  EXPECT_FALSE(measure_steps({busy_trace("nvml:0", 1.0)}, windows, Platform::nvd, std::nullopt).has_value());
}

TEST(StepTelemetry, AFigureThatHardlyAnyStepHasIsLeftOut) {
  StepWindows windows(100);
  for (size_t i = 0; i < 4; ++i) windows[i] = TimeWindow{static_cast<double>(i), static_cast<double>(i) + 1.0};
  EXPECT_FALSE(measure_steps({busy_trace("nvml:0", 1.0)}, windows, Platform::nvd, std::nullopt).has_value());
  windows[4] = TimeWindow{4.0, 5.0};
  EXPECT_TRUE(measure_steps({busy_trace("nvml:0", 1.0)}, windows, Platform::nvd, std::nullopt).has_value());
}

TEST(StepTelemetry, WindowsHoldWhatTheStampsMakeCertain) {
  RunResult log;
  log.step_times = {3.0, 3.0, 0.5, 3.0};
  log.reported.emplace().unix_time = std::vector<double>{100.0, 103.0, 104.0, std::nan("")};
  StepWindows windows = step_windows(log);
  EXPECT_DOUBLE_EQ(windows[1]->begin, 101.0);  // the stamp is a whole second: it may have ended at 103.9
  EXPECT_DOUBLE_EQ(windows[1]->end, 103.0);
  EXPECT_FALSE(windows[2].has_value());  // shorter than its stamp is off
  EXPECT_FALSE(windows[3].has_value());
  log.reported->unix_time = std::vector<double>{100.25, 103.25, 103.25, 109.25};  // two were printed together
  windows = step_windows(log);
  EXPECT_TRUE(windows[0].has_value());
  EXPECT_FALSE(windows[1].has_value());
  EXPECT_FALSE(windows[2].has_value());
  EXPECT_TRUE(windows[3].has_value());
}

TEST(MemorySources, NameWhoMeasured) {
  RunResult result;
  EXPECT_FALSE(describe_memory_sources(result).has_value());
  result.memory_values = {1.0};
  result.telemetry = {utilisation("nvml", 1.0)};
  result.telemetry[0].peak_memory_used_gb = 3.0;
  EXPECT_EQ(describe_memory_sources(result), "allocated: the trainer's own count; used: device memory from nvml");
}

}  // namespace
}  // namespace tprimat
