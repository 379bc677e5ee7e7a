#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/comparison.h"
#include "text/json.h"

// Trainings as people run them, and the result files that follow from them.
namespace tprimat::results::expert {

// What is trained on what, and how it goes. Step times follow from shape, batch, devices and `flops_per_second`, so
// that an edit of one of them leaves a file whose figures agree.
struct Training {
  RunResult facts;                   // series and figures are added by result_files
  double flops_per_second = 400e12;  // that one device reaches, by the causal formula
  double noise = 0.004;              // of a step, relative standard deviation
  double run_spread = 0.001;         // of a run
  int runs = 3;
  int64_t steps = 60;
  int64_t slow_steps = 3;          // at the start, after the first
  uint64_t seed = 0;               // of noise; 0: the side's own
  bool repeats_first_run = false;  // every file holds one and the same run
  std::optional<double> usd_per_hour, watts;
  std::string power_source = "nvml";
  std::vector<std::function<void(RunResult&, int run)>> series_edits;  // before the figures are derived
  std::vector<std::function<void(Json&, int run)>> file_edits;         // after: what somebody does to the file
};

using Edit = std::function<void(Training&)>;

// The bases, edited: about 40 % MFU, three runs of 60 steps.
using Edits = std::vector<Edit>;
Training h100(const Edits& edits = {});             // Llama 3.1 8B, Megatron-LM, 8 devices, TP2 DP4, bf16
Training mi300x(const Edits& edits = {});           // Llama 3.1 8B, Primus, 8 devices, DP8, bf16
Training b200_in_fp8(const Edits& edits = {});      // Llama 3.1 8B, NeMo, 8 devices, DP8
Training large_on_h100(const Edits& edits = {});    // Llama 3.1 70B, Megatron-LM, 64 devices, TP8 PP4 DP2, bf16
Training experts_on_h100(const Edits& edits = {});  // Mixtral 8x7B, Megatron-LM, 64 devices, TP2 PP4 DP8 EP8, bf16
Training small_on_cpu(const Edits& edits = {});     // GPT-2, native, one processor, fp32

// Speed and noise.
Edit speed(double factor);
Edit noisy(double of_step, double of_run);
Edit runs(int count);
Edit steps(int64_t count);  // asked for and run

// Work and layout; the gradient accumulation follows.
Edit model(const std::string& catalogue_name, const std::string& written_name);
Edit shape(const std::function<void(ModelSpec&)>& change);
Edit batch(int64_t global);
Edit micro_batch(int64_t size);
Edit sequence_length(int64_t tokens);
Edit layout(int64_t tensor, int64_t pipeline, int64_t data, int64_t context = 1);
Edit devices(int64_t count);  // more data-parallel ranks

// Facts beside it.
Edit facts(const std::function<void(RunResult&)>& change);
Edit training(const std::function<void(TrainingConfig&)>& change);
Edit optimizer(const std::string& name);
Edit schedule(const std::string& name);
Edit device(const std::string& name);
using Setting = std::pair<std::string, std::string>;
Edit printed(std::initializer_list<Setting> settings);  // as the framework prints its configuration
Edit lora(int64_t trainable_parameters);
Edit skipped_updates(int64_t count);
Edit power(double watts, const std::string& source);
Edit price(double usd_per_hour);
Edit shape_unknown(int64_t parameters);  // as many logs: a rounded count at most; 0: not even that

// Series: of every run, of the last repetition only, or of each by its number (from 1).
Edit series(const std::function<void(RunResult&)>& change);
Edit last_run(const std::function<void(RunResult&)>& change);
Edit each_run(const std::function<void(RunResult&, int run)>& change);
Edit slow_every(int64_t interval, double factor, std::optional<StepLabel> label);  // no label: nobody says why
Edit logged_every(int64_t interval);                                               // one line of means
Edit rounded_to(double seconds);
Edit with_clock(double seconds_between_steps, double clock_speed = 1);  // time stamps of the log
Edit no_loss();
Edit no_learning_rates();
Edit loss_from(int64_t step, const std::function<double(double loss, int64_t step)>& change);

// Files.
Edit file(const std::function<void(Json&)>& change);
Edit older_file();         // what benchmark scripts wrote before there was a schema
Edit averages_only();      // the same without its step times
Edit copy_of_reference();  // the reference's noise, bit by bit: one measurement under two names
Edit one_run_thrice(const std::function<void(RunResult&, int run)>& disguise);

// In the folder `side`, named as `tprimat run` names them, read as users' files are.
std::vector<LoadedRun> result_files(const Training& training, const std::string& side);

}  // namespace tprimat::results::expert
