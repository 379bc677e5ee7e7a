#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory/training_plan.h"
#include "nn/model_chunk.h"
#include "spec/pipeline_schedule.h"
#include "train/batch_reader.h"
#include "train/weight_store.h"

namespace tprimat::engine {

// The layers that one rank has, and how micro batches pass through them: the whole model, or one stage of a pipeline.
template <class T>
class Stage {
 public:
  // Gives every planned weight its name.
  Stage(const TrainSpec& spec, const RankPlace& place, const TrainingPlan& plan, ParameterTable& parameters);
  // Once the arena exists.
  void attach(const Arena& arena, const Compute<T>& compute, const RankGroups& ranks, WeightHome<T>& home);
  void use_clock(OpClock* clock) { clock_ = clock; }

  // One step's micro batches, forward and backward. `store` clears its gradients before them, and is told which
  // backward pass is the last. Returns the sum of this rank's losses (0 where it has no head). On a single GPU the
  // first step is done operation by operation, which lets libraries choose what they do; later ones repeat what the
  // second recorded.
  double run(const BatchReader& batches, double gradient_scale, WeightStore<T>& store);
  // Forward only.
  double evaluate(const BatchReader& batches);
  // Of the first micro batch, on a training of one rank: tokens×vocabulary.
  std::vector<double> logits(const BatchReader& batches);
  // The unit whose second copy another stage has, or -1.
  int tied_unit() const { return tied_unit_; }

 private:
  struct Chunk {
    ModelChunk<T> layers;
    ChunkShape shape;
    int64_t banks;  // micro batches under way at most
    Slot<std::byte> memory;
    size_t bank_bytes;
    std::vector<TransferPtr> sends;  // of the output in each bank
  };
  void add_chunk(const PlannedChunk& planned, const Plan& plan);
  Pass<T> pass(const Chunk& chunk, int64_t micro) const;
  struct RecordedStep {
    std::unique_ptr<RecordedWork> work;
    double gradient_scale;
    OpClock* clock;  // whose events are in it
  };
  bool can_record() const;
  void record(const BatchReader& batches, double gradient_scale, WeightStore<T>& store);
  void work(const BatchReader& batches, double gradient_scale, WeightStore<T>& store);
  std::string name_range(const char* pass, int chunk, int64_t micro) const;
  void clear_loss() const;
  double read_loss() const;
  TransferPtr start_exchange(bool receive, T* stream, int place, int tag) const;
  int place_of(int chunk) const { return chunk * pipeline_size_ + pipeline_rank_; }  // among all chunks of the model
  void forward(int chunk, int64_t micro, const BatchReader& batches, double gradient_scale);
  void backward(int chunk, int64_t micro, const BatchReader& batches);
  void evaluate(int chunk, int64_t micro, const BatchReader& batches);

  TrainSpec spec_;
  int pipeline_rank_, pipeline_size_;
  int64_t elements_;  // of the stream
  std::unique_ptr<ChunkShared<T>> shared_;
  std::vector<Chunk> chunks_;
  std::vector<PipelineAction> schedule_;
  int tied_unit_ = -1;
  std::array<Slot<Element>, 2> gradients_;  // of the stream
  Slot<double> loss_;                       // Σ of this rank's losses in this step, nats
  std::array<TransferPtr, 2> gradient_sends_;
  int next_gradient_ = 0;
  const Arena* arena_ = nullptr;
  std::optional<Compute<T>> compute_;
  std::optional<RecordedStep> recorded_;
  bool ran_before_ = false;
  const RankGroups* ranks_ = nullptr;
  WeightHome<T>* home_ = nullptr;
  OpClock* clock_ = nullptr;
};

}  // namespace tprimat::engine
