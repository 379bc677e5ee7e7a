#include "unit/compare/expert_pairs.h"

// The same work on both sides: whatever else differs, the ratio of the rates is a speed.
namespace tprimat::results::expert {
namespace {

std::vector<ExpertPair> pairs_of_both_vendors() {
  using enum Answer;
  return {
      {"BothVendors", h100(), mi300x(), faster,
       "same model, batch and schedule; each vendor's own framework and layout"},
      {"BothVendorsOneRunEach", h100({runs(1)}), mi300x({runs(1)}), faster,
       "20 % is far beyond what two launches differ by", "few_runs"},
      {"BothVendorsAlike", h100(), mi300x({speed(400.0 / 480)}), same, "0.1 % between runs bounds the gap within 1 %"},
  };
}

std::vector<ExpertPair> pairs_of_few_or_noisy_runs() {
  using enum Answer;
  return {
      {"OnePercentOfOneRunEach", h100({runs(1)}), h100({runs(1), speed(1.01)}), inconclusive,
       "one launch each cannot tell 1 % from luck", "few_runs"},
      {"FivePercentOfOneRunEach", h100({runs(1)}), h100({runs(1), speed(1.05)}), inconclusive,
       "nobody knows the spread between launches, and 5 % is within what it often is", "few_runs"},
      {"ThreePercentOfNoisyRuns", h100({noisy(0.02, 0.01)}), h100({noisy(0.02, 0.01), speed(1.03)}), inconclusive,
       "the runs of a side differ by as much as the sides"},
      {"ThreePercentOfNoisySteps", h100({noisy(0.05, 0.001), runs(10)}),
       h100({noisy(0.05, 0.001), runs(10), speed(1.03)}), faster,
       "ten runs each average the noise away, which is no drift"},
      {"ThreePercentOfQuietRuns", h100(), h100({speed(1.03)}), faster, "three runs each that agree within 0.1 %"},
      {"ThreePercentSlower", h100(), h100({speed(0.97)}), slower, "three runs each that agree within 0.1 %"},
      {"ThreeRunsAgainstFive", h100(), h100({runs(5)}), same, "more repetitions are no other work"},
      {"OneRunAgainstThree", h100(), h100({runs(1), speed(1.1)}), faster, "10 %, and three runs show the spread",
       "few_runs"},
  };
}

std::vector<ExpertPair> pairs_of_other_sizes() {
  using enum Answer;
  return {
      {"OneProcessorAgainstAnother", small_on_cpu(),
       small_on_cpu({device("Intel(R) Xeon(R) Platinum 8480+"), speed(1.5)}), faster,
       "a processor is a platform too, whoever made it"},
      {"Fp8InTwoFrameworks", b200_in_fp8(),
       b200_in_fp8({speed(1.1), facts([](RunResult& r) { r.framework = Framework::mega; })}), faster,
       "the same format and the same recipe of scaling"},
      {"SmallModelOnALargeDevice", h100({model("gpt2", "gpt2"), sequence_length(1024), speed(0.03)}),
       mi300x({model("gpt2", "gpt2"), sequence_length(1024), speed(0.04)}), faster,
       "an MFU of 1 % is poor and true: kernels of a small model are launches"},
      {"TinyBatchesOnALargeDevice", h100({model("gpt2", "gpt2"), batch(16), sequence_length(512), speed(0.004)}),
       mi300x({model("gpt2", "gpt2"), batch(32), sequence_length(512), speed(0.004)}), faster,
       "an MFU of 0.2 % is what a test run has, and no wrong unit", "batch"},
      {"ExpertsOnBothSides", experts_on_h100(), experts_on_h100({layout(4, 4, 4), speed(0.9)}), slower,
       "one mixture of experts, two layouts", "layout"},
  };
}

std::vector<ExpertPair> pairs_of_layouts() {
  using enum Answer;
  return {
      {"TensorParallel8Against4", h100({layout(4, 1, 2)}), h100({layout(8, 1, 1), speed(0.9)}), slower,
       "the layout is what is compared", "layout"},
      {"ContextParallel", h100(), h100({layout(2, 1, 2, 2), speed(0.95)}), slower,
       "the sequence is as long, only split over two devices", "layout"},
      {"InterleavedPipeline", large_on_h100(),
       large_on_h100(
           {speed(1.06), facts([](RunResult& r) { r.parallelism_config.virtual_pipeline_model_parallel_size = 5; })}),
       faster, "smaller bubbles are the speed that is measured"},
      {"PipelineAgainstTensor", large_on_h100({layout(8, 2, 4)}), large_on_h100({layout(4, 8, 2), speed(1.04)}), faster,
       "one batch of one model, cut another way", "layout"},
  };
}

std::vector<ExpertPair> pairs_of_tuning() {
  using enum Answer;
  return {
      {"MicroBatch2Against1", h100({micro_batch(1)}), h100({speed(1.08)}), faster,
       "gradient accumulation keeps the global batch", "tuning"},
      {"ZeroStage3Against1", h100(),
       h100({speed(0.92), facts([](RunResult& r) { r.parallelism_config.zero_stage = 3; })}), slower,
       "where states live changes communication and not the mathematics", "tuning"},
      {"SequenceParallel", h100({facts([](RunResult& r) { r.parallelism_config.sequence_parallel = false; })}),
       h100({speed(1.05), facts([](RunResult& r) { r.parallelism_config.sequence_parallel = true; })}), faster,
       "norms split over the tensor-parallel group are the same norms", "tuning"},
  };
}

std::vector<ExpertPair> pairs_of_scales() {
  using enum Answer;
  return {
      {"TwiceTheBatch", h100(), h100({batch(256), speed(1.05)}), faster,
       "tokens per second stay comparable; a reader must know that the batch helps", "batch"},
      {"SixteenDevicesAgainstEight", h100(), h100({devices(16), speed(0.95)}), slower,
       "per device, which holds the cost of scaling: beside it, a warning", "device_count"},
  };
}

std::vector<ExpertPair> pairs_of_layouts_not_printed() {
  using enum Answer;
  return {
      {"LayoutNotPrinted", h100(), h100({facts([](RunResult& r) {
         r.parallelism_config = {};
         r.training_config.micro_batch_size.reset();
       })}),
       same, "a log that tells no layout tells of no other work"},
      {"DataParallelNotPrinted", h100(),
       h100({facts([](RunResult& r) { r.parallelism_config.data_parallel_size.reset(); })}), same,
       "it follows from the rest"},
      {"AccumulationNotPrinted", h100(),
       h100({facts([](RunResult& r) { r.parallelism_config.gradient_accumulation_steps.reset(); })}), same,
       "it follows from the rest"},
  };
}

std::vector<ExpertPair> pairs_of_settings() {
  using enum Answer;
  return {
      {"OtherSeeds", h100(), h100({training([](TrainingConfig& c) { c.seed = 42; })}), same,
       "other weights and order at the start cost no time", "seed"},
      {"RepetitionsWithTheirOwnSeeds", h100({each_run([](RunResult& r, int run) { r.training_config.seed = run; })}),
       h100({each_run([](RunResult& r, int run) { r.training_config.seed = run; })}), same,
       "that is how one repeats a training well"},
      {"FullRecomputation", h100(), h100({speed(0.77), training([](TrainingConfig& c) { c.recompute = "full"; })}),
       slower, "true of the trainings as they ran; the reason must stand beside it", "recompute"},
      {"MoreDataLoaderWorkers", h100({printed({{"num_workers", "2"}})}), h100({printed({{"num_workers", "8"}})}), same,
       "how tokens reach the device is no work of the model"},
      {"AttentionKernel", h100({printed({{"attention_backend", "flash"}})}),
       h100({printed({{"attention_backend", "fused"}}), speed(1.04)}), faster, "another kernel for one function",
       "tuning"},
  };
}

std::vector<ExpertPair> pairs_of_other_versions() {
  using enum Answer;
  return {
      {"NewerLibrary", h100(), h100({speed(1.06), facts([](RunResult& r) { r.framework_version = "core_r0.15.0"; })}),
       faster, "what a new version is worth is a fair question", "versions"},
      {"NewerDeviceWithNewerLibrary", h100(),
       h100({device("NVIDIA H200"), speed(1.1), facts([](RunResult& r) { r.framework_version = "core_r0.15.0"; })}),
       faster, "two systems; which part is the device's is not known", "hardware_and_software"},
  };
}

std::vector<ExpertPair> pairs_of_spellings() {
  using enum Answer;
  return {
      {"AdamOfMegatron", h100({optimizer("adam")}), h100({optimizer("AdamW")}), same,
       "Megatron-LM's adam decouples the decay: one optimizer under two names"},
      {"FusedAdam", h100({optimizer("FusedAdam")}), h100({optimizer("adamw_torch_fused")}), same,
       "fusing kernels changes no update"},
      {"NamesOfACosine", h100({schedule("cosine")}), h100({schedule("CosineAnnealing")}), same,
       "the recorded rates agree step by step"},
      {"PackedOnBothSides", h100({printed({{"packing", "true"}})}), mi300x({printed({{"packed_sequence", "True"}})}),
       faster, "two frameworks' names for one setting"},
      {"NoDropoutInTwoSpellings", h100({printed({{"hidden_dropout", "0.0"}, {"attention_dropout", "0"}})}),
       h100({printed({{"hidden_dropout", "0"}, {"attention_dropout", "0.0"}})}), same, "none is none"},
  };
}

std::vector<ExpertPair> pairs_of_rates_as_logged() {
  using enum Answer;
  return {
      {"RatesLoggedOneStepLate", h100(), h100({series([](RunResult& r) {
         r.learning_rates.insert(r.learning_rates.begin(), 0.0);
         r.learning_rates.pop_back();
       })}),
       same, "one framework logs the rate before its update, the other after"},
      {"RatesInSinglePrecision", h100(), h100({series([](RunResult& r) {
         for (double& rate : r.learning_rates) rate = static_cast<double>(static_cast<float>(rate));
       })}),
       same, "a float prints 3e-4 as 0.00030000001"},
  };
}

std::vector<ExpertPair> pairs_of_adapters() {
  using enum Answer;
  return {
      {"SameAdapters", h100({lora(41'943'040)}), mi300x({lora(41'943'040)}), faster,
       "LoRA of one rank on the same layers"},
      {"AllParametersTrainable", h100(),
       h100({facts([](RunResult& r) { r.model_info.trainable_parameters = r.model_info.num_parameters; })}), same,
       "one log says what the other need not say"},
      {"AdaptersCountedInRoundFigures", h100({lora(41'943'040)}), mi300x({lora(41'900'000)}), faster,
       "41.9M of one log are the 41943040 of the other"},
  };
}

std::vector<ExpertPair> pairs_of_unequal_records() {
  using enum Answer;
  return {
      {"RepetitionThatTellsLess", h100(), h100({last_run([](RunResult& r) {
         r.training_config.optimizer.reset();
         r.training_config.recompute.reset();
         r.framework_version.reset();
         r.learning_rates.clear();
       })}),
       same, "what one log leaves out is no other training"},
      {"MadeUpDataForAMeasurementOfSpeed", h100({printed({{"mock_data", "false"}}), no_loss()}),
       h100({printed({{"mock_data", "true"}}), no_loss(), facts([](RunResult& r) { r.dataset = "mock"; })}), same,
       "dense products cost the same whatever the tokens are, but reading them may not",
       Codes({"synthetic_data", "dataset", "loss_missing"})},
      {"DatasetUnderAnotherPath", h100(), h100({facts([](RunResult& r) { r.dataset = "/mnt/data/c4_text_document"; })}),
       same, "the losses agree; that the tokens do is not shown", "dataset"},
      {"LongerRunAtAConstantRate", h100({schedule("constant"), training([](TrainingConfig& c) { c.max_steps = 60; })}),
       h100({schedule("constant"), steps(120)}), same, "the rate of a steady state; the longer run saw more", "steps"},
  };
}

std::vector<ExpertPair> pairs_of_one_model() {
  using enum Answer;
  return {
      {"NameOfHuggingFace", h100(), mi300x({model("llama3.1_8b", "meta-llama/Llama-3.1-8B")}), faster, "one model"},
      {"NameWithBlanks", h100({model("llama3.1_8b", "llama")}), mi300x({model("llama3.1_8b", "Llama 3.1 8B")}), faster,
       "one model"},
      {"PaddedVocabulary", h100(), h100({layout(8, 1, 1), shape([](ModelSpec& m) { m.vocab_size = 129'024; })}), same,
       "padded to 128 x TP, which costs 0.6 % of the head", "model_details"},
      {"WindowAsLongAsTheSequence", h100({model("mistral_7b", "mistral_7b")}),
       mi300x({model("mistral_7b", "mistral_7b"), shape([](ModelSpec& m) { m.sliding_window.reset(); })}), faster,
       "every query sees all keys before it either way"},
      {"LongerContextConfigured", h100(), h100({shape([](ModelSpec& m) { m.max_position_embeddings = 8192; })}), same,
       "the positions that are not trained on cost nothing"},
      {"ShapeNotInTheLog", h100(), mi300x({shape_unknown(8'030'000'000)}), faster,
       "named and counted as the same model, to three digits", "shape_missing"},
  };
}

}  // namespace

std::vector<ExpertPair> comparable_pairs() {
  return joined<ExpertPair>({pairs_of_both_vendors(), pairs_of_few_or_noisy_runs(), pairs_of_other_sizes(),
                             pairs_of_layouts(), pairs_of_tuning(), pairs_of_scales(), pairs_of_layouts_not_printed(),
                             pairs_of_settings(), pairs_of_other_versions(), pairs_of_spellings(),
                             pairs_of_rates_as_logged(), pairs_of_adapters(), pairs_of_unequal_records(),
                             pairs_of_one_model()});
}

}  // namespace tprimat::results::expert
