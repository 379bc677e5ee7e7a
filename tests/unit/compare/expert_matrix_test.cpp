#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "unit/compare/expert_pairs.h"

// The program against the expert: result files as people have them, read and compared as `tprimat compare` does.
namespace tprimat::results::expert {

// What gtest prints of a row.
static void PrintTo(const ExpertPair& row, std::ostream* out) { *out << row.name; }
static void PrintTo(const ExpertGate& row, std::ostream* out) { *out << row.name; }

namespace {

const char* name_of(Answer answer) {
  constexpr const char* k_words[] = {"faster", "slower", "same", "inconclusive", "withheld"};
  return k_words[static_cast<size_t>(answer)];
}

const char* name_of(GateAnswer answer) {
  constexpr const char* k_words[] = {"passes", "fails", "refuses", "has no answer"};
  return k_words[static_cast<size_t>(answer)];
}

struct Judged {
  std::string last_file;  // of the subject: where a row has a fault in one run only
  Comparison comparison;
};

Judged judge(const Training& reference, const Training& subject, const std::vector<std::string>& gates = {}) {
  std::vector<LoadedRun> runs = result_files(reference, "a");
  CompareOptions options{.baseline = runs.front().path};
  for (const std::string& gate : gates) options.gates.push_back(parse_gate(gate));
  for (LoadedRun& run : result_files(subject, "b")) runs.push_back(std::move(run));
  std::string last_file = runs.back().path;
  return {std::move(last_file), compare_runs({std::move(runs), {}}, options)};
}

std::vector<Finding> findings_of(const ModelGroup& group, const Pair& pair) {
  std::vector<Finding> all = pair.findings;
  for (const size_t side : {pair.reference, pair.subject})
    for (const Finding& each : group.contenders[side].findings) all.push_back(each);
  return all;
}

bool is_listed(const std::vector<std::string>& codes, const std::string& code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

bool holds(const Contender& contender, const std::string& file) {
  return std::any_of(contender.runs.begin(), contender.runs.end(),
                     [&](const LoadedRun& run) { return run.path == file; }) ||
         std::any_of(contender.copies.begin(), contender.copies.end(),
                     [&](const std::string& copy) { return copy.starts_with(file + " "); });
}

std::string describe(const Judged& judged) {
  std::string text;
  for (const ModelGroup& group : judged.comparison.groups) {
    if (group.pairs.empty()) text += fmt::format("  {}: no pair\n", group.model);
    for (const Pair& pair : group.pairs) {
      text += fmt::format("  {} ({})\n", headline(judged.comparison, group, pair), pair.explanation);
      for (const Finding& each : findings_of(group, pair))
        text += fmt::format("    {} {}: {}\n", enum_name(each.severity), each.code, each.sentence);
    }
  }
  for (const GateResult& each : judged.comparison.gates) text += fmt::format("  {}\n", describe_gate(each));
  return text;
}

// One pair with the expected verdict, every code that belongs beside it, and no warning that does not.
std::string miss_of_comparable(const ExpertPair& row, const Judged& judged) {
  constexpr Verdict k_verdicts[] = {Verdict::faster, Verdict::slower, Verdict::same, Verdict::inconclusive};
  const std::vector<ModelGroup>& groups = judged.comparison.groups;
  if (groups.size() != 1 || groups[0].pairs.size() != 1) return "the files are not one pair";
  const Pair& pair = groups[0].pairs[0];
  if (!pair.comparable) return "the verdict is withheld";
  if (pair.verdict != k_verdicts[static_cast<size_t>(row.answer)])
    return fmt::format("the verdict is {}", enum_name(pair.verdict));
  const std::vector<Finding> found = findings_of(groups[0], pair);
  for (const std::string& code : row.codes)
    if (std::none_of(found.begin(), found.end(), [&](const Finding& each) { return each.code == code; }))
      return code + " is not found";
  for (const Finding& each : found)
    if (each.severity == Severity::warning && !is_listed(row.codes, each.code)) return "cries wolf: " + each.code;
  return "";
}

// No pair with the subject's last file has a verdict, for one of the expected reasons.
std::string miss_of_withheld(const ExpertPair& row, const Judged& judged) {
  bool is_explained = false;
  for (const ModelGroup& group : judged.comparison.groups)
    for (const Pair& pair : group.pairs) {
      if (!holds(group.contenders[pair.subject], judged.last_file)) continue;
      if (pair.comparable) return fmt::format("a verdict is given: {}", enum_name(pair.verdict));
      for (const Finding& each : findings_of(group, pair))
        is_explained = is_explained || (each.severity == Severity::error && is_listed(row.codes, each.code));
    }
  return is_explained ? "" : fmt::format("no error is one of {}", fmt::join(row.codes, ", "));
}

struct RowName {
  template <class Row>
  std::string operator()(const ::testing::TestParamInfo<Row>& row) const {
    return row.param.name;
  }
};

class ExpertMatrix : public ::testing::TestWithParam<ExpertPair> {};
TEST_P(ExpertMatrix, AgreesWith) {
  const ExpertPair& row = GetParam();
  const Judged judged = judge(row.reference, row.subject);
  const std::string miss =
      row.answer == Answer::withheld ? miss_of_withheld(row, judged) : miss_of_comparable(row, judged);
  EXPECT_TRUE(miss.empty()) << row.name << "\nexpert: " << name_of(row.answer) << " ("
                            << fmt::format("{}", fmt::join(row.codes, ", ")) << "): " << row.reason
                            << "\nprogram: " << miss << "\n"
                            << describe(judged);
}
INSTANTIATE_TEST_SUITE_P(Comparable, ExpertMatrix, ::testing::ValuesIn(comparable_pairs()), RowName());
INSTANTIATE_TEST_SUITE_P(Disturbed, ExpertMatrix, ::testing::ValuesIn(disturbed_pairs()), RowName());
INSTANTIATE_TEST_SUITE_P(OtherWork, ExpertMatrix, ::testing::ValuesIn(other_work_pairs()), RowName());
INSTANTIATE_TEST_SUITE_P(Contradictions, ExpertMatrix, ::testing::ValuesIn(contradicting_pairs()), RowName());
INSTANTIATE_TEST_SUITE_P(ApparentContradictions, ExpertMatrix, ::testing::ValuesIn(apparent_contradictions()),
                         RowName());
INSTANTIATE_TEST_SUITE_P(Sparse, ExpertMatrix, ::testing::ValuesIn(comparable_sparse_pairs()), RowName());
INSTANTIATE_TEST_SUITE_P(OtherSparse, ExpertMatrix, ::testing::ValuesIn(other_sparse_pairs()), RowName());
INSTANTIATE_TEST_SUITE_P(BrokenFiles, ExpertMatrix, ::testing::ValuesIn(broken_file_pairs()), RowName());

bool is_answer(GateAnswer answer, GateOutcome outcome) {
  switch (answer) {
    case GateAnswer::passes: return outcome == GateOutcome::passed;
    case GateAnswer::fails: return outcome == GateOutcome::failed;
    case GateAnswer::refuses: return outcome == GateOutcome::not_comparable || outcome == GateOutcome::invalid;
    case GateAnswer::has_no_answer: return outcome == GateOutcome::inconclusive;
  }
  return false;
}

class ExpertGates : public ::testing::TestWithParam<ExpertGate> {};
TEST_P(ExpertGates, AgreeWith) {
  const ExpertGate& row = GetParam();
  const Judged judged = judge(row.reference, row.subject, {row.gate});
  ASSERT_EQ(judged.comparison.gates.size(), 1u) << describe(judged);
  EXPECT_TRUE(is_answer(row.answer, judged.comparison.gates[0].outcome))
      << row.name << "\nexpert: " << row.gate << " " << name_of(row.answer) << ": " << row.reason << "\nprogram:\n"
      << describe(judged);
}
INSTANTIATE_TEST_SUITE_P(Rows, ExpertGates, ::testing::ValuesIn(gate_rows()), RowName());

// Withholding everything is no solution, and neither is withholding nothing.
TEST(ExpertTable, HasBothKindsOfRows) {
  const size_t comparable = comparable_pairs().size() + disturbed_pairs().size() + apparent_contradictions().size();
  const size_t withheld = other_work_pairs().size() + broken_file_pairs().size() + contradicting_pairs().size();
  EXPECT_GE(comparable, 60u);
  EXPECT_GE(withheld, 60u);
  EXPECT_GE(comparable_sparse_pairs().size(), 10u);
  EXPECT_GE(comparable_sparse_pairs().size() + other_sparse_pairs().size(), 25u);
}

}  // namespace
}  // namespace tprimat::results::expert
