#include "nn/model_chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <tuple>

#include "nn/initial_values.h"

namespace tprimat::engine {
namespace {

enum class Family { llama, qwen2, qwen3, mistral, gpt2 };

ModelSpec tiny_model(Family family) {
  ModelSpec model;
  model.name = "tiny";
  model.full_name = "tiny";
  model.num_layers = 2;
  model.hidden_size = 24;
  model.ffn_hidden_size = 40;
  model.num_attention_heads = 4;
  model.num_key_value_heads = family == Family::gpt2 ? 4 : 2;
  model.head_dim = 6;
  model.vocab_size = 50;
  model.max_position_embeddings = 128;
  model.tied_embeddings = family == Family::qwen2 || family == Family::gpt2;
  model.qkv_bias = family == Family::qwen2;
  model.qk_norm = family == Family::qwen3;
  if (family == Family::mistral) model.sliding_window = 5;
  if (family == Family::llama) model.rope_scaling = RopeScaling{RopeScalingKind::llama3, 4.0, 1.0, 4.0, 16};
  if (family != Family::gpt2) return model;
  model.norm = NormKind::layer;
  model.mlp = MlpKind::gelu;
  model.position = PositionKind::learned;
  model.linear_bias = true;
  return model;
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<int32_t> pick(0, static_cast<int32_t>(vocab - 1));
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = pick(generator);
  return tokens;
}

template <class T>
class PlainHome final : public WeightHome<T> {
 public:
  // `begins`: the first view of each unit says that it is the first.
  PlainHome(const ParameterTable& table, const T* weights, Accum<T>* gradients, bool begins)
      : table_(table), weights_(weights), gradients_(gradients), begun_(table.units().size(), !begins) {}
  UnitView<T> open(int unit, int) override {
    const int64_t begin = table_.units()[static_cast<size_t>(unit)].begin;
    return {weights_ + begin, gradients_ + begin, begin};
  }
  void close(int) override {}
  UnitView<T> open_for_backward(int unit, int next) override {
    UnitView<T> view = open(unit, next);
    view.is_first = !begun_[static_cast<size_t>(unit)];
    begun_[static_cast<size_t>(unit)] = true;
    return view;
  }
  void close_after_backward(int, bool) override {}

 private:
  const ParameterTable& table_;
  const T* weights_;
  Accum<T>* gradients_;
  std::vector<bool> begun_;
};

// How gradients begin: as zeros to which all is added, or as NaN but for those that nobody writes first.
enum class Start { cleared, spoiled };

RankGroups one_rank() {
  TrainSpec spec;
  spec.model = tiny_model(Family::llama);
  return make_rank_groups(spec, make_self_communicator());
}

// A model with weights and gradients in vectors of its own.
template <class T>
class Bench {
 public:
  Bench(const ModelSpec& spec, int64_t sequences, int64_t length, Recompute recompute = Recompute::none)
      : ranks_(one_rank()),
        arena_plan_({sizeof(T), sizeof(Accum<T>)}),
        kept_(arena_plan_.values(), Place::bank),
        shape_{.batch = {sequences, length, length}, .sharing = {}, .recompute = recompute},
        layers_{spec, shape_, weights_plan_, arena_plan_, kept_},
        shared_buffers_(plan_shared(layers_)),
        buffers_(plan_chunk(layers_, whole(spec))),
        parameters(weights_plan_),
        shared_(spec, {shape_, parameters}, shared_buffers_),
        model_(spec, {shape_, parameters}, whole(spec), buffers_),
        dstream_(arena_plan_.reserve<T>(Component::workspace, sequences * length * spec.hidden_size)),
        bank_(arena_plan_.reserve<std::byte>(Component::activations, static_cast<int64_t>(kept_.total_bytes()))),
        arena_(arena_plan_),
        weights(static_cast<size_t>(parameters.size())),
        gradients(weights.size()),
        tokens_(random_tokens(sequences * length, spec.vocab_size, 1)),
        targets_(random_tokens(sequences * length, spec.vocab_size, 2)) {
    // Larger than usual initial weights, and no constant ones, so that every path matters.
    for (const Parameter& parameter : parameters.all()) {
      Parameter wide = parameter;
      wide.stddev = 0.2;
      std::vector<float> drawn(static_cast<size_t>(parameter.count()));
      for (const InitialPiece& piece : initial_values(wide, 7, 0, parameter.count()))
        cpu_ops<float>().draw_normal(piece.count, piece.draw, drawn.data() + piece.first);
      std::transform(drawn.begin(), drawn.end(), weights.begin() + parameter.offset,
                     [](float value) { return narrow<T>(static_cast<Accum<T>>(value)); });
    }
    shared_.prepare(pass());
  }

