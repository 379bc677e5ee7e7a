#include "train/op_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/clock.h"
#include "data/token_source.h"
#include "small_training.h"
#include "text/json.h"
#include "train/engine.h"
#include "train/timed_groups.h"

namespace tprimat::engine {
namespace {

std::vector<OpEvent> events_of_a_step(const TrainSpec& spec) {
  OpClock clock;
  clock.keep_events();
  const auto engine = make_engine(spec);
  const auto tokens = open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed});
  engine->use_clock(&clock);
  engine->run_step(1, *tokens);
  return clock.events();
}

double count_product_flops(const std::vector<OpEvent>& events, OpPhase phase) {
  double flops = 0;
  for (const OpEvent& event : events)
    if (event.kind == OpKind::product && event.scope.phase == phase) flops += event.work.flops;
  return flops;
}

// Rows and columns of all weights of a layer's products: queries, keys and values, output, gate and up, down.
double matrix_weights_of_layer(const ModelSpec& model) {
  const auto width = static_cast<double>(model.head_dim);
  const auto heads = static_cast<double>(model.num_attention_heads + 2 * model.num_key_value_heads);
  const auto hidden = static_cast<double>(model.hidden_size);
  return hidden * (width * (heads + static_cast<double>(model.num_attention_heads)) +
                   3 * static_cast<double>(model.ffn_hidden_size));
}

TEST(OpEvents, CountTheWorkOfEachPhase) {
  TrainSpec spec = small_training(Precision::fp32);
  const auto tokens = static_cast<double>(spec.tokens_per_step());
  const double layers = 2 * matrix_weights_of_layer(spec.model);
  const auto head = static_cast<double>(spec.model.hidden_size * spec.model.vocab_size);
  const auto plain = events_of_a_step(spec);
  EXPECT_DOUBLE_EQ(count_product_flops(plain, OpPhase::forward), 2 * tokens * (layers + head));
  EXPECT_DOUBLE_EQ(count_product_flops(plain, OpPhase::backward), 4 * tokens * (layers + head));
  EXPECT_EQ(count_product_flops(plain, OpPhase::recompute), 0);
  spec.recompute = Recompute::full;
  const auto recomputed = events_of_a_step(spec);
  EXPECT_DOUBLE_EQ(count_product_flops(recomputed, OpPhase::recompute), 2 * tokens * layers);
  EXPECT_DOUBLE_EQ(count_product_flops(recomputed, OpPhase::backward), 4 * tokens * (layers + head));
}

TEST(OpEvents, HaveTheirPlaceInTheStep) {
  const TrainSpec spec = small_training(Precision::bf16);
  std::map<std::string, std::set<int>> layers, micro_batches;
  std::set<std::string> ranges;
  for (const OpEvent& event : events_of_a_step(spec)) {
    EXPECT_LE(event.begin, event.end) << event.name;
    if (event.kind == OpKind::range) {
      ranges.insert(event.name);
      continue;
    }
    EXPECT_NE(event.scope.phase, OpPhase::none) << event.name;
    layers[event.name].insert(event.scope.layer);
    micro_batches[event.name].insert(event.scope.micro_batch);
  }
  EXPECT_EQ(layers.at("mlp.down forward"), (std::set{0, 1}));
  EXPECT_EQ(layers.at("mlp.down backward, weight"), (std::set{0, 1}));
  EXPECT_EQ(layers.at("AdamW"), std::set{-1});
  EXPECT_EQ(micro_batches.at("attention forward"), (std::set{0, 1, 2, 3}));
  EXPECT_TRUE(ranges.contains("tprimat: next batch"));
  EXPECT_TRUE(ranges.contains("forward of micro-batch 3"));
  EXPECT_TRUE(ranges.contains("optimizer"));
}

TEST(OpEvents, ATotalHasNoRangesAndNoCollectives) {
  OpClock clock;
  clock.keep_events();
  { const OpRange range(&clock, "forward", {OpPhase::forward, -1, 0}); }
  clock.close(clock.mark_begin(), {"all_reduce", OpKind::collective});
  { const OpTimer timer(&clock, "norm", memory_work<float>(2, 3, 2)); }
  EXPECT_EQ(clock.events().size(), 3u);
  EXPECT_EQ(clock.totals().size(), 1u);
  EXPECT_EQ(clock.totals().at("norm").bytes, 48);
  OpClock totals_only;
  { const OpRange range(&totals_only, "forward", {OpPhase::forward, -1, 0}); }
  EXPECT_TRUE(totals_only.events().empty());
}

// One of two ranks, whose transfers end at once.
class OneOfTwo : public Communicator {
 public:
  struct Done : Transfer {
    void wait() override {}
  };
  int rank() const override { return 0; }
  int size() const override { return 2; }
  TransferPtr start_all_reduce(CommBuffer, Reduction) override { return std::make_unique<Done>(); }
  TransferPtr start_all_gather(CommBuffer, CommBuffer) override { return std::make_unique<Done>(); }
  TransferPtr start_reduce_scatter(CommBuffer, CommBuffer) override { return std::make_unique<Done>(); }
  TransferPtr start_all_to_all(CommBuffer, CommBuffer) override { return std::make_unique<Done>(); }
  TransferPtr start_send(CommBuffer, int, int) override { return std::make_unique<Done>(); }
  TransferPtr start_receive(CommBuffer, int, int) override { return std::make_unique<Done>(); }
  void broadcast(CommBuffer, int) override {}
  void barrier() override {}
  void progress() override {}
  std::unique_ptr<Communicator> split(int, int) override { return nullptr; }
};

