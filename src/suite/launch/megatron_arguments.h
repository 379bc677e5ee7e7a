#pragma once

#include "launch/argument_list.h"
#include "launch/launch_plan.h"

namespace tprimat::suite {

// The arguments that Megatron-LM and its DeepSpeed fork spell alike.
void add_batch_arguments(ArgumentList& list, const TrainSpec& spec);
void add_optimizer_arguments(ArgumentList& list, const TrainSpec& spec);  // with the learning-rate schedule
void add_precision_arguments(ArgumentList& list, const TrainSpec& spec);  // bf16, fp16 with its loss scale
void add_evaluation_arguments(ArgumentList& list, const TrainSpec& spec);
void add_checkpoint_arguments(ArgumentList& list, const TrainSpec& spec, const std::string& folder);
void add_profile_arguments(ArgumentList& list, const std::optional<ProfileWindow>& window);  // for nsys

// Of what both cannot do. Throws Error with all of it.
void require_megatron_can(Framework framework, const TrainSpec& spec);

// "llama3 x 8 of 8192 (1 to 4)", "none"
std::string describe_rope_scaling(const std::optional<RopeScaling>& scaling);

// Megatron's scheduler moves after the update: step s is trained at the rate of step s - 1, the first at 0 where there
// is a warm-up.
void add_schedule_deviation(std::vector<Deviation>& list, const OptimizerSpec& optimizer);

// Synthetic data are Megatron's own mock tokens.
void add_mock_data_deviation(std::vector<Deviation>& list);

// The vocabulary is padded for nobody but tensor parallelism, and for the products of fp8.
int64_t vocabulary_divisor(const TrainSpec& spec);

}  // namespace tprimat::suite
