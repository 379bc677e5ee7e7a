#include "compare/expert_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compare/compare_runs.h"
#include "compare/expert_facts.h"
#include "compare/forced_balance.h"
#include "example_data.h"
#include "result/active_count.h"
#include "spec/model_catalogue.h"
#include "unit/compare/audited_runs.h"
#include "unit/spec/published_tables.h"

// What the audit says of mixtures of experts, sentence by sentence; expert_sparse.cpp holds the verdicts.
namespace tprimat::results {
namespace {

using PrintedNames = std::map<std::string, std::string>;

// 2 of 8 experts, learned routing, 8 ranks to a layer.
LoadedRun sparse(const std::string& file, uint64_t seed = 1) {
  LoadedRun run = noisy_run(file, Platform::nvd, Framework::mega, 1.0, seed);
  Experts& experts = run.result.model_info.shape->experts.emplace();
  experts.count = 8, experts.per_token = 2, experts.ffn_hidden_size = 1024;
  run.result.experts.emplace().routing = Routing::learned;
  run.result.parallelism_config.expert_model_parallel_size = 8;
  return again(std::move(run));
}

std::string sentence(const std::vector<Finding>& findings, const std::string& code) {
  const Finding* finding = find_code(findings, code);
  return finding != nullptr ? finding->sentence : "";
}

std::string of_pair(const LoadedRun& reference, const LoadedRun& subject, const std::string& code) {
  return sentence(audit_pair(participant(reference), participant(subject)), code);
}

std::string of_run(const LoadedRun& run, const std::string& code) {
  return sentence(audit_contender(participant(run)), code);
}

TEST(ForcedBalance, IsOtherWorkThanLearnedRoutingAndTheFindingSaysByHowMuch) {
  LoadedRun forced = sparse("a.json"), learned = sparse("b.json", 2);
  forced.result.experts->routing = Routing::balanced;
  EXPECT_EQ(of_pair(forced, learned, "routing"),
            "one side forces balance on the experts, the other learns its routing: balanced against learned; in 7 "
            "published pairs forced balance was 9 to 90 % faster");
  EXPECT_EQ(of_pair(learned, learned, "routing"), "");
  EXPECT_EQ(of_run(forced, "forced_balance"),
            "balance is forced on the experts; real training is slower: in 7 published pairs forced balance was 9 "
            "to 90 % faster");
  EXPECT_EQ(of_run(learned, "forced_balance"), "");
}

TEST(ForcedBalance, OfAModelWithPublishedPairsNamesTheirRange) {
  LoadedRun forced = sparse("a.json");
  forced.result.experts->routing = Routing::balanced;
  forced.result.model_info.name = "Qwen/Qwen3-30B-A3B";
  EXPECT_NE(of_run(forced, "forced_balance").find("(50 to 90 % for this model)"), std::string::npos);
}

TEST(ForcedBalance, OfADenseModelIsASettingWithoutEffect) {
  LoadedRun dense = plain(), forced = plain();
  dense.result.effective_config = PrintedNames{{"moe_router_force_load_balancing", "False"}};
  forced.result.effective_config = PrintedNames{{"moe_router_force_load_balancing", "True"}};
  EXPECT_EQ(of_pair(dense, forced, "routing"), "");
  EXPECT_EQ(of_run(forced, "forced_balance"), "");
}

// Each pair stands in the table as published, with the same model, device, number, sequence length and precision.
TEST(ForcedBalance, PublishedPairsAreThoseOfTheTable) {
  SKIP_WITHOUT_EXAMPLE_DATA(TPRIMAT_SHARED_DATA "/published/moe_perf.tsv");
  const auto rows = test::load_table(TPRIMAT_SHARED_DATA "/published/moe_perf.tsv");
  const auto holds = [&](const BalancedPair& pair, double rate, const char* kind) {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
      const auto is = [&](const char* column, double value) {
        return !row.at(column).empty() && std::abs(std::stod(row.at(column)) - value) < 1e-6;
      };
      return row.at("model") == pair.model && row.at("gpu") == pair.device && is("n_gpus", pair.devices) &&
             is("seq", pair.sequence_length) && row.at("precision") == pair.precision &&
             row.at("notes").find(kind) != std::string::npos &&
             (is("tflops_per_gpu", rate) || is("tokens_per_s_per_gpu", rate));
    });
  };
  for (const BalancedPair& pair : balanced_pairs()) {
    EXPECT_TRUE(holds(pair, pair.balanced, "balanced")) << pair.model << " " << pair.balanced;
    EXPECT_TRUE(holds(pair, pair.learned, "real routing")) << pair.model << " " << pair.learned;
  }
}

