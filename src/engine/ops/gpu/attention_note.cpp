#include "ops/gpu/attention_note.h"

#include <fmt/format.h>

#include "device/gpu/runtime.h"
#include "ops/gpu/fallbacks.h"

namespace tprimat::engine::gpu {
namespace {

const char* name_of(AttentionPass pass, AttentionChoice choice) {
  if (choice == AttentionChoice::own) return "own";
  return choice == AttentionChoice::cudnn || pass == AttentionPass::forward ? "cudnn" : "cudnn-unordered";
}

bool is_expected() {
#if defined(TPRIMAT_GPU_CUDA)
  return true;
#else
  return is_attention_chosen();  // cuDNN is NVIDIA's
#endif
}

std::string sentence_of(AttentionPass pass, const std::string& refusal) {
  return fmt::format(
      "attention {} runs on this program's own kernels, not on cuDNN: {}; expect it to be slower, above all on Hopper "
      "and newer, whose matrix instructions these kernels do not use (set {}=own to choose them)",
      pass == AttentionPass::forward ? "forward" : "backward", refusal, k_attention_variable);
}

}  // namespace

void note_attention(AttentionPass pass, AttentionChoice choice, const std::string* refusal) {
  const char* const ran = name_of(pass, refusal == nullptr ? choice : AttentionChoice::own);
  KernelReport& report = kernel_report();
  std::string& place = pass == AttentionPass::forward ? report.attention_forward : report.attention_backward;
  if (place != ran) place = ran;
  if (refusal != nullptr && is_expected()) warn_once(sentence_of(pass, *refusal));
}

}  // namespace tprimat::engine::gpu
