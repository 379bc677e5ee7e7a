#include "trace/operation_table.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tprimat::logs {
namespace {

constexpr const char* k_csv =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\r\n"
    "0,1,4,7,forward-compute,0.5,0.25,0,0,3,1\r\n"
    "0,0,0,7,params-all-gather,0.1,2e-3,0,-1,-1,-1\r\n"
    "\r\n"
    "0,1,4,7,\"forward-recv\",0.25,0.125,0,-1,-1,-1\r\n";

TEST(OperationTable, ReadsCsvInAnyOrder) {
  ASSERT_TRUE(is_operation_table(k_csv));
  const auto rows = read_operation_table(k_csv, "x.csv");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].kind, OperationKind::params_all_gather);
  EXPECT_DOUBLE_EQ(rows[0].duration, 0.002);
  EXPECT_EQ(rows[0].micro_batch, -1);
  EXPECT_EQ(rows[1].kind, OperationKind::forward_recv);  // by begin
  EXPECT_EQ(rows[2].micro_batch, 3);
  EXPECT_EQ(rows[2].chunk, 0);
  EXPECT_EQ(rows[2].rank, 4);
  EXPECT_EQ(rows[2].step, 7);
}

TEST(OperationTable, ReadsJsonLines) {
  constexpr const char* text =
      R"({"step": 1, "dp_rank": 0, "stage": 2, "operation": "backward_send", "begin": 1.5, "duration": 1e-4})"
      "\n"
      R"({"step": 1, "dp_rank": 0, "stage": 0, "operation": "gc", "begin": 0, "duration": 0, "note": null})";
  ASSERT_TRUE(is_operation_table(text));
  const auto rows = read_operation_table(text, "x.jsonl");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].kind, OperationKind::backward_send);
  EXPECT_DOUBLE_EQ(rows[1].begin, 1.5);
}

std::string problem_of(std::string_view text) {
  try {
    read_operation_table(text, "x.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(OperationTable, NamesTheLineThatDoesNotFit) {
  const std::string header = "step,dp_rank,stage,operation,begin,duration\n";
  EXPECT_EQ(problem_of("step,dp_rank,stage,operation,begin\n"),
            "x.csv: line 1 has no column duration\n"
            "  the header names step, dp_rank, stage, operation, begin and duration");
  EXPECT_EQ(problem_of(header + "1,0,0,gc,0,0\n1,0,0,gc,0\n"), "x.csv: line 3 has 5 cells where the header has 6");
  EXPECT_EQ(problem_of(header), "x.csv: is an empty table of operations\n  nothing was recorded");
  EXPECT_NE(problem_of(header + "1,0,0,sleep,0,0\n").find("line 2 has an unusable operation: 'sleep'"),
            std::string::npos);
  for (const char* row : {"-1,0,0,gc,0,0", "1,-1,0,gc,0,0", "1,0,99999999999,gc,0,0", "1,0,0,gc,nan,0", "1,0,0,gc,0,-1",
                          "1,0,0,gc,0,inf", "1,0,0,gc,1e300,1", "x,0,0,gc,0,1"})
    EXPECT_NE(problem_of(header + row).find("line 2 has an unusable"), std::string::npos) << row;
  EXPECT_NE(problem_of("{\"step\": 1}\n").find("line 1 has no dp_rank"), std::string::npos);
  EXPECT_NE(problem_of("{\"step\": \n").find("x.csv:1"), std::string::npos);
}

TEST(OperationTable, RefusesTwoRanksOfOneWorker) {
  EXPECT_EQ(problem_of("step,dp_rank,stage,rank,operation,begin,duration\n1,0,0,0,gc,0,0\n1,0,0,1,gc,0,0\n"),
            "x.csv: has ranks 0 and 1 for stage 0 of replica 0 in step 1\n"
            "  keep one rank of each tensor-parallel group");
}

TEST(OperationTable, IsNotTakenForATrace) {
  EXPECT_FALSE(is_operation_table("{\"traceEvents\": []}"));
  EXPECT_FALSE(is_operation_table("Name,Calls\n"));
}

}  // namespace
}  // namespace tprimat::logs
