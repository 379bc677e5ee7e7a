#pragma once

#include "spec/train_spec.h"

namespace tprimat::engine {

// Two layers, 0.4 M parameters: learns within 40 steps, in a second or two.
inline TrainSpec small_training(Precision precision) {
  TrainSpec spec;
  ModelSpec& model = spec.model;
  model.name = model.full_name = "small";
  model.num_layers = 2;
  model.hidden_size = 128;
  model.ffn_hidden_size = 256;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 32;
  model.vocab_size = 512;
  model.max_position_embeddings = 256;
  spec.optimizer.learning_rate = 3e-3;
  spec.optimizer.warmup_steps = 4;
  spec.precision = precision;
  spec.sequence_length = 64;
  spec.micro_batch_size = 4;
  spec.global_batch_size = 16;
  spec.steps = 40;
  return spec;
}

}  // namespace tprimat::engine
