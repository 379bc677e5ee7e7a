#include <gtest/gtest.h>

#include <string>

#include "extract/common/failure_cause.h"
#include "extract/dialects.h"
#include "feed_lines.h"

namespace tprimat::logs {
namespace {

struct Case {
  const char* name;
  const char* log;
  const char* cause;  // "" for none
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Logs and why they ended.
const Case k_ends[] = {
    {"memory of one rank",
     "[rank2]: Traceback (most recent call last):\n"
     "[rank2]:   File \"/home/me/train.py\", line 12, in <module>\n"
     "[rank2]:     loss = model(x)\n"
     "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 2 has a total capacity of "
     "79.15 GiB of which 1.00 GiB is free.\n",
     "out of memory on rank 2: tried to allocate 1.50 GiB (GPU 2 of 79.15 GiB)"},
    {"memory as PyTorch 1 put it",
     "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 31.75 GiB total capacity; 30.00 GiB "
     "already "
     "allocated)\n",
     "out of memory: tried to allocate 20.00 MiB (GPU 0 of 31.75 GiB)"},
    {"memory on AMD",
     "[rank1]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB. GPU 1 has a total "
     "capacity of 191.98 GiB of which 1.00 GiB is free.\n",
     "out of memory on rank 1: tried to allocate 4.00 GiB (GPU 1 of 191.98 GiB)"},
    {"an occupied GPU", "    torch.distributed.barrier()\nRuntimeError: CUDA error: out of memory\n",
     "out of memory: RuntimeError: CUDA error: out of memory (not PyTorch's allocator: the GPU is occupied or sick)"},
    {"the kernel's killer", "STEP 3\n[ 812.1] Out of memory: Killed process 4321 (python) total-vm:1kB, anon-rss:2kB\n",
     "out of host memory: Out of memory: Killed process 4321 (python) total-vm:1kB, anon-rss:2kB"},
    {"Slurm's memory limit",
     "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have "
     "been OOM Killed.\n",
     "out of host memory: slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have "
     "been "
     "OOM Killed."},
    {"a collective that never came",
     "[rank4]:[E810 03:04:11.061727749 ProcessGroupNCCL.cpp:683] [Rank 4] Watchdog caught collective operation "
     "timeout: "
     "WorkNCCL(SeqNum=12, OpType=ALLGATHER, NumelIn=8, NumelOut=8, Timeout(ms)=60000) ran for 60071 milliseconds "
     "before "
     "timing out.\n"
     "[rank6]:[E810 03:04:11.161727749 ProcessGroupNCCL.cpp:683] [Rank 6] Watchdog caught collective operation "
     "timeout: "
     "WorkNCCL(SeqNum=12, OpType=ALLGATHER, NumelIn=8, NumelOut=8, Timeout(ms)=60000) ran for 60010 milliseconds "
     "before "
     "timing out.\n"
     "     [2] finished collective #11, but didn't join collective #12 (count from 1)\n",
     "collective timeout: ALLGATHER SeqNum=12 on ranks 4,6 after 60 s (limit 60 s); rank 2 did not join"},
    {"a rank that the launcher names",
     "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 1\n"
     "[rank0]: ValueError: bad shape 3\n"
     "E0101 00:00:00.000000 11 torch/api.py:826] failed (exitcode: 1) local_rank: 3 (pid: 900) of binary: python\n"
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
     "============================================================\ntrain.py FAILED\n"
     "------------------------------------------------------------\nFailures:\n[1]:\n"
     "  time      : 2025-01-01_00:00:00\n  rank      : 5 (local_rank: 5)\n  exitcode  : -15 (pid: 901)\n"
     "  error_file: <N/A>\n  traceback : Signal 15 (SIGTERM) received by PID 901\n"
     "------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n"
     "  time      : 2025-01-01_00:00:00\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 900)\n"
     "  error_file: /tmp/error.json\n  traceback : Traceback (most recent call last):\n"
     "    File \"a.py\", line 1, in f\n      g()\n  ValueError: bad shape 7\n"
     "============================================================\n",
     "rank 3 ended with exit code 1: ValueError: bad shape 7"},
    {"a killed rank",
     "Root Cause (first observed failure):\n[0]:\n  rank      : 6 (local_rank: 6)\n  exitcode  : -9 (pid: 8158)\n"
     "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 8158\n"
     "=====================================================\n",
     "rank 6 was killed by signal 9 (SIGKILL): usually by the kernel, when memory ran out"},
    {"a killed task", "STEP 4\nsrun: error: node7: task 3: Killed\n",
     "srun: error: node7: task 3: Killed: usually by the kernel, when memory ran out"},
    {"a rank killed before the others complain",
     "srun: error: node7: task 3: Killed\n"
     "[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a "
     "network "
     "error\n",
     "srun: error: node7: task 3: Killed: usually by the kernel, when memory ran out"},
    {"a file that may not be read",
     "Traceback (most recent call last):\n  File \"a.py\", line 1, in get\n"
     "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://hub/x\n\n"
     "The above exception was the direct cause of the following exception:\n\n"
     "Traceback (most recent call last):\n  File \"b.py\", line 2, in load\n"
     "OSError: You are trying to access a gated repo.\n",
     "a process ended with an error: HTTP 403, no access to a gated repository: OSError: You are trying to access a "
     "gated "
     "repo. (after requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://hub/x)"},
    {"the time limit",
     "STEP 90\nslurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
     "[rank0]: torch.distributed.elastic.multiprocessing.api.SignalException: Process 4 got signal: 15\n",
     "the job's time was over: slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME "
     "LIMIT "
     "***"},
    {"a hang after an error, until the time limit",
     "[rank3]: RuntimeError: worker lost\n"
     "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
     "rank 3 ended with an error: RuntimeError: worker lost"},
    {"a sick device",
     "[default3]:terminate called after throwing an instance of 'c10::CUDAError'\n"
     "[default3]:  what():  CUDA error: unknown error\n",
     "device error on rank 3: c10::CUDAError: CUDA error: unknown error"},
    {"an Xid", "kernel: NVRM: Xid (PCI:0000:61:00): 79, pid=1, GPU has fallen off the bus.\n",
     "device error: NVRM: Xid (PCI:0000:61:00): 79, pid=1, GPU has fallen off the bus."},
    {"an AMD page fault", "Memory access fault by GPU node-4 (Agent handle: 0x1) on address 0x7f. Reason: Unknown.\n",
     "device error: Memory access fault by GPU node-4 (Agent handle: 0x1) on address 0x7f. Reason: Unknown."},
    {"a NaN that stopped it", "[rank0]: AssertionError: Rank 0: found NaN in local grad norm in backward pass\n",
     "rank 0 ended with an error: AssertionError: Rank 0: found NaN in local grad norm in backward pass"},
    {"no more than an exit code", "srun: error: node: task 5: Exited with exit code 1\n",
     "srun: error: node: task 5: Exited with exit code 1"},
    {"an error printed before buffered steps",
     "[rank1]: KeyError: 'tokens'\nSTEP 8\nsrun: error: node: task 1: Exited with exit code 1\n",
     "srun: error: node: task 1: Exited with exit code 1; before its last step the log shows: rank 1 ended with an "
     "error: "
     "KeyError: 'tokens'"},
    {"memory that was enough at the second try",
     "STEP 5\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 31.75 GiB total capacity)\nSTEP "
     "6\n",
     ""},
    {"a crash that a restart made good",
     "STEP 5\n[rank0]: Exception: simulated\n[default] Worker group FAILED. 3/3 attempts left; will restart worker "
     "group\nSTEP 6\n",
     ""},
    {"nothing at all", "STEP 1\nSTEP 2\n", ""},
};

class EndTest : public testing::TestWithParam<Case> {};

TEST_P(EndTest, TellsTheCause) {
  const ExtractedLog log = feed_lines(failures_reader(), GetParam().log);
  EXPECT_EQ(explain_end(log).value_or(EndCause{}).sentence, GetParam().cause);
}

INSTANTIATE_TEST_SUITE_P(Logs, EndTest, testing::ValuesIn(k_ends));

struct KindCase {
  const char* log;
  FailureKind kind;
  std::optional<int64_t> rank;
};

TEST(End, HasAKindAndTheRankThatFailedFirst) {
  const KindCase cases[] = {
      {"[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n", FailureKind::out_of_memory,
       2},
      {"[ 812.1] Out of memory: Killed process 4321 (python)\n", FailureKind::host_out_of_memory, {}},
      {"ModuleNotFoundError: No module named 'apex'\n", FailureKind::missing_module, {}},
      {"RuntimeError: CUDA error: an illegal memory access was encountered\n", FailureKind::device_error, {}},
      {"RuntimeError: No CUDA GPUs are available\n", FailureKind::no_device, {}},
      {"torch.distributed.DistNetworkError: The server socket has failed to listen. EADDRINUSE, message: address "
       "already "
       "in use\n",
       FailureKind::port_in_use,
       {}},
      {"OSError: [Errno 28] No space left on device\n", FailureKind::disk_full, {}},
      {"mpirun noticed that process rank 1 with PID 12 on node a exited on signal 9 (Killed).\n", FailureKind::killed,
       1},
      {"prterun noticed that process rank 4 with PID 12 on node a exited on signal 11 (Segmentation fault).\n",
       FailureKind::killed, 4},
      {"  Process name: [[41210,1],3]\n  Exit code:    5\n", FailureKind::error, 3},
      {"srun: error: node7: task 3: Exited with exit code 1\n", FailureKind::error, 3},
      {"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
       FailureKind::ended_by_scheduler,
       {}},
      {"AssertionError: Rank 0: found NaN in local forward loss calculation\n", FailureKind::nan_loss, {}}};
  for (const KindCase& c : cases) {
    const auto cause = explain_end(feed_lines(failures_reader(), c.log));
    ASSERT_TRUE(cause.has_value()) << c.log;
    EXPECT_EQ(cause->kind, c.kind) << c.log << enum_name(cause->kind);
    EXPECT_EQ(cause->rank, c.rank) << c.log;
  }
}

// Lines that only look like failures.
constexpr const char* k_harmless[] = {
    "  exit_on_oom ..................................... Killed",
    "  distributed_timeout_minutes ..................... 10",
    "  check_for_nan_in_loss_and_grad .................. True",
    "  error_injection_rate ............................ 0",
    "    raise RuntimeError(\"CUDA error: out of memory\")",
    "        print(\"loss is nan, stopping\")",
    "# CUDA out of memory. Tried to allocate 2 GiB: use a smaller batch",
    "    ValueError: if the shapes differ",
    "usage: train.py [--exit-on-oom] Exception: none",
    "WARNING: Setting args.check_for_nan_in_loss_and_grad to False since dynamic loss scaling is being used",
    ("[rank0]:[W519 14:55:08 CUDACachingAllocator.cpp:495] expandable_segments: memory mapping failed with OOM on "
     "device 0"),
    "UserWarning: Error: 0",
    "finished with 0 errors, exit code 0",
    "srun: error: node: task 5: Exited with exit code 0",
    "[default] worker group successfully finished. Waiting 300 seconds for other agents to finish.",
    "W1031 06:37:49.786000 7 api.py:906] Sending process 73800 closing signal SIGTERM",
    " iteration 1/ 10 | lm loss: 1.0 | number of skipped iterations:   0 | number of nan iterations:   0 |",
    "Killed 3 of the duplicates in the data set",
    "message = \"NaN or Inf found in input tensor\"",
};

TEST(Failures, HarmlessLinesGiveNothing) {
  for (const char* line : k_harmless) {
    const ExtractedLog log = feed_lines(failures_reader(), line);
    EXPECT_TRUE(log.events.empty()) << line << " gave " << log.events[0].text;
  }
}

TEST(Failures, AProgramListingGivesNothing) {
  const ExtractedLog log = feed_lines(failures_reader(),
                                      "import torch\n"
                                      "try:\n    step()\nexcept RuntimeError as error:\n"
                                      "    if \"out of memory. Tried to allocate\" in str(error):\n"
                                      "        raise torch.OutOfMemoryError(\"CUDA out of memory\")\n"
                                      "assert loss is not None, \"loss is nan\"\n");
  EXPECT_TRUE(log.events.empty());
}

TEST(Failures, TracebacksOfManyRanksAreOneEvent) {
  std::string text;
  for (const char* part : {"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "    x.to(y)"})
    for (int rank = 0; rank < 4; ++rank) text += "[rank" + std::to_string(rank) + "]: " + part + "\n";
  for (int rank = 0; rank < 4; ++rank)
    text +=
        "[rank" + std::to_string(rank) + "]: RuntimeError: found devices, cuda:" + std::to_string(rank) + " and cpu!\n";
  const ExtractedLog log = feed_lines(failures_reader(), text);
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].reports, 4);
  EXPECT_EQ(log.events[0].ranks, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(log.events[0].line, 13);
  EXPECT_EQ(log.event_counts.at(EventKind::failed), 4);
}

TEST(Failures, TheSameMuchLaterIsAnotherEvent) {
  const std::string line = "WARNING: NaN or Inf found in input tensor.\n";
  const ExtractedLog log = feed_lines(failures_reader(), line + line + std::string(2000, '\n') + line);
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].reports, 2);
  EXPECT_EQ(log.events[0].last_line, 2);
  EXPECT_EQ(log.events[1].line, 2003);
  EXPECT_EQ(log.events[1].kind, EventKind::nan);
}

TEST(Failures, AnotherRanksLineBetweenHidesNothing) {
  const ExtractedLog log = feed_lines(failures_reader(),
                                      "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
                                      "RuntimeError: CUDA error: an illegal memory access was encountered\n"
                                      "  exitcode  : 1 (pid: 5)\n=====\n");
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].kind, EventKind::device_error);
  EXPECT_EQ(log.events[1].rank, 1);
}

