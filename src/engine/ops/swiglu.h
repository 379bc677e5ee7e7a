#pragma once

#include <cstdint>

#include "device/element.h"

namespace tprimat::engine {

// SwiGLU (Shazeer, arXiv 2002.05202): y = silu(gate) · up, silu(z) = z / (1 + e^−z).
struct SwigluShape {
  int64_t rows = 0;
  int64_t width = 0;  // inner width of the MLP
};

template <class T>
struct SwigluOps {
  // gate_up: rows × 2·width, gate first; y: rows × width.
  void (*swiglu_forward)(const SwigluShape&, const T* gate_up, T* y);
  // dgate_up (rows × 2·width) is overwritten; it may be gate_up itself.
  void (*swiglu_backward)(const SwigluShape&, const T* gate_up, const T* dy, T* dgate_up);
};

}  // namespace tprimat::engine
