#include <cmath>

#include "unit/compare/expert_pairs.h"

// Mixtures of experts. The shapes are those of the published models; DeepSeek-V3 as Megatron-LM and Primus train it.
namespace tprimat::results::expert {
namespace {

ModelSpec deepseek_v3() {
  ModelSpec m;
  m.name = "deepseek_v3", m.full_name = "DeepSeek-V3";
  m.num_layers = 61, m.hidden_size = 7168, m.ffn_hidden_size = 18'432, m.vocab_size = 129'280;
  m.num_attention_heads = m.num_key_value_heads = 128, m.head_dim = 128;
  m.max_position_embeddings = 4096;
  m.latent_attention = LatentAttention{1536, 512, 64, 128};
  m.prediction_layers = 1;
  Experts& e = m.experts.emplace();
  e.count = 256, e.per_token = 8, e.ffn_hidden_size = 2048, e.shared_ffn_hidden_size = 2048, e.first_dense_layers = 3;
  e.router_score = RouterScore::sigmoid, e.weight_scale = 2.5, e.groups = 8, e.groups_per_token = 4;
  e.balancing = LoadBalancing::bias, e.aux_loss_coefficient = 1e-4;
  return m;
}

ModelSpec qwen3_30b() {
  ModelSpec m;
  m.name = "qwen3_30b_a3b", m.full_name = "Qwen3-30B-A3B";
  m.num_layers = 48, m.hidden_size = 2048, m.ffn_hidden_size = 6144, m.vocab_size = 151'936;
  m.num_attention_heads = 32, m.num_key_value_heads = 4, m.head_dim = 128, m.qk_norm = true;
  m.max_position_embeddings = 40'960;
  Experts& e = m.experts.emplace();
  e.count = 128, e.per_token = 8, e.ffn_hidden_size = 768;
  e.balancing = LoadBalancing::aux_loss, e.aux_loss_coefficient = 1e-3;
  return m;
}

Edit model_of(const ModelSpec& spec) {
  return [=](Training& t) {
    ModelInfo& m = t.facts.model_info;
    m.shape = spec;
    m.name = spec.name, m.full_name = spec.full_name;
    m.num_parameters = count_parameters(spec).total();
  };
}

Training deepseek(const Edits& edits = {}) {  // 256 H100, Megatron-LM
  Edits all = {model_of(deepseek_v3()), micro_batch(1), batch(4096), layout(1, 8, 32), speed(0.8)};
  all.insert(all.end(), edits.begin(), edits.end());
  return experts_on_h100(all);
}

Training qwen(const Edits& edits = {}) {  // 16 H100, Megatron-LM
  Edits all = {model_of(qwen3_30b()), micro_batch(1), batch(1024), layout(1, 1, 16), speed(0.6)};
  all.insert(all.end(), edits.begin(), edits.end());
  return experts_on_h100(all);
}

Edit experts(const std::function<void(ExpertFigures&)>& change) {
  return facts([=](RunResult& r) { change(*r.experts); });
}
Edit routing(std::optional<Routing> kind) {
  return experts([=](ExpertFigures& e) { e.routing = kind; });
}
Edit routing_by_log(const std::string& setting, const std::string& value) {  // as files of earlier versions tell it
  return [=](Training& t) { routing({})(t), printed({{setting, value}})(t); };
}
Edit expert_shape(const std::function<void(Experts&)>& change) {
  return shape([=](ModelSpec& m) { change(*m.experts); });
}
Edit expert_ranks(int64_t ranks, int64_t tensor = 1) {
  return facts([=](RunResult& r) {
    r.parallelism_config.expert_model_parallel_size = ranks;
    r.parallelism_config.expert_tensor_parallel_size = tensor;
  });
}
Edit on_mi300x() {
  return facts([](RunResult& r) {
    r.platform = Platform::amd, r.framework = Framework::prim;
    r.framework_version.reset();
    r.gpu_info.device_name = "AMD Instinct MI300X";
    r.gpu_info.software_stack = "rocm", r.gpu_info.software_version = "7.1.0";
  });
}

// The fullest expert's load rises and falls about `mean`; a step takes `cost` of its time longer for a load of 1 more.
Edit loads(double mean, double swing = 0.05, double cost = 0) {
  return series([=](RunResult& r) {
    std::vector<double>& values = r.experts->load_values.emplace();
    for (size_t i = 0; i < r.step_times.size(); ++i) {
      const double turn = 0.618034 * static_cast<double>(i);  // evenly spread over any stretch of steps
      values.push_back(mean + swing * (2 * (turn - std::floor(turn)) - 1));
      r.step_times[i] *= 1 + cost * (values.back() - mean);
    }
  });
}

std::vector<ExpertPair> pairs_on_both_vendors() {
  using enum Answer;
  const Edit balanced = routing(Routing::balanced);
  return {
      {"MixtralOnBothVendors", experts_on_h100(), experts_on_h100({on_mi300x(), expert_ranks(4), speed(1.2)}), faster,
       "one model, learned routing on both sides; each vendor's own framework and EP", "layout"},
      {"QwenOnBothVendors", qwen(), qwen({on_mi300x(), speed(1.15)}), faster, "the same with 128 small experts"},
      {"ForcedBalanceOnBothVendors", deepseek({balanced}), deepseek({balanced, on_mi300x(), speed(1.3)}), faster,
       "both publish with forced balance: a fair pair, and not the speed of real training", "forced_balance"},
      {"ForcedBalanceWithOtherCoefficients", deepseek({balanced}),
       deepseek({balanced, expert_shape([](Experts& e) { e.aux_loss_coefficient = 0.001; }), speed(1.1)}), faster,
       "forced balance overrules what a balancing loss would do", "forced_balance"},
      {"ForcedBalanceUnderTwoNames", qwen({routing_by_log("moe_router_force_load_balancing", "True")}),
       qwen({routing_by_log("debug.moe_force_load_balance", "true"),
             facts([](RunResult& r) { r.framework = Framework::tita; })}),
       same, "Megatron-LM's and torchtitan's names for one setting", "forced_balance"},
      {"MixtralInTwoFrameworks", experts_on_h100(),
       experts_on_h100({facts([](RunResult& r) { r.framework = Framework::nemo; }), speed(0.95)}), slower,
       "the framework is what is compared"},
      {"QwenInFp8OnBothSides", qwen({facts([](RunResult& r) { r.precision = Precision::fp8; }), speed(1.2)}),
       qwen({facts([](RunResult& r) { r.precision = Precision::fp8; }), on_mi300x(), speed(1.3)}), faster,
       "one format on both sides"},
  };
}

std::vector<ExpertPair> pairs_of_expert_layouts() {
  using enum Answer;
  return {
      {"FourExpertRanksAgainstEight", experts_on_h100(), experts_on_h100({expert_ranks(4), speed(1.07)}), faster,
       "which rank holds an expert is layout", "layout"},
      {"ExpertsSplitByTensorParallelism", experts_on_h100({expert_ranks(8)}),
       experts_on_h100({expert_ranks(8, 2), speed(0.9)}), slower,
       "half an expert on each of two ranks is the same expert", "layout"},
      {"FusedDispatcher", qwen(),
       qwen({experts([](ExpertFigures& e) { e.dispatcher = Dispatcher::deepep; }), speed(1.3)}), faster,
       "how tokens travel is no work of the model", "tuning"},
      {"ExpertRanksNotPrinted", experts_on_h100(),
       experts_on_h100({facts([](RunResult& r) { r.parallelism_config.expert_model_parallel_size.reset(); })}), same,
       "a log that tells no EP tells of no other work"},
      {"WidthOfNoLayer", experts_on_h100(), experts_on_h100({shape([](ModelSpec& m) { m.ffn_hidden_size = 28'672; })}),
       same, "every layer has experts: no layer has the dense width"},
  };
}

std::vector<ExpertPair> pairs_of_unknown_routing() {
  using enum Answer;
  const Edit untold = routing({});
  return {
      {"RoutingToldOnOneSide", experts_on_h100(), experts_on_h100({untold, speed(1.2)}), faster,
       "as it was measured; a reader must know that one side may force the balance", "routing_not_shown"},
      {"RoutingToldNowhere", experts_on_h100({untold}), experts_on_h100({untold, speed(1.2)}), faster,
       "the same, of both sides", "routing_not_shown"},
      {"BalancingToldOnOneSide",
       qwen({expert_shape([](Experts& e) { e.balancing = LoadBalancing::none, e.aux_loss_coefficient = 0; })}),
       qwen({speed(0.9)}), slower, "a log without its coefficients does not say that there are none",
       "balancing_not_shown"},
      {"GroupsNotConfigured", deepseek(),
       deepseek({expert_shape([](Experts& e) { e.groups = e.groups_per_token = 1; }), speed(0.93)}), slower,
       "the products are the same, the tokens travel further", "model_details"},
  };
}

Edit balancing_by_log(const std::string& type, const std::string& coefficient) {
  return printed({{"moe_router_load_balancing_type", type}, {"moe_aux_loss_coeff", coefficient}});
}
Edit dropping_by_log(const std::string& drops, const std::string& factor) {  // Megatron-DeepSpeed
  return printed({{"moe_token_dropping", drops}, {"moe_train_capacity_factor", factor}});
}

std::vector<ExpertPair> pairs_of_printed_routing() {
  using enum Answer;
  return {
      {"ForcedBiasInALog", experts_on_h100(),
       experts_on_h100({routing_by_log("moe_router_force_load_balancing", "False"),
                        printed({{"moe_router_force_biased", "0.5"}}), speed(1.2)}),
       faster, "random logits with a bias: the router does not choose", "routing_not_shown"},
      {"LastRunHidesItsRouting", experts_on_h100(),
       experts_on_h100({last_run([](RunResult& r) { r.experts->routing.reset(); })}), same,
       "one run of three may force the balance", "routing_not_shown"},
      {"CapacityWithoutDropping", experts_on_h100({dropping_by_log("False", "2.0")}),
       experts_on_h100({dropping_by_log("False", "1.0")}), same, "neither side drops, whatever capacity it prints"},
      {"LossesInAnotherOrder", qwen({balancing_by_log("['aux_loss', 'seq_aux_loss']", "[0.01, 0.001]")}),
       qwen({balancing_by_log("['seq_aux_loss', 'aux_loss']", "[0.001, 0.01]")}), same, "a sum has no order"},
  };
}

std::vector<ExpertPair> pairs_of_other_printed_routing() {
  using enum Answer;
  return {
      {"SinkhornAgainstNone", qwen({balancing_by_log("sinkhorn", "0.0")}), qwen({balancing_by_log("none", "0.0")}),
       withheld, "Sinkhorn's assignment is another router", "expert_balancing"},
      {"OneOfTwoLossesTenfold", qwen({balancing_by_log("['aux_loss', 'seq_aux_loss']", "[0.01, 0.001]")}),
       qwen({balancing_by_log("['aux_loss', 'seq_aux_loss']", "[0.01, 0.01]")}), withheld, "another objective",
       "expert_balancing"},
      {"LossOverAllRanks", qwen({balancing_by_log("global_aux_loss", "0.001")}),
       qwen({balancing_by_log("aux_loss", "0.001")}), withheld, "balance over the batch is not that over a micro-batch",
       "expert_balancing"},
      {"DropsAtOneCapacity", experts_on_h100({dropping_by_log("True", "1.0")}),
       experts_on_h100({dropping_by_log("False", "1.0")}), withheld, "only one side drops tokens", "expert_capacity"},
      {"InputPaddedToCapacity",
       experts_on_h100(
           {printed({{"moe_expert_capacity_factor", "1.0"}, {"moe_pad_expert_input_to_capacity", "True"}})}),
       experts_on_h100(
           {printed({{"moe_expert_capacity_factor", "1.0"}, {"moe_pad_expert_input_to_capacity", "False"}})}),
       withheld, "experts compute the padding, too", "data_settings"},
  };
}

// Active and total counts, experts counted dense, and loads that move.
std::vector<ExpertPair> pairs_of_readings() {
  using enum Answer;
  static constexpr int64_t k_active_of_mixtral = 12'879'925'248;
  const Edit counts_active = facts([](RunResult& r) { r.model_info.num_parameters = k_active_of_mixtral; });
  const Edit counts_all_experts = series([](RunResult& r) {
    const double active = flops_per_token(*r.model_info.shape, 4096, FlopFormula::causal);
    ModelSpec dense = *r.model_info.shape;
    dense.experts->per_token = dense.experts->count;
    const double ratio = flops_per_token(dense, 4096, FlopFormula::causal) / active;
    r.reported.emplace().tflops_per_gpu.emplace(r.step_times.size(), 300 * ratio);
  });
  return {
      {"ActiveCountOfALog", experts_on_h100(), experts_on_h100({shape_unknown(k_active_of_mixtral), speed(1.1)}),
       faster, "12.9 billion are the active ones of the 46.7", Codes({"active_against_total", "shape_missing"})},
      {"ActiveCountBesideTheShape", experts_on_h100(), experts_on_h100({counts_active}), same,
       "a label of the model, and no other model", "active_parameters"},
      {"ExpertsCountedDense", experts_on_h100(), experts_on_h100({counts_all_experts}), same,
       "the framework's TFLOP/s count all eight experts; tokens/s do not care", "experts_counted_dense"},
      {"FullerExpertOnTheSlowerSide", experts_on_h100({loads(1.3)}), experts_on_h100({loads(2.1), speed(0.85)}), slower,
       "true as measured, but the balance may be all that differs", "expert_load"},
      {"RateFollowsTheLoad", experts_on_h100({loads(1.4, 0.2, 0.2)}),
       experts_on_h100({loads(1.4, 0.2, 0.2), speed(1.3)}), faster,
       "steps with a fuller expert take longer, on both sides alike", "load_effect"},
      {"FewTokensDroppedOnBothSides",
       experts_on_h100({expert_shape([](Experts& e) { e.capacity_factor = 1.25; }),
                        experts([](ExpertFigures& e) { e.dropped_share = 0.004; })}),
       experts_on_h100({expert_shape([](Experts& e) { e.capacity_factor = 1.25; }),
                        experts([](ExpertFigures& e) { e.dropped_share = 0.007; })}),
       same, "0.3 % of the expert places is below what tokens/s resolve"},
  };
}

std::vector<ExpertPair> pairs_of_other_routing() {
  using enum Answer;
  return {
      {"ForcedBalanceAgainstLearned", qwen({routing(Routing::balanced), speed(1.5)}), qwen(), withheld,
       "no router trains, no rank waits: published pairs differ by up to 90 %", "routing"},
      {"ForcedBalanceOnTheOtherVendor", deepseek(), deepseek({routing(Routing::balanced), on_mi300x(), speed(1.4)}),
       withheld, "the usual pair of a press release", "routing"},
      {"ForcedBalanceInTwoLogs", experts_on_h100({routing_by_log("moe_router_force_load_balancing", "True")}),
       experts_on_h100({routing_by_log("moe_router_force_load_balancing", "False")}), withheld,
       "the settings that the frameworks printed tell it", "routing"},
      {"ForcedBalanceInSecret", qwen(), qwen({printed({{"moe_router_force_load_balancing", "True"}})}), withheld,
       "the file says learned, its own log says forced", "settings_contradiction"},
      {"LastRunForcesTheBalance", qwen(),
       qwen({last_run([](RunResult& r) { r.experts->routing = Routing::balanced; })}), withheld,
       "a mean over two kinds of work is neither's", Codes({"runs_differ", "routing"})},
      {"CapacityAgainstNone", experts_on_h100({expert_shape([](Experts& e) { e.capacity_factor = 1.0; })}),
       experts_on_h100(), withheld, "a capacity drops tokens, whose work is not done", "expert_capacity"},
      {"CapacityInTheSettings", experts_on_h100({printed({{"moe_expert_capacity_factor", "1.0"}})}),
       experts_on_h100({printed({{"moe_expert_capacity_factor", "None"}})}), withheld,
       "a capacity drops tokens, whose work is not done", "expert_capacity"},
      {"MoreTokensDropped",
       experts_on_h100({expert_shape([](Experts& e) { e.capacity_factor = 1.0; }),
                        experts([](ExpertFigures& e) { e.dropped_share = 0.02; })}),
       experts_on_h100({expert_shape([](Experts& e) { e.capacity_factor = 1.0; }),
                        experts([](ExpertFigures& e) { e.dropped_share = 0.15; })}),
       withheld, "one capacity, but a seventh of the experts' work is not done", "dropped_tokens"},
      {"OtherBalancingLoss", qwen(), qwen({expert_shape([](Experts& e) { e.aux_loss_coefficient = 0.02; })}), withheld,
       "twenty times the balancing loss is another training", "expert_balancing"},
      {"LossOfTheRouterOnOneSide", qwen(), qwen({expert_shape([](Experts& e) { e.z_loss_coefficient = 1e-3; })}),
       withheld, "another objective", "expert_balancing"},
      {"BiasAgainstBalancingLoss", deepseek(),
       deepseek({expert_shape([](Experts& e) { e.balancing = LoadBalancing::sequence_aux_loss; })}), withheld,
       "another way to the balance, another training", "expert_balancing"},
  };
}

std::vector<ExpertPair> pairs_of_other_sparse_models() {
  using enum Answer;
  const auto named = [](const ModelSpec& spec) {
    return Edits{model_of(spec), facts([](RunResult& r) { r.model_info.name = "moe"; })};
  };
  ModelSpec plain_attention = deepseek_v3();
  plain_attention.latent_attention.reset();
  return {
      {"PredictsAFurtherToken", deepseek(), deepseek({shape([](ModelSpec& m) { m.prediction_layers.reset(); })}),
       withheld, "another layer, and the head a second time, behind every token", "prediction_layers"},
      {"OneExpertAgainstTwo", experts_on_h100(), experts_on_h100({expert_shape([](Experts& e) { e.per_token = 1; })}),
       withheld, "half of the MLPs' work", "model_shape"},
      {"NoSharedExpert", deepseek(), deepseek({expert_shape([](Experts& e) { e.shared_ffn_hidden_size = 0; })}),
       withheld, "a ninth less of the MLPs' work", "model_shape"},
      {"NoDenseLayerFirst", deepseek(), deepseek({expert_shape([](Experts& e) { e.first_dense_layers = 0; })}),
       withheld, "three more layers whose tokens travel", "model_shape"},
      {"LatentAttentionAgainstPlain", deepseek(), deepseek({model_of(plain_attention)}), withheld,
       "other products for queries, keys and values", "model_shape"},
      {"TwoSparseModels", qwen(named(qwen3_30b())), qwen(named(deepseek_v3())), withheld,
       "3 billion active parameters against 37", "model_shape"},
      {"SparseAgainstDense", experts_on_h100({facts([](RunResult& r) { r.model_info.name = "mistral"; })}),
       experts_on_h100({model("mistral_7b_v0.3", "mistral"), facts([](RunResult& r) { r.experts.reset(); })}), withheld,
       "a token of the two buys another quality: tokens/s alone decide nothing", "sparse_against_dense"},
      {"Fp8AgainstBf16OfExperts", qwen(), qwen({facts([](RunResult& r) { r.precision = Precision::fp8; }), speed(1.2)}),
       withheld, "twice the peak, and other numerics", "precision"},
  };
}

}  // namespace

std::vector<ExpertPair> comparable_sparse_pairs() {
  return joined<ExpertPair>({pairs_on_both_vendors(), pairs_of_expert_layouts(), pairs_of_unknown_routing(),
                             pairs_of_printed_routing(), pairs_of_readings()});
}

std::vector<ExpertPair> other_sparse_pairs() {
  return joined<ExpertPair>(
      {pairs_of_other_routing(), pairs_of_other_printed_routing(), pairs_of_other_sparse_models()});
}

}  // namespace tprimat::results::expert
