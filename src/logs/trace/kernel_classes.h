#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "text/enum_names.h"

namespace tprimat::logs {

// The kind of a kernel, by its name.
enum class KernelClass : uint8_t {
  matmul,
  attention,
  convolution,
  norm,
  softmax_loss,
  elementwise,  // and reductions
  optimizer,
  collective,
  copy,  // data moved or filled, by copy engines or by kernels
  other
};

// One line of the table below. Texts are in lower case, with blanks between. One of them must occur anywhere in the
// name; "^" ties it to the beginning.
struct KernelPattern {
  KernelClass kernel_class;
  std::string_view texts;
  std::string_view also = "";  // one of these must occur too
};

// In the order in which they are tried.
std::span<const KernelPattern> kernel_patterns();

KernelClass classify_kernel(std::string_view name);

// The same for an operation of PyTorch on the processor: "aten::addmm", "gloo:all_reduce".
KernelClass classify_operation(std::string_view name);

}  // namespace tprimat::logs
