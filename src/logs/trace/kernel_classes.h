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
  softmax,      // and cross-entropy
  embedding,    // look-up and its gradient
  reduction,    // and sorting
  elementwise,  // and copies and fills by kernels
  optimizer,
  collective,
  copy,  // data moved or filled by the copy engines; on the processor, by any operation
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

// The same where the operation that launched the kernel is known too: kernels of attention may bear names that say
// nothing, such as "bwd_kernel_fuse".
KernelClass classify_kernel(std::string_view name, std::string_view operation);

// The same for an operation of PyTorch on the processor: "aten::addmm", "gloo:all_reduce".
KernelClass classify_operation(std::string_view name);

}  // namespace tprimat::logs
