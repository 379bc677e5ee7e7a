#pragma once

namespace tprimat::engine {

// How a GPU's matrix products are made, and what of their results may differ from run to run, for this process.
struct ProductSettings {
  // fp32 inputs lose 13 bits of their mantissas on the way into the matrix units (tf32), where the GPU has such units.
  bool tf32 = false;
  // The first time that a product of some shape is asked for, the library's proposals are timed, and another than its
  // first is taken where it is over 2 % faster; a sum's order, and so its last bits, then depend on those times.
  // Without, always the first. Nothing is timed while work is recorded.
  bool time_candidates = true;
  // The gradient of attention's queries may be added up in the order in which blocks finish.
  bool unordered_sums = false;
};

}  // namespace tprimat::engine
