#include "trace/pipeline_records.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "example_data.h"

namespace tprimat::logs {
namespace {

constexpr const char* k_two_iterations =
    R"({"10": {"total": 9.5, "memory": null, "fwd_start": [1], "fwd_end": [2], "bwd_start": [3], "bwd_end": [5]},
        "2": {"total": 10, "memory": 84.5, "fwd_start": [0.25], "fwd_end": [2], "bwd_start": [4], "bwd_end": [8.000001]}})";

std::string refusal(std::string_view text) {
  try {
    parse_pipeline_rank(text, "pp_rank_0.json", 0);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(PipelineRecords, ReadsIterationsByNumberInNanoseconds) {
  const PipelineRank rank = parse_pipeline_rank(k_two_iterations, "pp_rank_3.json", 3);
  ASSERT_EQ(rank.iterations.size(), 2u);
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.iterations[0].iteration, 2);
  EXPECT_EQ(rank.iterations[0].total, 10'000'000);
  EXPECT_EQ(rank.iterations[0].memory_gigabytes, 84.5);
  EXPECT_EQ(rank.iterations[0].forward, (std::vector<Span>{{250'000, 2'000'000}}));
  EXPECT_EQ(rank.iterations[0].backward, (std::vector<Span>{{4'000'000, 8'000'001}}));
  EXPECT_EQ(rank.iterations[1].memory_gigabytes, std::nullopt);
}

TEST(PipelineRecords, RefusesWhatContradictsItself) {
  EXPECT_NE(refusal("[]").find("no iterations"), std::string::npos);
  EXPECT_NE(refusal(R"({"1": {"total": 3}})").find("as many fwd_start as fwd_end"), std::string::npos);
  EXPECT_NE(refusal(R"({"1": {"total": 3, "fwd_start": [2], "fwd_end": [1], "bwd_start": [], "bwd_end": []}})")
                .find("iteration 1, fwd 0: ends before it begins"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"1": {"total": -3, "fwd_start": [], "fwd_end": [], "bwd_start": [], "bwd_end": []}})")
                .find("not negative"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"one": {"total": 3}})").find("iteration one"), std::string::npos);
  EXPECT_NE(refusal(R"({"1": )").find("pp_rank_0.json"), std::string::npos);
}

TEST(PipelineRecords, RanksOfAFolderMustAgree) {
  const ScratchFolder scratch;
  const auto put = [&](const std::string& name, std::string_view text) {
    write_file_atomically(scratch.path() / name, text);
  };
  EXPECT_FALSE(is_pipeline_folder(scratch.path()));
  EXPECT_THROW(read_pipeline_records(scratch.path()), Error);
  put("pp_rank_10.json", k_two_iterations);
  put("pp_rank_2.json", k_two_iterations);
  put("config.json", R"({"world_size": 2, "pp_size": 2, "num_mbs": 1, "vp_size": 1})");
  EXPECT_TRUE(is_pipeline_folder(scratch.path()));
  const PipelineRecords records = read_pipeline_records(scratch.path());
  ASSERT_EQ(records.ranks.size(), 2u);
  EXPECT_EQ(records.ranks[0].rank, 2);
  EXPECT_EQ(records.layout.pipeline, 2);
  EXPECT_EQ(records.layout.data, std::nullopt);
  put("config.json", R"({"num_mbs": 4})");
  EXPECT_THROW(read_pipeline_records(scratch.path()), Error);
  put("config.json", R"({"num_mbs": 1})");
  put("pp_rank_02.json", k_two_iterations);
  EXPECT_THROW(read_pipeline_records(scratch.path()), Error);
}

// The figures stand in the list beside the records, computed by another program.
TEST(PipelineRecords, SampleOfEightStages) {
  const auto folder = std::filesystem::path(TPRIMAT_SHARED_DATA) / "trace_pairs" / "pipeline" / "primus_pp8";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  const PipelineRecords records = read_pipeline_records(folder);
  ASSERT_EQ(records.ranks.size(), 8u);
  EXPECT_EQ(records.layout.micro_batches, 16);
  const auto sum = [](const std::vector<Span>& spans) {
    return std::accumulate(spans.begin(), spans.end(), int64_t{0},
                           [](int64_t total, const Span& span) { return total + span.length(); });
  };
  const PipelineIteration& second = records.ranks[7].iterations.at(1);
  EXPECT_EQ(second.iteration, 2);
  EXPECT_NEAR(static_cast<double>(second.total) / 1e6, 2686.6, 0.05);
  EXPECT_NEAR(static_cast<double>(sum(second.forward)) / 1e6, 1036.2, 0.05);
  EXPECT_NEAR(static_cast<double>(sum(second.backward)) / 1e6, 1203.1, 0.05);
  const double longest = static_cast<double>(records.ranks[0].iterations[1].total);
  const double work = static_cast<double>(sum(second.forward) + sum(second.backward));
  EXPECT_NEAR(1.0 - work / longest, 0.299, 0.0005);
}

}  // namespace
}  // namespace tprimat::logs
