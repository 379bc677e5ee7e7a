#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/block.h"
#include "nn/classifier.h"
#include "nn/embedding.h"
#include "nn/norm.h"

namespace tprimat {

// What the native trainer cannot train of a sound model (check_model), as problems that name the setting; empty when it
// can.
std::vector<Problem> check_trainable(const ModelSpec& model, const std::string& where);

// Consecutive layers of a model that one pipeline stage runs at a time. The whole model without pipeline parallelism.
struct ChunkShape {
  int64_t first_layer = 0, layers = 0;
  bool embeds = true;      // begins with the embedding
  bool classifies = true;  // ends with the head and the loss
};
// Chunk `chunk` (0 … VP−1) of stage `stage` (0 … PP−1): layers are dealt in turn, as Megatron-LM's interleaved schedule
// does (arXiv 2104.04473, section 2.2).
ChunkShape chunk_shape(const ModelSpec& model, const ParallelSpec& layout, int stage, int chunk);

// Buffers that all chunks of a stage share, because only one works at a time.
template <class T>
struct ChunkShared {
  ChunkShared(const ModelSpec& model, const Plan& plan) : blocks(model, plan), positions(model, plan) {}
  // Once, after the arena exists: tables that do not change.
  void prepare(const Pass<T>& pass) const {
    blocks.attention.prepare(pass);
    positions.prepare(pass);
  }
  BlockShared<T> blocks;
  StreamPositions positions;
};

// The inputs of one micro batch in the device's memory; each of sequences×local_length.
struct MicroBatch {
  const int32_t* tokens = nullptr;
  const int32_t* targets = nullptr;
};

// A part of a decoder-only Transformer (Llama, Qwen, Mistral, GPT): embedding, blocks, norm, head with loss, as far as
// its shape says.
template <class T>
class ModelChunk {
 public:
  // Registers every weight and buffer; the arena is made from the plans afterwards.
  ModelChunk(const ModelSpec& model, const ChunkShape& shape, const Plan& plan);

  // Where the stream that comes from the previous chunk goes (stream_tokens×hidden); nullptr for one that embeds.
  T* received_input(const Pass<T>& pass) const { return shape_.embeds ? nullptr : pass.at(input_); }

  // Returns the output (stream_tokens×hidden, kept until backward); nullptr where it classifies: there it adds the
  // losses to the pass's, and the head's gradients of (Σ losses)·gradient_scale.
  const T* forward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const MicroBatch& batch,
                   double gradient_scale) const;
  // Forward without keeping anything for a backward pass, and without gradients.
  const T* evaluate(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                    const MicroBatch& batch) const;
  // Logits of the whole model on one rank: tokens×vocabulary, in the host's memory.
  std::vector<Accum<T>> logits(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                               const MicroBatch& batch) const;
  // dstream (stream_tokens×hidden): gradient of the output on entry, of the input on return. For one that classifies
  // what is in it on entry does not matter. Adds to all gradients.
  void backward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const MicroBatch& batch,
                T* dstream) const;

 private:
  const T* normalise(const Pass<T>& head, const Stream<T>& stream) const;
  T* hand_on(const Pass<T>& pass, const Stream<T>& stream) const;
  Stream<T> run_layers(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                       const MicroBatch& batch) const;
  void embed(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const int32_t* tokens) const;
  void embed_backward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const int32_t* tokens,
                      const T* dstream) const;
  void classify(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const Stream<T>& stream,
                std::pair<const int32_t*, double> targets_and_scale) const;
  void evaluate_head(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const Stream<T>& stream,
                     const int32_t* targets) const;

  ChunkShape shape_;
  int64_t elements_;  // stream_tokens·hidden
  int64_t logits_;    // tokens·vocabulary
  bool tied_;
  int embedding_unit_ = -1, position_unit_ = -1, head_unit_ = -1;
  std::vector<int> block_units_;
  std::optional<Embedding<T>> embedding_;  // of the first chunk; of the last too where the head is tied
  std::optional<Positions<T>> positions_;
  Slot<T> input_;  // of the first block: received, or embedded
  std::vector<Block<T>> blocks_;
  std::optional<Norm<T>> final_norm_;
  std::optional<Classifier<T>> classifier_;
  Slot<T> output_, head_gradient_, dnormed_;
};

}  // namespace tprimat