  // Mean loss; gradients are those of the mean. Of the same micro batch as often as it is said.
  double run(int micro_batches = 1, Start start = Start::cleared) {
    begin_gradients(start);
    PlainHome<T> home(parameters, weights.data(), gradients.data(), start == Start::spoiled);
    const double scale = 1.0 / static_cast<double>(tokens_.size());
    const MicroBatch batch{tokens_.data(), targets_.data()};
    loss_ = 0;
    for (int micro = 0; micro < micro_batches; ++micro) {
      model_.forward(pass(), shared_, home, batch, scale);
      model_.backward(pass(), shared_, home, batch, arena_.at(dstream_));
    }
    return scale * loss_;
  }
  size_t bytes() const { return arena_.bytes(); }

 private:
  void begin_gradients(Start start) {
    if (start == Start::cleared) return std::fill(gradients.begin(), gradients.end(), Accum<T>(0));
    std::fill(gradients.begin(), gradients.end(), std::numeric_limits<Accum<T>>::quiet_NaN());
    for (const ElementRange& range : parameters.ranges_to_clear({0, parameters.size()}))
      std::fill(gradients.begin() + range.begin, gradients.begin() + range.end, Accum<T>(0));
  }
  Pass<T> pass() { return {cpu_device(), ops, arena_, arena_.at(bank_), ranks_, &loss_}; }
  RankGroups ranks_;
  static ChunkShape whole(const ModelSpec& spec) { return {0, spec.num_layers}; }
  ArenaPlan arena_plan_, kept_;
  WeightPlan weights_plan_;
  RankShape shape_;
  LayerPlan layers_;
  SharedBuffers shared_buffers_;
  ChunkBuffers buffers_;

 public:
  OpTable<T> ops = cpu_ops<T>();
  ParameterTable parameters;

 private:
  ChunkShared<T> shared_;
  ModelChunk<T> model_;
  Slot<T> dstream_;
  Slot<std::byte> bank_;
  Arena arena_;

 public:
  std::vector<T> weights;
  std::vector<Accum<T>> gradients;

