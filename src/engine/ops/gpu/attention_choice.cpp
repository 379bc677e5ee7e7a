#include "ops/gpu/attention_choice.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/error.h"
#include "device/gpu/runtime.h"
#include "ops/gpu/blas_product.h"

namespace tprimat::engine::gpu {
namespace {

std::optional<AttentionChoice>& chosen_attention() {
  static std::optional<AttentionChoice> choice = [] {
    const char* text = std::getenv(k_attention_variable);
    return text != nullptr && *text != '\0' ? std::optional(read_attention_choice(text)) : std::nullopt;
  }();
  return choice;
}

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

AttentionChoice read_attention_choice(std::string_view text) {
  if (text == "own") return AttentionChoice::own;
  if (text == "cudnn") return AttentionChoice::cudnn;
  if (text == "cudnn-unordered") return AttentionChoice::cudnn_unordered;
  throw Error(Problem{"unknown attention '" + std::string(text) + "'", k_attention_variable,
                      "choose own, cudnn or cudnn-unordered"});
}

AttentionChoice attention_choice() {
  if (chosen_attention()) return *chosen_attention();
  return product_settings().unordered_sums ? AttentionChoice::cudnn_unordered : AttentionChoice::cudnn;
}
bool is_attention_chosen() { return chosen_attention().has_value(); }
std::optional<AttentionChoice> choose_attention(std::optional<AttentionChoice> choice) {
  return std::exchange(chosen_attention(), choice);
}

void note_attention(AttentionPass pass, AttentionChoice choice, const std::string* refusal) {
  const char* const ran = name_of(pass, refusal == nullptr ? choice : AttentionChoice::own);
  KernelReport& report = kernel_report();
  std::string& place = pass == AttentionPass::forward ? report.attention_forward : report.attention_backward;
  if (place != ran) place = ran;
  if (refusal != nullptr && is_expected()) warn_once(sentence_of(pass, *refusal));
}

}  // namespace tprimat::engine::gpu