RankGroups two_ranks() {
  RankGroups groups;
  for (auto* group : {&groups.world, &groups.tensor, &groups.context, &groups.pipeline, &groups.model,
                      &groups.embedding, &groups.key_value})
    *group = make_self_communicator();
  groups.data = std::make_unique<OneOfTwo>();
  return groups;
}

TEST(TimedGroups, SeeWhatIsMovedAmongWhom) {
  OpClock clock;
  OpClock* watching = nullptr;
  const RankGroups groups = time_groups(two_ranks(), &watching, false);
  float values[8] = {};
  groups.data->all_reduce(values, 8);  // nobody watches
  watching = &clock;
  groups.data->all_reduce(values, 8);  // a clock of totals alone
  clock.keep_events();
  groups.world->all_reduce(values, 8);  // of one rank
  groups.data->all_gather(values, 4, values);
  ASSERT_EQ(clock.events().size(), 1u);
  const OpEvent& event = clock.events().front();
  EXPECT_EQ(event.name, "all_gather");
  EXPECT_EQ(event.group.name, "data");
  EXPECT_EQ(event.group.size, 2);
  EXPECT_EQ(event.work.bytes, 16);
}

TEST(TimedGroups, ATransferThatWorkHidesCountsWhileItIsWaitedFor) {
  OpClock clock;
  clock.keep_events();
  OpClock* watching = &clock;
  const RankGroups groups = time_groups(two_ranks(), &watching, false);
  float values[8] = {};
  const TransferPtr transfer = groups.data->start_all_reduce(comm_buffer(values, 8), Reduction::sum);
  { const OpTimer timer(&clock, "norm", {}); }
  transfer->wait();
  transfer->wait();  // only once
  ASSERT_EQ(clock.events().size(), 2u);
  EXPECT_GE(clock.events()[1].begin, clock.events()[0].end);
}

TEST(OpTrace, IsReadAsPyTorchsAre) {
  const auto begin = SteadyClock::now();
  const auto at = [&](int64_t microseconds) { return begin + std::chrono::microseconds(microseconds); };
  const OpEvent product{
      "mlp.down forward", OpKind::product, {OpPhase::forward, 3, 1}, product_work<bf16>(2, 3, 4), {}, at(10), at(30)};
  OpClock::Call call{"all_reduce", OpKind::collective, {0, 64, {OpDims{16}}, ElementType::float32}, {"data", 2}};
  const OpEvent exchange{std::string(call.name), call.kind, {OpPhase::backward}, call.work, call.group, at(40), at(50)};
  const Json trace = parse_json(render_op_trace({product, exchange}, {{7, at(0), at(60)}}, {1, 2}), "trace");
  EXPECT_EQ(trace.at("distributedInfo").at("rank"), 1);
  EXPECT_NEAR(trace.at("baseTimeNanoseconds").get<double>() * 1e-9, unix_time_seconds(), 60);
  const Json& events = trace.at("traceEvents");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("name"), "ProfilerStep#7");
  EXPECT_NEAR(events[1].at("ts").get<double>() - events[0].at("ts").get<double>(), 10, 1e-6);
  EXPECT_NEAR(events[1].at("dur").get<double>(), 20, 1e-6);
  const Json& of_product = events[1].at("args");
  EXPECT_EQ(of_product.at("class"), "matmul");
  EXPECT_EQ(of_product.at("phase"), "forward");
  EXPECT_EQ(of_product.at("layer"), 3);
  EXPECT_EQ(of_product.at("micro_batch"), 1);
  EXPECT_EQ(of_product.at("flops"), 48);
  EXPECT_EQ(print_json_line(of_product.at("Input Dims")), "[[2,3],[3,4]]");
  EXPECT_EQ(print_json_line(of_product.at("Input type")), R"(["c10::BFloat16","c10::BFloat16"])");
  const Json& of_exchange = events[2].at("args");
  EXPECT_EQ(of_exchange.at("class"), "collective");
  EXPECT_EQ(of_exchange.at("Collective name"), "all_reduce");
  EXPECT_EQ(of_exchange.at("Process Group Description"), "data");
  EXPECT_EQ(of_exchange.at("Group size"), 2);
  EXPECT_EQ(of_exchange.at("bytes"), 64);
}

TEST(OpTrace, ThePathSaysWhoWrites) {
  ::setenv("TPRIMAT_PROFILE", "own:22:24:/out/x_profile/rank_{rank}.json.gz", 1);
  const auto every = op_trace_request();
  ::setenv("TPRIMAT_PROFILE", "own:11:15:/out/trace.json", 1);
  const auto first = op_trace_request();
  ::unsetenv("TPRIMAT_PROFILE");
  ASSERT_TRUE(every && first);
  EXPECT_TRUE(every->is_for_every_rank());
  EXPECT_EQ(every->path_of(3), "/out/x_profile/rank_3.json.gz");
  EXPECT_FALSE(first->is_for_every_rank());
  EXPECT_EQ(first->path_of(0), "/out/trace.json");
}

}  // namespace
}  // namespace tprimat::engine