TEST(Routing, UnknownOnOneSideIsSaid) {
  LoadedRun untold = sparse("b.json", 2);
  untold.result.experts.reset();
  EXPECT_EQ(of_pair(sparse("a.json"), untold, "routing_not_shown"),
            "the experts' routing is unknown, so balance may be forced: learned against unknown; in 7 "
            "published pairs forced balance was 9 to 90 % faster");
  EXPECT_EQ(of_pair(untold, untold, "routing_not_shown").find("learned against"), std::string::npos);
  EXPECT_EQ(of_pair(plain(), other(), "routing_not_shown"), "") << "a dense model has none";
}

// As extraction leaves results: the settings are there, the facts that they leave open are not.
LoadedRun printing(LoadedRun run, const PrintedNames& settings) {
  run.result.experts.reset();
  run.result.effective_config = settings;
  return run;
}

TEST(Routing, ForcedWithABiasIsNotLearned) {
  const auto with_bias = [](const char* bias) {
    return printing(sparse("b.json", 2),
                    {{"moe_router_force_load_balancing", "False"}, {"moe_router_force_biased", bias}});
  };
  EXPECT_NE(of_pair(sparse("a.json"), with_bias("0.5"), "routing_not_shown").find("learned against unknown"),
            std::string::npos);
  EXPECT_EQ(of_pair(sparse("a.json"), with_bias("None"), "routing_not_shown"), "");
}

// The second side with one more repetition.
std::string of_pair_with(const LoadedRun& reference, const LoadedRun& subject, const LoadedRun& repetition,
                         const std::string& code) {
  Contender side = participant(subject);
  side.runs.push_back(repetition);
  return sentence(audit_pair(participant(reference), side), code);
}

TEST(Routing, ThatOneRepetitionHidesIsUnknown) {
  const LoadedRun told = sparse("a.json");
  EXPECT_NE(of_pair_with(told, sparse("b_r1.json", 2), printing(sparse("b_r2.json", 3), {}), "routing_not_shown")
                .find("learned against unknown"),
            std::string::npos);
  EXPECT_EQ(of_pair_with(told, sparse("b_r1.json", 2), sparse("b_r2.json", 3), "routing_not_shown"), "");
}

TEST(Capacity, IsNoneWhereTokensAreNotDropped) {
  const auto limited = [](const char* drops, const char* factor) {
    return printing(sparse("a.json"), {{"moe_token_dropping", drops}, {"moe_train_capacity_factor", factor}});
  };
  EXPECT_NE(of_pair(limited("True", "1.0"), limited("False", "1.0"), "expert_capacity").find("1 against none"),
            std::string::npos);
  EXPECT_EQ(of_pair(limited("False", "2.0"), limited("False", "1.0"), "expert_capacity"), "");
  // Megatron-LM's settings have a switch of that name without effect.
  const LoadedRun megatron = printing(
      sparse("b.json", 2), {{"model.moe_token_dropping", "False"}, {"model.moe_expert_capacity_factor", "1.0"}});
  EXPECT_NE(of_pair(limited("False", "1.0"), megatron, "expert_capacity").find("none against 1"), std::string::npos);
}

TEST(Capacity, ThatIsFilledWithPaddingIsOtherWork) {
  const auto padded = [](const char* yes) {
    return printing(sparse("a.json"),
                    {{"moe_expert_capacity_factor", "1.5"}, {"moe_pad_expert_input_to_capacity", yes}});
  };
  EXPECT_NE(of_pair(padded("False"), padded("True"), "data_settings")
                .find("experts' input padded to their capacity off against on"),
            std::string::npos);
  EXPECT_EQ(of_pair(padded("True"), padded("True"), "data_settings"), "");
}

TEST(Capacity, AndWhatItDrops) {
  LoadedRun limited = sparse("a.json"), open = sparse("b.json", 2);
  limited.result.model_info.shape->experts->capacity_factor = 1.25;
  EXPECT_NE(of_pair(limited, open, "expert_capacity").find("1.25 against none"), std::string::npos);
  LoadedRun drops = limited;
  drops.result.experts->dropped_share = 0.08, limited.result.experts->dropped_share = 0.01;
  EXPECT_NE(of_pair(limited, drops, "dropped_tokens").find("1.0 % against 8.0 %"), std::string::npos)
      << of_pair(limited, drops, "dropped_tokens");
  EXPECT_NE(of_run(drops, "tokens_dropped").find("8.0 %"), std::string::npos);
  EXPECT_EQ(of_pair(open, drops, "dropped_tokens"), "") << "the capacity says it already";
  limited.result.experts->dropped_share = 0.075;
  EXPECT_EQ(of_pair(limited, drops, "dropped_tokens"), "") << "within noise";
}

