#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tprimat::engine::gpu {

// What computes attention on a GPU. By rule, not by measuring, so that every run of a training does the same: NVIDIA's
// cuDNN where it is installed, the values are bf16 or f16, and it does the shape; our own kernels otherwise. The
// logsumexp of both is the same, so that one may do the forward pass and the other the backward pass.
enum class AttentionChoice {
  own,
  cudnn,            // the same inputs give the same bits, as in our own
  cudnn_unordered,  // dquery is added up in the order in which blocks happen to finish
};

// The variable of the environment that overrides the rule: own, cudnn or cudnn-unordered.
inline constexpr const char* k_attention_variable = "TPRIMAT_ATTENTION";
// Throws Error where the text is none of these.
AttentionChoice read_attention_choice(std::string_view text);

// In force: what choose_attention was given last, else the variable's, else cudnn, unordered where the training need
// not repeat bit for bit (ProductSettings): sums in order take memory in proportion to the square of the sequence
// before cuDNN 9.25, and time.
AttentionChoice attention_choice();
// Whether somebody chose, by either way, what is in force.
bool is_attention_chosen();
// Nothing: by the rule. Returns what was chosen before.
std::optional<AttentionChoice> choose_attention(std::optional<AttentionChoice> choice);

enum class AttentionPass { forward, backward };

// Notes what did a pass of attention: as chosen where `refusal` is null, else our own kernels, because of it. Each
// reason is a warning once where cuDNN was asked for by name, and on GPUs of NVIDIA.
void note_attention(AttentionPass pass, AttentionChoice choice, const std::string* refusal);

}  // namespace tprimat::engine::gpu
