#pragma once

#include <vector>

#include "nn/pass.h"

namespace tprimat::engine {

// Consecutive positions of every sequence.
struct ContextPiece {
  int64_t first_position = 0;  // in the whole sequence
  int64_t first_local = 0;     // among the local positions
  int64_t length = 0;
};

// The positions that a rank of a context-parallel group has, in the order of its local tokens. Each sequence is cut
// into 2·CP pieces and rank r has the pieces r and 2·CP−1−r, so that causal attention costs all the same (as
// Megatron-LM and Llama 3, arXiv 2407.21783, section 3.3.2). One piece where CP is 1.
std::vector<ContextPiece> context_pieces(int64_t sequence_length, int context_rank, int context_size);
// The whole-sequence position of each local token of one sequence.
std::vector<int64_t> local_positions(int64_t sequence_length, int context_rank, int context_size);

// Keys and values of whole sequences on every context-parallel rank, by all-gather, and their gradients back.
template <class T>
class ContextExchange {
 public:
  // width: elements of one token's keys and values together.
  ContextExchange(const Plan& plan, const ContextBuffers& buffers, int64_t width);

  // own: tokens×width inside rows of row_stride elements. Returns sequences×sequence_length×width; valid until the next
  // call of gather().
  T* gather(const Pass<T>& pass, const T* own, int64_t row_stride) const;
  // A zeroed place for the gradient of what gather() returned.
  T* gradient(const Pass<T>& pass) const;
  // own = this rank's rows of the sum of all ranks' gradient().
  void scatter_gradient(const Pass<T>& pass, T* own, int64_t row_stride) const;

 private:
  // Copies between rows in the order of ranks (CP×sequences×local_length) and in the order of sequences.
  void reorder(const Pass<T>& pass, bool to_sequences, T* by_sequence) const;

  int64_t sequences_, sequence_length_, local_length_, width_;
  int context_size_;
  ContextBuffers buffers_;
};

}  // namespace tprimat::engine