TEST(PredictionLayers, AreMoreWork) {
  LoadedRun more = sparse("b.json", 2);
  more.result.model_info.shape->prediction_layers = 1;
  const std::string said = of_pair(sparse("a.json"), more, "prediction_layers");
  EXPECT_NE(said.find("(MTP) differ: 0 against 1; "), std::string::npos) << said;
  EXPECT_NE(said.find(" % more FLOPs per token"), std::string::npos) << said;
  EXPECT_EQ(of_pair(sparse("a.json"), more, "model_shape"), "") << "said once";
}

TEST(Balancing, OfTwoKindsIsAnotherTrainingUnlessForced) {
  LoadedRun a = sparse("a.json"), b = sparse("b.json", 2);
  Experts &x = *a.result.model_info.shape->experts, &y = *b.result.model_info.shape->experts;
  x.balancing = y.balancing = LoadBalancing::aux_loss;
  x.aux_loss_coefficient = 0.01, y.aux_loss_coefficient = 0.02;
  EXPECT_NE(of_pair(a, b, "expert_balancing").find("coefficient of the balancing loss 0.01 against 0.02"),
            std::string::npos);
  y.balancing = LoadBalancing::none, y.aux_loss_coefficient = 0;
  EXPECT_EQ(of_pair(a, b, "expert_balancing"), "");
  EXPECT_NE(of_pair(a, b, "balancing_not_shown").find("aux_loss, coefficient 0.01 against nothing stated"),
            std::string::npos);
  b.result.effective_config =
      PrintedNames{{"moe_aux_loss_coeff", "0.0"}, {"moe_router_load_balancing_type", "aux_loss"}};
  EXPECT_NE(of_pair(a, b, "expert_balancing").find("kind aux_loss against none"), std::string::npos)
      << of_pair(a, b, "expert_balancing");
  a.result.experts->routing = b.result.experts->routing = Routing::balanced;
  EXPECT_EQ(of_pair(a, b, "expert_balancing"), "");
}

TEST(Balancing, OfAnyPrintedKindIsCompared) {
  const auto difference = [](const PrintedNames& a, const PrintedNames& b) {
    return of_pair(printing(sparse("a.json"), a), printing(sparse("b.json", 2), b), "expert_balancing");
  };
  const auto settings = [](const char* type, const char* coefficient) {
    return PrintedNames{{"moe_router_load_balancing_type", type}, {"moe_aux_loss_coeff", coefficient}};
  };
  const std::string sinkhorn = difference(settings("sinkhorn", "0.0"), settings("None", "0.0"));
  EXPECT_NE(sinkhorn.find("kind sinkhorn against none"), std::string::npos) << sinkhorn;
  const std::string ranks = difference(settings("global_aux_loss", "0.01"), settings("aux_loss", "0.01"));
  EXPECT_NE(ranks.find("kind global_aux_loss against aux_loss"), std::string::npos) << ranks;
  const PrintedNames both = settings("['aux_loss', 'seq_aux_loss']", "[0.01, 0.001]");
  const std::string second = difference(both, settings("['aux_loss', 'seq_aux_loss']", "[0.01, 0.1]"));
  EXPECT_NE(second.find("coefficient of the balancing loss 0.01+0.001 against 0.01+0.1"), std::string::npos) << second;
  EXPECT_EQ(difference(both, settings("['seq_aux_loss', 'aux_loss']", "[0.001, 0.01]")), "") << "in another order";
  EXPECT_EQ(difference(settings("aux_loss", "0.01"), settings("['aux_loss']", "[0.01]")), "");
  EXPECT_EQ(difference(settings("none", "0.01"), settings("aux_loss", "0.0")), "") << "neither has an effect";
}

TEST(Balancing, ThatOneRepetitionHidesIsUnknown) {
  LoadedRun a = sparse("a.json"), b = sparse("b_r1.json", 2), hidden = sparse("b_r2.json", 3);
  for (LoadedRun* run : {&a, &b}) {
    run->result.model_info.shape->experts->balancing = LoadBalancing::aux_loss;
    run->result.model_info.shape->experts->aux_loss_coefficient = 0.01;
  }
  EXPECT_NE(of_pair_with(a, b, hidden, "balancing_not_shown").find("coefficient 0.01 against nothing stated"),
            std::string::npos);
  EXPECT_EQ(of_pair_with(a, b, b, "balancing_not_shown"), "");
}

