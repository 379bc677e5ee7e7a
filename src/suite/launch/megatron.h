#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "launch/argument_list.h"
#include "launch/frameworks.h"

namespace tprimat::suite {

constexpr const char* k_pretrain_script = "pretrain_gpt.py";

// The arguments that Megatron-LM and its DeepSpeed fork spell alike.
void add_batch_arguments(ArgumentList& list, const TrainSpec& spec);
void add_optimizer_arguments(ArgumentList& list, const TrainSpec& spec);  // with the learning-rate schedule
void add_precision_arguments(ArgumentList& list, const TrainSpec& spec);  // bf16, fp16 with its loss scale
void add_evaluation_arguments(ArgumentList& list, const TrainSpec& spec);
void add_checkpoint_arguments(ArgumentList& list, const TrainSpec& spec, const std::string& folder);

// The checkout of one of the two, if the folder has its script.
std::optional<Installation> find_pretrain_script(const std::filesystem::path& folder);

// Its script under torchrun, with no arguments yet.
TrainProgram run_pretrain_script(Framework framework, const std::filesystem::path& folder,
                                 const LaunchRequest& request);

// The same request with the data set's path from the root, for a program that starts in another folder.
LaunchRequest with_absolute_dataset(LaunchRequest request);

// Refuses what neither supports.
void add_megatron_limits(Refusals& refusals, const TrainSpec& spec);

// "llama3 x 8 of 8192 (1 to 4)", "none"
std::string describe_rope_scaling(const std::optional<RopeScaling>& scaling);

// Megatron's scheduler moves after the update: step s is trained at the rate of step s - 1, the first at 0 where there
// is a warm-up.
void add_schedule_deviation(std::vector<Deviation>& list, const OptimizerSpec& optimizer);

// Synthetic data are Megatron's own mock tokens.
void add_mock_data_deviation(std::vector<Deviation>& list);

// The vocabulary is padded only for tensor parallelism and for the products of fp8.
int64_t vocabulary_divisor(const TrainSpec& spec);

// Refuses what frameworks on Megatron Core that we drive by settings (NeMo, Primus) do not support.
void add_megatron_core_limits(Refusals& refusals, Framework framework, const TrainSpec& spec);

// Fused attention over a window that is shorter than the sequence.
bool has_short_window(const TrainSpec& spec);

// Megatron keeps weights in fp8 only where the data-parallel ranks share the optimizer's state.
bool shares_optimizer(const TrainSpec& spec, const std::optional<bool>& fp8_param);

}  // namespace tprimat::suite
