#pragma once

#include <string>
#include <vector>

#include "nn/block.h"
#include "nn/classifier.h"
#include "nn/norm.h"

namespace tprimat {

// What this engine cannot train yet of a sound model (check_model), as problems that name the setting; empty when it
// can.
std::vector<Problem> check_trainable(const ModelSpec& model, const std::string& where);

// A decoder-only Transformer (Llama, Qwen 2.5, Mistral): embedding, blocks, norm, head with loss.
template <class T>
class Model {
 public:
  // Registers every weight and buffer; the arena is made from the plan afterwards.
  Model(const ModelSpec& model, const Plan& plan);

  // Once, after the arena exists: tables that do not change.
  void prepare(const Pass<T>& pass) const;

  // One micro batch: tokens and targets are sequences×sequence_length. Adds to all gradients of (Σ
  // losses)·gradient_scale and returns Σ losses over the tokens, in nats.
  double forward_backward(const Pass<T>& pass, const int32_t* tokens, const int32_t* targets,
                          double gradient_scale) const;

 private:
  BatchShape batch_;
  int64_t hidden_;
  double rope_theta_;
  int64_t head_dim_;
  int64_t embedding_;
  Slot<T> embedded_;
  BlockShared<T> shared_;
  std::vector<Block<T>> blocks_;
  Norm<T> final_norm_;
  Classifier<T> classifier_;
  Slot<T> dstream_;  // gradient of the residual stream
};

}  // namespace tprimat