TEST(Failures, TextIsPrintableAndShort) {
  const ExtractedLog log = feed_lines(failures_reader(), "RuntimeError: a\tb\x01\xff " + std::string(1000, 'x') + "\n");
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].text.substr(0, 18), "RuntimeError: a b ");
  EXPECT_LE(log.events[0].text.size(), 300u);
}

TEST(Failures, LossThatStaysNanIsAnEnd) {
  ExtractedLog log;
  for (int64_t step = 1; step <= 5; ++step) {
    ExtractedStep record;
    record.step = step;
    record.loss = step < 3 ? 2.0 : std::numeric_limits<double>::quiet_NaN();
    log.steps.push_back(record);
  }
  EXPECT_EQ(explain_end(log)->sentence, "NaN: the loss is not a number from step 3 to the last one, 5");
  EXPECT_EQ(explain_end(log)->kind, FailureKind::nan_loss);
  log.steps.back().loss = 2.0;
  EXPECT_FALSE(explain_end(log).has_value());
}

TEST(Pauses, TimerAndLossAreOneEvaluation) {
  const ExtractedLog log =
      feed_lines(pauses_reader(),
                 "STEP 100\n"
                 "Evaluating on 160 samples\nEvaluating iter 1/10\n"
                 "    evaluate .......................................: (1970.23, 1970.28)\n"
                 " validation loss at iteration 100 | lm loss value: 8.687662E+00 | lm loss PPL: 5 |\n"
                 "    evaluate .......................................: (10.5, 11.5)\n"
                 " validation loss at iteration 100 on test set | lm loss value: 7.5E+00 |\n");
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].kind, EventKind::evaluation);
  EXPECT_DOUBLE_EQ(*log.events[0].seconds, 1.97028);
  EXPECT_DOUBLE_EQ(*log.events[0].value, 8.687662);
  EXPECT_EQ(log.events[0].step, 100);
  EXPECT_EQ(log.events[1].text, "validation loss at iteration 100 on test set");
  EXPECT_DOUBLE_EQ(*log.events[1].seconds, 0.0115);
}

