#include "compare/audit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "compare/copies.h"
#include "unit/compare/audited_runs.h"

namespace tprimat::results {
namespace {

TEST(Audit, EqualRunsHaveNoErrors) {
  EXPECT_FALSE(has_error(audit_contender(participant(plain()))));
  EXPECT_TRUE(audit_pair(participant(plain()), participant(other())).empty());
}

TEST(Audit, ACopyUnderAnotherNameIsNoSecondRun) {
  LoadedRun copy = plain();
  copy.path = "b.json";
  copy.result.gpu_info.device_name = "NVIDIA H200";
  copy.result.timestamp = "2026-04-01T00:00:00Z";
  const Finding* finding = nullptr;
  const auto findings = audit_pair(participant(plain()), participant(copy));
  finding = find_code(findings, "same_measurement");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::error);
  EXPECT_NE(finding->sentence.find("a.json against b.json"), std::string::npos);
}

TEST(Audit, OneChangedLossMakesNoSecondRun) {
  LoadedRun copy = plain();
  copy.path = "b.json";
  copy.result.loss_values[7] += 1e-6;
  EXPECT_NE(find_code(audit_pair(participant(plain()), participant(copy)), "same_measurement"), nullptr);
}

TEST(Audit, StepTimesThatAreAlikeShowNoCopy) {
  const auto constant = [](const char* path) {
    LoadedRun run = plain();
    run.path = path;
    run.result.step_times.assign(run.result.step_times.size(), 0.5);
    run.result.loss_values.clear();
    return again(run);
  };
  EXPECT_EQ(find_code(audit_pair(participant(constant("a.json")), participant(constant("b.json"))), "same_measurement"),
            nullptr);
}

TEST(Audit, ManyRepetitionsAreSearchedForCopiesInNoTime) {
  constexpr size_t k_runs = 2000, k_steps = 200;
  const auto repeated = [](double step_time) {
    Contender contender = participant(plain());
    contender.runs.clear();
    for (size_t i = 0; i < k_runs; ++i) {
      LoadedRun run{std::to_string(i), {}};
      for (size_t k = 0; k < k_steps; ++k)
        run.result.step_times.push_back(step_time + 1e-3 * static_cast<double>(k) + 1e-6 * static_cast<double>(i));
      contender.runs.push_back(std::move(run));
    }
    return contender;
  };
  Contender a = repeated(1), b = repeated(2);
  b.runs[70].result.step_times = a.runs[30].result.step_times;
  const auto begin = std::chrono::steady_clock::now();
  const auto same = find_same_measurements(a, b);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << "each with each takes minutes";
  ASSERT_EQ(same.size(), 1u);
  EXPECT_EQ(same[0].reference->path, "30");
  EXPECT_EQ(same[0].subject->path, "70");
}

TEST(Audit, AVocabularyThatIsPaddedForItsLayoutIsADetail) {
  const struct {
    int64_t vocabulary, padded, tensor_parallel;
    bool is_detail;
  } cases[] = {{32000, 32768, 8, true},   {50257, 51200, 8, true},  {50257, 50304, 1, true}, {32000, 32768, 1, true},
               {32000, 34816, 16, false}, {32000, 32769, 8, false}, {32768, 33792, 8, false}};
  for (const auto& each : cases) {
    LoadedRun reference = plain(), subject = other();
    reference.result.model_info.shape->vocab_size = each.vocabulary;
    subject.result.model_info.shape->vocab_size = each.padded;
    subject.result.parallelism_config.tensor_model_parallel_size = each.tensor_parallel;
    for (const auto& [a, b] : {std::pair(reference, subject), std::pair(subject, reference)}) {
      const auto findings = audit_pair(participant(a), participant(b));
      EXPECT_EQ(find_code(findings, "model_shape") == nullptr, each.is_detail) << each.padded;
      EXPECT_EQ(find_code(findings, "model_details") != nullptr, each.is_detail) << each.padded;
    }
  }
}

TEST(Audit, EveryRuleHasItsOwnCodeAndErrorsSayWhatToDo) {
  std::set<std::string_view> codes;
  const auto check = [&](const auto& rule) {
    EXPECT_TRUE(codes.insert(rule.code).second) << rule.code;
    EXPECT_FALSE(rule.why.empty()) << rule.code;
    if (rule.severity != Severity::note) {
      EXPECT_FALSE(rule.remedy.empty()) << rule.code;
    }
  };
  for (const RunRule& rule : run_rules()) check(rule);
  for (const PairRule& rule : pair_rules()) check(rule);
}

TEST(Audit, AFindingShowsTheValuesOfBothSides) {
  LoadedRun subject = plain();
  subject.result.model_info.shape->num_key_value_heads = 2;
  const auto findings = audit_pair(participant(plain()), participant(subject));
  const Finding* finding = find_code(findings, "model_shape");
  ASSERT_NE(finding, nullptr);
  ASSERT_EQ(finding->evidence.size(), 1u);
  EXPECT_EQ(finding->evidence[0].what, "KV heads");
  EXPECT_EQ(finding->evidence[0].reference, "8");
  EXPECT_EQ(finding->evidence[0].subject, "2");
  EXPECT_EQ(finding->sentence, "the models differ in shape: KV heads 8 against 2");
}

TEST(Audit, UnknownFactsAreNotDifferences) {
  LoadedRun subject = plain();
  subject.result.precision.reset();
  subject.result.model_info.shape.reset();
  subject.result.learning_rates.clear();
  subject.result.loss_values.clear();
  const auto findings = audit_pair(participant(other()), participant(subject));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].code, "model_not_shown");
  EXPECT_EQ(findings[0].severity, Severity::warning);
}

TEST(Audit, AFigureInDoubtIsNotCompared) {
  const Metric &mfu = *find_metric("mfu"), &memory = *find_metric("peak_memory_allocated_gb");
  const auto compared = [](const Metric& metric, const char* code, double peak_of_subject) {
    Contender reference = participant(plain()), subject = participant(other());
    reference.runs[0].result.derived.peak = PeakInfo{"config:mine", 800e12, ""};
    subject.runs[0].result.derived.peak = PeakInfo{"config:mine", peak_of_subject, ""};
    subject.findings = {{code, Severity::warning, "", ""}};
    return !why_not_compared(metric, {}, reference, subject) && !why_not_compared(metric, {}, subject, reference);
  };
  EXPECT_FALSE(compared(mfu, "other_peak", 900e12));
  EXPECT_TRUE(compared(mfu, "other_peak", 800e12)) << "one peak cancels out";
  EXPECT_FALSE(compared(mfu, "unheard_of_mfu", 800e12));
  EXPECT_TRUE(compared(*find_metric("tokens_per_second"), "other_peak", 900e12));
  EXPECT_FALSE(compared(memory, "impossible_memory", 800e12));
}

}  // namespace
}  // namespace tprimat::results