TEST(Balancing, OfTheCatalogueIsNotThatOfALog) {
  LoadedRun named = sparse("a.json"), trained = sparse("b.json", 2);
  for (LoadedRun* run : {&named, &trained}) run->result.model_info.shape = find_model("mixtral_8x7b").value();
  named.result.model_info.name = trained.result.model_info.name = "mixtral_8x7b";
  trained.result.model_info.shape->experts->aux_loss_coefficient = 0.001;
  EXPECT_NE(of_pair(named, trained, "expert_balancing"), "") << "a file that states it";
  named.result.source.format = "torchtitan";
  EXPECT_EQ(of_pair(named, trained, "expert_balancing"), "");
  EXPECT_NE(of_pair(named, trained, "balancing_not_shown"), "");
}

TEST(SparseModels, DifferInTheirPartsByName) {
  LoadedRun a = sparse("a.json"), b = sparse("b.json", 2);
  b.result.model_info.shape->latent_attention = LatentAttention{256, 64, 32, 64};
  b.result.model_info.shape->experts->shared_ffn_hidden_size = 512;
  EXPECT_EQ(of_pair(a, b, "model_shape"),
            "the models differ in shape: latent attention (MLA) none against yes, FFN size of shared experts 0 against "
            "512");
  b = sparse("b.json", 2);
  b.result.model_info.shape->experts->router_score = RouterScore::sigmoid;
  EXPECT_EQ(of_pair(a, b, "model_shape"), "");
  EXPECT_NE(of_pair(a, b, "model_details").find("router's scores softmax against sigmoid"), std::string::npos);
}

TEST(SparseModels, AreNeverAPairWithAModelOfAnotherName) {
  LoadedRun mixture = sparse("a.json"), dense = other();
  mixture.result.model_info.name = "mixtral_8x7b", dense.result.model_info.name = "llama2_13b";
  for (const ModelGroup& group : compare_runs({{mixture, dense}, {}}, {}).groups) EXPECT_TRUE(group.pairs.empty());
}

TEST(SparseModels, OfAnImpossibleShapeAreComparedWithoutTheirFigures) {
  for (const int64_t interval : {0, -1}) {
    LoadedRun odd = sparse("b.json", 2);
    odd.result.model_info.shape->experts->layer_interval = interval;
    odd.result.model_info.num_parameters = 1000;
    EXPECT_NE(of_pair(sparse("a.json"), odd, "model_shape").find("interval of layers with experts 1 against"),
              std::string::npos);
    EXPECT_EQ(of_run(odd, "active_parameters"), "");
  }
}

TEST(ExpertLayout, OfRanksAndDispatchersIsANote) {
  LoadedRun a = sparse("a.json"), b = sparse("b.json", 2);
  a.result.experts->dispatcher = Dispatcher::alltoall, b.result.experts->dispatcher = Dispatcher::deepep;
  b.result.parallelism_config.expert_model_parallel_size = 4;
  b.result.parallelism_config.expert_tensor_parallel_size = 2;
  EXPECT_NE(of_pair(a, b, "layout").find("EP8 against EP4 ETP2"), std::string::npos) << of_pair(a, b, "layout");
  EXPECT_NE(of_pair(a, b, "tuning").find("dispatcher of tokens alltoall against deepep"), std::string::npos);
}

TEST(ActiveParameters, TakenForAllAreSaidAndNoOtherModel) {
  LoadedRun run = sparse("b.json", 2);
  run.result.model_info.shape = find_model("mixtral_8x7b").value();
  const double active = active_parameters_of(*run.result.model_info.shape).value();
  EXPECT_NEAR(active / 1e9, 12.88, 0.02);
  run.result.model_info.num_parameters = static_cast<int64_t>(active);
  EXPECT_NE(of_run(run, "active_parameters").find("of 46 702 792 704"), std::string::npos)
      << of_run(run, "active_parameters");
  LoadedRun without_shape = run, whole = run;
  without_shape.result.model_info.shape.reset();
  whole.result.model_info.num_parameters.reset();
  EXPECT_EQ(of_pair(whole, without_shape, "model_shape"), "");
  EXPECT_NE(of_pair(whole, without_shape, "active_against_total"), "");
  EXPECT_NE(of_pair_with(whole, whole, without_shape, "active_against_total"), "");
  whole.result.model_info.num_parameters = count_parameters(*whole.result.model_info.shape).total();
  EXPECT_EQ(of_run(whole, "active_parameters"), "");
}

