#include <cmath>

#include "result/summary.h"
#include "unit/compare/expert_pairs.h"

// Complete, honest files of trainings that did not do the same: no verdict.
namespace tprimat::results::expert {
namespace {

std::vector<ExpertPair> pairs_of_two_shapes() {
  using enum Answer;
  return {
      {"HalfTheLayers", h100(), h100({shape([](ModelSpec& m) { m.num_layers = 16; })}), withheld,
       "half the work behind a token", "model_shape"},
      {"OtherHiddenSize", h100(),
       h100({shape([](ModelSpec& m) { m.hidden_size = 3584, m.num_attention_heads = 28, m.num_key_value_heads = 4; })}),
       withheld, "another model under the same name", "model_shape"},
      {"OtherFfn", h100(), h100({shape([](ModelSpec& m) { m.ffn_hidden_size = 11'008; })}), withheld,
       "a sixth less work behind a token", "model_shape"},
      {"OtherKindOfMlp", h100(), h100({shape([](ModelSpec& m) { m.mlp = MlpKind::gelu; })}), withheld,
       "two products instead of three", "model_shape"},
      {"AllHeadsInsteadOfGroups", h100(), h100({shape([](ModelSpec& m) { m.num_key_value_heads = 32; })}), withheld,
       "four times the keys and values", "model_shape"},
      {"TiedEmbeddings", h100(), h100({shape([](ModelSpec& m) { m.tied_embeddings = true; })}), withheld,
       "half a billion weights less to update", "model_shape"},
  };
}

std::vector<ExpertPair> pairs_of_two_llamas() {
  using enum Answer;
  const Edit named_llama = facts([](RunResult& r) { r.model_info.name = "llama"; });
  const Edit no_full_name = facts([](RunResult& r) { r.model_info.full_name.reset(); });
  return {
      {"Llama2AgainstLlama3", h100({named_llama}), h100({model("llama2_7b", "llama")}), withheld,
       "two generations, both called llama", "model_shape"},
      {"Llama2AgainstLlama3ByCount", h100({named_llama, no_full_name, no_loss(), shape_unknown(8'030'261'248)}),
       h100({model("llama2_7b", "llama"), no_full_name, no_loss(), shape_unknown(6'738'415'616)}), withheld,
       "no shape is known, but the counts are", "model_shape"},
      {"Llama2AgainstLlama3ByFullName", h100({named_llama, no_loss(), shape_unknown(0)}),
       h100({model("llama2_7b", "llama"), no_loss(), shape_unknown(0)}), withheld,
       "neither shape nor count, but the full names say it", Codes({"model_shape", "model_name"})},
      {"ShapeAgainstCount", h100({named_llama}),
       h100({model("llama2_7b", "llama"), no_full_name, no_loss(), shape_unknown(6'738'415'616)}), withheld,
       "one side's shape gives 8.0 billion parameters, the other counts 6.7", "model_shape"},
  };
}

std::vector<ExpertPair> pairs_of_two_vocabularies_or_windows() {
  using enum Answer;
  return {
      {"OtherVocabulary", h100(), h100({shape([](ModelSpec& m) { m.vocab_size = 32'000; })}), withheld,
       "another tokenizer: another number of tokens behind a text, a smaller head, other losses", "model_shape"},
      {"WindowAgainstNone", h100({model("mistral_7b", "mistral_7b"), sequence_length(32'768), batch(64)}),
       h100({model("mistral_7b", "mistral_7b"), sequence_length(32'768), batch(64),
             shape([](ModelSpec& m) { m.sliding_window.reset(); })}),
       withheld, "4096 keys a query against up to 32768", "model_shape"},
  };
}

std::vector<ExpertPair> pairs_of_other_work() {
  using enum Answer;
  const Edit adapters = lora(41'943'040);
  const Edit fp8 = facts([](RunResult& r) { r.precision = Precision::fp8; });
  return {
      {"LongerSequences", h100(), h100({sequence_length(8192), batch(64)}), withheld,
       "as many tokens a step, but attention costs more behind each", "sequence_length"},
      {"Fp8AgainstBf16", h100(), h100({fp8, speed(1.4)}), withheld, "twice the peak, and other numerics", "precision"},
      {"AdaptersAgainstFull", h100(), h100({adapters, speed(1.05)}), withheld,
       "frozen weights have no gradients and no optimizer states: a third less work", "trainable_parameters"},
      {"FrozenHalfAgainstFull", h100(), h100({lora(4'000'000'000)}), withheld,
       "half of the weights' gradients are never computed", "trainable_parameters"},
      {"AdaptersOfOtherRanks", h100({adapters}), h100({lora(4 * 41'943'040)}), withheld,
       "rank 64 against 16: other work in the adapters, and another training", "trainable_parameters"},
  };
}

std::vector<ExpertPair> pairs_of_other_data_settings() {
  using enum Answer;
  return {
      {"PackingAgainstPadding", h100({printed({{"packing", "true"}})}), h100({printed({{"packing", "false"}})}),
       withheld, "one side counts padding as tokens", "data_settings"},
      {"DropoutAgainstNone", h100({printed({{"hidden_dropout", "0.1"}, {"attention_dropout", "0.1"}})}),
       h100({printed({{"hidden_dropout", "0.0"}, {"attention_dropout", "0.0"}})}), withheld,
       "Megatron-LM's default drops: other kernels, masks in memory, and another training", "data_settings"},
      {"PredictsFurtherTokens", h100({printed({{"mtp_num_layers", "1"}})}),
       h100({printed({{"mtp_num_layers", "None"}})}), withheld, "another layer and another head behind every token",
       "prediction_layers"},
  };
}

std::vector<ExpertPair> pairs_of_other_learning_rates() {
  using enum Answer;
  const Edit slow_rate = training([](TrainingConfig& c) { c.learning_rate = 1e-4; });
  return {
      {"OtherLearningRate", h100(), h100({slow_rate}), withheld, "another training, whatever its speed",
       "learning_rate"},
      {"OtherLearningRateAskedForOnly", h100({no_learning_rates()}), h100({slow_rate, no_learning_rates()}), withheld,
       "no rates are logged, but what was asked for differs", "learning_rate"},
      {"ConstantAgainstCosine", h100(), h100({schedule("constant")}), withheld, "another training", "learning_rate"},
      {"LongerWarmupOfTheRate", h100(), h100({training([](TrainingConfig& c) { c.warmup_steps = 40; })}), withheld,
       "another training", "learning_rate"},
  };
}

std::vector<ExpertPair> pairs_of_other_optimizers() {
  using enum Answer;
  return {
      {"SgdAgainstAdamW", h100(), h100({optimizer("sgd")}), withheld, "two states a weight against one or none",
       "optimizer"},
      {"MuonAgainstAdamW", h100(), h100({optimizer("muon")}), withheld, "matrix products within the update",
       "optimizer"},
      {"OtherClipping", h100(), h100({training([](TrainingConfig& c) { c.clip_grad_norm = 0.1; })}), withheld,
       "other updates", "optimizer"},
      {"NoWeightDecay", h100(), h100({training([](TrainingConfig& c) { c.weight_decay = 0.0; })}), withheld,
       "other updates", "optimizer"},
  };
}

std::vector<ExpertPair> pairs_of_skipped_updates() {
  using enum Answer;
  return {
      {"AllUpdatesSkipped", h100({no_loss()}), h100({no_loss(), skipped_updates(60)}), withheld,
       "a training that updates nothing trains nothing, and spares the optimizer",
       Codes({"skipped_updates", "idle_optimizer"})},
      {"AThirdOfTheUpdatesSkipped", h100(), h100({skipped_updates(18)}), withheld,
       "30 % of the steps did no optimizer work and taught nothing", "skipped_updates"},
      {"ATenthOfTheGradientsAreNaN", h100(), h100({series([](RunResult& r) {
         r.grad_norms.assign(r.step_times.size(), 1.0);
         r.events.emplace();
         for (size_t i = 30; i < 36; ++i) {
           r.grad_norms[i] = std::nan("");
           r.events->push_back(
               {EventKind::nan, {}, step_number(r, i), {}, {}, {}, "the gradient norm is not a number"});
         }
       })}),
       withheld, "these steps taught nothing, whatever their loss", "skipped_updates"},
  };
}

std::vector<ExpertPair> pairs_of_other_losses() {
  using enum Answer;
  return {
      {"LossOnAnotherScale", h100(), h100({loss_from(1, [](double loss, int64_t) { return loss / 2; })}), withheld,
       "half the loss at every step is another objective or another mean", "loss"},
      {"LossCollapses", h100(), h100({loss_from(30, [](double, int64_t) { return 0.001; })}), withheld,
       "memorised data: an easier task, if a task at all", Codes({"loss", "loss_collapse"})},
      {"LossDiverges", h100(),
       h100({loss_from(30, [](double loss, int64_t step) { return loss + 0.2 * static_cast<double>(step - 30); })}),
       withheld, "a training that fails at full speed", Codes({"loss", "loss_divergence"})},
      {"LossThatNeverMoves", h100(), h100({loss_from(1, [](double, int64_t) { return 11.76; })}), withheld,
       "nothing is learnt", Codes({"loss", "impossible_loss"})},
  };
}

// The fault of these and the next is in the last repetition only.
std::vector<ExpertPair> pairs_with_one_other_training() {
  using enum Answer;
  return {
      {"LastRunWithAnotherOptimizer", h100(),
       h100({last_run([](RunResult& r) { r.training_config.optimizer = "sgd"; })}), withheld,
       "a mean over two trainings is neither's", Codes({"runs_differ", "optimizer"})},
      {"LastRunWithAnotherRate", h100(), h100({last_run([](RunResult& r) {
         for (double& rate : r.learning_rates) rate /= 3;
         r.training_config.learning_rate = 1e-4;
       })}),
       withheld, "a mean over two trainings is neither's", Codes({"runs_differ", "learning_rate"})},
      {"LastRunSkipsItsUpdates", h100(), h100({last_run([](RunResult& r) { r.skipped_updates = 60; })}), withheld,
       "one of the three trained nothing", Codes({"skipped_updates", "runs_differ"})},
      {"LastRunLearnsSomethingElse", h100(), h100({last_run([](RunResult& r) {
         for (double& loss : r.loss_values) loss *= 0.5;
       })}),
       withheld, "the mean of three curves must not hide that one is another training's",
       Codes({"runs_differ", "loss"})},
      {"LastRunOfTheReference", h100({last_run([](RunResult& r) { r.training_config.weight_decay = 0.0; })}), mi300x(),
       withheld, "the reference is no better than its worst run", Codes({"runs_differ", "optimizer"})},
  };
}

std::vector<ExpertPair> pairs_with_one_other_work() {
  using enum Answer;
  return {
      {"LastRunPacked", h100({printed({{"packing", "false"}})}),
       h100({printed({{"packing", "false"}}),
             last_run([](RunResult& r) { (*r.effective_config)["packing"] = "true"; })}),
       withheld, "a mean over packed and padded runs is neither's", Codes({"runs_differ", "data_settings"})},
      {"LastRunWithAdapters", h100(),
       h100({last_run([](RunResult& r) { r.model_info.trainable_parameters = 41'943'040; })}), withheld,
       "a mean over full training and adapters is neither's", Codes({"runs_differ", "trainable_parameters"})},
      {"LastRunInFp8", h100(), h100({last_run([](RunResult& r) { r.precision = Precision::fp8; })}), withheld,
       "another format, as a run of its own or as one of three", Codes({"runs_differ", "precision"})},
      {"LastRunOnLongerSequences", h100(), h100({last_run([](RunResult& r) {
         r.training_config.sequence_length = 8192;
         r.training_config.global_batch_size = 64;
         r.parallelism_config.gradient_accumulation_steps = 8;
       })}),
       withheld, "other work, as a run of its own or as one of three", Codes({"runs_differ", "sequence_length"})},
  };
}

}  // namespace

std::vector<ExpertPair> other_work_pairs() {
  return joined<ExpertPair>({pairs_of_two_shapes(), pairs_of_two_llamas(), pairs_of_two_vocabularies_or_windows(),
                             pairs_of_other_work(), pairs_of_other_data_settings(), pairs_of_other_learning_rates(),
                             pairs_of_other_optimizers(), pairs_of_skipped_updates(), pairs_of_other_losses(),
                             pairs_with_one_other_training(), pairs_with_one_other_work()});
}

}  // namespace tprimat::results::expert
