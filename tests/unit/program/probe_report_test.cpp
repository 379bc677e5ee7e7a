#include "program/probe_report.h"

#include <gtest/gtest.h>

#include "text/json_fields.h"

namespace tprimat::engine {
namespace {

GroupedRate<Measured> grouped_rate(ExpertLoad load, int64_t fullest, double rate) {
  GroupedRate<Measured> grouped{"expert_up", ProductPass::forward, load, 8, 512, fullest, 256, 1376, rate,
                                80e9,        rate / 80e9,          {}};
  grouped.measured.relative_noise = 0.004;
  grouped.measured.ended_by = EndedBy::noise;
  return grouped;
}

ModelProbeReport sparse_report() {
  ModelProbeReport report;
  report.cpu = "a processor", report.threads = 2;
  report.matmul.push_back({ProductFormat::fp32, 100e9, 1.0, "a rule", {}});
  ModelRate& model = report.models.emplace_back();
  model.model = "tiny_moe", model.tokens = 2048, model.flops_per_second = 50e9;
  model.grouped = {grouped_rate(ExpertLoad::even, 512, 60e9), grouped_rate(ExpertLoad::uneven, 912, 40e9)};
  return report;
}

TEST(RenderModelProbe, RoutedExpertsHaveATableOfTheirOwn) {
  const std::string text = render_model_probe(sparse_report());
  const char* const table =
      "probe        products   pass     load    experts  tokens each, most  inputs x outputs          rate  of plain  "
      "  noise\n"
      "fp32 matmul  expert_up  forward  even          8           512, 512  256 x 1376        60.0 GFLOP/s    75.0 %  "
      "0.4 %\n"
      "fp32 matmul  expert_up  forward  uneven        8           512, 912  256 x 1376        40.0 GFLOP/s    50.0 %  "
      "0.4 %\n";
  EXPECT_NE(text.find(table), std::string::npos) << text;
  EXPECT_NE(text.find("beside one product of all their tokens"), std::string::npos);
  EXPECT_NE(text.find("all fp32 products in a step of tiny_moe: 50.0 GFLOP/s, 50.0 % of the peak"), std::string::npos);
}

TEST(RenderModelProbe, ARateAboveThePeakIsMarked) {
  ModelProbeReport report = sparse_report();
  EXPECT_EQ(render_model_probe(report).find("**"), std::string::npos);
  report.matmul[0].flops_per_second = 50e9;
  const std::string text = render_model_probe(report);
  EXPECT_NE(text.find("60.0 GFLOP/s **"), std::string::npos) << text;
  EXPECT_EQ(text.find("40.0 GFLOP/s **"), std::string::npos) << text;
  EXPECT_NE(text.find("** above the measured peak: the peak or the plain product was disturbed"), std::string::npos);
}

TEST(RenderModelProbe, ADenseModelHasNone) {
  ModelProbeReport report = sparse_report();
  report.models[0].grouped.reset();
  EXPECT_EQ(render_model_probe(report).find("expert"), std::string::npos);
  EXPECT_FALSE(to_json(report)["models"][0].contains("grouped"));
}

TEST(ProbeJson, AGroupHasItsLoadAndTheShareOfThePlainProduct) {
  const Json json = to_json(sparse_report())["models"][0]["grouped"][1];
  EXPECT_EQ(json["name"], "expert_up");
  EXPECT_EQ(json["pass"], "forward");
  EXPECT_EQ(json["load"], "uneven");
  EXPECT_EQ(json["experts"], 8);
  EXPECT_EQ(json["tokens"], 512);
  EXPECT_EQ(json["fullest"], 912);
  EXPECT_EQ(json["inputs"], 256);
  EXPECT_EQ(json["outputs"], 1376);
  EXPECT_EQ(json["flops_per_second"], 40e9);
  EXPECT_EQ(json["plain_flops_per_second"], 80e9);
  EXPECT_EQ(json["share_of_plain"], 0.5);
  EXPECT_EQ(json["measured"]["ended_by"], "noise");
}

TEST(ListDisturbances, NamesGroupsThatSlowedDown) {
  ModelProbeReport report = sparse_report();
  (*report.models[0].grouped)[1].measured.slowed = true;
  const std::vector<std::string> list = list_disturbances(report);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_NE(list[0].find("fp32 expert_up forward of 8 experts, uneven"), std::string::npos) << list[0];
}

TEST(RenderCollectives, AllToAllHasItsRow) {
  CollectiveReport report;
  report.ranks = 4, report.how = "a rule";
  report.rates.push_back({CollectiveKind::all_to_all, 1 << 20, 2e9, 1.5e9, {}});
  report.rates[0].measured.median_seconds = 524.3e-6;
  const std::string text = render_collectives(report);
  EXPECT_NE(text.find("all_to_all"), std::string::npos) << text;
  EXPECT_NE(text.find("1.50 GB/s"), std::string::npos) << text;
  EXPECT_EQ(to_json(report)["rates"][0]["kind"], "all_to_all");
}

}  // namespace
}  // namespace tprimat::engine
