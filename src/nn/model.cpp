#include "nn/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/embedding.h"
#include "ops/rope.h"

namespace tprimat {
namespace {

template <class T>
std::vector<Block<T>> make_blocks(const ModelSpec& model, const Plan& plan) {
  std::vector<Block<T>> blocks;
  for (int64_t layer = 0; layer < model.num_layers; ++layer)
    blocks.emplace_back(model, plan, fmt::format("layers.{}", layer));
  return blocks;
}

int64_t head_weight(const ModelSpec& model, const Plan& plan, int64_t embedding) {
  if (model.tied_embeddings) return embedding;
  return plan.parameters.add_matrix("head.weight", model.vocab_size, model.hidden_size, k_init_stddev);
}

}  // namespace

std::vector<Problem> check_trainable(const ModelSpec& model, const std::string& where) {
  std::vector<Problem> problems;
  const auto refuse = [&](bool present, const std::string& what) {
    if (present)
      problems.push_back(
          {"the native trainer does not train " + what + " yet", where, "choose a Llama, Qwen 2.5 or Mistral shape"});
  };
  refuse(model.norm != NormKind::rms, "models with LayerNorm (norm: layer)");
  refuse(model.mlp != MlpKind::swiglu, "models with a GELU MLP (mlp: gelu)");
  refuse(model.position != PositionKind::rope, "models with learned positions (position: learned)");
  refuse(model.linear_bias, "models with a bias on every linear layer (linear_bias: true)");
  refuse(model.qk_norm, "models that norm queries and keys (qk_norm: true)");
  refuse(model.num_experts.has_value(), "mixtures of experts (num_experts)");
  refuse(model.head_dim % 2 != 0, "odd head sizes (head_dim)");
  return problems;
}

template <class T>
Model<T>::Model(const ModelSpec& model, const Plan& plan)
    : batch_(plan.batch),
      hidden_(model.hidden_size),
      rope_theta_(model.rope_theta),
      head_dim_(model.head_dim),
      embedding_(plan.parameters.add_matrix("embedding.weight", model.vocab_size, model.hidden_size, k_init_stddev)),
      embedded_(plan.arena.reserve<T>("activations", plan.batch.tokens() * model.hidden_size)),
      shared_(model, plan),
      blocks_(make_blocks<T>(model, plan)),
      final_norm_(plan, "final_norm", model.hidden_size, model.norm_eps),
      classifier_(model, plan, head_weight(model, plan, embedding_)),
      dstream_(plan.arena.reserve<T>("workspace", plan.batch.tokens() * model.hidden_size)) {}

template <class T>
void Model<T>::prepare(const Pass<T>& pass) const {
  fill_rope_table<Accum<T>>(batch_.sequence_length, head_dim_, rope_theta_, shared_.attention.rope(pass));
}

template <class T>
double Model<T>::forward_backward(const Pass<T>& pass, const int32_t* tokens, const int32_t* targets,
                                  double gradient_scale) const {
  const EmbeddingShape embedding_shape{batch_.tokens(), hidden_};
  std::vector<const T*> stream{pass.arena.at(embedded_)};  // the residual stream before each block, and after the last
  embedding_forward<T>(embedding_shape, tokens, pass.weights + embedding_, pass.arena.at(embedded_));
  for (const Block<T>& block : blocks_) stream.push_back(block.forward(pass, shared_, stream.back()));

  T* const dnormed = pass.arena.at(shared_.branch);
  T* const dstream = pass.arena.at(dstream_);
  const double loss =
      classifier_.forward_backward(pass, final_norm_.forward(pass, stream.back()), targets, gradient_scale, dnormed);

  std::fill_n(dstream, dstream_.count, T{});
  final_norm_.backward(pass, stream.back(), dnormed, dstream);
  for (size_t layer = blocks_.size(); layer-- > 0;) blocks_[layer].backward(pass, shared_, stream[layer], dstream);
  embedding_backward<T>(embedding_shape, tokens, dstream, pass.gradients + embedding_);
  return loss;
}

template class Model<float>;
template class Model<bf16>;
template class Model<double>;

}  // namespace tprimat
