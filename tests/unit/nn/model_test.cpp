#include "nn/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tprimat {
namespace {

ModelSpec tiny_model(bool qwen) {
  ModelSpec model;
  model.name = "tiny";
  model.full_name = "tiny";
  model.num_layers = 2;
  model.hidden_size = 24;
  model.ffn_hidden_size = 40;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 6;
  model.vocab_size = 50;
  model.max_position_embeddings = 64;
  model.tied_embeddings = qwen;
  model.qkv_bias = qwen;
  return model;
}

std::vector<int32_t> random_tokens(int64_t count, int64_t vocab, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<int32_t> pick(0, static_cast<int32_t>(vocab - 1));
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = pick(generator);
  return tokens;
}

// A model with weights and gradients in vectors of its own.
template <class T>
class Bench {
 public:
  Bench(const ModelSpec& spec, const BatchShape& batch)
      : model_(spec, Plan{parameters, plan_, batch}),
        arena_(plan_),
        weights(static_cast<size_t>(parameters.size())),
        gradients(weights.size()),
        tokens_(random_tokens(batch.tokens(), spec.vocab_size, 1)),
        targets_(random_tokens(batch.tokens(), spec.vocab_size, 2)) {
    // Larger than usual initial weights, and no constant ones, so that every path matters.
    for (const Parameter& parameter : parameters.all()) {
      const InitialValues drawn({parameter.name, 0, 1, 1, parameter.mean, 0.2, false}, 7);
      for (int64_t i = 0; i < parameter.count(); ++i)
        weights[static_cast<size_t>(parameter.offset + i)] =
            narrow<T>(static_cast<Accum<T>>(static_cast<float>(drawn.at(i))));
    }
    model_.prepare(pass());
  }

  // Mean loss; gradients are those of the mean.
  double run() {
    std::fill(gradients.begin(), gradients.end(), Accum<T>(0));
    const double scale = 1.0 / static_cast<double>(tokens_.size());
    return scale * model_.forward_backward(pass(), tokens_.data(), targets_.data(), scale);
  }

 private:
  Pass<T> pass() { return {arena_, weights.data(), gradients.data()}; }
  ArenaPlan plan_;

 public:
  ParameterTable parameters;

 private:
  Model<T> model_;
  Arena arena_;

 public:
  std::vector<T> weights;
  std::vector<Accum<T>> gradients;

 private:
  std::vector<int32_t> tokens_, targets_;
};

class WholeModel : public testing::TestWithParam<bool> {};

TEST_P(WholeModel, GradientIsThatOfFiniteDifferences) {
  Bench<double> bench(tiny_model(GetParam()), {2, 9});
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

TEST_P(WholeModel, FloatAgreesWithDoubleTo1e5) {
  for (const int64_t length : {9, 70}) {
    const ModelSpec spec = tiny_model(GetParam());
    ModelSpec long_spec = spec;
    long_spec.max_position_embeddings = 128;
    Bench<double> reference(long_spec, {2, length});
    Bench<float> fast(long_spec, {2, length});
    const double expected = reference.run(), actual = fast.run();
    EXPECT_NEAR(actual, expected, 1e-5 * expected);
    for (const Parameter& parameter : reference.parameters.all()) {
      SCOPED_TRACE(parameter.name);
      double error = 0, size = 0;
      for (int64_t i = 0; i < parameter.count(); ++i) {
        const auto at = static_cast<size_t>(parameter.offset + i);
        error += std::pow(static_cast<double>(fast.gradients[at]) - reference.gradients[at], 2);
        size += std::pow(reference.gradients[at], 2);
      }
      EXPECT_GT(size, 0.0);
      EXPECT_LE(std::sqrt(error), 1e-5 * std::sqrt(size));
    }
  }
}

TEST_P(WholeModel, SameInputsGiveTheSameBits) {
  Bench<bf16> bench(tiny_model(GetParam()), {3, 33});
  const double loss = bench.run();
  const std::vector<float> gradients = bench.gradients;
  EXPECT_EQ(bench.run(), loss);
  EXPECT_EQ(bench.gradients, gradients);
}

INSTANTIATE_TEST_SUITE_P(Shapes, WholeModel, testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "Qwen" : "Llama"; });

TEST(ParameterTest, CountsAreThoseOfTheModelArithmetic) {
  for (const bool qwen : {false, true}) {
    const ModelSpec spec = tiny_model(qwen);
    EXPECT_EQ(Bench<float>(spec, {1, 4}).parameters.count(), count_parameters(spec).total());
  }
}

TEST(ParameterTest, InitialValuesAreNormal) {
  const Parameter parameter{"w", 0, 100, 1000, 0.0, 0.02, true};
  const InitialValues initial(parameter, 1);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < parameter.count(); ++i) {
    const double value = initial.at(i);
    sum += value, squares += value * value;
  }
  const double n = static_cast<double>(parameter.count());
  EXPECT_NEAR(sum / n, 0.0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / n), 0.02, 2e-4);
  EXPECT_NE(initial.at(0), InitialValues(parameter, 2).at(0));
}

TEST(CheckTrainableTest, NamesWhatItCannotTrain) {
  ModelSpec model = tiny_model(false);
  EXPECT_TRUE(check_trainable(model, "m").empty());
  model.norm = NormKind::layer;
  model.position = PositionKind::learned;
  const auto problems = check_trainable(model, "m");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].what.find("LayerNorm"), std::string::npos);
}

}  // namespace
}  // namespace tprimat
