#pragma once

#include <array>

namespace tprimat::engine::gpu::host {

// How the matrix library of the shim behaves, for tests.
struct BlasHabits {
  int candidates = 1;                             // that a search finds
  std::array<double, 8> pause_milliseconds = {};  // of each candidate, before it multiplies
  bool knows_epilogues = true, knows_tf32 = true;
  double epilogue_milliseconds = 0;  // that a product with an epilogue takes longer
  // What it saw.
  int searches = 0;
  int products = 0, fused_products = 0;
  int last_candidate = -1;
  int handles = 0;  // that exist
};
BlasHabits& blas_habits();

}  // namespace tprimat::engine::gpu::host
