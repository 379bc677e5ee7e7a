#include <gtest/gtest.h>

#include "extract/common/setting_names.h"
#include "extract/dialects.h"
#include "feed_lines.h"

namespace tprimat::logs {
namespace {

ExtractedLog read_settings_log(std::string_view text) { return feed_lines(settings_reader(), text); }

std::string setting(const ExtractedLog& log, const std::string& key) {
  const auto found = log.settings.find(key);
  return found == log.settings.end() ? "(absent)" : found->second;
}

constexpr const char* k_megatron =
    "------------------------ arguments ------------------------\n"
    "  adam_beta1 ...................................... 0.9\n"
    "  bf16 ............................................ True\n"
    "  check_weight_hash_across_dp_replicas_interval ... None\n"
    "  a_name_so_long_that_no_dot_has_any_space_after_it  7\n"
    "  config_logger_dir ............................... \n"
    "  data_path ....................................... ['corpus_text_document']\n"
    "  fp8 ............................................. None\n"
    "  global_batch_size ............................... 16\n"
    "  lr .............................................. 0.00015\n"
    "  lr_warmup_fraction .............................. 0.01\n"
    "  lr_warmup_iters ................................. 0\n"
    "  micro_batch_size ................................ 4\n"
    "  seq_length ...................................... 1024\n"
    "  tensor_model_parallel_size ...................... 2\n"
    "  train_iters ..................................... 200\n"
    "  world_size ...................................... 8\n"
    "-------------------- end of arguments ---------------------\n"
    "    evaluate .......................................: (1970.23, 1970.28)\n"
    "cpu_adam ............... [NO] ....... [OKAY]\n";

TEST(Settings, ReadsMegatronsArguments) {
  const ExtractedLog log = read_settings_log(k_megatron);
  EXPECT_EQ(log.settings.size(), 16u);
  EXPECT_EQ(setting(log, "adam_beta1"), "0.9");
  EXPECT_EQ(setting(log, "check_weight_hash_across_dp_replicas_interval"), "None");
  EXPECT_EQ(setting(log, "a_name_so_long_that_no_dot_has_any_space_after_it"), "7");
  EXPECT_EQ(setting(log, "config_logger_dir"), "");
  EXPECT_EQ(log.facts.precision, Precision::bf16);
  EXPECT_EQ(log.facts.global_batch_size, 16);
  EXPECT_EQ(log.facts.sequence_length, 1024);
  EXPECT_EQ(log.facts.tensor_parallel, 2);
  EXPECT_EQ(log.facts.gpu_count, 8);
  EXPECT_EQ(log.facts.dataset, "corpus_text_document");
  EXPECT_EQ(log.facts.warmup_steps, std::nullopt);  // given as a fraction
}

TEST(Settings, ReadsPrimusPrefixes) {
  const ExtractedLog log = read_settings_log(
      "[20260515 17:09:53][rank-0/8][DEBUG]    [--------arguments.py:1576] :   grpo_iterations ......... 2\n"
      "[20260515 17:09:52][rank-0/8][INFO]     [---module_utils.py:227] :   micro_batch_size     : 3 (int)\n"
      "[20251031 06:37:43][rank-1/8][INFO ] arguments training.steps.............................. 30\n");
  EXPECT_EQ(setting(log, "grpo_iterations"), "2");
  EXPECT_EQ(setting(log, "micro_batch_size"), "3");
  EXPECT_EQ(setting(log, "training.steps"), "30");
  EXPECT_EQ(log.facts.max_steps, 30);
}

TEST(Settings, OfMegatronBridgeTheLastStateCounts) {
  const std::string line = "[20260822 10:00:00][rank-0/8][INFO]     [----module_utils.py:227] : ";
  const ExtractedLog log = read_settings_log(
      line + "Megatron-Bridge args: (2 parameters)\n" + line + "  seq_length   : 4096 (int)\n" + line +
      "  train.seed   : 7 (int)\n" + line + "-----\n" + line +
      "  ⚠️  Skipping config_container.train.seed: type mismatch (target=int, source=str)\n" + line +
      "Removing invalid parameter 'peft' (3 params remaining)\n" + line +
      "  ⚠️  Skipping config_container.model: type mismatch (target=A, source=str)\n" + line +
      "ConfigContainer: (3 parameters)\n" + line + "  model.bf16   : False (bool)\n" + line +
      "  model.window : None (NoneType)\n" + line + "  train.seed   : 5 (int)\n" + line + "-----\n" + line +
      "------- Task Configuration -------\n" + line +
      "model:\n  bf16: true\n  tensor_model_parallel_size: 2\n  list:\n  - 1\n  - 2\n" + line + "-----\n");
  EXPECT_EQ(setting(log, "model.bf16"), "true");
  EXPECT_EQ(setting(log, "model.window"), "None");
  EXPECT_EQ(setting(log, "train.seed"), "5");
  EXPECT_EQ(log.facts.precision, Precision::bf16);
  EXPECT_EQ(log.facts.tensor_parallel, 2);
  EXPECT_EQ(log.facts.sequence_length, 4096);
  EXPECT_EQ(log.dropped_settings,
            (std::map<std::string, std::string>{{"peft", "its recipe does not take it"},
                                                {"train.seed", "it has the type int, and the value str"}}));
}

TEST(Settings, ReadsListsOfYaml) {
  const ExtractedLog log = read_settings_log(
      "------- Task Configuration -------\nmodel:\n  moe_layer_freq:\n  - 0\n  - 1\n  nested:\n  - a: 1\n    b: 2\n"
      "  - c\n  bf16: true\n  last:\n  - 'x'\nend: 1\n");
  EXPECT_EQ(setting(log, "model.moe_layer_freq"), "[0, 1]");
  EXPECT_EQ(setting(log, "model.last"), "[x]");
  EXPECT_EQ(setting(log, "model.bf16"), "true");
  EXPECT_EQ(setting(log, "end"), "1");
}

TEST(Settings, ReadsTorchtitansModelArguments) {
  const ExtractedLog json = read_settings_log(
      "[titan] 2025-11-20 10:00:00,000 - root - INFO - Building qwen3 30B-A3B with {\n  \"dim\": 2048,\n"
      "  \"moe_args\": {\n    \"num_experts\": 128,\n    \"top_k\": 8\n  },\n  \"max_seq_len\": 4096\n}\n");
  EXPECT_EQ(setting(json, "model_args.dim"), "2048");
  EXPECT_EQ(setting(json, "model_args.moe_args.num_experts"), "128");
  EXPECT_EQ(setting(json, "dim"), "(absent)");
  EXPECT_EQ(json.facts.sequence_length, std::nullopt);  // what the model may take, not what it trains with
  for (const char* other :
       {"Building device mesh with parallelism: pp=1\n", "Building wheel (pyproject.toml) with {x}\n",
        "Building qwen3 14B\n", "Building a b with Args\n", "Building with FooArgs(\n"})
    EXPECT_EQ(setting(read_settings_log(other), "model_args.dim"), "(absent)") << other;
}

TEST(Settings, ReadsWhereGptNeoxHasAValueFrom) {
  const ExtractedLog log = read_settings_log(
      "-------------------- arguments --------------------\n"
      "  save ............................ /scratch/weights/updated\n"
      "  clip_grad ....................... 1.0.........................updated\n"
      "  optimizer ....................... {'type': 'Adam', 'params': {'lr': 0.1}}updated\n"
      "  optimizer_type .................. Adam........................updated\n"
      "  checkpoint_validation_with_forward_pass  False................default\n"
      "  pipe_parallel_size .............. 0...........................default\n");
  EXPECT_EQ(setting(log, "save"), "/scratch/weights/");
  EXPECT_EQ(setting(log, "clip_grad"), "1.0");
  EXPECT_EQ(setting(log, "checkpoint_validation_with_forward_pass"), "False");
  EXPECT_EQ(log.facts.clip_grad_norm, 1.0);
  EXPECT_EQ(log.facts.optimizer, "Adam");
  EXPECT_EQ(log.facts.pipeline_parallel, std::nullopt);  // 0 stages cannot be
}

TEST(Settings, ReadsDeepspeedsConfiguration) {
  const ExtractedLog log = read_settings_log(
      "[2021-05-25 06:38:26,359] [INFO] [config.py:752:print]   train_batch_size ............. 64\n"
      "[2021-05-25 06:38:26,359] [INFO] [config.py:752:print]   train_micro_batch_size_per_gpu  4\n"
      "[2021-05-25 06:38:26,360] [INFO] [config.py:754:print]   json = {\n"
      "    \"fp16\": {\n        \"enabled\": true, \n        \"loss_scale\": 0\n    }, \n"
      "    \"optimizer\": {\n        \"type\": \"AdamW\", \n"
      "        \"params\": {\n            \"lr\": 5e-05, \n            \"betas\": [0.9, 0.999]\n        }\n    }\n}\n"
      "    \"after\": 1,\n");
  EXPECT_EQ(log.facts.global_batch_size, 64);
  EXPECT_EQ(log.facts.micro_batch_size, 4);
  EXPECT_EQ(setting(log, "fp16.enabled"), "true");
  EXPECT_EQ(setting(log, "optimizer.params.betas"), "[0.9, 0.999]");
  EXPECT_EQ(setting(log, "after"), "(absent)");
  EXPECT_EQ(log.facts.learning_rate, 5e-5);
  EXPECT_EQ(log.facts.optimizer, "AdamW");
  EXPECT_EQ(log.facts.precision, Precision::fp16);
}

TEST(Settings, ReadsTrainingArgumentsInOneLineAndInMany) {
  const ExtractedLog one = read_settings_log(
      "INFO:x: parameters TrainingArguments(debug=[], per_device_train_batch_size=4, learning_rate=5e-05, "
      "max_steps=-1, "
      "lr_scheduler_type=SchedulerType.LINEAR, output_dir='a, b', warmup_ratio=0.0, warmup_steps=8)\n");
  EXPECT_EQ(one.facts.micro_batch_size, 4);
  EXPECT_EQ(one.facts.max_steps, std::nullopt);  // -1: by epochs
  EXPECT_EQ(one.facts.schedule, "linear");
  EXPECT_EQ(one.facts.warmup_steps, 8);
  EXPECT_EQ(setting(one, "output_dir"), "a, b");
  const ExtractedLog many =
      read_settings_log("Training parameters TrainingArguments(\nbf16=True,\nmax_steps=70,\n)\nseed=5,\n");
  EXPECT_EQ(many.facts.max_steps, 70);
  EXPECT_EQ(many.facts.precision, Precision::bf16);
  EXPECT_EQ(setting(many, "seed"), "(absent)");
}

TEST(Settings, ReadsNestedDictsInOneLine) {
  const ExtractedLog log =
      read_settings_log("Running with args: {\"training\": {\"steps\": 10, \"seq_len\": 128}, \"a\": null}\n");
  EXPECT_EQ(log.facts.max_steps, 10);
  EXPECT_EQ(log.facts.sequence_length, 128);
  const ExtractedLog dict =
      read_settings_log("Applying CLI overrides: {'num_layers': 8, 'mock': True, 'split': [1, {'b': 2}]}\n");
  EXPECT_EQ(setting(dict, "num_layers"), "8");
  EXPECT_EQ(setting(dict, "split"), "[1, {'b': 2}]");
}

TEST(Settings, ReadsTheConfigurationOfNemo) {
  const ExtractedLog log = read_settings_log(
      "************** Experiment configuration ***********\n\n"
      "    trainer:\n      devices: 8\n      num_nodes: 2\n      precision: bf16-mixed\n"
      "    model:\n      micro_batch_size: 2\n      optim:\n        name: fused_adam\n        lr: 0.0003\n"
      "[NeMo I 2024-01-01 00:00:00 x:1] ready\nseed: 4\n");
  EXPECT_EQ(log.facts.gpu_count, 16);
  EXPECT_EQ(log.facts.micro_batch_size, 2);
  EXPECT_EQ(log.facts.learning_rate, 3e-4);
  EXPECT_EQ(log.facts.precision, Precision::bf16);
  EXPECT_EQ(setting(log, "seed"), "(absent)");
}

TEST(Settings, ADumpIsTrustedMoreThanTheCommand) {
  const char* command =
      "+ torchrun --nproc_per_node=4 train.py --global-batch-size 999 --seed 7 --bf16 --data-path 0.5 a 0.5 b\n";
  const ExtractedLog both = read_settings_log(command + std::string("  global_batch_size ..................... 16\n"));
  EXPECT_EQ(both.facts.global_batch_size, 16);
  EXPECT_EQ(both.facts.seed, 7);
  const ExtractedLog alone = read_settings_log(command);
  EXPECT_EQ(alone.facts.global_batch_size, 999);
  EXPECT_EQ(alone.facts.gpu_count, 4);
  EXPECT_EQ(setting(alone, "nproc_per_node"), "4");
  EXPECT_EQ(setting(alone, "bf16"), "True");
  EXPECT_EQ(setting(alone, "data_path"), "0.5 a 0.5 b");
  EXPECT_TRUE(read_settings_log("usage: torchrun [-h] [--nnodes NNODES] [--nproc-per-node N]\n").settings.empty());
}

TEST(Settings, ReadsTorchrunsLaunchConfiguration) {
  const ExtractedLog log = read_settings_log(
      "I0307 22:41:27.659000 192252 torch/distributed/launcher/api.py:194] Starting operator with launch configs:\n"
      "I0307 22:41:27.659000 192252 torch/distributed/launcher/api.py:194]   min_nodes        : 2\n"
      "I0307 22:41:27.659000 192252 torch/distributed/launcher/api.py:194]   max_nodes        : 2\n"
      "I0307 22:41:27.659000 192252 torch/distributed/launcher/api.py:194]   nproc_per_node   : 8\n"
      "I0307 22:41:27.659000 192252 torch/distributed/launcher/api.py:194] \n"
      "  seed : 4\n");
  EXPECT_EQ(log.facts.gpu_count, 16);
  EXPECT_EQ(setting(log, "seed"), "(absent)");
}

TEST(SettingNames, FactsThatAreKnownStay) {
  LoggedFacts facts;
  facts.max_steps = 5;
  apply_settings({{"train_iters", "10"}, {"seed", "3"}}, facts);
  EXPECT_EQ(facts.max_steps, 5);
  EXPECT_EQ(facts.seed, 3);
}

TEST(SettingNames, ValuesThatCannotBeAreIgnored) {
  LoggedFacts facts;
  apply_settings({{"global_batch_size", "-1"},
                  {"train_iters", "1e300"},
                  {"world_size", "0"},
                  {"micro_batch_size", "9007199254740993"},
                  {"seq_length", "many"},
                  {"lr", "nan"},
                  {"weight_decay", "0.1 or so"},
                  {"clip_grad", "-1"},
                  {"seed", "12x"},
                  {"optimizer", "None"},
                  {"nproc_per_node", "99999999999"}},
                 facts);
  EXPECT_TRUE(effective_settings(facts).empty());
}

LoggedFacts facts_of(const std::map<std::string, std::string>& settings) {
  LoggedFacts facts;
  apply_settings(settings, facts);
  return facts;
}

TEST(SettingNames, RecomputationByAnyName) {
  EXPECT_EQ(facts_of({{"recompute_granularity", "None"}}).recompute, "none");
  EXPECT_EQ(facts_of({{"recompute_granularity", "selective"}}).recompute, "selective");
  EXPECT_EQ(facts_of({{"activation_checkpoint.mode", "full"}}).recompute, "full");
  EXPECT_EQ(facts_of({{"checkpoint_activations", "True"}}).recompute, "full");
  EXPECT_EQ(facts_of({{"gradient_checkpointing", "false"}}).recompute, "none");
  EXPECT_FALSE(facts_of({{"recompute", "False"}}).recompute) << "GPT-NeoX means generation by that";
  EXPECT_FALSE(facts_of({{"seed", "1"}}).recompute);
  EXPECT_EQ(facts_of({{"recompute_granularity", "full"}, {"recompute_method", "block"}, {"recompute_num_layers", "0"}})
                .recompute,
            "none");
}

TEST(SettingNames, ShardingByAnyName) {
  EXPECT_EQ(facts_of({{"zero_optimization.stage", "3"}}).zero_stage, 3);
  EXPECT_EQ(facts_of({{"use_distributed_optimizer", "True"}}).zero_stage, 1);
  EXPECT_EQ(facts_of({{"use_distributed_optimizer", "False"}}).zero_stage, 0);
  EXPECT_FALSE(facts_of({{"use_distributed_optimizer", "True"}, {"use_torch_fsdp2", "True"}}).zero_stage);
  EXPECT_FALSE(facts_of({}).zero_stage);
  EXPECT_EQ(facts_of({{"virtual_pipeline_model_parallel_size", "2"}}).virtual_pipeline, 2);
  EXPECT_FALSE(facts_of({{"virtual_pipeline_model_parallel_size", "None"}}).virtual_pipeline);
  EXPECT_EQ(facts_of({{"sequence_parallel", "True"}}).sequence_parallel, true);
  EXPECT_FALSE(facts_of({}).sequence_parallel);
}

TEST(SettingNames, EffectiveSettingsHaveOurNames) {
  LoggedFacts facts;
  apply_settings({{"encoder_seq_length", "2048"}, {"train_batch_size", "512"}, {"fp8", "hybrid"}, {"lr", "0.001"}},
                 facts);
  const auto settings = effective_settings(facts);
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings[0].key, "sequence_length");
  EXPECT_EQ(settings[0].value, "2048");
  EXPECT_EQ(settings[1].key, "global_batch_size");
  EXPECT_EQ(settings[2].value, "fp8");
  EXPECT_EQ(settings[3].key, "learning_rate");
  EXPECT_EQ(settings[3].value, "0.001");
}

TEST(Settings, HostileInputEnds) {
  std::string deep = "Running with args: ";
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_TRUE(read_settings_log(deep + "\n").settings.empty());
  EXPECT_TRUE(read_settings_log("Running with args: {'a\n': 1}\n").settings.size() <= 1);
  EXPECT_TRUE(
      read_settings_log("x TrainingArguments(((((\n  json = {}}}}\n- arguments -\n  ... ...\n").settings.empty());
}

}  // namespace
}  // namespace tprimat::logs