// The framework's TFLOP/s of a run, as a factor of those by the active experts.
TEST(DenseCount, IsReadAsSuchAndIsNoContradiction) {
  const auto reported = [](double factor) {
    LoadedRun run = sparse("a.json");
    run.result.model_info.shape->experts->count = 64;
    run = again(std::move(run));
    const double ours = run.result.derived.tflops_per_gpu->value;
    run.result.reported.emplace().tflops_per_gpu.emplace(run.result.step_times.size(), factor * ours);
    return run;
  };
  LoadedRun run = reported(1);
  const int64_t length = *run.result.training_config.sequence_length;
  const ModelSpec shape = *run.result.model_info.shape;
  const double dense = flops_per_token(with_all_experts(shape), length, FlopFormula::causal) /
                       flops_per_token(shape, length, FlopFormula::causal);
  EXPECT_EQ(of_run(run, "experts_counted_dense"), "");
  EXPECT_NE(of_run(reported(dense), "experts_counted_dense").find("the active experts give"), std::string::npos);
  EXPECT_EQ(of_run(reported(dense), "reported_contradiction"), "");
  EXPECT_EQ(of_run(reported(10 * dense), "experts_counted_dense"), "");
  EXPECT_NE(of_run(reported(10 * dense), "reported_contradiction"), "");
}

// A run of which a step takes `cost` of its time longer for a load of 1 more.
LoadedRun loaded(const std::string& file, double mean, double cost, uint64_t seed = 1) {
  LoadedRun run = sparse(file, seed);
  std::vector<double>& loads = run.result.experts->load_values.emplace();
  for (size_t i = 0; i < run.result.step_times.size(); ++i) {
    loads.push_back(mean + 0.3 * std::sin(static_cast<double>(i * i)));
    run.result.step_times[i] *= 1 + cost * (loads.back() - mean);
  }
  return again(std::move(run));
}

TEST(ExpertLoad, ThatMovesTheRateIsSaid) {
  const std::string said = of_run(loaded("a.json", 1.5, 0.3), "load_effect");
  EXPECT_NE(said.find("the rate follows the experts' load: with the fullest expert at 1."), std::string::npos) << said;
  EXPECT_NE(said.find("(rank correlation "), std::string::npos) << said;
  EXPECT_EQ(of_run(loaded("a.json", 1.5, 0), "load_effect"), "") << "the load moves, the time does not";
  EXPECT_EQ(of_run(loaded("a.json", 1.5, -0.3), "load_effect"), "") << "a fuller expert makes no step faster";
}

TEST(ExpertLoad, OfTheSlowerSideMayExplainTheRatio) {
  LoadedRun even = loaded("a.json", 1.3, 0), uneven = loaded("b.json", 2.0, 0, 2);
  for (double& seconds : uneven.result.step_times) seconds *= 1.25;
  uneven = again(std::move(uneven));
  const std::string said = of_pair(even, uneven, "expert_load");
  EXPECT_NE(said.find("1.29 against 1.99 times the mean load"), std::string::npos) << said;
  EXPECT_NE(said.find("the side with the fuller expert is 20 % slower"), std::string::npos) << said;
  EXPECT_EQ(of_pair(even, loaded("b.json", 1.32, 0, 2), "expert_load"), "");
  even.result.parallelism_config.expert_model_parallel_size = 1;
  uneven.result.parallelism_config.expert_model_parallel_size = 1;
  EXPECT_EQ(of_pair(even, uneven, "expert_load"), "") << "no rank waits for another";
}

TEST(ExpertLoad, IsTheCauseOfAnOutlier) {
  LoadedRun run = loaded("a.json", 1.4, 0);
  std::fill(run.result.experts->load_values->begin(), run.result.experts->load_values->end(), 1.4);
  run.result.experts->load_values->at(29) = 3.1;
  run.result.step_times[29] *= 2;
  run = again(std::move(run));
  EXPECT_NE(of_run(run, "outlier").find("1 with an uneven load of the experts"), std::string::npos)
      << of_run(run, "outlier");
}

TEST(ExpertLoad, MeansStayWhenTheSeriesAreDropped) {
  LoadedRun run = loaded("a.json", 1.4, 0.3);
  const double load = load_of(run.result).value();
  keep_means(run.result);
  EXPECT_FALSE(run.result.experts->load_values);
  EXPECT_DOUBLE_EQ(load_of(run.result).value(), load);
}

}  // namespace
}  // namespace tprimat::results
