#include "ops/gpu/attention_choice.h"

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace tprimat::gpu {
namespace {

AttentionChoice& choice_in_force() {
  static AttentionChoice choice = [] {
    const char* text = std::getenv(k_attention_variable);
    return text != nullptr && *text != '\0' ? read_attention_choice(text) : AttentionChoice::cudnn;
  }();
  return choice;
}

}  // namespace

AttentionChoice read_attention_choice(std::string_view text) {
  if (text == "own") return AttentionChoice::own;
  if (text == "cudnn") return AttentionChoice::cudnn;
  if (text == "cudnn-unordered") return AttentionChoice::cudnn_unordered;
  throw Error(Problem{"there is no attention '" + std::string(text) + "'", k_attention_variable,
                      "it is one of own, cudnn, cudnn-unordered"});
}

AttentionChoice attention_choice() { return choice_in_force(); }
void choose_attention(AttentionChoice choice) { choice_in_force() = choice; }

}  // namespace tprimat::gpu