 private:
  std::vector<int32_t> tokens_, targets_;
  double loss_ = 0;
};

class WholeModel : public testing::TestWithParam<Family> {};

TEST_P(WholeModel, GradientIsThatOfFiniteDifferences) {
  Bench<double> bench(tiny_model(GetParam()), 2, 9);
  bench.run();
  const std::vector<double> analytic = bench.gradients;
  for (const Parameter& parameter : bench.parameters.all()) {
    SCOPED_TRACE(parameter.name);
    double error = 0, size = 0;
    for (int64_t i = 0; i < parameter.count(); i += std::max<int64_t>(1, parameter.count() / 8)) {
      double& weight = bench.weights[static_cast<size_t>(parameter.offset + i)];
      const double kept = weight, step = 1e-5;
      weight = kept + step;
      const double above = bench.run();
      weight = kept - step;
      const double measured = (above - bench.run()) / (2 * step);
      weight = kept;
      const double gradient = analytic[static_cast<size_t>(parameter.offset + i)];
      error += (measured - gradient) * (measured - gradient);
      size += measured * measured;
    }
    EXPECT_GT(size, 0.0);
    EXPECT_LE(std::sqrt(error), 1e-6 * std::sqrt(size));
  }
}

template <class T>
void expect_close_gradients(const Bench<T>& actual, const Bench<double>& expected, double tolerance) {
  for (const Parameter& parameter : expected.parameters.all()) {
    SCOPED_TRACE(parameter.name);
    double error = 0, size = 0;
    for (int64_t i = 0; i < parameter.count(); ++i) {
      const auto at = static_cast<size_t>(parameter.offset + i);
      error += std::pow(static_cast<double>(actual.gradients[at]) - expected.gradients[at], 2);
      size += std::pow(expected.gradients[at], 2);
    }
    EXPECT_GT(size, 0.0);
    EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(size));
  }
}

TEST_P(WholeModel, FloatAgreesWithDoubleTo1e5) {
  for (const int64_t length : {9, 70}) {
    Bench<double> reference(tiny_model(GetParam()), 2, length);
    Bench<float> fast(tiny_model(GetParam()), 2, length);
    const double expected = reference.run(), actual = fast.run();
    EXPECT_NEAR(actual, expected, 1e-5 * expected);
    expect_close_gradients(fast, reference, 1e-5);
  }
}

// A processor with AMX takes an activation of this width into its products. It lies in blocks where 32 divides the
// tokens, 2·48 and 2·64 here; the gradients of heads do at length 64 with heads of 32.
TEST_P(WholeModel, Bf16AgreesWithDouble) {
  for (const auto& [length, dim, has_bias] :
       {std::tuple(37, 6, false), {48, 6, false}, {48, 6, true}, {64, 32, false}, {64, 32, true}}) {
    ModelSpec model = tiny_model(GetParam());
    model.ffn_hidden_size = 64, model.head_dim = dim, model.qkv_bias = false, model.linear_bias = has_bias;
    Bench<double> reference(model, 2, length);
    for (const double expected = reference.run();
         const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      SCOPED_TRACE(testing::Message() << length << " " << dim << " " << has_bias << static_cast<int>(recompute));
      Bench<bf16> fast(model, 2, length, recompute);
      EXPECT_NEAR(fast.run(), expected, 5e-3 * expected);
      expect_close_gradients(fast, reference, 0.1);  // few numbers are mostly rounding errors
    }
  }
}

TEST_P(WholeModel, SameInputsGiveTheSameBits) {
  Bench<bf16> bench(tiny_model(GetParam()), 3, 33);
  const double loss = bench.run();
  const std::vector<float> gradients = bench.gradients;
  EXPECT_EQ(bench.run(), loss);
  EXPECT_EQ(bench.gradients, gradients);
}

template <class T>
void expect_writing_is_adding_to_zeros(const ModelSpec& model, Recompute recompute) {
  for (const int micro_batches : {1, 3}) {
    Bench<T> bench(model, 3, 33, recompute);
    const double loss = bench.run(micro_batches);
    const auto gradients = bench.gradients;
    EXPECT_EQ(bench.run(micro_batches, Start::spoiled), loss);
    EXPECT_EQ(bench.gradients, gradients) << micro_batches << " micro batches";
  }
}

TEST_P(WholeModel, FirstGradientsMayBeWrittenInsteadOfAdded) {
  for (const bool tied : {false, true})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      SCOPED_TRACE(testing::Message() << (tied ? "tied " : "") << static_cast<int>(recompute));
      ModelSpec model = tiny_model(GetParam());
      model.tied_embeddings = tied;
      expect_writing_is_adding_to_zeros<float>(model, recompute);
      expect_writing_is_adding_to_zeros<bf16>(model, recompute);
      expect_writing_is_adding_to_zeros<f16>(model, recompute);
      expect_writing_is_adding_to_zeros<double>(model, recompute);
    }
}

// With the bias and the activation in the products around them.
TEST_P(WholeModel, FusedActivationsAreTheSameModel) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    SCOPED_TRACE(static_cast<int>(recompute));
    Bench<double> apart(tiny_model(GetParam()), 2, 17, recompute), fused(tiny_model(GetParam()), 2, 17, recompute);
    fused.ops.fused_gelu_multiple = fused.ops.fused_swiglu_multiple = 1;
    const double loss = apart.run(2);
    EXPECT_NEAR(fused.run(2, Start::spoiled), loss, 1e-12 * loss);
    expect_close_gradients(fused, apart, 1e-12);
  }
}

// What is computed again has the same bits, and takes less memory.
TEST_P(WholeModel, RecomputationChangesNothing) {
  Bench<float> kept(tiny_model(GetParam()), 3, 65);
  const double loss = kept.run();
  size_t bytes = kept.bytes();
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    Bench<float> again(tiny_model(GetParam()), 3, 65, recompute);
    EXPECT_EQ(again.run(), loss);
    EXPECT_EQ(again.gradients, kept.gradients);
    EXPECT_LE(again.bytes(), bytes);
    bytes = again.bytes();
  }
}

TEST_P(WholeModel, HalfPrecisionIsNear) {
  Bench<double> reference(tiny_model(GetParam()), 2, 40);
  Bench<f16> half(tiny_model(GetParam()), 2, 40);
  const double expected = reference.run();
  EXPECT_NEAR(half.run(), expected, 5e-3 * expected);
}

