#include <fmt/format.h>

#include "base/error.h"
#include "hugging_face/config_keys.h"
#include "hugging_face/model_config.h"
#include "hugging_face/sparse_config.h"

namespace tprimat {
namespace {

bool is_gpt2(const ModelSpec& model) {
  return model.norm == NormKind::layer && model.mlp == MlpKind::gelu && model.position == PositionKind::learned &&
         model.linear_bias && !model.qk_norm && !model.rope_scaling && !model.sliding_window &&
         model.num_key_value_heads == model.num_attention_heads &&
         model.num_attention_heads * model.head_dim == model.hidden_size;
}

bool is_llama_like(const ModelSpec& model) {
  return model.norm == NormKind::rms && model.mlp == MlpKind::swiglu && model.position == PositionKind::rope;
}

Error no_family(const std::string& why) {
  return Error(Problem{"cannot be written as a Hugging Face model: " + why, "model",
                       "choose the settings of Llama, Qwen 2.5, Qwen 3, Mistral or GPT-2"});
}

HuggingFaceFamily find_llama_like(const ModelSpec& model) {
  if (model.qk_norm) {
    if (model.qkv_bias || model.linear_bias) throw no_family("qk_norm together with a bias");
    return HuggingFaceFamily::qwen3;
  }
  const bool odd_width = model.hidden_size % model.num_attention_heads != 0;  // which Llama and GPT-2 refuse
  if (model.linear_bias) {
    if (model.sliding_window) throw no_family("linear_bias together with a sliding window");
    if (odd_width) throw no_family("linear_bias with a hidden_size that is not a multiple of the heads");
    return HuggingFaceFamily::llama;
  }
  if (model.qkv_bias) return HuggingFaceFamily::qwen2;
  return model.sliding_window || odd_width ? HuggingFaceFamily::mistral : HuggingFaceFamily::llama;
}

Json gpt2_config(const ModelSpec& model) {
  return {{"n_layer", model.num_layers},
          {"n_embd", model.hidden_size},
          {"n_inner", model.ffn_hidden_size},
          {"n_head", model.num_attention_heads},
          {"n_positions", model.max_position_embeddings},
          {"layer_norm_epsilon", model.norm_eps},
          {"activation_function", "gelu_new"},
          {"scale_attn_weights", true},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0}};
}

void write_window(const ModelSpec& model, HuggingFaceFamily family, Json& config) {
  if (family == HuggingFaceFamily::llama) return;
  config["sliding_window"] = model.sliding_window ? Json(*model.sliding_window) : Json(nullptr);
  if (family == HuggingFaceFamily::mistral) return;
  if (family == HuggingFaceFamily::mixtral) return;
  const std::string type = model.sliding_window ? "sliding_attention" : "full_attention";
  config["use_sliding_window"] = model.sliding_window.has_value();
  config["max_window_layers"] = model.sliding_window ? 0 : model.num_layers;
  config["layer_types"] = std::vector<std::string>(static_cast<size_t>(model.num_layers), type);
}

Json llama_config(const ModelSpec& model, HuggingFaceFamily family) {
  Json config{{"num_hidden_layers", model.num_layers},
              {"hidden_size", model.hidden_size},
              {"intermediate_size", model.ffn_hidden_size},
              {"num_attention_heads", model.num_attention_heads},
              {"num_key_value_heads", model.num_key_value_heads},
              {"head_dim", model.head_dim},
              {"max_position_embeddings", model.max_position_embeddings},
              {"rms_norm_eps", model.norm_eps},
              {"hidden_act", "silu"},
              {"attention_dropout", 0.0}};
  if (family == HuggingFaceFamily::llama) config["mlp_bias"] = model.linear_bias;
  if (family == HuggingFaceFamily::llama || family == HuggingFaceFamily::qwen3 ||
      family == HuggingFaceFamily::qwen3_moe)
    config["attention_bias"] = model.linear_bias;
  write_rope_settings(model, config);
  if (!model.latent_attention) write_window(model, family, config);
  if (model.experts) config.update(sparse_config(model, family));
  return config;
}

std::string class_name(HuggingFaceFamily family) {
  switch (family) {
    case HuggingFaceFamily::llama: return "LlamaForCausalLM";
    case HuggingFaceFamily::qwen2: return "Qwen2ForCausalLM";
    case HuggingFaceFamily::qwen3: return "Qwen3ForCausalLM";
    case HuggingFaceFamily::mistral: return "MistralForCausalLM";
    case HuggingFaceFamily::gpt2: return "GPT2LMHeadModel";
    case HuggingFaceFamily::mixtral: return "MixtralForCausalLM";
    case HuggingFaceFamily::qwen2_moe: return "Qwen2MoeForCausalLM";
    case HuggingFaceFamily::qwen3_moe: return "Qwen3MoeForCausalLM";
    case HuggingFaceFamily::deepseek_v2: return "DeepseekV2ForCausalLM";
    case HuggingFaceFamily::deepseek_v3: return "DeepseekV3ForCausalLM";
    case HuggingFaceFamily::gpt_oss: return "GptOssForCausalLM";
  }
  return "?";
}

// Which the families without experts lack.
void refuse_parts_of_sparse_models(const ModelSpec& model) {
  if (model.latent_attention) throw no_family("latent_attention without experts");
  if (model.mamba) throw no_family("Mamba mixers are not supported");
  if (model.attention_sinks.value_or(false)) throw no_family("attention_sinks are not supported");
  if (model.full_attention_layers) throw no_family("full_attention_layers beside a sliding window");
  if (model.prediction_layers.value_or(0) > 0) throw no_family("only DeepSeek-V3 has prediction_layers");
}

}  // namespace

HuggingFaceFamily find_hugging_face_family(const ModelSpec& model) {
  if (model.experts) return find_sparse_family(model);
  refuse_parts_of_sparse_models(model);
  if (is_llama_like(model)) return find_llama_like(model);
  if (is_gpt2(model)) return HuggingFaceFamily::gpt2;
  throw no_family(fmt::format(
      "norm {}, mlp {}, position {}, linear_bias {}, qk_norm {}, {} query and {} key/value heads of {} in a width of "
      "{}",
      enum_name(model.norm), enum_name(model.mlp), enum_name(model.position), model.linear_bias, model.qk_norm,
      model.num_attention_heads, model.num_key_value_heads, model.head_dim, model.hidden_size));
}

Json make_hugging_face_config(const ModelSpec& model, NumberFormat format) {
  const HuggingFaceFamily family = find_hugging_face_family(model);
  Json config{{"architectures", Json::array({class_name(family)})},
              {"model_type", enum_name(family)},
              {"torch_dtype", enum_name(format)},  // of transformers 4
              {"dtype", enum_name(format)},        // of transformers 5
              {"vocab_size", model.vocab_size},
              {"tie_word_embeddings", model.tied_embeddings},
              {"bos_token_id", nullptr},
              {"eos_token_id", nullptr},
              {"initializer_range", 0.02}};
  config.update(family == HuggingFaceFamily::gpt2 ? gpt2_config(model) : llama_config(model, family));
  return config;
}

}  // namespace tprimat
