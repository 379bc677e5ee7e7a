#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/block.h"
#include "nn/classifier.h"
#include "nn/embedding.h"
#include "nn/norm.h"

namespace tprimat::engine {

// What the native trainer cannot train of a sound model (check_model), as problems that name the setting; empty when it
// can.
std::vector<Problem> check_trainable(const ModelSpec& model, const std::string& where);

// Buffers that all chunks of a stage share, because only one works at a time.
template <class T>
struct ChunkShared {
  ChunkShared(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers)
      : blocks(model, plan, buffers), positions(model, plan, buffers) {}
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

// What the loss of a micro-batch is taken of, and the factor on its gradient.
struct LossTargets {
  const int32_t* tokens = nullptr;
  double scale = 1.0;
};

// A part of a decoder-only Transformer (Llama, Qwen, Mistral, GPT): embedding, blocks, norm, head with loss, as far as
// its shape says.
template <class T>
class ModelChunk {
 public:
  // Gives every planned weight its name.
  ModelChunk(const ModelSpec& model, const Plan& plan, const ChunkShape& shape, const ChunkBuffers& buffers);

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
  void add_head(const ModelSpec& model, const Plan& plan, const HeadBuffers& buffers);
  const T* normalise(const Pass<T>& head, const Stream<T>& stream) const;
  void clear_gradient(const Pass<T>& pass, T* dstream) const;
  void copy_gradient(const Pass<T>& pass, T* dstream) const;
  T* hand_on(const Pass<T>& pass, const Stream<T>& stream) const;
  Stream<T> run_layers(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home,
                       const MicroBatch& batch) const;
  void embed(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const int32_t* tokens) const;
  void embed_backward(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const int32_t* tokens,
                      const T* dstream) const;
  void classify(const Pass<T>& pass, const ChunkShared<T>& shared, WeightHome<T>& home, const Stream<T>& stream,
                const LossTargets& targets) const;
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
  Slot<Element> input_;  // of the first block: received, or embedded
  std::vector<Block<T>> blocks_;
  std::optional<Norm<T>> final_norm_;
  std::optional<Classifier<T>> classifier_;
  Slot<Element> output_, head_gradient_, dnormed_;
};

}  // namespace tprimat::engine
