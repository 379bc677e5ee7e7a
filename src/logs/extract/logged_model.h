#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "extract/extracted_log.h"
#include "extract/stated_facts.h"
#include "result/run_result.h"
#include "spec/model_spec.h"

namespace tprimat::logs {

// Sizes of the model that the configuration dump of any framework states.
struct LoggedShape {
  std::optional<int64_t> num_layers, hidden_size, ffn_hidden_size, num_attention_heads, num_experts, experts_per_token,
      expert_ffn_hidden_size, shared_ffn_hidden_size, vocab_size;
  std::string routing = {};  // the setting that shows a mixture of experts; empty: none
  static constexpr auto fields() {
    using S = LoggedShape;
    return field_list(field("layers", &S::num_layers, ""), field("hidden size", &S::hidden_size, ""),
                      field("MLP size", &S::ffn_hidden_size, ""), field("attention heads", &S::num_attention_heads, ""),
                      field("experts", &S::num_experts, ""), field("experts per token", &S::experts_per_token, ""),
                      field("MLP size of an expert", &S::expert_ffn_hidden_size, ""),
                      field("MLP size of the shared experts", &S::shared_ffn_hidden_size, ""),
                      field("vocabulary", &S::vocab_size, ""));
  }
};
LoggedShape read_logged_shape(const std::map<std::string, std::string>& settings);

// From the model catalogue, by its name in the log.
std::optional<ModelSpec> find_named_model(const LoggedFacts& facts);

// The model's shape as the log's own configuration dump describes it (Megatron's arguments, a Hugging Face config), as
// a result file holds it, or by its name from the model catalogue. Nothing where a size is not stated: a shape is never
// guessed.
std::optional<ModelSpec> find_model_shape(const std::map<std::string, std::string>& settings, const LoggedFacts& facts);

// Sizes that the log states and `model` does not have: "layers 32, not 80". Devices and layout of the result must be
// filled already.
std::vector<std::string> list_contradictions(const RunResult& result, const ModelSpec& model,
                                             const StatedFacts& stated);

// Fills in the model of a log: name, shape, parameters and trainable parameters. Devices and layout must be filled
// already. `known` is the name given by the user, or empty; `known_shape` is its shape in a configuration, which stands
// in for the catalogue's. Throws Error where sizes in the log contradict it. Where they contradict a name in the log
// itself, the result gets no shape and a warning.
void settle_model(RunResult& result, const StatedFacts& stated, const std::string& known,
                  const std::optional<ModelSpec>& known_shape = {});

}  // namespace tprimat::logs
