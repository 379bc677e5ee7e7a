#include "claim/claim.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tprimat::planner {
namespace {

constexpr const char* k_header =
    "model\tseq\tgpu\tn_gpus\tframework\tprecision\tgbs\tstep_time_s\ttokens_per_s\ttokens_per_s_per_gpu\t"
    "tflops_per_gpu\tmfu_pct\trecompute\tnotes\tsource\tflop_convention\n";

PublishedTable table_of(const std::string& rows) { return parse_published_table(k_header + rows, "own.tsv"); }

// Ten runs of Llama 3.1 8B about 10 000 tokens/s per GPU, and ten of Mixtral 8x7B about 9 000.
std::vector<PublishedRun> sample_runs() {
  std::string rows;
  for (int i = 0; i < 10; ++i) {
    rows += "Llama 3.1 8B\t8192\tH100\t8\tNeMo\tbf16\t\t\t\t" + std::to_string(9500 + 100 * i) +
            "\t\t\t\t\tfirst/repository a.md@1\t\n";
    rows += "Mixtral 8x7B\t4096\tH100\t64\tNeMo\tbf16\t\t\t\t" + std::to_string(8500 + 100 * i) +
            "\t\t\t\tbalanced\tsecond/repository b.md@1\t\n";
  }
  return read_published_runs({table_of(rows)});
}

ClaimReport judge(const std::string& row) {
  static const std::vector<PublishedRun> runs = sample_runs();
  return judge_claim(claim_of_row(table_of(row + "\n").rows.front()), {runs, built_in_parameters()});
}

// figures: step_time_s, tokens_per_s, tokens_per_s_per_gpu, tflops_per_gpu, mfu_pct
ClaimReport judge_dense(const std::string& figures, const std::string& rest = "\t\t\t") {
  return judge("Llama 3.1 8B\t8192\tH100\t8\tNeMo\tbf16\t128\t" + figures + "\t" + rest);
}

std::optional<Mistake> first_mistake(const ClaimReport& report) {
  return report.suspicions.empty() ? std::nullopt : std::optional(report.suspicions.front().mistake);
}

TEST(Conventions, CountWhatTheySay) {
  const ModelSpec model = *find_model("mixtral_8x7b");
  const CountedWork work{model, 4096, false};
  const ParameterCount count = count_parameters(model);
  EXPECT_DOUBLE_EQ(flops_by(work, Convention::full), flops_per_token(model, 4096, FlopFormula::full));
  EXPECT_DOUBLE_EQ(flops_by(work, Convention::causal), flops_per_token(model, 4096, FlopFormula::causal));
  EXPECT_DOUBLE_EQ(flops_by(work, Convention::six_n), flops_per_token(model, 4096, FlopFormula::six_n));
  EXPECT_DOUBLE_EQ(flops_by(work, Convention::six_n_total), 6.0 * static_cast<double>(count.total()));
  EXPECT_DOUBLE_EQ(flops_by(work, Convention::experts_dense) - flops_by(work, Convention::full),
                   6.0 * static_cast<double>(count.idle));
  EXPECT_GT(flops_by(work, Convention::recompute_full), 1.25 * flops_by(work, Convention::causal));
  EXPECT_DOUBLE_EQ(flops_by({model, 4096, true}, Convention::full), 2.0 / 3 * flops_by(work, Convention::full));
}

TEST(Conventions, OfExpertsAreOfSparseModelsAlone) {
  EXPECT_EQ(count_conventions({*find_model("mixtral_8x7b"), 4096, false}).size(), 8U);
  EXPECT_EQ(count_conventions({*find_model("llama3.1_8b"), 4096, false}).size(), 6U);
}

TEST(Claim, NearPublishedRunsIsTypical) {
  const ClaimReport report = judge_dense("\t\t9900\t\t");
  EXPECT_EQ(report.verdict, ClaimVerdict::typical);
  EXPECT_TRUE(report.suspicions.empty());
  EXPECT_NEAR(report.mfu, 9900 * flops_per_token(*find_model("llama3.1_8b"), 8192, FlopFormula::causal) / 989e12, 1e-9);
  ASSERT_TRUE(report.standing);
  EXPECT_EQ(report.standing->rows, 10);
  EXPECT_EQ(report.rank, 6);
  EXPECT_TRUE(report.nearest.front().differences.empty());
}

TEST(Claim, AboveAllPublishedRunsIsARecord) { EXPECT_EQ(judge_dense("\t\t10600\t\t").verdict, ClaimVerdict::record); }

TEST(Claim, AThirdOfTheRateIsSlowAndTypical) {
  const ClaimReport report = judge_dense("\t\t3300\t\t");
  EXPECT_EQ(report.verdict, ClaimVerdict::typical);
  EXPECT_TRUE(report.slow);
}

TEST(Claim, FarBelowAllExpectationIsSuspicious) {
  EXPECT_EQ(judge_dense("\t\t10\t\t").verdict, ClaimVerdict::suspicious);
  EXPECT_EQ(first_mistake(judge_dense("\t\t10\t\t")), Mistake::in_thousands);
  EXPECT_EQ(judge_dense("\t\t\t\t0.45").verdict, ClaimVerdict::suspicious);
  EXPECT_EQ(first_mistake(judge_dense("\t\t\t\t0.45")), Mistake::fraction_as_percent);
}

TEST(Claim, ContradictionsOfNoKnownFactorAreUnexplained) {
  EXPECT_EQ(first_mistake(judge_dense("\t80000\t1300\t\t")), Mistake::unexplained);
  EXPECT_EQ(first_mistake(judge_dense("\t\t10000\t\t0.4")), Mistake::unexplained);
  EXPECT_EQ(first_mistake(judge_dense("\t\t\t500\t10")), Mistake::unexplained);
  EXPECT_EQ(judge_dense("\t80000\t10000\t\t").verdict, ClaimVerdict::typical);
}

TEST(Claim, FactorsNameTheMistake) {
  const ClaimReport twice = judge_dense("\t\t20000\t\t");
  EXPECT_EQ(first_mistake(twice), Mistake::double_length);
  EXPECT_NE(twice.verdict, ClaimVerdict::typical);
  EXPECT_EQ(first_mistake(judge_dense("\t\t80000\t\t")), Mistake::aggregate_for_gpu);
  EXPECT_EQ(judge_dense("\t\t80000\t\t").verdict, ClaimVerdict::impossible);
  EXPECT_EQ(first_mistake(judge_dense("\t\t\t1160\t")), Mistake::sparse_peak);
}

TEST(Claim, AllExpertsCountedAreNamed) {
  const ModelSpec model = *find_model("mixtral_8x7b");
  const double flops = 9000 * flops_by({model, 4096, false}, Convention::experts_dense) / 1e12;
  const ClaimReport report =
      judge("Mixtral 8x7B\t4096\tH100\t64\tNeMo\tbf16\t\t\t\t\t" + std::to_string(flops) + "\t\t\tbalanced\t\t");
  EXPECT_EQ(first_mistake(report), Mistake::experts_dense);
  EXPECT_NE(report.verdict, ClaimVerdict::typical);
}

// Figures beside each other need no belief: what is expected is not asked.
TEST(Claim, ContradictionsNameTheMistakeByArithmetic) {
  const double full = flops_per_token(*find_model("llama3.1_8b"), 8192, FlopFormula::full) * 10000 / 1e12;
  const auto flops = [&](double factor, const std::string& convention) {
    return judge_dense("\t\t10000\t" + std::to_string(full * factor) + "\t", "\t\t\t" + convention);
  };
  EXPECT_EQ(flops(1, "").verdict, ClaimVerdict::typical);
  EXPECT_EQ(flops(1, "full").verdict, ClaimVerdict::typical);
  for (const auto& [report, mistake] :
       {std::pair{flops(2, ""), Mistake::sparse_peak}, std::pair{flops(1, "causal"), Mistake::other_convention},
        std::pair{flops(8, ""), Mistake::aggregate_for_gpu}, std::pair{flops(0.5, ""), Mistake::double_length}}) {
    EXPECT_EQ(report.verdict, ClaimVerdict::suspicious);
    ASSERT_EQ(first_mistake(report), mistake);
    EXPECT_TRUE(report.suspicions.front().from_contradiction);
  }
  const ClaimReport rates = judge_dense("13.1072\t\t20000\t\t");  // 128 x 8192 tokens on 8 GPUs: 10 000
  EXPECT_EQ(first_mistake(rates), Mistake::double_length);
}

TEST(Claim, WithoutMemoryForItsStatesIsImpossible) {
  const ClaimReport report = judge("Llama 3.1 405B\t8192\tH100\t8\tNeMo\tbf16\t\t\t\t10\t\t\t\t\t\t");
  EXPECT_EQ(report.verdict, ClaimVerdict::impossible);
  EXPECT_NE(report.reason.find("1623.41 GB"), std::string::npos) << report.reason;
  EXPECT_NE(judge("Llama 3.1 405B\t8192\tH100\t8\tNeMo\tbf16\t\t\t\t10\t\t\t\toptimizer offloaded\t\t").verdict,
            ClaimVerdict::impossible);
}

TEST(Claim, SaysWhatItLacks) {
  EXPECT_EQ(judge("Llama 3.1 8B\t8192\tTPU\t8\tNeMo\tbf16\t\t\t\t10\t\t\t\t\t\t").missing,
            "no such GPU in the planner's list");
  EXPECT_TRUE(judge_dense("\t\t12,500\t\t40").missing.value_or("").starts_with("tokens_per_s_per_gpu '12,500' is not"));
  EXPECT_TRUE(judge("No Such\t8192\tH100\t8\tNeMo\tbf16\t\t\t\t10\t\t\t\t\t\t").missing);
  EXPECT_TRUE(judge("Llama 3.1 8B\t8192\tH100\t8\tNeMo\tbf16\t\t\t\t\t\t\t\t\t\t").missing);
  EXPECT_TRUE(judge("Llama 3.1 8B\t8192\tA100\t8\tNeMo\tfp8\t\t\t\t10\t\t\t\t\t\t").missing);
}

TEST(Claim, CopiesOfItsSourceAreLeftOut) {
  const std::vector<PublishedRun> runs = sample_runs();
  const PublishedRow own =
      table_of("Llama 3.1 8B\t8192\tH100\t8\tNeMo\tbf16\t\t\t\t1\t\t\t\t\tfirst/repository c.md@2\t\n").rows.front();
  EXPECT_EQ(without_copies(runs, own).size(), 10U);
  PublishedRow other = own;
  other.cells["source"] = "third/repository c.md@2";
  EXPECT_EQ(without_copies(runs, other).size(), runs.size());
}

TEST(Claim, TextBeginsWithTheVerdict) {
  EXPECT_TRUE(render_claim(judge_dense("\t\t9900\t\t")).starts_with("typical: within the "));
  EXPECT_EQ(describe_standing({0.381, 0.544, 0.7, 12, "a"}),
            "38.1 % MFU: 70 % of what the best of 12 published runs of this kind reaches");
}

TEST(Claim, HostileCellsAreNotJudgedOrImpossible) {
  for (const char* figure :
       {"0", "-1", "nan", "inf", "1e300", "99999999999999999999", "0.0000000000000001", "~", "OOM"}) {
    const ClaimReport report = judge_dense("\t\t" + std::string(figure) + "\t\t");
    EXPECT_TRUE(report.missing || std::isfinite(report.mfu)) << figure;
  }
}

}  // namespace
}  // namespace tprimat::planner
