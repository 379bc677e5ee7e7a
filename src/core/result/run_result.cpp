#include "result/run_result.h"

#include "spec/train_spec.h"

namespace tprimat {
namespace {

TrainingConfig describe_training(const TrainSpec& spec) {
  TrainingConfig config;
  config.max_steps = spec.steps;
  config.global_batch_size = spec.global_batch_size;
  config.micro_batch_size = spec.micro_batch_size;
  config.sequence_length = spec.sequence_length;
  config.num_gpus = spec.parallel.ranks();
  config.parallel_strategy = spec.parallel.strategy;
  config.learning_rate = spec.optimizer.learning_rate;
  config.min_learning_rate = spec.optimizer.min_learning_rate;
  config.weight_decay = spec.optimizer.weight_decay;
  config.clip_grad_norm = spec.optimizer.clip_grad_norm;
  config.warmup_steps = spec.optimizer.warmup_steps;
  config.seed = spec.seed;
  config.optimizer = describe_optimizer(spec.optimizer);
  config.schedule = std::string(enum_name(spec.optimizer.schedule));
  config.recompute = std::string(enum_name(spec.recompute));
  config.loaded_checkpoint = spec.checkpoint.load;
  config.loaded_step = spec.checkpoint.load_step;
  return config;
}

ParallelismConfig describe_layout(const TrainSpec& spec) {
  ParallelismConfig layout;
  layout.strategy_name = spec.parallel.strategy;
  layout.tensor_model_parallel_size = spec.parallel.tensor;
  layout.pipeline_model_parallel_size = spec.parallel.pipeline;
  layout.data_parallel_size = spec.parallel.data;
  layout.context_parallel_size = spec.parallel.context;
  layout.gradient_accumulation_steps = spec.gradient_accumulation_steps();
  layout.virtual_pipeline_model_parallel_size = spec.parallel.virtual_pipeline;
  layout.expert_model_parallel_size = spec.parallel.expert;
  layout.expert_tensor_parallel_size = spec.parallel.expert_tensor;
  layout.zero_stage = spec.parallel.zero_stage;
  if (spec.parallel.pipeline > 1) layout.embedding_and_loss_as_layers = spec.parallel.ends_as_layers;
  layout.sequence_parallel = spec.parallel.sequence_parallel;
  return layout;
}

}  // namespace

RunResult::RunResult() = default;
RunResult::RunResult(const RunResult&) = default;
RunResult::RunResult(RunResult&&) noexcept = default;
RunResult& RunResult::operator=(const RunResult&) = default;
RunResult& RunResult::operator=(RunResult&&) noexcept = default;
RunResult::~RunResult() = default;

void fill_asked_facts(RunResult& result, const TrainSpec& spec) {
  result.model_info = {.name = spec.model.name,
                       .full_name = spec.model.full_name,
                       .num_parameters = count_parameters(spec.model).total(),
                       .shape = spec.model};
  result.precision = spec.precision;
  result.dataset = spec.data.dataset;
  result.training_config = describe_training(spec);
  result.parallelism_config = describe_layout(spec);
  if (!spec.model.experts) return;
  result.experts.emplace();
  result.experts->routing = spec.routing.value_or(Routing::learned);
  result.experts->dispatcher = spec.dispatcher;
}

}  // namespace tprimat
