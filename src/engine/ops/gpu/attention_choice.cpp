#include "ops/gpu/attention_choice.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "base/error.h"
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

}  // namespace tprimat::engine::gpu