TEST(Pauses, SavingAndSavedAreOneCheckpoint) {
  const ExtractedLog log = feed_lines(pauses_reader(),
                                      "STEP 50\n"
                                      "saving checkpoint at iteration      50 to out\n"
                                      "  successfully saved checkpoint at iteration      50 to out\n"
                                      "    save-checkpoint ................................: (4526.90, 4526.91)\n"
                                      "STEP 51\n"
                                      "saving checkpoint at iteration      51 to out\n");
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].step, 50);
  EXPECT_DOUBLE_EQ(*log.events[0].seconds, 4.52691);
  EXPECT_FALSE(log.events[1].seconds);
  EXPECT_EQ(log.events[1].step, 51);
}

TEST(Pauses, AnAsynchronousCheckpointMayEndStepsLater) {
  const ExtractedLog log =
      feed_lines(pauses_reader(),
                 "STEP 9\n[NeMo I 2025-03-07 22:38:36 model_checkpoint:497] Scheduled async "
                 "checkpoint save for /tmp/step=9.ckpt\n"
                 "STEP 10\n[NeMo I 2025-03-07 22:38:44 model_checkpoint:522] Async checkpoint save "
                 "for step 10 (/tmp/step=9.ckpt) finalized successfully.\n");
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].step, 10);
}

TEST(Pauses, EachUpdateLeftOutCountsOnce) {
  const ExtractedLog log = feed_lines(
      pauses_reader(),
      "[2023-04-18 01:46:53,259] [INFO] [x.py:1] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
      "65536, reducing to 32768\n"
      "[2023-04-18 01:46:53,259] [INFO] [x.py:1] [deepspeed] OVERFLOW! Rank 1 Skipping step. Attempted loss scale: "
      "65536, reducing to 32768\n"
      "[2023-04-18 01:46:54,259] [INFO] [x.py:1] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: "
      "32768, reducing to 16384\n");
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].kind, EventKind::skipped_update);
  EXPECT_EQ(log.events[1].text, "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 32768, reducing to 16384");
}

TEST(Pauses, SettingsAndSourceGiveNothing) {
  const ExtractedLog log = feed_lines(pauses_reader(),
                                      "  evaluate ........................................ True\n"
                                      "  save-checkpoint ................................. True\n"
                                      "    print_rank_0('saving checkpoint at iteration {:7d} to {}'.format(1, 2))\n");
  EXPECT_TRUE(log.events.empty());
}

}  // namespace
}  // namespace tprimat::logs
