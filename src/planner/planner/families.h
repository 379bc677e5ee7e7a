#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::planner {

// A program that trains, as far as time and memory differ between programs: one row of
// src/planner/planner/families.tsv.
struct Family {
  std::string id;                 // scope of calibrated parameters: "megatron_core"
  std::string full_name;          // for people
  bool fused_attention = true;    // scores are never written (arXiv 2205.14135)
  bool fused_elementwise = true;  // norms, activations and residuals run in few kernels
  bool balances_ends = false;  // a pipeline's stages take layers until they weigh their share with the head (nanotron)
  bool fills_stages =
      false;  // a pipeline's stages are filled one after the other; the last gets what is left (DeepSpeed)
  bool scattered_transfers = true;  // tensor-parallel ranks each send their share of a pipeline's activations
  bool dropout = false;             // masks are kept, one byte an element
  bool narrow_gathers = false;      // in FP8, with one scale per tensor, weights and activations are gathered in 8 bits
  bool exchanges_tensors = false;   // a sharded optimizer exchanges each weight tensor by itself
  bool fully_sharded = false;       // weights are gathered layer by layer (ZeRO-3, FSDP)
  bool sharded_optimizer = false;   // ZeRO-1 unless the layout says more
  bool fp32_gradients = true;       // gradients are summed and exchanged in 4 bytes, else in 2
  int64_t chunks = 1;               // virtual stages per rank where nobody states them; 0: one for each layer
  bool overlaps_tensor = false;     // tensor-parallel exchanges can hide behind products
  bool fused_loss = false;          // scores stay in 16 bits and are overwritten by their gradient
  bool fp32_shards = false;         // sharded weights are kept in fp32 alone, and gathered in 16 bits (PyTorch FSDP)
  bool deepspeed_states = false;    // DeepSpeed's ZeRO-1: 2-byte gradients; bf16 sums them in fp32, fp16 on the shard
  bool shards_weights = false;      // can shard weights too, where there is no pipeline (Megatron-FSDP)
  bool tensor_parallel = false;     // what the program can do
  bool pipeline_parallel = false;
  bool context_parallel = false;
  bool interleaves = false;
  bool expert_parallel = false;     // ranks can share a layer's routed experts (EP)
  bool expert_tensor = false;       // and split each of them (ETP)
  bool selects_modules = false;     // `selective` can repeat named parts of a layer
  bool explicit_stages = false;     // takes a list of the layers of each chunk of a pipeline
  bool counts_ends = false;         // embedding and loss can count as layers where a pipeline cuts the model
  bool own_trainer = false;         // tprimat's: its buffers are counted (planner/memory.h)
  bool operator_recompute = false;  // `selective` keeps every second product (torchtitan), else repeats attention
};
const std::vector<Family>& families();

// By id or a word of families.tsv; nothing for others.
const Family* find_family(std::string_view name);

// By the longest word that occurs in a framework's name as tables print it; nothing for others.
const Family* find_printed_family(std::string_view framework);

}  // namespace tprimat::planner