TEST_P(WholeModel, CountsAreThoseOfTheModelArithmetic) {
  const ModelSpec spec = tiny_model(GetParam());
  EXPECT_EQ(Bench<float>(spec, 1, 4).parameters.count(), count_parameters(spec).total());
}

std::string name_of(const testing::TestParamInfo<Family>& info) {
  const char* const names[] = {"Llama", "Qwen2", "Qwen3", "Mistral", "Gpt2"};  // in the order of Family
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Families, WholeModel,
                         testing::Values(Family::llama, Family::qwen2, Family::qwen3, Family::mistral, Family::gpt2),
                         name_of);

TEST(ParameterTest, ClearsAllButWhatIsWrittenFirst) {
  WeightPlan plan(2);
  plan.begin_unit();
  const ElementRange planned[] = {plan.add(70), plan.add(128), plan.add(64), plan.add(1)};
  plan.begin_unit();
  const ElementRange planned_other = plan.add(100);
  ParameterTable table(plan);
  const auto add = [&](const ElementRange& range, bool written) {
    Parameter parameter{"w", Shard::whole(range.size(), 1)};
    parameter.is_written_first = written;
    return table.add(parameter, range);
  };
  table.begin_unit("a");
  const int64_t first = add(planned[0], false), second = add(planned[1], true), third = add(planned[2], true),
                last = add(planned[3], false);
  EXPECT_FALSE(table.is_complete());
  table.begin_unit("b");
  const int64_t other = add(planned_other, true);
  EXPECT_TRUE(table.is_complete());
  EXPECT_EQ(third, second + 128);
  const int64_t unit = table.units()[1].begin;
  const std::vector<ElementRange> whole{{first, second}, {last, other}, {other + 100, table.size()}};
  EXPECT_EQ(table.ranges_to_clear({0, table.size()}), whole);
  EXPECT_EQ(table.ranges_to_clear({0, unit}), (std::vector<ElementRange>{{first, second}, {last, unit}}));
  EXPECT_EQ(table.ranges_to_clear({unit, table.size()}), (std::vector<ElementRange>{{other + 100, table.size()}}));
}

std::vector<double> draw(const Parameter& parameter, int64_t seed, int64_t begin, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (const InitialPiece& piece : initial_values(parameter, seed, begin, count))
    cpu_ops<double>().draw_normal(piece.count, piece.draw, values.data() + piece.first);
  return values;
}

TEST(ParameterTest, InitialValuesAreNormal) {
  const Parameter parameter{"w", Shard::whole(100, 1000), 0.0, 0.02, true};
  const std::vector<double> values = draw(parameter, 1, 0, parameter.count());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0.0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 2e-4);
  EXPECT_NE(values.front(), draw(parameter, 2, 0, 1).front());
}

// Each rank draws what it holds of the whole weight, in pieces of any size.
TEST(ParameterTest, PartsOfAWeightAreDrawnAsInTheWhole) {
  const Parameter whole{"w", Shard::whole(10, 6), 0.1, 0.02, true};
  Parameter part = whole;
  part.shard = {10, 6, {{8, 1}, {2, 3}}, 3, 2};
  const std::vector<double> all = draw(whole, 5, 0, whole.count());
  for (int64_t begin = 0; begin < part.count(); ++begin) {
    const std::vector<double> drawn = draw(part, 5, begin, part.count() - begin);
    for (size_t i = 0; i < drawn.size(); ++i)
      EXPECT_EQ(drawn[i], all[static_cast<size_t>(part.shard.whole_index(begin + static_cast<int64_t>(i)))]) << begin;
  }
}

// Rows in an order of their own, and of them some columns: what a tensor-parallel rank has of a fused weight.
TEST(ShardTest, LocalValuesLieWhereTheRowsSay) {
  const Shard shard{10, 6, {{8, 1}, {2, 2}}, 3, 2};
  EXPECT_EQ(shard.count(), 6);
  const int64_t expected[] = {51, 52, 15, 16, 21, 22};
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(shard.whole_index(i), expected[i]);
  EXPECT_TRUE(Shard::whole(3, 4).is_whole());
}

TEST(CheckTrainableTest, NamesWhatItCannotTrain) {
  ModelSpec model = tiny_model(Family::llama);
  EXPECT_TRUE(check_trainable(model, "m").empty());
  model.experts = Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 64};
  model.head_dim = 7;
  const auto problems = check_trainable(model, "m");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].what.find("mixtures of experts"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::engine
